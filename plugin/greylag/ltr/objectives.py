"""Ranking measures as functions of the ranks of relevant documents, to be optimised.

Every measure here is a sum over a query's relevant documents r of h(gain_r, rank_r, i_r, Q_r), where i_r counts the
relevant documents down to r, and Q_r is the chance that a reader gets to r past those above (ERR). That is what lets
`line_search` follow a measure through every change of the ranking.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData
from greylag.ranking import FloatArray, IntArray

AP, NDCG, RR, P, ERR = range(5)  # how the compiled functions know them
_CODES = {"AP": AP, "nDCG": NDCG, "RR": RR, "P": P, "ERR": ERR}
_SPELLINGS = {
    "map": "AP",
    "map_cut": "AP",
    "ndcg": "nDCG",
    "ndcg_cut": "nDCG",
    "recip_rank": "RR",
    "P": "P",
    "err": "ERR",
}
NO_CUTOFF = 1 << 40


@dataclass(frozen=True)
class Objective:
    """A measure to maximise, averaged over queries.

    AP = sum over relevant r of (i_r / rank_r) / R, R counting unretrieved relevant documents too.
    nDCG@k = sum of grade_r / log2(1 + rank_r), over that of the ideal ranking (Jarvelin & Kekalainen 2002, with
    trec_eval's linear gains). RR = 1 / rank of the first relevant. P@k = relevant among the first k / k.
    ERR@k = sum over ranks of p_r Q_r / rank_r, p_r = (2^grade - 1) / 2^`max_grade`, Q_r the product of 1 - p above r
    (Chapelle et al. 2009). A document is relevant from grade 1 on.

    Parameters
    ----------
    name : "AP", "nDCG", "RR", "P" or "ERR".
    cutoff : only ranks up to it count; None for all of them. P needs one.
    max_grade : for ERR, the scale's highest grade; None takes the highest in the judgements of the data.
    """

    name: str
    cutoff: int | None = None
    max_grade: int | None = None

    def __post_init__(self) -> None:
        if self.name not in _CODES:
            raise ParameterError(
                f"unknown objective {self.name!r}: use one of {', '.join(_CODES)}, with @k for a cut-off"
            )
        if self.cutoff is not None and self.cutoff < 1:
            raise ParameterError(f"objective {self.name}: the cut-off has to be at least 1, not {self.cutoff}")
        if self.name == "P" and self.cutoff is None:
            raise ParameterError("objective P needs a cut-off, as in P@10")

    def __str__(self) -> str:
        return self.name if self.cutoff is None else f"{self.name}@{self.cutoff}"

    @classmethod
    def parse(cls, text: str) -> Objective:
        """``AP``, ``nDCG@10``, ``RR``, ``P@5``, ``ERR@20``, or trec_eval's ``map``, ``ndcg_cut_10``, ``recip_rank``."""
        match = re.fullmatch(r"([A-Za-z_]+?)(?:[@_](\d+))?", text.strip())
        name = _SPELLINGS.get(match[1], match[1]) if match else text
        return cls(name, int(match[2]) if match and match[2] else None)

    @property
    def code(self) -> int:
        """The measure's number in the compiled functions."""
        return _CODES[self.name]

    @property
    def depth(self) -> int:
        """The cut-off, or a number beyond every rank."""
        return NO_CUTOFF if self.cutoff is None else self.cutoff

    def gains(self, data: RankingData) -> FloatArray:
        """What each row is worth, shape (n,); 0 for rows that are not relevant."""
        grades = np.maximum(data.grades, 0)
        if self.name == "nDCG":
            return grades.astype(np.float64)
        if self.name == "ERR":
            return (2.0**grades - 1.0) / 2.0 ** self._highest(data)
        return (grades > 0).astype(np.float64)

    def norms(self, data: RankingData) -> FloatArray:
        """What a query's sum is multiplied by, shape (q,)."""
        if self.name == "AP":
            return np.array([1.0 / max(1, len(grades)) for grades in data.judged])
        if self.name == "nDCG":
            return np.array([1.0 / max(self._ideal(grades), 1e-300) if len(grades) else 0.0 for grades in data.judged])
        return np.full(len(data.qids), 1.0 / self.depth if self.name == "P" else 1.0)

    def evaluate(self, data: RankingData, scores: FloatArray) -> FloatArray:
        """The measure of each query when its documents are ranked by `scores` (n,); shape (q,)."""
        from greylag.ltr.line_search import evaluate

        values: FloatArray = evaluate(self.code, self.depth, data.offsets, scores, self.gains(data), self.norms(data))
        return values

    def _ideal(self, grades: IntArray) -> float:
        top = np.sort(grades)[::-1][: self.depth]
        return float(np.sum(top / np.log2(np.arange(len(top)) + 2.0)))

    def _highest(self, data: RankingData) -> int:
        highest = max((int(grades.max()) for grades in data.judged if len(grades)), default=1)
        if self.max_grade is not None and self.max_grade < highest:
            raise ParameterError(f"objective {self}: max_grade is {self.max_grade}, but the judgements reach {highest}")
        return self.max_grade or highest
