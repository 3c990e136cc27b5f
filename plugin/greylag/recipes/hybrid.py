"""Hybrid search: BM25's and an encoder's documents, ranked by the general model and the cosines together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cache, partial
from itertools import compress

import numpy as np

from greylag.base import (
    BoolArray,
    FloatArray,
    IntArray,
    QrelsLike,
    Query,
    Ranking,
    Run,
    Source,
    TopicsLike,
    as_qrels,
    as_topics,
    check_number,
    check_positive,
    guided,
    parallel_map,
    report_missing,
)
from greylag.evaluation import score_documents
from greylag.index import Dense, Numbered, PositionalBM25, PositionalIndex, Vectors, VectorSearch, check_index
from greylag.learning import judged_topics
from greylag.rankers import ModelRanker
from greylag.recipes.general import general_model_for

Among = BoolArray | Callable[[int], bool]
"""Which documents of an index to search: true or false for each, or a function of a document's number."""
WEIGHT = 0.28
"""The weight of a cosine in standard deviations, times the logarithm of the number of candidates."""
GRID = np.arange(-4, 9) / 2
"""The binary logarithms of the weights that are compared, in units of `WEIGHT`."""
MEASURE: str = "nDCG@10"  # which weights are compared by
DEPTH = 10
_STRENGTH = 2.0  # of a question's nDCG in the posterior
EQUAL = 1e-9  # below it, cosines differ by rounding alone
_MARGIN, _LEAST_SHARE = 1.25, 0.05  # of the documents that are looked at first, once a share is known
_OF_COSINE = 4.0  # in the confidence; fixed on other collections, chosen again on those of the page of evidence
_SURE = 0.5  # posterior deviations that a weight is from 1 at least


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
    mean: float  # of the cosines between documents
    spread: float  # their standard deviation
    candidates: Ranking  # in the order in which the general model scored them, which decides what features see

    @property
    def confidence(self) -> FloatArray:
        """How sure it is that a candidate answers the query, on one scale for all queries, shape (n,).

            g / ln(n) + 4 (c - m) / (1 - m)

        with the letters of `HybridSearch`, and ln(2) for fewer candidates. This is no probability: its range depends on
        the encoder. A document without a vector has the least cosine. The page of evidence says what it tells.
        """
        known = _filled(self.cosines, self.mean)
        above = (known - self.mean) / (1 - self.mean) if self.mean < 1 - EQUAL else np.zeros(len(known))
        confidence: FloatArray = self.general / np.log(max(len(known), 2)) + _OF_COSINE * above
        return confidence

    def ranking(self) -> Ranking:
        """Return the candidates as a ranking."""
        return Ranking(self.query.qid, self.query.text, self.docids, self.scores)


def combine_scores(
    general: FloatArray, cosines: FloatArray, mean: float, spread: float, factor: float = 1.0
) -> tuple[FloatArray, float]:
    """Combine scores of a query's candidates, shape (n,), by the formula of `HybridSearch`; also the cosines' weight.

    A cosine of NaN, without a vector, counts as the least, or as the mean if none has one. `mean` and `spread` are mean
    and standard deviation of the cosines between documents; a `spread` of 0 counts as 1.
    """
    weight = factor * WEIGHT * float(np.log(max(len(general), 1))) / (spread or 1.0)
    return general + weight * (_filled(cosines, mean) - mean), weight


def _filled(cosines: FloatArray, mean: float) -> FloatArray:
    """Put the least cosine in the place of NaN, or the mean if there is none."""
    known = ~np.isnan(cosines)
    return np.where(known, cosines, cosines[known].min() if known.any() else mean)


def shrunk_weight(values: FloatArray) -> float:
    """Choose a weight, as `HybridSearch` says, by each question's measure for each of `GRID`, shape (questions, 13)."""
    logarithm = _STRENGTH * values.sum(axis=0) - GRID**2 / 2
    posterior = np.exp(logarithm - logarithm.max())
    posterior /= posterior.sum()
    mean = float(posterior @ GRID)
    deviation = float(np.sqrt(posterior @ (GRID - mean) ** 2))
    return float(2.0**mean) if abs(mean) > _SURE * deviation else 1.0


def values_by_weight(hits: Sequence[HybridScores], judged: Mapping[str, Mapping[str, int]]) -> FloatArray:
    """Compute nDCG@10 of queries' candidates by each weight of `GRID`, shape (queries, 13)."""
    qrels = {one.query.qid: dict(judged[one.query.qid]) for one in hits}
    runs = (Run(tuple(_ranked_by(one, float(2.0**power)) for one in hits)) for power in GRID)
    return np.column_stack([score_documents(run, qrels, [MEASURE]).values[:, 0] for run in runs])


def _ranked_by(hits: HybridScores, factor: float) -> Ranking:
    """Rank candidates by another weight; ties go to the better score of BM25."""
    scores, _ = combine_scores(hits.general, hits.cosines, hits.mean, hits.spread, factor)
    places = np.lexsort((-hits.bm25, -scores))
    docids = tuple(map(hits.docids.__getitem__, places[:DEPTH].tolist()))
    return Ranking(hits.query.qid, hits.query.text, docids, np.arange(len(docids), 0.0, -1.0))


@guided
@dataclass(frozen=True)
class HybridSearch(Source):
    """Searches by BM25 and by an encoder, and ranks by the general model's scores and the cosines of all candidates.

    The candidates are the top `k` documents of BM25 and the `k` with the highest cosines, together n. Each has both
    scores, also where only one of the two searches found it:

        score(d) = g(d) + 0.28 w ln(n) (c(d) - m) / s

    with g(d) the score of `general_model` among the candidates, in the order of BM25; c(d) the cosine of the vectors of
    query and document; m and s the mean and the standard deviation of the cosines between documents
    (`VectorSearch.mean_cosine`, `VectorSearch.spread`), by which encoders with other ranges count the same. m changes
    no order; without it, each score had 0.28 w ln(n) m / s more, another amount for another number of candidates.
    Neither score is scaled by the query's own range, since a wide one tells how sure it is; ln(n) follows g, whose best
    values grow with the number of candidates. A document without a vector has the least cosine of the candidates. Ties
    go to the better score of BM25.

    With w = 1, no judgements are needed: the formula was found on public collections. The study ``encoder`` says how
    well it does. `learn_weight` finds w from some judged questions: on the grid of 1/4 to 16 by factors of the square
    root of 2, the posterior is

        p(w) ~ exp(2 sum over questions of nDCG@10 by w - log2(w)^2 / 2),

    and w = 2^(posterior mean of log2 w), but 1 where that mean is within half a posterior deviation of 0. So few
    questions, or questions that are ranked alike by all weights, leave w near 1.

    Parameters
    ----------
    index : PositionalIndex
    vectors : Vectors
        Vectors of its documents and of queries: an array or memory map (`greylag.index.ArrayVectors`), a FAISS
        index, or a function, see `greylag.index.VectorSearch`.
    k : int >= 1, default 1000
        The number of candidates from each side.
    weight : float > 0, default 1
        w in the formula: how much more a cosine counts than it does without judgements.
    """

    index: PositionalIndex
    vectors: Vectors
    _: KW_ONLY
    k: int = 1000
    weight: float = 1.0
    _dense: VectorSearch = field(init=False, repr=False, compare=False)
    _bm25: PositionalBM25 = field(init=False, repr=False, compare=False)
    _model: ModelRanker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_index("HybridSearch", self.index)
        check_positive(weight=(weight := check_number(self.weight, "weight")))
        object.__setattr__(self, "weight", weight)  # a float of Python, which JSON has
        object.__setattr__(self, "_dense", VectorSearch(self.vectors, self.index, k=self.k))
        object.__setattr__(self, "_bm25", self.index.bm25(self.k))
        object.__setattr__(self, "_model", ModelRanker(general_model_for(self.index), self.index))

    def __call__(self, query: Query, /) -> Ranking:
        """Search for a query."""
        return self.scores(query).ranking()

    def scores(self, query: Query, among: Among | None = None) -> HybridScores:
        """Search for a query; return all scores of the candidates.

        `among` are the documents that are searched: whether it is one by its number in the index, shape (N,), or a
        function that says so, which is asked for ever more of the best.
        """
        row, bm25 = self._dense.row(query), self._bm25.weigh(query.text)
        if callable(among):
            passes = cache(among)  # both sides and all sizes find some of the same documents
            by_words, share = self._passing(lambda k: self._bm25.best(bm25, k).tolist(), passes, 1.0)
            near, _ = self._passing(lambda k: self._nearest(row, k), passes, share)
            return self._score(query, row, bm25.__getitem__, by_words, dict.fromkeys(near))
        first = self._bm25.best(bm25 if among is None else np.where(among, bm25, 0.0), self.k)
        return self._score(query, row, bm25.__getitem__, first.tolist(), self._nearest(row, self.k, among))

    def extend(self, first: Ranking) -> Ranking:
        """Rank a ranking's documents and those nearest to its query, as in ``lucene.bm25() >> hybrid.extend``."""
        return self.rank(first).ranking()

    def rank(self, first: Ranking) -> HybridScores:
        """Score a ranking's documents that the index has, and those nearest to its query."""
        query = Query(first.qid, first.query)
        row, documents = self._dense.row(query), self.index.documents(first.docids)
        lost = [*compress(first.docids, (documents < 0).tolist())]
        report_missing("HybridSearch leaves them out", first.qid, lost, len(first))
        # By one BM25, as the general model compares all of them, and that of the first stage is unknown for some.
        bm25 = partial(self._bm25.score, query.text)
        return self._score(query, row, bm25, documents[documents >= 0].tolist(), self._nearest(row, self.k))

    def _nearest(self, row: Dense, k: int, among: BoolArray | None = None) -> dict[int, float]:
        """Return the cosines of the k documents that are nearest to a query's vector, best first, by their numbers."""
        rows, cosines = self._dense.nearest(row, k, among)
        return dict(zip(self._dense.documents[rows].tolist(), cosines.tolist(), strict=True))

    def _passing(
        self, find: Callable[[int], Iterable[int]], passes: Callable[[int], bool], share: float
    ) -> tuple[list[int], float]:
        """Find the k best documents that pass, among ever more, by the share that is expected to; return its own."""
        # A search of all vectors takes longer than to look at some more documents.
        size = self.k if share == 1 else int(_MARGIN * self.k / max(share, _LEAST_SHARE))
        while True:
            found = [*find(size)]
            kept = [*filter(passes, found)]
            if len(kept) >= self.k or len(found) < size:
                return kept[: self.k], len(kept) / max(len(found), 1)
            size = int(size * max(2.0, 1.5 * self.k / max(len(kept), 1)))

    def _score(
        self,
        query: Query,
        row: Dense,
        bm25: Callable[[IntArray], FloatArray],
        first: Iterable[int],
        near: Mapping[int, float | None],
    ) -> HybridScores:
        """Score the documents with these numbers, of which some cosines are known."""
        documents = np.array([*dict.fromkeys([*first, *near])], dtype=np.int64)
        by_words = bm25(documents)
        order = np.argsort(-by_words, kind="stable")
        documents = documents[order]
        docids = Numbered.of(self._dense.docids_of(documents), self.index, documents)
        candidates = Ranking.trusted(query.qid, query.text, docids, by_words[order])
        general, cosines = self._model.scores(candidates), self._cosines(row, documents, near)
        mean, spread = self._dense.mean_cosine, self._dense.spread
        scores, weight = combine_scores(general, cosines, mean, spread, self.weight)
        order = np.argsort(-scores, kind="stable")
        ranked = tuple(map(docids.__getitem__, order.tolist()))
        columns = candidates.scores[order], general[order], cosines[order], scores[order]
        return HybridScores(query, ranked, *columns, weight, mean, spread, candidates)

    def _cosines(self, row: Dense, documents: IntArray, known: Mapping[int, float | None]) -> FloatArray:
        """Return the cosines of documents with a query's vector, shape (n,): those that are known, and others."""
        cosines = np.array([*map(known.get, documents.tolist())], dtype=np.float64)  # NaN for None
        others = np.isnan(cosines)
        cosines[others] = self._dense.cosines(row, documents[others])
        return cosines

    def learn_weight(self, topics: TopicsLike, qrels: QrelsLike, *, n_jobs: int | None = None) -> HybridSearch:
        """Return the search with the weight that is learned from judged topics, whatever its weight was.

        Parameters
        ----------
        topics : TopicsLike
            Some ten change little and harm little; twenty are worth judging.
        qrels : QrelsLike
            Documents without a grade are not relevant. Topics without a relevant document say nothing.
        n_jobs : int, optional
            Threads.

        Raises
        ------
        ParameterError
            If no topic has a relevant document.
        """
        texts, judged = as_topics(topics), as_qrels(qrels)
        queries = [Query(qid, texts[qid]) for qid in judged_topics(texts, judged)]
        hits = [*parallel_map(self.scores, queries, what="search", n_jobs=n_jobs)]
        return replace(self, weight=shrunk_weight(values_by_weight(hits, judged)))
