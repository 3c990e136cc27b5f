"""Unions of first stages, since reranking cannot find what was not retrieved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.fusion.combmnz import comb_mnz
from greylag.fusion.combsum import comb_sum
from greylag.fusion.reciprocal_rank import reciprocal_rank_fusion
from greylag.pipeline import Source
from greylag.ranking import Query, Ranking, Run

Fusion = Callable[[Sequence[Ranking]], Ranking]

FUSIONS: Mapping[str, Fusion] = {
    "rrf": reciprocal_rank_fusion,
    "combsum": comb_sum,
    "combmnz": comb_mnz,
}
"""The methods of fusion by name."""


@dataclass(frozen=True)
class Union(Source):
    """All documents that any of several sources retrieves, ranked by fusion.

    Parameters
    ----------
    sources : tuple of callables from a Query to a Ranking
        At least one, such as ``(lucene.bm25(), lucene.ql(), GivenRun(run))``.
    method : str, default "rrf"
        A key of `FUSIONS`.
    k : int >= 1, optional
        The number of documents to keep; all by default.

    Raises
    ------
    ParameterError
        If there is no source, the method is unknown, or `k` is below 1.
    """

    sources: tuple[Callable[[Query], Ranking], ...]
    _: KW_ONLY
    method: str = "rrf"
    k: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        if not self.sources:
            raise ParameterError("a union needs at least one source")
        if self.method not in FUSIONS:
            raise ParameterError(f"unknown method {self.method!r} of fusion: use {', '.join(FUSIONS)}")
        if self.k is not None and self.k < 1:
            raise ParameterError(f"k is {self.k}: it must be at least 1")

    def __call__(self, query: Query, /) -> Ranking:
        """Fuse the rankings of the sources."""
        fused = FUSIONS[self.method]([source(query) for source in self.sources])
        return fused if self.k is None else fused.head(self.k)


@dataclass(frozen=True)
class GivenRun(Source):
    """The rankings of a run, as a source; a query that the run lacks finds nothing.

    Parameters
    ----------
    rankings : Run
    """

    rankings: Run

    def __call__(self, query: Query, /) -> Ranking:
        """The query's ranking in the run."""
        found = self.rankings.get(query.qid)
        if found is None:
            return Ranking(query.qid, query.text, (), np.empty(0))
        return Ranking(query.qid, query.text, found.docids, found.scores)


def fuse_runs(runs: Sequence[Run], method: str = "rrf", *, k: int | None = None, tag: str | None = None) -> Run:
    """Fuse runs query by query.

    Parameters
    ----------
    runs : sequence of Run
        At least one. A query that some of them lack is fused from the others. Queries are in the order of the first
        run, those that it lacks following.
    method : str, default "rrf"
        A key of `FUSIONS`.
    k : int >= 1, optional
        The number of documents to keep for each query; all by default.
    tag : str, default the method
        The tag of the result.

    Raises
    ------
    ParameterError
        If there is no run, the method is unknown, or `k` is below 1.
    """
    union = Union(tuple(map(GivenRun, runs)), method=method, k=k)
    texts = {ranking.qid: ranking.query for run in reversed(runs) for ranking in run.rankings}
    qids = dict.fromkeys(qid for run in runs for qid in run)
    return Run(tuple(union(Query(qid, texts[qid])) for qid in qids), tag or method)
