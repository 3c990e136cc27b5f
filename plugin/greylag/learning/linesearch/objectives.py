"""Ranking measures to be optimised.

To add one, give its term in `greylag.learning.linesearch.kernels.term` and enter it in `MEASURES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from greylag.base import FloatArray, IntArray, ParameterError
from greylag.evaluation import EXPONENTIAL, exponential_gains, parse_measure, spelling
from greylag.learning.data import RankingData
from greylag.learning.linesearch import kernels

NO_CUTOFF = 1 << 40


def _binary(objective: Objective, data: RankingData) -> FloatArray:
    return (data.grades >= objective.rel).astype(np.float64)


def _stopping(objective: Objective, data: RankingData) -> FloatArray:
    """Compute the probability that a user is satisfied, (2^grade - 1) / 2^max_grade."""
    highest = max((int(grades.max()) for grades in data.relevant_grades if len(grades)), default=1)
    if objective.max_grade is not None and objective.max_grade < highest:
        raise ParameterError(
            f"objective {objective}: max_grade is {objective.max_grade}, but the judgements reach {highest}"
        )
    return (2.0 ** np.maximum(data.grades, 0) - 1.0) / 2.0 ** (objective.max_grade or highest)


def _by_ideal(objective: Objective, gains: FloatArray | IntArray) -> float:
    top = np.sort(gains)[::-1][: objective.depth]
    ideal = float(np.sum(top / np.log2(np.arange(len(top)) + 2.0)))
    # Without a relevant document the sum is 0, whatever its factor.
    return 1.0 / max(ideal, 1e-300) if len(gains) else 0.0


class Kind(NamedTuple):
    """A measure without its cut-off."""

    code: int  # in the compiled functions
    gains: Callable[[Objective, RankingData], FloatArray]  # of each row, shape (n,), 0 if it is not relevant
    normaliser: Callable[[Objective, Any], float]  # from the relevant grades of a query to the factor of its sum


MEASURES = {
    "AP": Kind(kernels.AP, _binary, lambda objective, grades: 1.0 / max(1, int(np.sum(grades >= objective.rel)))),
    "nDCG": Kind(kernels.NDCG, lambda _, data: np.maximum(data.grades, 0).astype(np.float64), _by_ideal),
    EXPONENTIAL: Kind(
        kernels.NDCG,
        lambda _, data: exponential_gains(data.grades),
        lambda objective, grades: _by_ideal(objective, exponential_gains(grades)),
    ),
    "RR": Kind(kernels.RR, _binary, lambda *_: 1.0),
    "P": Kind(kernels.P, _binary, lambda objective, _: 1.0 / objective.depth),
    "ERR": Kind(kernels.ERR, _stopping, lambda *_: 1.0),
}


@dataclass(frozen=True)
class Objective:
    """A measure to maximise, averaged over queries. A document with a grade of at least `rel` is relevant.

    - AP = sum over relevant r of (i_r / rank_r) / R, where R includes relevant documents that were not retrieved.
    - nDCG@k = sum of grade_r / log2(1 + rank_r), divided by that of the ideal ranking (Järvelin & Kekäläinen 2002, with
      the linear gains of trec_eval); nDCG(dcg='exp-log2')@k has gains of 2^grade_r - 1 (Burges et al. 2005).
    - RR = 1 / rank of the first relevant document.
    - P@k = relevant documents among the top k / k.
    - ERR@k = sum over ranks of p_r Q_r / rank_r, where p_r = (2^grade_r - 1) / 2^`max_grade`, and Q_r is the product of
      1 - p over the documents above r (Chapelle et al. 2009).

    Parameters
    ----------
    name : "AP", "nDCG", "nDCG(dcg='exp-log2')", "RR", "P" or "ERR"
    cutoff : int >= 1, optional
        Ranks beyond it do not count. Required by P.
    max_grade : int, optional
        The highest grade of the scale, for ERR. By default, the highest grade in the judgements of the data.
    rel : int >= 1, default 1
        The lowest grade of relevant documents, for AP, RR and P.

    Examples
    --------
    >>> Objective.parse("ndcg_cut_10")
    Objective(name='nDCG', cutoff=10, max_grade=None, rel=1)
    """

    name: str
    cutoff: int | None = None
    max_grade: int | None = None
    rel: int = 1

    def __post_init__(self) -> None:
        if self.name not in MEASURES:
            raise ParameterError(
                f"{self.name!r} cannot be optimised: use one of {', '.join(MEASURES)}, with @k for a cut-off"
            )
        if self.cutoff is not None and self.cutoff < 1:
            raise ParameterError(f"objective {self.name}: the cut-off must be at least 1, not {self.cutoff}")
        if self.rel < 1:
            raise ParameterError(f"objective {self.name}: rel must be at least 1, not {self.rel}")
        if self.rel > 1 and MEASURES[self.name].gains is not _binary:
            raise ParameterError(f"objective {self.name} has no relevance level, since it uses all grades")
        if self.name == "P" and self.cutoff is None:
            raise ParameterError("objective P needs a cut-off, as in P@10")

    def __str__(self) -> str:
        return spelling(self.name, self.cutoff, self.rel)

    @classmethod
    def parse(cls, measure: Objective | str | Any) -> Objective:
        """Parse whatever `parse_measure` takes, such as ``AP(rel=2)``; an objective stays as it is."""
        if isinstance(measure, Objective):
            return measure
        parsed = parse_measure(measure)
        if parsed.judged_only:
            raise ParameterError(f"{parsed} cannot be optimised: leave judged_only out")
        return cls(parsed.family.name, parsed.cutoff, rel=parsed.rel)

    def on_scale_of(self, grades: Iterable[int]) -> Objective:
        """Give ERR a `max_grade`, the highest of these grades, if it has none, as subsets would have other scales."""
        if self.name != "ERR" or self.max_grade is not None:
            return self
        return replace(self, max_grade=max(1, max(grades, default=1)))

    @property
    def code(self) -> int:
        """The number of the measure in the compiled functions."""
        return MEASURES[self.name].code

    @property
    def depth(self) -> int:
        """The cut-off, or a number beyond every rank."""
        return NO_CUTOFF if self.cutoff is None else self.cutoff

    def gains(self, data: RankingData) -> FloatArray:
        """Return the gain of each row, shape (n,); 0 for rows that are not relevant."""
        return MEASURES[self.name].gains(self, data)

    def normalisers(self, data: RankingData) -> FloatArray:
        """Return the factor of each query's sum, shape (q,)."""
        return np.array([MEASURES[self.name].normaliser(self, grades) for grades in data.relevant_grades])

    def divisors(self, data: RankingData) -> FloatArray:
        """Return the divisors of a relevant document's term, by rank; see `kernels.divisors`."""
        return np.asarray(kernels.divisors(self.code, self.depth, int(np.diff(data.offsets).max(initial=0))))

    def scorer(self, data: RankingData) -> Callable[[FloatArray], FloatArray]:
        """Return a function that evaluates the measure as `evaluate` does, for several rankings of the same data."""
        divisors, gains, normalisers = self.divisors(data), self.gains(data), self.normalisers(data)
        return lambda scores: kernels.evaluate(self.code, divisors, data.offsets, scores, gains, normalisers)

    def evaluate(self, data: RankingData, scores: FloatArray) -> FloatArray:
        """Evaluate the measure of each query when its documents are ranked by `scores` (n,); shape (q,)."""
        return self.scorer(data)(scores)
