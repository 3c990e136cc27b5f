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
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, cast

import numpy as np

from greylag.base import (
    FloatArray,
    IntArray,
    ParameterError,
    Query,
    Ranking,
    Run,
    RunLike,
    Source,
    as_ranking,
    as_run,
    check_counts,
    check_non_negative,
    check_sequences,
    guided,
    is_scored,
    load_entry,
    marked,
    naming,
    nearest,
    parameters,
    read_call,
    read_options,
    registered,
    spell,
    unit_range,
)
from greylag.evaluation.trec.runs import JoinedRuns

Fusion = Callable[[Sequence[Ranking]], Ranking]
"""From one or more rankings of the same query to their fusion."""

CONSTANT = 60  # of Cormack et al.; it limits the influence of the first ranks


@dataclass(frozen=True, eq=False)
class PooledRankings:
    """The documents of one or more rankings of a query, in the order in which they first appear, which breaks ties."""

    rankings: Sequence[Ranking]  # or of lists of pairs (docid, score)

    def __post_init__(self) -> None:
        check_sequences(rankings=self.rankings)
        object.__setattr__(self, "rankings", tuple(map(as_ranking, self.rankings)))
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
    def ranks(self) -> FloatArray:
        """The rank of each document in each ranking from 1, shape (n, rankings); infinite where it is lacking."""
        return self._terms(lambda ranking: np.arange(1.0, len(ranking) + 1), lacking=math.inf)

    def rank(self, scores: FloatArray) -> Ranking:
        """Rank the documents by their scores, shape (n,)."""
        return Ranking.sort(self.rankings[0].qid, self.rankings[0].query, tuple(self.rows), scores)

    def _terms(self, term_of: Callable[[Ranking], FloatArray], lacking: float = 0.0) -> FloatArray:
        terms = np.full((len(self.rows), len(self.rankings)), lacking)
        for column, ranking in enumerate(self.rankings):
            terms[[self.rows[docid] for docid in ranking.docids], column] = term_of(ranking)
        return terms


@dataclass(frozen=True, kw_only=True)
class FusionRule(ABC):
    """A method of fusion that learns nothing: documents are ranked by a weighted sum of a term for each ranking.

    Subclasses are frozen dataclasses that have a `name` and define `terms`. One of another package is known to
    ``greylag fuse --method`` by an entry point ``greylag.fusions`` of that name.

    Parameters
    ----------
    weights : tuple of float >= 0, default 1 each
        One weight per ranking, in the order of the rankings.
    """

    name: ClassVar[str]

    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        weights = tuple(np.atleast_1d(self.weights).tolist())
        if not all(isinstance(weight, int | float) and 0 <= weight < math.inf for weight in weights):
            raise ParameterError(f"weights are {spell(weights)}: give one number of at least 0 per run, in their order")
        if weights and not any(weights):
            raise ParameterError("weights are all 0, which ranks by nothing: give one above 0")
        object.__setattr__(self, "weights", tuple(map(float, weights)))

    def __call__(self, rankings: Sequence[Ranking], /) -> Ranking:
        """Fuse the rankings of a query, or lists of pairs (docid, score), best first."""
        pooled = PooledRankings(rankings)
        return pooled.rank(self.scores(pooled))

    def check_number(self, number: int) -> None:
        """Raise `ParameterError` unless there is a weight for each of this number of runs, or none is given."""
        if self.weights and len(self.weights) != number:
            given = f"weights={spell(self.weights)} for {number} runs"
            raise ParameterError(f"{self.name} has {given}: give one weight per run, in the order of the runs")

    def scores(self, pooled: PooledRankings, places: list[int] | slice = slice(None)) -> FloatArray:
        """Score the documents, shape (n,), by all rankings or by those at these places alone."""
        terms = self.terms(pooled)[:, places]
        self.check_number(terms.shape[1])
        if self.weights:
            terms = terms * self.weights
        if terms.shape[1] <= 2:  # one addition has one rounding, as fsum has for any number of terms
            sums: FloatArray = terms.sum(axis=1)
            return sums
        return np.fromiter(map(math.fsum, terms.tolist()), np.float64, len(terms))

    @abstractmethod
    def terms(self, pooled: PooledRankings) -> FloatArray:
        """Compute the term of each document in each ranking, shape (n, rankings); 0 where it is lacking."""


@dataclass(frozen=True, kw_only=True)
class RRF(FusionRule):
    """Reciprocal rank fusion: rank documents by the sum of w_i / (c + rank_i(d)) over the rankings that have them.

    Parameters
    ----------
    rank_constant : float >= 0, default 60
        c, ranx's k and Pyserini's rrf_k. With a lower one, the first ranks count for more.
    weights : tuple of float >= 0, default 1 each
        w, one weight per ranking, in the order of the rankings.

    Examples
    --------
    >>> RRF(weights=(0.7, 0.3))([[("d1", 9.0), ("d2", 8.0)], [("d2", 0.5)]]).docids
    ('d2', 'd1')
    """

    name: ClassVar[str] = "rrf"

    rank_constant: float = CONSTANT

    def __post_init__(self) -> None:
        super().__post_init__()
        check_non_negative(rank_constant=self.rank_constant)

    def terms(self, pooled: PooledRankings) -> FloatArray:
        """Compute 1 / (c + rank), shape (n, rankings)."""
        return 1 / (self.rank_constant + pooled.ranks)


@dataclass(frozen=True, kw_only=True)
class CombSUM(FusionRule):
    """Rank documents by the sum of w_i s_i(d), with s_i the scores of ranking i, scaled to [0, 1].

    s_i(d) = (x - min) / (max - min) for the score x; 0.5 if all scores are equal, as for a single document; and 0 for a
    document that the ranking lacks.

    Parameters
    ----------
    weights
        As in `RRF`.
    """

    name: ClassVar[str] = "combsum"

    def terms(self, pooled: PooledRankings) -> FloatArray:
        """Return the scaled scores, shape (n, rankings)."""
        return pooled.scaled


@dataclass(frozen=True, kw_only=True)
class CombMNZ(CombSUM):
    """Rank documents by the sum of `CombSUM`, times the number of rankings that have the document.

    Parameters
    ----------
    weights
        As in `RRF`.
    """

    name: ClassVar[str] = "combmnz"

    def scores(self, pooled: PooledRankings, places: list[int] | slice = slice(None)) -> FloatArray:
        """Multiply the weighted sums by the numbers of rankings, shape (n,)."""
        rankings: IntArray = np.isfinite(pooled.ranks[:, places]).sum(axis=1)
        return super().scores(pooled, places) * rankings


FUSIONS: Mapping[str, FusionRule] = {rule.name: rule for rule in (RRF(), CombSUM(), CombMNZ())}
"""The rules of fusion that greylag has, by name; learned fusion and features ``fused:`` compare and use these alone."""
LEARNED = "learned"
"""The name of learned weights beside those of runs and of `FUSIONS`."""


def parse_fusion(text: str, **options: Any) -> FusionRule:
    """Parse a method of fusion: ``NAME`` or ``NAME(OPTION=VALUE,...)``, such as ``rrf(rank_constant=10)``.

    NAME is a key of `FUSIONS`, in any case, or an entry point ``greylag.fusions`` of another package. More `options`,
    such as ``weights=[0.7, 0.3]``, replace those of the text.
    """
    name, spelt = read_call(text.lower())
    if name not in FUSIONS and name not in registered("fusion rule"):
        names = ", ".join([*FUSIONS, *registered("fusion rule")])
        raise ParameterError(f"unknown method {text!r} of fusion: use {names}, or a learned model")
    kind = type(FUSIONS[name]) if name in FUSIONS else load_entry("fusion rule", name)
    known = parameters(kind)
    if unknown := next((option for option in options if option not in known), None):
        raise ParameterError(f"{name} has no option {unknown!r:.60}: {nearest(unknown, known)}")
    rule: FusionRule = kind(**{**read_options(name, spelt, known), **options})
    return rule


@dataclass(frozen=True)
class PooledSources(Source):
    """All documents that any of several sources retrieves, ranked by fusion.

    Parameters
    ----------
    sources : tuple of callables from a Query to a Ranking
        At least one, such as ``(lucene.bm25(), lucene.ql(), GivenRun(run))``.
    method : str or Fusion, default "rrf"
        See `parse_fusion`: ``"combsum"``, ``"rrf(weights=[0.7,0.3])"``, `RRF`, or a `greylag.rankers.FusionRanker` of a
        model that was learned for these sources, in their order.
    k : int >= 1, optional
        The number of documents to keep; all by default.
    """

    sources: tuple[Callable[[Query], Ranking], ...]
    _: KW_ONLY
    method: str | Fusion = "rrf"
    k: int | None = None

    def __post_init__(self) -> None:
        check_sequences(sources=self.sources)
        object.__setattr__(self, "sources", tuple(self.sources))
        if not self.sources:
            raise ParameterError("a union needs at least one source")
        cut(self.method, self.k)

    def __call__(self, query: Query, /) -> Ranking:
        """Fuse the rankings of the sources."""
        return cut(self.method, self.k)([source(query) for source in self.sources])


@dataclass(frozen=True)
class GivenRun(Source):
    """The rankings of a run as a source; a query that the run lacks has no documents."""

    rankings: RunLike

    @cached_property
    def _run(self) -> Run:
        return as_run(self.rankings)

    def __call__(self, query: Query, /) -> Ranking:
        """Return the query's ranking in the run."""
        ranking = self._run.get(query.qid, Ranking(query.qid, "", (), np.empty(0)))
        return Ranking(query.qid, query.text, ranking.docids, ranking.scores)


@guided
def fuse_runs(
    runs: Sequence[RunLike | Sequence[tuple[str, float]]] | Mapping[str, RunLike | Sequence[tuple[str, float]]],
    method: str | Fusion = "rrf",
    *,
    tag: str | None = None,
    **options: Any,
) -> Run:
    """Fuse runs query by query; `Run.head` cuts the result.

    Parameters
    ----------
    runs : sequence, or mapping by name, of RunLike
        At least one. A query that some of them lack is fused from the others. Queries are in the order of the first
        run, those that it lacks following. Plain (docid, score) lists, best first, are one query, with qid "query".
        Named runs are passed to a learned method by its names, in any order.
    method : str or Fusion, default "rrf"
        See `PooledSources`.
    tag : str, default the name of the method, or "fused" for a learned one
        The tag of the result; ``+training-topics`` follows if one of the runs has it.
    **options
        Options of a method that is named, such as ``weights=[0.7, 0.3]``, by name for named runs, and
        ``rank_constant=10`` of "rrf", which ranx calls k.

    Examples
    --------
    >>> bm25, dense = [("d1", 12.1), ("d2", 11.5)], [("d2", 0.81), ("d3", 0.77)]
    >>> fuse_runs([bm25, dense], "combsum", weights=[0.4, 0.6])["query"].docids
    ('d2', 'd1', 'd3')
    >>> fuse_runs({"bm25": bm25, "dense": dense}, "combsum", weights={"dense": 0.6, "bm25": 0.4})["query"].docids
    ('d2', 'd1', 'd3')
    """
    named = dict(runs) if isinstance(runs, Mapping) and not isinstance(runs, Run) else None
    if named is None:
        check_sequences(runs=runs)
    runs = [*(runs if named is None else named.values())]
    if not runs:
        raise ParameterError("a union needs at least one source")
    if options and not isinstance(method, str):
        raise ParameterError(f"{next(iter(options))} goes with the name of a method, such as 'rrf': leave it out")
    if named and isinstance(options.get("weights"), Mapping):
        options["weights"] = _in_order("weights", options["weights"], [*named])
    fusion = parse_fusion(method, **options) if isinstance(method, str) else method
    names = [*named] if named else range(1, len(runs) + 1)
    if named and (trained := getattr(fusion, "runs", None)):
        names, runs = trained, _in_order("runs", named, trained)
    # Plain lists have no qid: they are all of one query.
    lists = all(map(is_scored, runs))
    parsed = list[Run]()
    for name, run in zip(names, runs, strict=True):
        with naming(f"run {name}"):
            parsed.append(Run((as_ranking(run),)) if lists else as_run(cast(RunLike, run)))
    joined = JoinedRuns(tuple(parsed))
    named_so = tag or (fusion.name if isinstance(fusion, FusionRule) else "fused")
    return Run(tuple(map(fusion, joined.rankings)), marked(named_so, joined.tag))


def _in_order(what: str, values: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the values of these names in their order; `ParameterError` unless there is one value per name."""
    if set(values) != set(names):
        raise ParameterError(f"{what} are named {', '.join(map(str, values))}: name them {', '.join(names)}")
    return [values[name] for name in names]


def cut(method: str | Fusion, k: int | None) -> Fusion:
    """Make a method of fusion that keeps the first k documents of each ranking, or all."""
    fuse = parse_fusion(method) if isinstance(method, str) else method
    if k is None:
        return fuse
    check_counts(k=k)
    return lambda rankings: fuse(rankings).head(k)
