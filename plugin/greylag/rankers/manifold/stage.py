"""Manifold ranking as a reranking stage: the points of the graph are the query and its top documents."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy.sparse import issparse, vstack

from greylag.base import (
    FloatArray,
    ParameterError,
    QrelsLike,
    Ranking,
    Stage,
    check_choice,
    check_counts,
    unit_range,
)
from greylag.evaluation import at_level, read_qrels
from greylag.index import PositionalIndex, Vectors, drop_empty_columns, unit_rows, vectors_of
from greylag.rankers.manifold.graph import Affinity, AffinityGraph, Graph, affinity_graph
from greylag.rankers.manifold.ranking import manifold_ranking, solve

Confidence = Literal["query", "scores"]
"""The sources from which scores spread: the query alone, or the incoming scores, too."""
Similarity = Literal["cosine", "rbf"]
AFFINITIES: Mapping[str, Affinity] = {"cosine": "inner_product", "rbf": "rbf"}

SCORE_DECIMALS = 10  # of scores whose maximum is 1; the error of conjugate gradients is below them


@dataclass(frozen=True)
class ManifoldRanker(Stage):
    """Reranks by manifold ranking from the query, optionally with other evidence (Zhou et al. 2003, section 2).

    The points are the vectors, scaled to unit length, of the query and the top `depth` documents. The source vector y
    is 1 for the query. For a document it is

    - 0 with `confidence` "query";
    - its incoming score scaled to [0, 1] over the top `depth` documents with `confidence` "scores";
    - its grade divided by the query's highest grade, and 0 if not relevant, for documents that `feedback` judges, with
      either `confidence`. Relevant documents beyond the top `depth` become points, too.

    The result is a permutation of the ranking: the top `depth` documents by f*, rounded to 1e-10 of the highest, with
    ties in incoming order, followed by the others in incoming order with scores -1, -2, .... A document without terms
    is an isolated point, with f* = (1 - alpha) y. A query without known terms is isolated, too, and has no influence.
    Documents without a vector, such as those outside the index, are no points. They keep their ranks.

    Parameters
    ----------
    index : PositionalIndex, optional
        The collection, for its TF-IDF vectors. Give it or `vectors`.
    vectors : Vectors, optional
        Other vectors of documents and queries, such as `greylag.index.ArrayVectors`.
    latent : bool, default False
        Whether the index's vectors are `greylag.index.LatentVectors` instead of those of TF-IDF.
    depth : int >= 1, default 100
        The number of documents to rerank.
    alpha : float in [0, 1), default 0.6
        How far scores spread. Near 1, documents that are similar to many others win regardless of the query; the
        paper's 0.99 is for queries drawn from the same data as the other points.
    graph, neighbours, sigma
        See `affinity_graph`.
    affinity : "cosine" or "rbf", optional
        Of two joined points. By default "cosine" for sparse vectors, such as TF-IDF, and "rbf" for dense ones, whose
        cosines may be negative, and with sigma.
    exponent : float, default 0.5
        The k of `spread_scores`: 1/2 is the paper's. A higher one favours documents less that are similar to many
        others.
    steps : int >= 1, optional
        t: f(t) instead of its limit f*. On text, early steps may rank better.
    confidence : "query" or "scores", default "scores"
        Whether incoming scores are evidence.
    feedback : QrelsLike, optional
        Relevance feedback. Evaluating on the same judgements gives an oracle's scores.
    relevance_level : int >= 1, default 1
        The lowest grade of relevant documents in the feedback.
    """

    needs = frozenset({"vectors"})
    readers: ClassVar = {"feedback": read_qrels}
    by_query = ("feedback",)

    index: PositionalIndex | None = None
    _: KW_ONLY
    vectors: Vectors | None = None
    latent: bool = False
    depth: int = 100
    alpha: float = 0.6
    graph: Graph = "knn"
    neighbours: int = 10
    affinity: Similarity | None = None
    sigma: float | None = None
    exponent: float = 0.5
    steps: int | None = None
    confidence: Confidence = "scores"
    feedback: QrelsLike | None = None
    relevance_level: int = 1

    def __post_init__(self) -> None:
        _ = self._vectors  # checks the index and the vectors
        check_counts(depth=self.depth)
        check_choice("confidence", self.confidence, get_args(Confidence))
        _ = self._feedback  # checks it
        if self.affinity is not None:
            check_choice("affinity", self.affinity, AFFINITIES)
        if self.sigma is not None and self.affinity == "cosine":
            raise ParameterError("sigma belongs to affinity='rbf', not to 'cosine'")
        # Ranking one point checks the other arguments.
        manifold_ranking(
            [[0.0]], 0, alpha=self.alpha, graph=self.graph, neighbours=self.neighbours, sigma=self.sigma,
            exponent=self.exponent, steps=self.steps,
        )  # fmt: skip

    @cached_property
    def _feedback(self) -> Mapping[str, Mapping[str, int]]:
        """The grades of feedback, 0 below the level of relevance."""
        return at_level({} if self.feedback is None else self.feedback, self.relevance_level)

    @cached_property
    def _vectors(self) -> Vectors:
        return vectors_of("ManifoldRanker", self.index, self.vectors, latent=self.latent)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank one query's documents."""
        return self.rerank_known(ranking, self._vectors.knows(ranking.docids), self._rerank)

    def scored(self, ranking: Ranking) -> Ranking:
        """Return the top `depth` documents, as ranked."""
        return self(ranking).head(self.depth)

    def _rerank(self, ranking: Ranking) -> Ranking:
        top = ranking.head(self.depth)
        n = len(top)
        docids, y = self._documents(top)
        # Vectors of others may not be hashable.
        join: Callable[..., AffinityGraph] = _join_points if self.vectors is None else _join_points.__wrapped__
        W = join(self._vectors, (top.qid, top.query), docids, self.graph, self.neighbours, self.affinity, self.sigma)
        # The query is the first point, with confidence 1.
        f = solve(W, np.concatenate([[1.0], y]), self.alpha, self.exponent, "cg", steps=self.steps)
        # Equal documents differ in the last digits of conjugate gradients, and would leave their order.
        first = top.rescore(np.round(f[1 : n + 1] / f.max(), SCORE_DECIMALS) * f.max())
        below = -np.arange(1.0, len(ranking) - n + 1)  # f* is not negative
        scores = np.concatenate([first.scores, below])
        return Ranking(ranking.qid, ranking.query, first.docids + ranking.docids[n:], scores)

    def _documents(self, top: Ranking) -> tuple[tuple[str, ...], FloatArray]:
        """Return the documents of the graph, those of `top` first, and their entries of y."""
        confidences = unit_range(top.scores) if self.confidence == "scores" else np.zeros(len(top))
        y = dict(zip(top.docids, confidences.tolist(), strict=True))
        grades = self._feedback.get(top.qid, {})
        highest = max(grades.values(), default=0)
        # Judged documents outside the ranking take part as points if they are relevant, since scores spread from them.
        judged = [d for d, grade in grades.items() if grade > 0 or d in y]
        known = self._vectors.knows(judged)
        y |= {d: max(grades[d], 0) / max(highest, 1) for d, has in zip(judged, known, strict=True) if has}
        return tuple(y), np.array(list(y.values()))


# A model has several features of manifold ranking, which differ in alpha or y and have the same graph: it is most of
# their work. As many are kept as some threads need for the queries that they are at.
@lru_cache(maxsize=16)
def _join_points(
    vectors: Vectors,
    query: tuple[str, str],
    docids: tuple[str, ...],
    graph: Graph,
    neighbours: int,
    affinity: Similarity | None,
    sigma: float | None,
) -> AffinityGraph:
    """Join a query (qid, text), which is the first point, and documents in a graph; not to be written to."""
    both = vectors.query(*query), vectors.documents(docids)
    # Over the coordinates that are used alone: a vocabulary has far more than a query's documents.
    sparse = issparse(both[1])
    points = drop_empty_columns(vstack(both, format="csr")) if sparse else unit_rows(np.concatenate(both))
    affinity = affinity or ("cosine" if sparse and sigma is None else "rbf")
    if affinity == "cosine" and points.min() < 0:
        raise ParameterError(
            f"query {query[0]}: a vector has the coordinate {points.min():.3g}, but affinities must not be "
            "negative: use affinity='rbf'"
        )
    sigma = sigma if affinity == "rbf" else None
    return affinity_graph(points, graph=graph, neighbours=neighbours, affinity=AFFINITIES[affinity], sigma=sigma)
