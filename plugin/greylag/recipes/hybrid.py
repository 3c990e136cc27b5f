"""Hybrid search: BM25's and an encoder's documents, ranked by the general model and the cosines together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from greylag.base import FloatArray, Query, Ranking, Source, guided, report_missing
from greylag.index import Dense, PositionalBM25, PositionalIndex, Vectors, VectorSearch, check_index
from greylag.rankers import ModelRanker
from greylag.recipes.general import general_model_for

WEIGHT = 0.28
"""The weight of a cosine in standard deviations, times the logarithm of the number of candidates."""


@dataclass(frozen=True, eq=False)
class HybridScores:
    """The scores of a query's n candidates, best first, each of shape (n,)."""

    query: Query
    docids: tuple[str, ...]
    bm25: FloatArray
    general: FloatArray  # by the general model among these candidates
    cosines: FloatArray  # with the query; NaN without a vector
    scores: FloatArray  # which rank
    weight: float  # that a cosine is multiplied by
    candidates: Ranking  # in the order in which the general model scored them, which decides what features see

    def ranking(self) -> Ranking:
        """Return the candidates as a ranking."""
        return Ranking(self.query.qid, self.query.text, self.docids, self.scores)


def combine_scores(general: FloatArray, cosines: FloatArray, mean: float, spread: float) -> tuple[FloatArray, float]:
    """Combine scores of a query's candidates, shape (n,), by the formula of `HybridSearch`; also the cosines' weight.

    A cosine of NaN, without a vector, counts as the least, or as the mean if none has one. `mean` and `spread` are mean
    and standard deviation of the cosines between documents; a `spread` of 0 counts as 1.
    """
    weight = WEIGHT * float(np.log(max(len(general), 1))) / (spread or 1.0)
    known = ~np.isnan(cosines)
    least = cosines[known].min() if known.any() else mean
    return general + weight * (np.where(known, cosines, least) - mean), weight


@guided
@dataclass(frozen=True)
class HybridSearch(Source):
    """Searches by BM25 and by an encoder, and ranks by the general model's scores and the cosines of all candidates.

    The candidates are the top `k` documents of BM25 and the `k` with the highest cosines, together n. Each has both
    scores, also where only one of the two searches found it:

        score(d) = g(d) + 0.28 ln(n) (c(d) - m) / s

    with g(d) the score of `general_model` among the candidates, in the order of BM25; c(d) the cosine of the vectors of
    query and document; m and s the mean and the standard deviation of the cosines between documents
    (`VectorSearch.mean_cosine`, `VectorSearch.spread`), by which encoders with other ranges count the same. m changes
    no order; without it, each score had 0.28 ln(n) m / s more, another amount for another number of candidates. Neither
    score is scaled by the query's own range, since a wide one tells how sure it is; ln(n) follows g, whose best values
    grow with the number of candidates. A document without a vector has the least cosine of the candidates. Ties go to the better
    score of BM25.

    No judgements are needed: the formula was found on public collections. The study ``encoder`` says how well it does.

    Parameters
    ----------
    index : PositionalIndex
    vectors : Vectors
        Vectors of its documents and of queries: an array or memory map (`greylag.index.ArrayVectors`), a FAISS
        index, or a function, see `greylag.index.VectorSearch`.
    k : int >= 1, default 1000
        The number of candidates from each side.
    """

    index: PositionalIndex
    vectors: Vectors
    _: KW_ONLY
    k: int = 1000
    _dense: VectorSearch = field(init=False, repr=False, compare=False)
    _bm25: PositionalBM25 = field(init=False, repr=False, compare=False)
    _model: ModelRanker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_index("HybridSearch", self.index)
        object.__setattr__(self, "_dense", VectorSearch(self.vectors, self.index, k=self.k))
        object.__setattr__(self, "_bm25", self.index.bm25(self.k))
        object.__setattr__(self, "_model", ModelRanker(general_model_for(self.index), self.index))

    def __call__(self, query: Query, /) -> Ranking:
        """Search for a query."""
        return self.scores(query).ranking()

    def scores(self, query: Query) -> HybridScores:
        """Search for a query; return all scores of the candidates."""
        return self.rank(self._bm25(query))

    def extend(self, first: Ranking) -> Ranking:
        """Rank a ranking's documents and those nearest to its query, as in ``lucene.bm25() >> hybrid.extend``."""
        return self.rank(first).ranking()

    def rank(self, first: Ranking, nearest: Callable[[Dense], Sequence[str]] | None = None) -> HybridScores:
        """Score a ranking's documents that the index has, and those nearest to its query.

        `nearest` gives docids for the query's vector, shape (1, m), such as the nearest that pass a filter.
        """
        query = Query(first.qid, first.query)
        known, row = self.index.knows(first.docids), self._dense.row(query)
        inside, lost = first.select(known).docids, first.select(~known).docids
        report_missing("HybridSearch leaves them out", first.qid, lost, len(first))
        near = self._dense.nearest(query, row).docids if nearest is None else nearest(row)
        docids = [*dict.fromkeys([*inside, *near])]
        # By one BM25, as the general model compares all of them, and that of the first stage is unknown for some.
        candidates = Ranking.sort(
            query.qid, query.text, docids, self._bm25.score(query.text, self.index.documents(docids))
        )
        general, cosines = self._model.scores(candidates), self._dense.cosines(row, candidates.docids)
        scores, weight = combine_scores(general, cosines, self._dense.mean_cosine, self._dense.spread)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(map(candidates.docids.__getitem__, order.tolist()))
        return HybridScores(
            query, ranked, candidates.scores[order], general[order], cosines[order], scores[order], weight, candidates
        )
