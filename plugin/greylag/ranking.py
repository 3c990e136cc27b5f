"""The values that flow through a pipeline, and the pipeline itself.

A source turns a `Query` into a `Ranking`; a stage turns a `Ranking` into another one; ``a >> b`` joins them. Nothing
here knows of indexes, features or files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greylag.errors import ParameterError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Query:
    """A topic's identifier and the text that is searched for."""

    qid: str
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """The documents of one query, best first.

    Parameters
    ----------
    qid, query : the topic's identifier and its text ("" where the text is not known).
    docids : document identifiers, each once.
    scores : array-like, shape (n,); finite, non-increasing. Kept as a read-only float64 array.

    Raises
    ------
    ParameterError
        Where the two differ in length, a document stands twice, or scores are not finite or increase.
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
            twice = next(d for i, d in enumerate(self.docids) if d in self.docids[:i])
            raise ParameterError(f"query {self.qid}: document {twice!r} is ranked twice")
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

    @classmethod
    def from_hits(cls, qid: str, query: str, hits: Iterable[Any]) -> Ranking:
        """The ranking of a Pyserini searcher's hits (objects with ``docid`` and ``score``), in their order."""
        pairs = [(str(hit.docid), float(hit.score)) for hit in hits]
        return cls(qid, query, tuple(docid for docid, _ in pairs), np.array([score for _, score in pairs]))

    @classmethod
    def sort(cls, qid: str, query: str, docids: Sequence[str], scores: ArrayLike) -> Ranking:
        """Order documents by score, highest first; of equal scores the earlier document stays ahead."""
        values = np.asarray(scores, dtype=np.float64)
        order = np.argsort(-values, kind="stable")
        return cls(qid, query, tuple(docids[i] for i in order), values[order])

    def head(self, k: int) -> Ranking:
        """The first `k` documents (all, where there are fewer)."""
        return Ranking(self.qid, self.query, self.docids[:k], self.scores[:k])

    def rescore(self, scores: ArrayLike) -> Ranking:
        """The same documents with new scores, sorted; ties keep the present order."""
        return Ranking.sort(self.qid, self.query, self.docids, scores)

    def permute(self, order: Sequence[int] | IntArray) -> Ranking:
        """The documents at `order`'s places, in that order, scored n, n - 1, ..., 1 for n = len(order)."""
        return Ranking(self.qid, self.query, tuple(self.docids[i] for i in order), np.arange(len(order), 0.0, -1.0))


def unit_range(scores: FloatArray) -> FloatArray:
    """Scale scores linearly to [0, 1], shape (n,); all 0 if they are equal."""
    spread = np.ptp(scores) if len(scores) else 0.0
    return (scores - scores.min()) / spread if spread > 0 else np.zeros(len(scores))


@dataclass(frozen=True, slots=True)
class Run(Mapping[str, Ranking]):
    """Rankings by qid, in the order of `rankings`, under a system's tag."""

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


Source = Callable[[Query], Ranking]
Stage = Callable[[Ranking], Ranking]


class Step(Protocol):
    """A source or a stage: any callable, a plain function too."""

    def __call__(self, value: Any, /) -> Ranking:
        """Rank."""


class Composable(ABC):
    """Gives a source or a stage ``run`` and the operator ``>>``; a plain function may stand on either side of one."""

    @abstractmethod
    def __call__(self, value: Any, /) -> Ranking:
        """Rank."""

    def __rshift__(self, after: Step) -> Pipeline:
        return Pipeline(_steps(self) + _steps(after))

    def __rrshift__(self, before: Step) -> Pipeline:
        return Pipeline(_steps(before) + _steps(self))

    def run(
        self, inputs: Iterable[Query | Ranking] | Mapping[str, str] | Run, *, n_jobs: int = 1, tag: str = "greylag"
    ) -> Run:
        """Apply this source, stage or pipeline to every query.

        Parameters
        ----------
        inputs : topics (qid to text), queries, rankings, or a `Run`.
        n_jobs : threads (-1: one a core). The result is the same, bit for bit, whatever their number; threads and not
            processes, since a JVM does not survive a fork.
        tag : the run's name.
        """
        return run_step(self, inputs, n_jobs=n_jobs, tag=tag)


@dataclass(frozen=True, slots=True)
class Pipeline(Composable):
    """Steps applied one after another; itself a step."""

    steps: tuple[Step, ...]

    def __call__(self, value: Query | Ranking) -> Ranking:
        """Apply the steps in turn."""
        for step in self.steps:
            value = step(value)
        if not isinstance(value, Ranking):
            raise ParameterError("a pipeline needs at least one step that gives a Ranking")
        return value


def run_step(
    step: Step, inputs: Iterable[Query | Ranking] | Mapping[str, str] | Run, *, n_jobs: int = 1, tag: str = "greylag"
) -> Run:
    """`Composable.run` for any source or stage, a plain function too."""
    from joblib import Parallel, delayed
    from tqdm import tqdm

    items = _items(inputs)
    results = Parallel(n_jobs=n_jobs, backend="threading", return_as="generator")(delayed(step)(item) for item in items)
    return Run(tuple(tqdm(results, total=len(items), desc=tag, unit="query", disable=None)), tag)


def _items(inputs: Iterable[Query | Ranking] | Mapping[str, str] | Run) -> list[Query | Ranking]:
    if isinstance(inputs, Run):
        return list(inputs.rankings)
    if isinstance(inputs, Mapping):
        return [Query(qid, str(text)) for qid, text in inputs.items()]
    return list(inputs)


def _steps(step: Any) -> tuple[Step, ...]:
    if isinstance(step, Pipeline):
        return step.steps
    if not callable(step):
        raise TypeError(f"{type(step).__name__} is not a step: it cannot be called with a Query or a Ranking")
    return (step,)
