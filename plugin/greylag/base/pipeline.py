"""Composition: a source turns a `Query` into a `Ranking`, a stage a `Ranking` into another; ``a >> b`` chains them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, SupportsIndex, TypeVar, cast, overload

from greylag.base.core import labels
from greylag.base.core.guidance import guided, refuse_attribute
from greylag.base.core.hints import remedy, shown
from greylag.base.core.missing_documents import report_missing
from greylag.base.doors.runs import RunLike, as_ranking, as_run, is_run
from greylag.base.doors.topics import TopicsLike, as_topics
from greylag.base.errors import ParameterError
from greylag.base.ranking import BoolArray, Query, Ranking, Run, is_scored, marked
from greylag.base.runtime.parallel import parallel_map, rebuilt

_Input_contra = TypeVar("_Input_contra", contravariant=True)
_First = TypeVar("_First")
Need = Literal["index", "vectors", "aspects", "groups"]
"""The values that a stage may need beside the ranking, and the parameter that takes it."""


class Composable(ABC, Generic[_Input_contra]):
    """A step that has ``run`` and the operator ``>>``; the other operand of ``>>`` may be a plain function.

    A step that is a dataclass is pickled as its parameters, without what it has opened or cached.
    """

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        return rebuilt(self) if is_dataclass(self) else super().__reduce_ex__(protocol)

    # What users of other packages write first, a + b, a % 10, a.transform, is answered with what to write here:
    # Python's own errors name an operand or an attribute. Type checkers do not see these methods, so that an editor
    # marks such lines as wrong.
    if not TYPE_CHECKING:

        def __add__(self, other: Any) -> Any:
            raise TypeError("steps are joined by >>: runs are summed by greylag.fuse_runs, and k= cuts a ranking")

        # And not __pow__, by which features take a stage
        __radd__ = __mul__ = __rmul__ = __mod__ = __or__ = __and__ = __add__
        __getattr__ = refuse_attribute

    @abstractmethod
    def __call__(self, value: _Input_contra, /) -> Ranking:
        """Rank the documents of one query."""

    def __rshift__(self, after: Callable[[Ranking], Ranking]) -> Pipeline[_Input_contra]:
        return Pipeline(_steps(self) + _steps(after))

    def __rrshift__(self: Composable[Ranking], before: Callable[[_First], Ranking]) -> Pipeline[_First]:
        return Pipeline(_steps(before) + _steps(self))

    @overload
    def run(self: Composable[Query], inputs: TopicsLike, *, n_jobs: int | None = None, tag: str = "greylag") -> Run: ...
    @overload
    def run(self: Composable[Ranking], inputs: RunLike, *, n_jobs: int | None = None, tag: str = "greylag") -> Run: ...
    @guided
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
            The run's name; ``+training-topics`` follows if the run that is reranked has it.
        """
        return run_step(self, inputs, n_jobs=n_jobs, tag=tag)


class Source(Composable[Query]):
    """A step that retrieves: from a `Query` to a `Ranking`. Called with a text, it searches for that."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _convert_input(cls, _as_query)


class Stage(Composable[Ranking]):
    """A step that reranks: from a `Ranking` to a `Ranking`.

    A stage declares what it needs. Commands, `greylag.rerank`, `greylag.diversity.choose_diversifier` and features ask
    nothing else of it, so that they treat the stages of other packages as greylag's own. Where the caller knows them,
    parameters named `index`, `depth`, `k` and `transfer` are given, too. `greylag.testing.check_stage` tests a stage.

    Attributes
    ----------
    reads_query : bool, default True
        Whether it reads the text of the query. If so, rankings whose query has none are refused, as are runs without
        ``--topics``.
    needs : frozenset of {"index", "vectors", "aspects", "groups"}, default empty
        The parameters that it cannot rank without. Instead of vectors, it takes an index.
    strength : str, optional
        The parameter, in [0, 1], by which `greylag.diversity.choose_diversifier` tunes it.
    diversifies : bool, default False
        Whether `greylag.diversity.choose_diversifier` tries it unasked.
    learned_by : str, default ""
        The model of ``greylag train --model`` that its parameter `model` is. `greylag.diversity.choose_diversifier`
        learns it, without the queries of each fold.
    readers : mapping of str to callable
        The parameters that are files where the stage is spelt, as in ``mrf(model=FILE)``, and how they are read.
    by_query : tuple of str, default ()
        The parameters that are mappings from qid. A run without any of their queries is refused.
    """

    reads_query: ClassVar[bool] = True
    needs: ClassVar[frozenset[Need]] = frozenset()
    strength: ClassVar[str | None] = None
    diversifies: ClassVar[bool] = False
    learned_by: ClassVar[str] = ""
    readers: ClassVar[Mapping[str, Callable[[str], Any]]] = {}
    by_query: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _convert_input(cls, _as_ranking)

    def check_topics(self, qids: Iterable[str]) -> None:
        """Check that per-query parameters cover at least one of these queries."""
        for name in self.by_query:
            by_query = getattr(self, name)
            if by_query is not None and not any(qid in by_query for qid in qids):
                raise ParameterError(f"{name}: no query in common with the run")

    def scored(self, ranking: Ranking) -> Ranking:
        """Score the documents that have a value in the feature ``stage:NAME``; by default all, as ranked."""
        return self(ranking)

    def rerank_known(self, ranking: Ranking, known: BoolArray, rerank: Callable[[Ranking], Ranking]) -> Ranking:
        """Rerank the documents that are `known`, shape (n,), as if the others, which keep their ranks, were not there.

        One warning per run counts the others.
        """
        if known.all():
            return rerank(ranking)
        lost = tuple(docid for docid, is_known in zip(ranking.docids, known, strict=True) if not is_known)
        report_missing(f"{type(self).__name__} leaves them at their ranks", ranking.qid, lost, len(ranking))
        return ranking.restore(known, rerank(ranking.select(known)))


@dataclass(frozen=True, slots=True)
class Pipeline(Composable[_Input_contra]):
    """Steps applied one after another, each to the `Ranking` of the step before it; itself a step."""

    steps: tuple[Callable[[Any], Ranking], ...]

    def __call__(self, value: _Input_contra, /) -> Ranking:
        """Apply the steps in order."""
        result: Any = value
        for step in self.steps:
            result = step(result)
            if not isinstance(result, Ranking):
                name = getattr(step, "__name__", type(step).__name__)
                raise ParameterError(f"{name} returned {shown(result)}, not a Ranking")
        if not self.steps:
            raise ParameterError("a pipeline needs at least one step")
        return cast(Ranking, result)


def run_step(
    step: Callable[[Any], Ranking], inputs: TopicsLike | RunLike, *, n_jobs: int | None = None, tag: str = "greylag"
) -> Run:
    """Run any source or stage as `Composable.run` does, including a plain function."""
    items = _items(inputs)
    _check_fit(step, items)
    tag = marked(tag, inputs.tag) if isinstance(inputs, Run) else tag
    return Run(tuple(parallel_map(step, items, what=f"run {tag}", n_jobs=n_jobs)), tag)


def _items(inputs: Any) -> list[Query | Ranking]:
    inputs = labels.listed(inputs)
    items = [inputs] if isinstance(inputs, Query | Ranking) else inputs
    if isinstance(items, list | tuple) and all(isinstance(item, Query | Ranking) for item in items):
        return [*items]
    # Runs come first: some pass as mappings or frames of topics.
    if is_run(inputs):
        return [*as_run(inputs).rankings]
    if labels.is_frame(inputs) or labels.has_labels(inputs):
        return [Query(qid, text) for qid, text in as_topics(inputs).items()]
    several = items if isinstance(items, list | tuple) else ()
    wrong = next((item for item in several if not isinstance(item, Query | Ranking)), inputs)
    received = type(inputs).__name__ + ("" if wrong is inputs else f" with {shown(wrong)}")
    how = remedy(wrong) or "pass topics, such as read_topics returns ({qid: text}), queries, rankings or a run"
    raise ParameterError(f"cannot run on a {received}: {how}")


def _check_fit(step: Callable[[Any], Ranking], items: list[Query | Ranking]) -> None:
    first = step.steps[0] if isinstance(step, Pipeline) and step.steps else step
    name = type(first).__name__
    if isinstance(first, Stage) and any(isinstance(item, Query) for item in items):
        raise ParameterError(f"{name} reranks: it needs a source before it, e.g. lucene.bm25() >> {name}(...)")
    if isinstance(first, Source) and any(isinstance(item, Ranking) for item in items):
        raise ParameterError(f"{name} searches: pass topics (a mapping of qid to text) or queries, not rankings")
    # Before any query is ranked: an empty query would be ranked wrongly without a word.
    for stage in step.steps if isinstance(step, Pipeline) else (step,):
        if isinstance(stage, Stage) and stage.reads_query:
            for item in items:
                if isinstance(item, Ranking):
                    item.check_query(type(stage).__name__)


def _convert_input(kind: type, convert: Callable[[Any, Any], Any]) -> None:
    """Let a class convert what it is called with, or refuse it, before its own ``__call__``."""
    # A stage of another package has a `__call__` and nothing else. Wrapped as its class is made, it takes pairs and
    # hits, too, and refuses a query with the call that works, without a base method that it would have to call.
    # Each class of a hierarchy has its own call, and super().__call__ must not convert what is converted.
    if (call := kind.__dict__.get("__call__")) and not hasattr(call, "converts"):

        @wraps(call)
        def converted(self: Any, value: Any, /) -> Any:
            return call(self, convert(self, value))

        converted.converts = True  # type: ignore[attr-defined]  # a dataclass with slots makes its class twice
        kind.__call__ = guided(converted)  # type: ignore[method-assign]


def _as_query(source: Any, value: Any) -> Query:
    if isinstance(value, str):
        return Query("query", value)
    if not isinstance(value, Query):
        raise ParameterError(f"{type(source).__name__} searches for a Query or a text, not {shown(value)}: use .run")
    return value


def _as_ranking(stage: Any, value: Any) -> Ranking:
    if isinstance(value, Ranking):
        return value
    if is_scored(value):
        return as_ranking(value)
    name = type(stage).__name__
    if isinstance(value, Query | str):
        raise ParameterError(f"{name} reranks: it needs a source before it, e.g. lucene.bm25() >> {name}(...)")
    first = value[0] if isinstance(value, list | tuple) and value else value
    how = remedy(first) or "give a Ranking, or all rankings to .run"
    raise ParameterError(f"{name} reranks a Ranking, not {shown(value)}: {how}")


def _steps(step: Any) -> tuple[Callable[[Any], Ranking], ...]:
    if isinstance(step, Pipeline):
        return step.steps
    if not callable(step):
        how = "; use greylag.passages.PyseriniSource(searcher)" if hasattr(step, "index_dir") else ""
        raise TypeError(f"{type(step).__name__} is not a step: it cannot be called with a Query or a Ranking{how}")
    return (step,)
