"""The values that flow through a pipeline, and the pipeline itself.

A source turns a `Query` into a `Ranking`; a stage turns a `Ranking` into another `Ranking`; ``a >> b`` chains them.
This module knows nothing of indexes, features or files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from typing import Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greylag import unknown
from greylag.errors import ParameterError
from greylag.notebook import html_table
from greylag.parallel import parallel_map, rebuilt
from greylag.wrong_inputs import remedy, shown

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Query:
    """A topic's identifier and the text to search for.

    Parameters
    ----------
    qid : str
        The topic's identifier.
    text : str
        The query text.
    """

    qid: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The documents retrieved for one query, best first.

    Parameters
    ----------
    qid : str
        The topic's identifier.
    query : str
        The query text, or "" if it is unknown.
    docids : sequence of str, length n
        Document identifiers, without duplicates.
    scores : array-like of float, shape (n,)
        Finite and non-increasing. Kept as a read-only float64 array.

    Raises
    ------
    ParameterError
        If the lengths differ, a document is duplicated, or scores are not finite or increase.
    """

    qid: str
    query: str
    docids: tuple[str, ...]
    scores: FloatArray

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        scores.flags.writeable = False
        object.__setattr__(self, "docids", tuple(self.docids))
        object.__setattr__(self, "scores", scores)
        if scores.shape != (len(self.docids),):
            raise ParameterError(f"query {self.qid}: {len(self.docids)} documents but scores of shape {scores.shape}")
        if len(set(self.docids)) != len(self.docids):
            duplicate = next(d for i, d in enumerate(self.docids) if d in self.docids[:i])
            raise ParameterError(f"query {self.qid}: duplicate document {duplicate!r}")
        if not np.isfinite(scores).all():
            raise ParameterError(f"query {self.qid}: score {scores[~np.isfinite(scores)][0]} is not finite")
        if (np.diff(scores) > 0).any():
            at = int(np.argmax(np.diff(scores) > 0)) + 1
            raise ParameterError(
                f"query {self.qid}: scores increase at rank {at + 1}; use Ranking.sort for unsorted scores"
            )

    def __len__(self) -> int:
        return len(self.docids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        same = (self.qid, self.query, self.docids) == (other.qid, other.query, other.docids)
        return same and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]

    def _repr_html_(self) -> str:
        ranked = zip(range(1, len(self) + 1), self.docids, self.scores.tolist(), strict=True)
        return html_table(f"query {self.qid}: {self.query}", ("rank", "docid", "score"), ranked, len(self))

    @classmethod
    def from_hits(cls, qid: str, query: str, hits: Iterable[Any]) -> Ranking:
        """Build a ranking from a Pyserini searcher's hits (objects with ``docid`` and ``score``), in their order."""
        pairs = [(str(hit.docid), float(hit.score)) for hit in hits]
        return cls(qid, query, tuple(docid for docid, _ in pairs), np.array([score for _, score in pairs]))

    @classmethod
    def sort(cls, qid: str, query: str, docids: Sequence[str], scores: ArrayLike) -> Ranking:
        """Rank documents by decreasing score; ties keep the given order."""
        values = np.asarray(scores, dtype=np.float64)
        order = np.argsort(-values, kind="stable")
        return cls(qid, query, tuple(docids[i] for i in order), values[order])

    def head(self, k: int) -> Ranking:
        """The top `k` documents, or all of them if there are fewer."""
        return Ranking(self.qid, self.query, self.docids[:k], self.scores[:k])

    def rescore(self, scores: ArrayLike) -> Ranking:
        """The same documents ranked by new scores, shape (n,); ties keep the current order."""
        return Ranking.sort(self.qid, self.query, self.docids, scores)

    def permute(self, order: Sequence[int] | IntArray) -> Ranking:
        """The documents at the 0-based positions `order`, in that order, with scores n, n - 1, ..., 1."""
        return Ranking(self.qid, self.query, tuple(self.docids[i] for i in order), np.arange(len(order), 0.0, -1.0))

    def select(self, chosen: BoolArray) -> Ranking:
        """The documents where `chosen`, shape (n,), is true, in the same order and with their scores."""
        docids = tuple(docid for docid, is_chosen in zip(self.docids, chosen, strict=True) if is_chosen)
        return Ranking(self.qid, self.query, docids, self.scores[chosen])

    def restore(self, chosen: BoolArray, reranked: Ranking) -> Ranking:
        """Put a reranked `select` back: its documents take their ranks in the new order, the others keep theirs.

        Scores are those of `reranked`. Another document has the score of the one before it, or at the top, after it.
        """
        if not len(reranked):
            return self
        at = np.maximum(np.cumsum(chosen) - 1, 0)
        docids = np.where(chosen, np.array(reranked.docids, dtype=object)[at], np.array(self.docids, dtype=object))
        return Ranking(self.qid, self.query, tuple(docids), reranked.scores[at])


def rerank_known(ranking: Ranking, known: BoolArray, rerank: Callable[[Ranking], Ranking], *, stage: str) -> Ranking:
    """Rerank the known documents as if the others were not there; the others keep their ranks, with a warning.

    Parameters
    ----------
    ranking : Ranking
    known : bool array, shape (n,)
        Which documents `rerank` can deal with.
    rerank : callable
        From the ranking of the known documents to a permutation of it.
    stage : str
        The name of the stage, for the warning.
    """
    if known.all():
        return rerank(ranking)
    lost = tuple(docid for docid, is_known in zip(ranking.docids, known, strict=True) if not is_known)
    unknown.report(f"{stage} leaves them at their ranks", ranking.qid, lost, len(ranking))
    return ranking.restore(known, rerank(ranking.select(known)))


def unit_range(scores: FloatArray) -> FloatArray:
    """Scale scores linearly to [0, 1], shape (n,); all 0 if they are equal."""
    spread = np.ptp(scores) if len(scores) else 0.0
    return (scores - scores.min()) / spread if spread > 0 else np.zeros(len(scores))


@dataclass(frozen=True, slots=True)
class Run(Mapping[str, Ranking]):
    """The rankings of a system, a mapping from qid to `Ranking`.

    Parameters
    ----------
    rankings : sequence of Ranking
        One per query, in the order of iteration.
    tag : str, default "greylag"
        The system's name.

    Raises
    ------
    ParameterError
        If two rankings have the same qid.
    """

    rankings: tuple[Ranking, ...]
    tag: str = "greylag"
    _by_qid: dict[str, Ranking] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rankings", tuple(self.rankings))
        object.__setattr__(self, "_by_qid", {ranking.qid: ranking for ranking in self.rankings})
        if len(self._by_qid) != len(self.rankings):
            qids = [ranking.qid for ranking in self.rankings]
            raise ParameterError(f"query {next(q for q in qids if qids.count(q) > 1)!r} has two rankings in one run")

    def __getitem__(self, qid: str) -> Ranking:
        return self._by_qid[qid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_qid)

    def __len__(self) -> int:
        return len(self.rankings)

    def _repr_html_(self) -> str:
        rows = ((r.qid, r.query, len(r), r.docids[0] if len(r) else "") for r in self.rankings)
        return html_table(f"run {self.tag}", ("qid", "query", "documents", "first"), rows, len(self))


Input_contra = TypeVar("Input_contra", contravariant=True)
First = TypeVar("First")
Topics = Iterable[Query] | Mapping[str, str]
Rankings = Iterable[Ranking] | Run


class Composable(ABC, Generic[Input_contra]):
    """A step that has ``run`` and the operator ``>>``; the other operand of ``>>`` may be a plain function.

    A step that is a dataclass is pickled as its parameters, without what it has opened or cached.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return rebuilt(self) if is_dataclass(self) else super().__reduce_ex__(protocol)

    @abstractmethod
    def __call__(self, value: Input_contra, /) -> Ranking:
        """Rank the documents of one query."""

    def __rshift__(self, after: Callable[[Ranking], Ranking]) -> Pipeline[Input_contra]:
        return Pipeline(_steps(self) + _steps(after))

    def __rrshift__(self: Composable[Ranking], before: Callable[[First], Ranking]) -> Pipeline[First]:
        return Pipeline(_steps(before) + _steps(self))

    @overload
    def run(self: Composable[Query], inputs: Topics, *, n_jobs: int | None = None, tag: str = "greylag") -> Run: ...
    @overload
    def run(self: Composable[Ranking], inputs: Rankings, *, n_jobs: int | None = None, tag: str = "greylag") -> Run: ...
    def run(self, inputs: Any, *, n_jobs: int | None = None, tag: str = "greylag") -> Run:
        """Apply this source, stage or pipeline to every query.

        Parameters
        ----------
        inputs : mapping of str to str, iterable of Query, iterable of Ranking, or Run
            Topics (qid to text) or queries for a source; rankings or a run for a stage.
        n_jobs : int, optional
            Number of workers; -1 means one per core. They are threads, unless `joblib.parallel_config` names another
            backend, such as "loky" or "dask". By default as many as it says, or else 1. Results are identical for
            every number and backend.
        tag : str, default "greylag"
            The run's name.

        Raises
        ------
        ParameterError
            If `inputs` are not what this step takes, or `n_jobs` is 0.
        """
        return run_step(self, inputs, n_jobs=n_jobs, tag=tag)


class Source(Composable[Query]):
    """A step that retrieves: from a `Query` to a `Ranking`."""


class Stage(Composable[Ranking]):
    """A step that reranks: from a `Ranking` to a `Ranking`."""


@dataclass(frozen=True, slots=True)
class Pipeline(Composable[Input_contra]):
    """Steps applied one after another; itself a step.

    Parameters
    ----------
    steps : tuple of callables
        The first takes what the pipeline takes; every other one takes the `Ranking` of the step before it.
    """

    steps: tuple[Callable[[Any], Ranking], ...]

    def __call__(self, value: Input_contra, /) -> Ranking:
        """Apply the steps in order."""
        result: Any = value
        for step in self.steps:
            result = step(result)
        if not isinstance(result, Ranking):
            raise ParameterError("a pipeline needs at least one step that returns a Ranking")
        return result


def run_step(
    step: Callable[[Any], Ranking], inputs: Topics | Rankings, *, n_jobs: int | None = None, tag: str = "greylag"
) -> Run:
    """`Composable.run` for any source or stage, including a plain function."""
    items = _items(inputs)
    _check_fit(step, items)
    return Run(tuple(parallel_map(step, items, what=f"run {tag}", n_jobs=n_jobs)), tag)


def _items(inputs: Any) -> list[Query | Ranking]:
    if isinstance(inputs, Run):
        return list(inputs.rankings)
    if isinstance(inputs, Mapping):
        return [_query(qid, text, inputs) for qid, text in inputs.items()]
    items = list(inputs) if isinstance(inputs, Iterable) and not hasattr(inputs, "columns") else [inputs]
    for item in items:
        if not isinstance(item, Query | Ranking):
            given = type(inputs).__name__ + ("" if item is inputs else f" with {shown(item)}")
            how = remedy(item) or "pass topics (a mapping of qid to text), queries, rankings or a run"
            raise ParameterError(f"cannot run on a {given}: {how}")
    return items


def _query(qid: Any, text: Any, topics: Any) -> Query:
    if isinstance(qid, bool) or not isinstance(qid, str | int | np.integer):
        raise ParameterError(f"topic identifier {shown(qid)} is neither a string nor an integer")
    if not isinstance(text, str):
        how = remedy(topics) or "pass a mapping of qid to text"
        raise ParameterError(f"topic {str(qid)!r} is {shown(text)}, not a string: {how}")
    return Query(str(qid), text)


def _check_fit(step: Callable[[Any], Ranking], items: list[Query | Ranking]) -> None:
    first = step.steps[0] if isinstance(step, Pipeline) and step.steps else step
    name = type(first).__name__
    if isinstance(first, Stage) and any(isinstance(item, Query) for item in items):
        raise ParameterError(f"{name} reranks: it needs a source before it, e.g. lucene.bm25() >> {name}(...)")
    if isinstance(first, Source) and any(isinstance(item, Ranking) for item in items):
        raise ParameterError(f"{name} searches: pass topics (a mapping of qid to text) or queries, not rankings")


def _steps(step: Any) -> tuple[Callable[[Any], Ranking], ...]:
    if isinstance(step, Pipeline):
        return step.steps
    if not callable(step):
        raise TypeError(f"{type(step).__name__} is not a step: it cannot be called with a Query or a Ranking")
    return (step,)
