"""Fusion of rankings without learning, and unions of first stages, since reranking cannot find what is not retrieved.

Each document's terms are summed with a single rounding, so that sums do not depend on the order of the rankings. Ties
go to the document that appears in an earlier ranking, then to the one ranked higher there.

References
----------
Fox and Shaw, Combination of multiple searches, TREC-2 1993. Lee, Analyses of multiple evidence combination, SIGIR 1997
(the normalisation of scores). Cormack, Clarke and Büttcher, Reciprocal rank fusion outperforms Condorcet and individual
rank learning methods, SIGIR 2009.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass

import numpy as np

from greylag.checks import check_counts
from greylag.errors import ParameterError
from greylag.pipeline import Source
from greylag.ranking import Query, Ranking, Run, marked, unit_range

Fusion = Callable[[Sequence[Ranking]], Ranking]
"""From one or more rankings of the same query to their fusion."""

CONSTANT = 60  # of Cormack et al.; it limits the influence of the first ranks


def reciprocal_rank_fusion(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of 1 / (60 + rank) over the rankings that contain them, with ranks from 1."""
    return _fuse(rankings, lambda ranking: (1 / (CONSTANT + rank) for rank in range(1, len(ranking) + 1)), math.fsum)


def comb_sum(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of their scores, each ranking's scaled to [0, 1]; 0 where it lacks the document.

    A ranking whose scores are equal adds nothing.
    """
    return _fuse(rankings, _scaled_scores, math.fsum)


def comb_mnz(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of `comb_sum`, times the number of rankings that contain the document."""
    return _fuse(rankings, _scaled_scores, lambda terms: len(terms) * math.fsum(terms))


def _scaled_scores(ranking: Ranking) -> list[float]:
    scores: list[float] = unit_range(ranking.scores).tolist()
    return scores


def _fuse(
    rankings: Sequence[Ranking],
    terms_of: Callable[[Ranking], Iterable[float]],
    combine: Callable[[list[float]], float],
) -> Ranking:
    """Rank documents by combining their terms, of which every ranking gives one to each of its documents."""
    if len({(ranking.qid, ranking.query) for ranking in rankings}) != 1:
        qids = ", ".join(repr(ranking.qid) for ranking in rankings) or "none"
        raise ParameterError(f"fusion needs rankings of a single query, not of {qids}")
    terms: dict[str, list[float]] = {}
    for ranking in rankings:
        for docid, term in zip(ranking.docids, terms_of(ranking), strict=True):
            terms.setdefault(docid, []).append(term)
    return Ranking.sort(rankings[0].qid, rankings[0].query, list(terms), [*map(combine, terms.values())])


FUSIONS: Mapping[str, Fusion] = {"rrf": reciprocal_rank_fusion, "combsum": comb_sum, "combmnz": comb_mnz}
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
        if self.k is not None:
            check_counts(k=self.k)

    def __call__(self, query: Query, /) -> Ranking:
        """Fuse the rankings of the sources."""
        fused = FUSIONS[self.method]([source(query) for source in self.sources])
        return fused if self.k is None else fused.head(self.k)


@dataclass(frozen=True)
class GivenRun(Source):
    """The rankings of a run, as a source; a query that the run lacks has no documents."""

    rankings: Run

    def __call__(self, query: Query, /) -> Ranking:
        """The query's ranking in the run."""
        ranking = self.rankings.get(query.qid)
        if ranking is None:
            return Ranking(query.qid, query.text, (), np.empty(0))
        return Ranking(query.qid, query.text, ranking.docids, ranking.scores)


def fuse_runs(runs: Sequence[Run], method: str = "rrf", *, k: int | None = None, tag: str | None = None) -> Run:
    """Fuse runs query by query.

    Parameters
    ----------
    runs : sequence of Run
        At least one. A query that some of them lack is fused from the others. Queries are in the order of the first
        run, those that it lacks following.
    method, k
        See `Union`.
    tag : str, default the method
        The tag of the result; ``+training-topics`` follows if one of the runs has it.
    """
    union = Union(tuple(map(GivenRun, runs)), method=method, k=k)
    texts = {ranking.qid: ranking.query for run in reversed(runs) for ranking in run.rankings}
    qids = dict.fromkeys(qid for run in runs for qid in run)
    return Run(tuple(union(Query(qid, texts[qid])) for qid in qids), marked(tag or method, *(run.tag for run in runs)))
