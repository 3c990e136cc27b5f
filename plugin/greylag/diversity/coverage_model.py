"""The structured model of SVM-div (Yue & Joachims 2008): documents are picked to cover important words.

A document covers a word at level l if it meets the l-th criterion for it (Table 1). V_l(y) are the words that some
document of y covers at level l; D_l(v) are the candidates, out of n, that cover v at level l. The importance of a word
is learned from binary features phi_l(v, x), one for each threshold on |D_l(v)| / n (Table 2). The joint features are

    Psi(x, y) = 1/n (sum of phi_1(v, x) over v in V_1(y), ..., sum of phi_L(v, x) over v in V_L(y),
                     sum of psi(d, x) over d in y)                                                      (eq. 4)

with psi the optional features of single documents, which let relevance and diversity be learned together. The factor
1/n balances queries with few and with many candidates in training and does not change predictions.
`greylag.diversity.candidates` makes the candidates of a query from a ranking.

References
----------
Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, get_args

import numpy as np
from scipy.sparse import csr_matrix

from greylag.diversity.coverage import CoverageGain
from greylag.diversity.oracle import subtopic_gain
from greylag.errors import ModelError, ParameterError
from greylag.evaluation.subtopics import Subtopics, covered_columns
from greylag.greedy import Gain, greedy
from greylag.ranking import FloatArray, IntArray

Kind = Literal["count", "frequency", "title", "tfidf"]


class Criterion(NamedTuple):
    """When a document covers a word (Table 1).

    - ("count", c): the document contains the word at least c times.
    - ("frequency", p): the word makes up at least the proportion p of its tokens, p in (0, 1].
    - ("title", c): the title contains the word at least c times.
    - ("tfidf", t): the word is among the t words with the highest (1 + log tf) idf; ties go to the lower word number.
    """

    kind: Kind
    bound: float

    def __str__(self) -> str:
        return f"{self.kind}{'<=' if self.kind == 'tfidf' else '>='}{self.bound:.15g}"


@dataclass(frozen=True)
class CoverageFeatures:
    """The features that make up Psi.

    Parameters
    ----------
    criteria : tuple of Criterion
        The L levels, without duplicates.
    thresholds : tuple of float in (0, 1]
        Ascending thresholds on |D_l(v)| / n, shared by all levels.
    document_features : tuple of str, default ()
        Names of the features of single documents (see `greylag.diversity.CandidateMaker`).

    Raises
    ------
    ParameterError
        If a value is outside its domain.
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
                raise ParameterError(f"invalid criterion {tuple(criterion)}: see greylag.diversity.Criterion")
        for name, values in (("criteria", self.criteria), ("document_features", self.document_features)):
            if len(set(values)) != len(values):
                raise ParameterError(f"{name} contain duplicates: {', '.join(map(str, values))}")
        edges = np.array([0.0, *self.thresholds])
        if not (np.diff(edges) > 0).all() or edges[-1] > 1:
            raise ParameterError(f"thresholds must be ascending and in (0, 1], not {self.thresholds}")

    @property
    def n_features(self) -> int:
        """The length d of Psi."""
        return len(self.criteria) * len(self.thresholds) + len(self.document_features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names in the order of Psi; ``count>=2 in 0.4`` refers to |D_l(v)| / n >= 0.4."""
        words = (f"{criterion} in {threshold:.15g}" for criterion in self.criteria for threshold in self.thresholds)
        return (*words, *self.document_features)


_TERM_FREQUENCY = (
    *(Criterion("count", c) for c in (1, 2, 3, 5, 10)),
    *(Criterion("frequency", p) for p in (0.01, 0.02, 0.05, 0.1)),
    Criterion("title", 1),
)
_TFIDF = tuple(Criterion("tfidf", t) for t in (1, 3, 5, 10, 20))
# From any document to nearly all, denser where most words are.
_THRESHOLDS = tuple(
    share / 1000
    for share in (1, 20, 40, 60, 80, 100, 125, 150, 175, 200, 250, 300, 350, 400, 450, 500, 600, 700, 800, 900)
)

PRESETS = {
    "svmdiv": CoverageFeatures(_TERM_FREQUENCY, _THRESHOLDS),
    "svmdiv2": CoverageFeatures(_TERM_FREQUENCY + _TFIDF, _THRESHOLDS),
}
"""The feature spaces of the paper: term frequencies and titles (200 features), and with TF-IDF (300)."""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The n candidates x of a query, best first, as the model sees them.

    Parameters
    ----------
    features : CoverageFeatures
        The features that make up Psi.
    coverage : csr_matrix, shape (n, M)
        1 where a document covers one of M pairs of a level and a word. Pairs below the lowest threshold may be omitted,
        as no feature counts them.
    steps : array, shape (M,)
        For each pair, its level times the number of thresholds, plus the number of thresholds that it reaches, minus 1.
    document_features : array, shape (n, number of document features)
        psi.
    """

    features: CoverageFeatures
    coverage: csr_matrix
    steps: IntArray
    document_features: FloatArray

    def __len__(self) -> int:
        return int(self.coverage.shape[0])


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
    """The `greylag.structured.ComparingModel` of SVM-div, from candidates to sets of k; truths are `Subtopics`.

    An output holds the numbers of the picked candidates in the order of picking; all if there are fewer than k.

    Parameters
    ----------
    k : int >= 1, default 5
        The size of the set.
    """

    k: int = 5

    def __post_init__(self) -> None:
        if self.k < 1:
            raise ParameterError(f"k must be at least 1, not {self.k}")

    def joint_feature(self, x: Candidates, y: IntArray) -> FloatArray:
        """Psi(x, y), shape (d,)."""
        levels, thresholds = len(x.features.criteria), len(x.features.thresholds)
        covered = np.zeros(len(x.steps), dtype=bool)
        covered[covered_columns(x.coverage, y)] = True
        reached = np.bincount(x.steps[covered], minlength=levels * thresholds).reshape(levels, thresholds)
        # A pair that reaches a threshold reaches all lower ones.
        words = np.cumsum(reached[:, ::-1], axis=1)[:, ::-1]
        return np.concatenate([words.ravel(), x.document_features[y].sum(axis=0)]) / max(len(x), 1)

    def loss(self, truth: Subtopics, y: IntArray) -> float:
        """The weight of the subtopics that y does not cover, in [0, 1]."""
        return truth.loss(y)

    def target(self, x: Candidates, truth: Subtopics) -> IntArray:
        """The greedy choice by the true subtopics."""
        return greedy(subtopic_gain(truth), self.k)

    def infer(self, x: Candidates, weights: FloatArray) -> IntArray:
        """The greedy choice by w' Psi (Algorithm 1); at least 1 - 1/e of the optimum if no gain is negative."""
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
        """The proportion of the documents of y that `other` shares, in [0, 1]."""
        return len({*y.tolist()} & {*other.tolist()}) / len(y)


def word_coverage(x: Candidates, weights: FloatArray, bonus: FloatArray | float = 0.0) -> CoverageGain:
    """The gain in w' Psi, plus a bonus for each document.

    Parameters
    ----------
    x : Candidates
        The n candidates.
    weights : array, shape (d,)
        w.
    bonus : array of shape (n,), or float, default 0
        Added to the gain of each document.

    Raises
    ------
    ModelError
        If the number of weights differs from that of the features.
    """
    if len(weights) != x.features.n_features:
        raise ModelError(
            f"{len(weights)} weights do not match {x.features.n_features} features: the model uses another preset"
        )
    levels, thresholds = len(x.features.criteria), len(x.features.thresholds)
    words, documents = np.split(weights / max(len(x), 1), [levels * thresholds])
    values = words.reshape(levels, thresholds).cumsum(axis=1).ravel()
    return CoverageGain(x.coverage, values[x.steps], x.document_features @ documents + bonus)
