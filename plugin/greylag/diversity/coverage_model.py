"""The structured model of SVM-div (Yue & Joachims 2008): documents are picked to cover important words.

A document covers a word at level l if it meets the l-th criterion for it (Table 1). V_l(y) are the words that some
document of y covers at level l; D_l(v) are the candidates, out of n, that cover v at level l. The importance of a word
is learned from binary features phi_l(v, x), one for each threshold on |D_l(v)| / n (Table 2). The paper leaves open
whether phi_l sees D_l alone or, as the examples of Table 2 allow, all of D_1, ..., D_L. The joint features are

    Psi(x, y) = (sum of phi_1(v, x) over v in V_1(y), ..., sum of phi_L(v, x) over v in V_L(y),
                 sum of psi(d, x) over d in y)                                                      (eq. 4)

with psi the optional features of single documents, which let relevance and diversity be learned together. Psi counts
words, hundreds of them, so that small C already fit closely: C in `greylag.learning.CuttingPlane` weighs the
mean loss, in [0, 1], against ||w||² / 2, where w is the worth of one word. If each Psi were divided by n, the same
weights would need C n². `greylag.diversity.candidates` makes the candidates of a query from a ranking.

References
----------
Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from scipy.sparse import csr_matrix

from greylag.base import (
    FloatArray,
    IntArray,
    ModelError,
    ParameterError,
    check_choice,
    check_counts,
    compiled,
    greedy_picks,
)
from greylag.diversity.coverage import CoverageGain, SumOfGains, subtopic_gain
from greylag.evaluation import Subtopics

TEXT_CRITERIA = ("count", "frequency", "tfidf")  # kinds of criteria on the whole text; the others are fields
Levels = Literal["own", "all"]


class Criterion(NamedTuple):
    """When a document covers a word (Table 1).

    - ("count", c): the document contains the word at least c times.
    - ("frequency", p): the word makes up at least the proportion p of its tokens, p in (0, 1].
    - ("title", c): the title contains the word at least c times; likewise with any other field of the documents, such
      as ("anchor", c).
    - ("tfidf", t): the word is among the t words with the highest (1 + log tf) idf; ties go to the lower word number.
    """

    kind: str
    bound: float

    def __str__(self) -> str:
        return f"{self.kind}{'<=' if self.kind == 'tfidf' else '>='}{self.bound:.15g}"

    @classmethod
    def parse(cls, text: str) -> Criterion:
        """Parse ``count>=2``, ``anchor>=1`` or ``tfidf<=5``, the inverse of ``str``."""
        kind, sign, bound = re.match(r"(\w*)(<=|>=)?(.*)", text, re.DOTALL).groups()  # type: ignore[union-attr]
        try:
            parsed = cls(kind, float(bound))
        except ValueError:
            parsed = cls("count", np.nan)
        if not kind or not str(parsed).startswith(f"{kind}{sign}"):
            raise ParameterError(
                f"{text!r:.60} is no criterion: use count>=N, frequency>=P, tfidf<=N, title>=N or FIELD>=N"
            )
        return parsed


@dataclass(frozen=True)
class CoverageFeatures:
    """The features that make up Psi."""

    # The L levels, without duplicates
    criteria: tuple[Criterion, ...]
    # Ascending thresholds on |D_l(v)| / n, shared by all levels
    thresholds: tuple[float, ...]
    _: KW_ONLY
    # Whether phi_l has features of D_l alone, or of all of D_1, ..., D_L
    levels: Levels = "own"
    document_features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "criteria", tuple(Criterion(*criterion) for criterion in self.criteria))
        object.__setattr__(self, "thresholds", tuple(float(threshold) for threshold in self.thresholds))
        object.__setattr__(self, "document_features", tuple(self.document_features))
        for criterion in self.criteria:
            if not re.fullmatch(r"\w+", str(criterion.kind)) or not 0 < criterion.bound < np.inf:
                raise ParameterError(f"invalid criterion {tuple(criterion)}: see coverage_model.Criterion")
        check_choice("levels", self.levels, get_args(Levels))
        for name, values in (("criteria", self.criteria), ("document_features", self.document_features)):
            if len(set(values)) != len(values):
                raise ParameterError(f"{name} contain duplicates: {', '.join(map(str, values))}")
        edges = np.array([0.0, *self.thresholds])
        if not (np.diff(edges) > 0).all() or edges[-1] > 1:
            raise ParameterError(f"thresholds must be ascending and in (0, 1], not {self.thresholds}")

    @cached_property
    def counted(self) -> tuple[tuple[int, ...], ...]:
        """For each level l, the levels m whose |D_m(v)| / n are features of phi_l."""
        every = range(len(self.criteria))
        return tuple((level,) if self.levels == "own" else tuple(every) for level in every)

    @cached_property
    def n_curves(self) -> int:
        """The number of pairs of a level l and a level counted in phi_l; each pair has a weight per threshold."""
        return sum(map(len, self.counted))

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that criteria are on."""
        return tuple(dict.fromkeys(kind for kind, _ in self.criteria if kind not in TEXT_CRITERIA))

    @property
    def n_features(self) -> int:
        """The length d of Psi."""
        return self.n_curves * len(self.thresholds) + len(self.document_features)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Return the names in the order of Psi."""
        # ``count>=2 in 0.4`` is the number of words covered at level l (count>=2) with |D_l(v)| / n >= 0.4, and
        # ``count>=2, title>=1 in 0.4`` of those with |D_m(v)| / n >= 0.4 at level m (title>=1).
        names = [str(criterion) for criterion in self.criteria]
        pairs = [(name, names[m]) for name, ms in zip(names, self.counted, strict=True) for m in ms]
        curves = names if self.levels == "own" else [f"{name}, {counted}" for name, counted in pairs]
        words = (f"{curve} in {threshold:.15g}" for curve in curves for threshold in self.thresholds)
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
    "svmdiv-all-levels": CoverageFeatures(
        (*(Criterion("count", c) for c in (1, 2, 5)), Criterion("frequency", 0.05), Criterion("title", 1)),
        tuple(share / 1000 for share in (1, 50, 100, 200, 300, 400, 500, 700)),
        levels="all",
    ),
}
"""Feature spaces after the paper's examples: term frequencies and titles (200 features), and with TF-IDF (300).

The paper has "roughly 200 and 300" features, and gives examples. "svmdiv-all-levels" is the other reading of
Table 2, in which phi_l sees every level. Its criteria are Table 1's without TF-IDF, and count>=2; it has 200
features, too.
"""


@dataclass(frozen=True, eq=False)
class Candidates:
    """The n candidates x of a query, best first, as the model sees them."""

    features: CoverageFeatures  # that make up Psi
    # Shape (n, M): 1 where a document covers one of M pairs of a level and a word. Pairs below the lowest threshold may
    # be omitted, as no feature counts them.
    coverage: csr_matrix
    # Shape (M, J): for each pair of a level l and a word, and each of the J levels counted in phi_l, the number of the
    # highest threshold reached among all features of words, or -1 if none is. It belongs to all lower ones, too.
    steps: IntArray
    document_features: FloatArray  # psi, shape (n, number of document features)

    def __len__(self) -> int:
        return int(self.coverage.shape[0])


@dataclass(frozen=True)
class CoverageModel:
    """SVM-div as a `greylag.learning.StructuredModel`, from candidates to sets of k; truths are `Subtopics`.

    An output holds the numbers of the picked candidates in the order of picking; all if there are fewer than k.
    """

    k: int = 5

    def __post_init__(self) -> None:
        check_counts(k=self.k)

    def joint_feature(self, x: Candidates, y: IntArray) -> FloatArray:
        """Compute Psi(x, y), shape (d,)."""
        curves, thresholds = x.features.n_curves, len(x.features.thresholds)
        reached = _count_steps(x.coverage.indptr, x.coverage.indices, x.steps, y, curves * thresholds)
        # A pair that reaches a threshold reaches all lower ones.
        words = reached.reshape(curves, thresholds)[:, ::-1].cumsum(axis=1)[:, ::-1]
        return np.concatenate([words.ravel(), x.document_features[y].sum(axis=0)])

    def loss(self, truth: Subtopics, y: IntArray) -> float:
        """Sum the weights of the subtopics that y does not cover, in [0, 1]."""
        return truth.loss(y)

    def target(self, x: Candidates, truth: Subtopics) -> IntArray:
        """Choose greedily by the true subtopics."""
        return greedy_picks(subtopic_gain(truth), self.k)

    def infer(self, x: Candidates, weights: FloatArray) -> IntArray:
        """Choose greedily by w' Psi (Algorithm 1); at least 1 - 1/e of the optimum if nothing is worth less than 0."""
        return greedy_picks(word_coverage(x, weights), self.k)

    def infer_augmented(self, x: Candidates, truth: Subtopics, weights: FloatArray) -> IntArray:
        """Choose greedily by w' Psi + Delta."""
        loss = CoverageGain(truth.coverage, -truth.weights)
        return greedy_picks(SumOfGains(word_coverage(x, weights), loss), self.k)

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
        """Choose greedily by w' Psi + task Delta + similarity times the mean similarity to `others`."""
        shared = np.bincount(np.concatenate(others), minlength=len(x)) / (len(others) * min(self.k, len(x)))
        loss = CoverageGain(truth.coverage, -task * truth.weights)
        return greedy_picks(SumOfGains(word_coverage(x, weights, similarity * shared), loss), self.k)

    def similarity(self, y: IntArray, other: IntArray) -> float:
        """Return the proportion of the documents of y that `other` shares, in [0, 1]."""
        return len({*y.tolist()} & {*other.tolist()}) / len(y)


def word_coverage(x: Candidates, weights: FloatArray, bonus: FloatArray | float = 0.0) -> CoverageGain:
    """Make the gain in w' Psi with weights w of shape (d,), plus a bonus for each document."""
    if len(weights) != x.features.n_features:
        raise ModelError(
            f"{len(weights)} weights do not match {x.features.n_features} features: the model uses another preset"
        )
    curves, thresholds = x.features.n_curves, len(x.features.thresholds)
    words, documents = weights[: curves * thresholds], weights[curves * thresholds :]
    # A pair that reaches a threshold is counted at all lower ones: its value is the sum of their weights.
    values = np.append(words.reshape(curves, thresholds).cumsum(axis=1), 0.0)  # at -1: no threshold is reached
    return CoverageGain(x.coverage, _sum_steps(x.steps, values), x.document_features @ documents + bonus)


@compiled()
def _sum_steps(steps: IntArray, values: FloatArray) -> FloatArray:
    """Sum the values of each row's steps; -1 is the last value."""
    # A loop, as fancy indexing would make an array as large as `steps`, for thousands of sets in training.
    sums = np.zeros(len(steps))
    for row in range(len(steps)):
        for step in steps[row]:
            sums[row] += values[step]
    return sums


@compiled()
def _count_steps(starts: Any, columns: Any, steps: IntArray, rows: IntArray, n_steps: int) -> FloatArray:
    """Count the covered columns with each step; -1 is none."""
    counts, covered = np.zeros(n_steps), np.zeros(len(steps), dtype=np.bool_)
    for row in rows:
        for column in columns[starts[row] : starts[row + 1]]:
            if not covered[column]:  # a word counts once, however many picks have it
                covered[column] = True
                for step in steps[column]:
                    if step >= 0:
                        counts[step] += 1.0
    return counts
