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
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property, partial
from itertools import chain

import numpy as np

from greylag.core.checks import check_counts
from greylag.errors import ParameterError
from greylag.pipeline import Source
from greylag.ranking import FloatArray, Query, Ranking, Run, as_run, marked, unit_range
from greylag.trec.runs import JoinedRuns

Fusion = Callable[[Sequence[Ranking]], Ranking]
"""From one or more rankings of the same query to their fusion."""

CONSTANT = 60  # of Cormack et al.; it limits the influence of the first ranks


def reciprocal_rank_fusion(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of 1 / (60 + rank) over the rankings that contain them, with ranks from 1."""
    return PooledRankings(rankings).fuse("rrf")


def comb_sum(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of their scores, each ranking's scaled to [0, 1]; 0 where it lacks the document.

    A ranking whose scores are equal adds nothing.
    """
    return PooledRankings(rankings).fuse("combsum")


def comb_mnz(rankings: Sequence[Ranking]) -> Ranking:
    """Rank all documents by the sum of `comb_sum`, times the number of rankings that contain the document."""
    return PooledRankings(rankings).fuse("combmnz")


@dataclass(frozen=True, eq=False)
class PooledRankings:
    """The documents of one or more rankings of a query, in the order in which they first appear, which breaks ties.

    Parameters
    ----------
    rankings : sequence of Ranking
    """

    rankings: Sequence[Ranking]

    def __post_init__(self) -> None:
        if len({(ranking.qid, ranking.query) for ranking in self.rankings}) != 1:
            qids = ", ".join(repr(ranking.qid) for ranking in self.rankings) or "none"
            raise ParameterError(f"fusion needs rankings of a single query, not of {qids}")

    @cached_property
    def rows(self) -> dict[str, int]:
        """The rows of the documents in what follows."""
        return {docid: row for row, docid in enumerate(dict.fromkeys(chain(*(r.docids for r in self.rankings))))}

    @cached_property
    def scaled(self) -> FloatArray:
        """The score of each document in each ranking, scaled to [0, 1], shape (n, rankings); 0 where it is lacking."""
        return self._terms(lambda ranking: unit_range(ranking.scores))

    @cached_property
    def reciprocal_ranks(self) -> FloatArray:
        """1 / (60 + rank) of each document in each ranking, shape (n, rankings); 0 where it is lacking."""
        return self._terms(lambda ranking: 1 / (CONSTANT + 1.0 + np.arange(len(ranking))))

    def scores(self, method: str, places: Sequence[int] | None = None) -> FloatArray:
        """Score by a key of `FUSIONS`, shape (n,), all rankings or those at these places alone."""
        columns = slice(None) if places is None else list(places)
        if method == "rrf":
            return _sums(self.reciprocal_ranks[:, columns])
        sums = _sums(self.scaled[:, columns])
        return sums if method == "combsum" else sums * np.count_nonzero(self.reciprocal_ranks[:, columns], axis=1)

    def rank(self, scores: FloatArray) -> Ranking:
        """Rank the documents by their scores, shape (n,)."""
        return Ranking.sort(self.rankings[0].qid, self.rankings[0].query, tuple(self.rows), scores)

    def fuse(self, method: str) -> Ranking:
        """Rank the documents by a key of `FUSIONS`."""
        return self.rank(self.scores(method))

    def _terms(self, term_of: Callable[[Ranking], FloatArray]) -> FloatArray:
        terms = np.zeros((len(self.rows), len(self.rankings)))
        for column, ranking in enumerate(self.rankings):
            terms[[self.rows[docid] for docid in ranking.docids], column] = term_of(ranking)
        return terms


def _sums(terms: FloatArray) -> FloatArray:
    """Sum rows, each with a single rounding."""
    if terms.shape[1] <= 2:  # one addition has one rounding
        sums: FloatArray = terms.sum(axis=1)
        return sums
    return np.fromiter(map(math.fsum, terms.tolist()), np.float64, len(terms))


FUSIONS: Mapping[str, Fusion] = {"rrf": reciprocal_rank_fusion, "combsum": comb_sum, "combmnz": comb_mnz}
"""The methods of fusion by name."""
LEARNED = "learned"
"""The name of learned weights beside those of runs and of `FUSIONS`."""


def _fusion(method: str | Fusion) -> Fusion:
    if isinstance(method, str) and method not in FUSIONS:
        raise ParameterError(f"unknown method {method!r} of fusion: use {', '.join(FUSIONS)}, or a learned model")
    return FUSIONS[method] if isinstance(method, str) else method


@dataclass(frozen=True)
class PooledSources(Source):
    """All documents that any of several sources retrieves, ranked by fusion.

    Parameters
    ----------
    sources : tuple of callables from a Query to a Ranking
        At least one, such as ``(lucene.bm25(), lucene.ql(), GivenRun(run))``.
    method : str or Fusion, default "rrf"
        A key of `FUSIONS`, or a `greylag.rankers.FusionRanker` of a model that was learned for these sources, in their
        order.
    k : int >= 1, optional
        The number of documents to keep; all by default.
    """

    sources: tuple[Callable[[Query], Ranking], ...]
    _: KW_ONLY
    method: str | Fusion = "rrf"
    k: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "sources", tuple(self.sources))
        if not self.sources:
            raise ParameterError("a union needs at least one source")
        cut(self.method, self.k)

    def __call__(self, query: Query, /) -> Ranking:
        """Fuse the rankings of the sources."""
        return cut(self.method, self.k)([source(query) for source in self.sources])


@dataclass(frozen=True)
class GivenRun(Source):
    """The rankings of a run, as a source; a query that the run lacks has no documents."""

    rankings: Run

    def __call__(self, query: Query, /) -> Ranking:
        """Return the query's ranking in the run."""
        ranking = self.rankings.get(query.qid)
        if ranking is None:
            return Ranking(query.qid, query.text, (), np.empty(0))
        return Ranking(query.qid, query.text, ranking.docids, ranking.scores)


def fuse_runs(
    runs: Sequence[Run | Mapping[str, Mapping[str, float]]],
    method: str | Fusion = "rrf",
    *,
    k: int | None = None,
    tag: str | None = None,
) -> Run:
    """Fuse runs query by query.

    Parameters
    ----------
    runs : sequence of Run, or of mappings of qid to docid to float
        At least one. A query that some of them lack is fused from the others. Queries are in the order of the first
        run, those that it lacks following.
    method, k
        See `PooledSources`.
    tag : str, default the method, or "fused" for a learned one
        The tag of the result; ``+training-topics`` follows if one of the runs has it.
    """
    if not runs:
        raise ParameterError("a union needs at least one source")
    joined, fuse = JoinedRuns(tuple(map(as_run, runs))), cut(method, k)
    named = tag or (method if isinstance(method, str) else "fused")
    return Run(tuple(map(fuse, joined.rankings)), marked(named, joined.tag))


def cut(method: str | Fusion, k: int | None) -> Fusion:
    """Make a method of fusion that keeps the first k documents of each ranking, or all."""
    if k is not None:
        check_counts(k=k)
    return partial(_head, _fusion(method), k)


def _head(fuse: Fusion, k: int | None, rankings: Sequence[Ranking]) -> Ranking:
    fused = fuse(rankings)
    return fused if k is None else fused.head(k)
