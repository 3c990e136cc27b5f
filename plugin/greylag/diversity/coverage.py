"""SVM-div's model (Yue & Joachims, ICML 2008): a set of documents is as good as the words that it covers are important.

A document covers a word at level l if it meets the l-th criterion for it (Table 1). V_l(y) are the words that some
document of y covers at level l; D_l(v) the candidates that cover v at level l, of n. How important a word is, is
learned, from binary features phi_l(v, x), one for each threshold on |D_l(v)| / n (Table 2). The joint features are

    Psi(x, y) = 1/n (sum of phi_1(v, x) over v in V_1(y), ..., sum of phi_L(v, x) over v in V_L(y),
                     sum of psi(d, x) over d in y)                                                      (eq. 4)

with psi the features of single documents, if there are any, so that relevance and diversity are learned together. The
factor 1/n makes queries with few candidates and with many alike to the learner, and changes no prediction. All of this
is about one query's candidates; `greylag.diversity.candidates` makes them from rankings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.sparse import csr_matrix

from greylag.errors import ModelError, ParameterError
from greylag.greedy import Gain, greedy
from greylag.ranking import FloatArray, IntArray

Kind = Literal["count", "frequency", "title", "tfidf"]


class Criterion(NamedTuple):
    """When a document covers a word (Table 1).

    - ("count", c): it holds the word at least c times.
    - ("frequency", p): the word is at least the share p of its tokens, p in (0, 1].
    - ("title", c): its title holds the word at least c times.
    - ("tfidf", t): the word is among its t words of highest (1 + log tf) idf; of equal ones, by the words' numbers.
    """

    kind: Kind
    bound: float

    def __str__(self) -> str:
        return f"{self.kind}{'<=' if self.kind == 'tfidf' else '>='}{self.bound:.15g}"


@dataclass(frozen=True)
class CoverageFeatures:
    """What Psi is made of.

    Parameters
    ----------
    criteria : the L levels, each once.
    thresholds : on |D_l(v)| / n, in (0, 1], ascending; the same for each level.
    document_features : names of the features of single documents (see `greylag.diversity.candidates`).

    Raises
    ------
    ParameterError
        A value outside its domain.
    """

    criteria: tuple[Criterion, ...]
    thresholds: tuple[float, ...]
    document_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "criteria", tuple(Criterion(*criterion) for criterion in self.criteria))
        object.__setattr__(self, "thresholds", tuple(float(threshold) for threshold in self.thresholds))
        object.__setattr__(self, "document_features", tuple(self.document_features))
        for criterion in self.criteria:
            if criterion.kind not in get_args(Kind) or not 0 < criterion.bound < np.inf:
                raise ParameterError(f"{tuple(criterion)} is no criterion: see greylag.diversity.coverage.Criterion")
        for name, values in (("criteria", self.criteria), ("document_features", self.document_features)):
            if len(set(values)) != len(values):
                raise ParameterError(f"{name} hold one twice: {', '.join(map(str, values))}")
        edges = np.array([0.0, *self.thresholds])
        if not (np.diff(edges) > 0).all() or edges[-1] > 1:
            raise ParameterError(f"thresholds have to ascend, above 0 and up to 1, not {self.thresholds}")

    @property
    def n_features(self) -> int:
        """d, the length of Psi."""
        return len(self.criteria) * len(self.thresholds) + len(self.document_features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The features' names, in the order of Psi: ``count>=2 in 0.4`` is on |D_l(v)| / n >= 0.4."""
        words = (f"{criterion} in {threshold:.15g}" for criterion in self.criteria for threshold in self.thresholds)
        return (*words, *self.document_features)


_TERM_FREQUENCY = (
    *(Criterion("count", c) for c in (1, 2, 3, 5, 10)),
    *(Criterion("frequency", p) for p in (0.01, 0.02, 0.05, 0.1)),
    Criterion("title", 1),
)
_TFIDF = tuple(Criterion("tfidf", t) for t in (1, 3, 5, 10, 20))
# From any document at all to nearly all of them, closer together where most words are.
_THRESHOLDS = tuple(
    share / 1000
    for share in (1, 20, 40, 60, 80, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900)
)

PRESETS = {
    "svmdiv": CoverageFeatures(_TERM_FREQUENCY, _THRESHOLDS),
    "svmdiv2": CoverageFeatures(_TERM_FREQUENCY + _TFIDF, _THRESHOLDS),
}
"""The paper's two feature spaces, by its names: term frequency and titles (200 features), and TF-IDF too (300)."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """A query's n candidates x, best first, as the model sees them.

    Parameters
    ----------
    features : what Psi is made of.
    coverage : 0 or 1, shape (n, M): which documents cover which of M pairs of a level and a word. Pairs below the
        lowest threshold, which no feature counts, need not be there.
    steps : shape (M,): the pair's level times the number of thresholds, plus the number of thresholds that it reaches,
        minus 1.
    document_features : psi, shape (n, number of document features).
    """

    features: CoverageFeatures
    coverage: csr_matrix
    steps: IntArray
    document_features: FloatArray

    def __len__(self) -> int:
        return int(self.coverage.shape[0])


@dataclass(frozen=True, eq=False)
class Subtopics:
    """Which subtopics n candidates cover, and what each is worth: a query's truth t.

    Parameters
    ----------
    coverage : 0 or 1, shape (n, S).
    weights : shape (S,), positive, in sum 1 (where S > 0): proportional to the number of documents that cover the
        subtopic.
    """

    coverage: csr_matrix
    weights: FloatArray

    @classmethod
    def from_qrels(cls, docids: Sequence[str], judged: Mapping[str, Mapping[str, int]]) -> Subtopics:
        """From judgements, subtopic to docid to grade; a subtopic without a relevant document is left out.

        All relevant documents count for the weights, whether they are candidates or not, as in evaluation.
        """
        relevant = [{docid for docid, grade in grades.items() if grade > 0} for grades in judged.values()]
        relevant = [docs for docs in relevant if docs]
        covered = [[docid in docs for docs in relevant] for docid in docids]
        counts = np.array([len(docs) for docs in relevant], dtype=np.float64)
        coverage = csr_matrix(np.array(covered, dtype=np.float64).reshape(len(docids), len(relevant)))
        return cls(coverage, counts / max(counts.sum(), 1.0))

    def loss(self, picked: IntArray) -> float:
        """Delta: the weight of the subtopics that `picked` leave uncovered, in [0, 1]."""
        uncovered = np.ones(len(self.weights), dtype=bool)
        uncovered[_columns(self.coverage, picked)] = False
        return float(self.weights[uncovered].sum())


class CoverageGain:
    """The gain of covering columns that are worth `values`, each once.

    Parameters
    ----------
    coverage : 0 or 1, shape (n, M).
    values : shape (M,).
    base : what each document is worth besides, shape (n,) or 0.
    """

    def __init__(self, coverage: csr_matrix, values: FloatArray, base: FloatArray | float = 0.0) -> None:
        self._coverage = coverage
        self._values = values.copy()
        self._base = base

    def gains(self) -> FloatArray:
        """The worth of what each document covers and none before it did, shape (n,)."""
        return np.asarray(self._coverage @ self._values + self._base)

    def add(self, candidate: int) -> None:
        """What this document covers is worth nothing from now on."""
        self._values[_columns(self._coverage, [candidate])] = 0.0


class _Sum:
    """The sum of two gains."""

    def __init__(self, first: Gain, second: Gain) -> None:
        self._parts = (first, second)

    def gains(self) -> FloatArray:
        return self._parts[0].gains() + self._parts[1].gains()

    def add(self, candidate: int) -> None:
        for part in self._parts:
            part.add(candidate)


@dataclass(frozen=True)
class CoverageModel:
    """SVM-div's `greylag.structured.StructuredModel`: from candidates, with their subtopics as the truth, to a set.

    An output is the candidates' numbers in the order in which they are picked; all, where there are fewer than k.

    Parameters
    ----------
    k : the size of the set, >= 1.
    """

    k: int = 5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ParameterError(f"k has to be at least 1, not {self.k}")

    def joint_feature(self, x: Candidates, y: IntArray) -> FloatArray:
        """Psi(x, y), shape (d,)."""
        levels, thresholds = len(x.features.criteria), len(x.features.thresholds)
        covered = np.zeros(len(x.steps), dtype=bool)
        covered[_columns(x.coverage, y)] = True
        reached = np.bincount(x.steps[covered], minlength=levels * thresholds).reshape(levels, thresholds)
        # A pair that reaches a threshold reaches all lower ones.
        words = np.cumsum(reached[:, ::-1], axis=1)[:, ::-1]
        return np.concatenate([words.ravel(), x.document_features[y].sum(axis=0)]) / max(len(x), 1)

    def loss(self, truth: Subtopics, y: IntArray) -> float:
        """The weighted share of the subtopics that y does not cover."""
        return truth.loss(y)

    def target(self, x: Candidates, truth: Subtopics) -> IntArray:
        """The greedy choice by the true subtopics."""
        return greedy(known_subtopics(truth), self.k)

    def infer(self, x: Candidates, weights: FloatArray) -> IntArray:
        """The greedy choice by w' Psi (Algorithm 1); within 1 - 1/e of the best where no gain is negative."""
        return greedy(word_coverage(x, weights), self.k)

    def infer_augmented(self, x: Candidates, truth: Subtopics, weights: FloatArray) -> IntArray:
        """The greedy choice by w' Psi + Delta."""
        return greedy(_Sum(word_coverage(x, weights), CoverageGain(truth.coverage, -truth.weights)), self.k)

    def infer_apart(
        self,
        x: Candidates,
        truth: Subtopics,
        weights: FloatArray,
        others: Sequence[IntArray],
        *,
        task: float,
        similarity: float,
    ) -> IntArray:
        """The greedy choice by w' Psi + task Delta + similarity times the mean similarity to `others`."""
        shared = np.bincount(np.concatenate(others), minlength=len(x)) / (len(others) * min(self.k, len(x)))
        gain = word_coverage(x, weights, similarity * shared)
        return greedy(_Sum(gain, CoverageGain(truth.coverage, -task * truth.weights)), self.k)

    def similarity(self, y: IntArray, other: IntArray) -> float:
        """The share of y's documents that `other` has too, in [0, 1]."""
        return len({*y.tolist()} & {*other.tolist()}) / len(y)


def word_coverage(x: Candidates, weights: FloatArray, bonus: FloatArray | float = 0.0) -> CoverageGain:
    """The gain in w' Psi, plus `bonus` for each document, shape (n,).

    Raises
    ------
    ModelError
        Where the weights are not for the candidates' features.
    """
    if len(weights) != x.features.n_features:
        raise ModelError(
            f"{len(weights)} weights do not fit {x.features.n_features} features: the model is of another preset"
        )
    levels, thresholds = len(x.features.criteria), len(x.features.thresholds)
    words, documents = np.split(weights / max(len(x), 1), [levels * thresholds])
    values = words.reshape(levels, thresholds).cumsum(axis=1).ravel()
    return CoverageGain(x.coverage, values[x.steps], x.document_features @ documents + bonus)


def known_subtopics(truth: Subtopics) -> CoverageGain:
    """The gain in the weight of covered subtopics: of the greedy that knows them, a bound for all that do not."""
    return CoverageGain(truth.coverage, truth.weights)


def _columns(coverage: csr_matrix, rows: IntArray | Sequence[int]) -> IntArray:
    """The columns of the rows' entries; much faster than ``coverage[rows].indices``."""
    starts, indices = coverage.indptr, coverage.indices
    return np.concatenate([indices[:0], *(indices[starts[row] : starts[row + 1]] for row in rows)])
