"""The values that flow through a pipeline: a query, its ranking, and the rankings of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greylag.base.core.checks import check_ids, check_sequences, naming
from greylag.base.core.guidance import guided, refuse_attribute
from greylag.base.core.hints import shown
from greylag.base.core.labels import Series, by_label, check_number, has_labels
from greylag.base.core.tables import Library, Printed, Row, Table, as_frame
from greylag.base.core.ties import Ties, check_float32, trec_order
from greylag.base.errors import ParameterError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Scored = Mapping[Any, Any] | Series | list[Any] | tuple[Any, ...]  # and no text, a sequence, too
"""The scores of a query's documents: by docid, or in pairs (docid, score) or Pyserini's hits, best first."""
SEEN = "+training-topics"
"""Marks the tag of a run whose model, or whose input's model, was trained on its topics."""


@guided
@dataclass(frozen=True, slots=True)
class Query:
    """A topic's identifier and the text to search for."""

    qid: str
    text: str


class Hit(NamedTuple):
    """A document of a ranking, and its score."""

    docid: str
    score: float


@guided
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ranking(Printed):
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
        Finite and non-increasing. Kept as a read-only float64 array. Others are a `ParameterError`.
    """

    qid: str
    query: str
    docids: tuple[str, ...]
    scores: FloatArray

    def __post_init__(self) -> None:
        # Checked only where it may matter, as rankings are made for every stage.
        if type(self.docids) is not tuple or type(self.scores) is not np.ndarray:
            check_sequences(docids=self.docids, scores=self.scores)
        scores = np.array(_numbers(self.scores, self.docids, self.qid))
        scores.flags.writeable = False
        object.__setattr__(self, "docids", tuple(self.docids))
        object.__setattr__(self, "scores", scores)
        if len(set(self.docids)) != len(self.docids):
            duplicate = next(d for i, d in enumerate(self.docids) if d in self.docids[:i])
            raise ParameterError(f"query {self.qid}: duplicate document {duplicate!r}")
        if not np.isfinite(scores).all():
            raise ParameterError(f"query {self.qid}: score {scores[~np.isfinite(scores)][0]} is not finite")
        if (scores[1:] > scores[:-1]).any():
            at = int(np.argmax(scores[1:] > scores[:-1])) + 1
            raise ParameterError(
                f"query {self.qid}: scores increase at rank {at + 1}; use Ranking.sort for unsorted scores, and give "
                "distances with a minus"
            )

    def __len__(self) -> int:
        return len(self.docids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranking):
            return NotImplemented
        same = (self.qid, self.query, self.docids) == (other.qid, other.query, other.docids)
        return same and np.array_equal(self.scores, other.scores)

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, place: int) -> Hit:
        """Return the document at a 0-based place; an iteration over the ranking gives all in order."""
        if not hasattr(place, "__index__"):
            raise ParameterError(f"a ranking has documents by place, not {shown(place)}: use head(k), docids or scores")
        return Hit(self.docids[place], float(self.scores[place]))

    def _table(self) -> Table:
        ranked = zip(range(1, len(self) + 1), self.docids, self.scores.tolist(), strict=True)
        caption = f"query {self.qid}: {self.query}, {len(self)} documents"
        return Table(caption, ("rank", "docid", "score"), [*ranked])

    def to_frame(self, library: Library = "pandas") -> Any:
        """Make a data frame of pandas or polars, as `Run.to_frame` does."""
        return Run((self,)).to_frame(library)

    @classmethod
    def from_hits(cls, qid: str, query: str, hits: Iterable[Any]) -> Ranking:
        """Build a ranking from Pyserini's hits, with ``docid`` and ``score``, or pairs (docid, score), best first."""
        check_ids(hits=hits)
        if not is_scored(hits := [*hits]):
            raise ParameterError(f"query {qid}: {shown(hits)}: hits are pairs (docid, score), or have docid and score")
        pairs = [hit if _is_pair(hit) else (hit.docid, hit.score) for hit in hits]
        return cls(qid, query, tuple(str(docid) for docid, _ in pairs), [score for _, score in pairs])  # type: ignore[arg-type]

    @classmethod
    def sort(cls, qid: str, query: str, docids: Sequence[str], scores: ArrayLike) -> Ranking:
        """Rank documents by decreasing score; ties keep the given order."""
        check_sequences(docids=docids, scores=scores)
        values = _numbers(scores, docids, qid)
        # Sorted already, as a rule: the tuple of docids stays the same object, by which vectors know it again.
        if (values[1:] <= values[:-1]).all():
            return cls(qid, query, tuple(docids), values)
        order = np.argsort(-values, kind="stable")
        return cls(qid, query, tuple(map(docids.__getitem__, order.tolist())), values[order])

    def check_query(self, reader: str) -> None:
        """Raise `ParameterError` if there are documents for `reader` to rank by the query's text, which is unknown."""
        if not self.query and self.docids:
            raise ParameterError(
                f"query {self.qid} has no text, which {reader} reads: give the topics with the run, as in "
                "read_run(path, topics), run_from_pyserini(hits, topics=topics) and Ranking.from_hits(qid, query, hits)"
            )

    def head(self, k: int) -> Ranking:
        """Return the top `k` documents, k at least 0, or all of them if there are fewer."""
        if k < 0:
            raise ParameterError(f"query {self.qid}: k is {k}: it must be at least 0")
        return self if k >= len(self) else Ranking.trusted(self.qid, self.query, self.docids[:k], self.scores[:k])

    def rescore(self, scores: ArrayLike) -> Ranking:
        """Return the same documents ranked by new scores, shape (n,); ties keep the current order."""
        return Ranking.sort(self.qid, self.query, self.docids, scores)

    def permute(self, order: Sequence[int] | IntArray) -> Ranking:
        """Reorder the documents by the 0-based positions `order`, each once, with scores n, n - 1, ..., 1."""
        check_sequences(order=order)
        if sorted(np.asarray(order).tolist()) != [*range(len(self))]:
            raise ParameterError(f"query {self.qid}: the order of {len(self)} documents must have each position once")
        return self.first(order)

    def first(self, picked: Sequence[int] | IntArray) -> Ranking:
        """Return the documents at the 0-based positions `picked`, all different, then the others; scores n, ..., 1."""
        check_sequences(picked=picked)
        positions, rest = np.asarray(picked, dtype=np.int64).tolist(), np.ones(len(self), dtype=bool)
        if len({*positions}) < len(positions) or not all(0 <= position < len(self) for position in positions):
            raise ParameterError(f"query {self.qid}: positions must be different, and below {len(self)}")
        rest[positions] = False
        front = map(self.docids.__getitem__, positions)
        return Ranking.trusted(
            self.qid, self.query, (*front, *compress(self.docids, rest.tolist())), np.arange(len(self), 0.0, -1.0)
        )

    def select(self, chosen: BoolArray) -> Ranking:
        """Select the documents where `chosen`, shape (n,), is true, in the same order and with their scores."""
        check_sequences(chosen=chosen)
        chosen = np.asarray(chosen)
        if chosen.shape != (len(self),) or (len(self) and chosen.dtype != bool):  # numbers would be positions of scores
            raise ParameterError(f"query {self.qid}: chosen is {shown(chosen)}: give a bool for each document")
        docids = tuple(docid for docid, is_chosen in zip(self.docids, chosen, strict=True) if is_chosen)
        return Ranking.trusted(self.qid, self.query, docids, self.scores[chosen])

    @classmethod
    def trusted(cls, qid: str, query: str, docids: tuple[str, ...], scores: FloatArray) -> Ranking:
        """Make a ranking of values that are known to be right: checking them takes longer than most stages."""
        ranking = object.__new__(Ranking)
        scores.flags.writeable = False
        for name, value in (("qid", qid), ("query", query), ("docids", docids), ("scores", scores)):
            object.__setattr__(ranking, name, value)
        return ranking

    def restore(self, chosen: BoolArray, reranked: Ranking) -> Ranking:
        """Put a reranked `select` back: its documents take their ranks in the new order, the others keep theirs.

        Scores come from `reranked`. Another document has the score of the one before it, or at the top, after it.
        """
        if not len(reranked):
            return self
        # At each rank, the number of chosen documents up to there, from 0: the r-th chosen rank gets the r-th of the
        # reranked.
        at = np.maximum(np.cumsum(chosen) - 1, 0)
        docids = np.where(chosen, np.array(reranked.docids, dtype=object)[at], np.array(self.docids, dtype=object))
        return Ranking(self.qid, self.query, tuple(docids), reranked.scores[at])


def marked(tag: str, *before: str) -> str:
    """Add the mark `SEEN` to a run's tag if one of the tags `before` it has the mark."""
    return tag + SEEN if SEEN not in tag and any(SEEN in each for each in before) else tag


def near_one(values: FloatArray) -> FloatArray:
    """Multiply each row, shape (..., n), by a power of two, such that its largest magnitude is in [0.5, 1)."""
    # Exactly, so that no result changes; without it, differences and squares of the largest floats overflow.
    largest = np.abs(values).max(axis=-1, keepdims=True, initial=0.0)
    scaled: FloatArray = np.ldexp(values, -np.frexp(largest)[1])
    return scaled


def unit_range(values: FloatArray) -> FloatArray:
    """Scale each row to [0, 1], shape (..., n): (x - min) / (max - min), or 0.5 if its values are equal.

    Equal values, and a single one, are both the best and the worst, so that they are halfway.
    """
    values = near_one(values)
    lowest = values.min(axis=-1, keepdims=True, initial=np.inf)
    spread = values.max(axis=-1, keepdims=True, initial=-np.inf) - lowest
    scaled: FloatArray = np.divide(values - lowest, spread, out=np.full(values.shape, 0.5), where=spread > 0)
    return scaled


def _is_pair(value: Any) -> bool:
    """Return whether a value is a docid with a score."""
    pair = isinstance(value, tuple | list) and len(value) == 2 and not any(isinstance(part, bool) for part in value)
    return pair and isinstance(value[0], str | Integral) and isinstance(value[1], Real)


def is_scored(value: Any) -> bool:
    """Return whether a value is a list of pairs (docid, score), or of Pyserini's hits."""
    return isinstance(value, tuple | list) and all(
        _is_pair(item) or (hasattr(item, "docid") and hasattr(item, "score")) for item in value
    )


def _numbers(scores: ArrayLike, docids: Sequence[str], qid: str) -> FloatArray:
    """Return the scores of documents as an array; texts, truth values and whatever else is no number are refused."""
    values: Any = scores
    if isinstance(scores, list | tuple):
        shape: tuple[int, ...] = (len(scores),)
        numeric = all(issubclass(kind, float | np.floating) for kind in {*map(type, scores)})  # a look a kind is fast
    else:
        array = values = np.asarray(scores)
        shape, numeric = array.shape, array.dtype.kind in "fiu"
    if shape != (len(docids),):
        raise ParameterError(f"query {qid}: {len(docids)} documents but scores of shape {shape}")
    if not numeric:
        named = zip(values, docids, strict=True)
        values = [check_number(score, f"query {qid}: the score of {docid!r}") for score, docid in named]
    return np.asarray(values, dtype=np.float64)


def _by_score(qid: str, query: str, scores: Mapping[str, float]) -> Ranking:
    """Rank documents whose scores state no order."""
    docids = [*scores]
    values = _numbers([*scores.values()], docids, qid)
    if np.isfinite(values).all():  # what is not, a ranking refuses
        with naming(f"query {qid}"):
            check_float32(values)
        if order := trec_order(docids, values):
            docids, values = [docids[place] for place in order], values[order]
        values = np.minimum.accumulate(values)  # which changes scores that are equal in float32 alone
    return Ranking(qid, query, tuple(docids), values)


@guided
@dataclass(frozen=True, slots=True, repr=False)
class Run(Printed, Mapping[str, Ranking]):
    """The rankings of a system, a mapping from qid to `Ranking`.

    Parameters
    ----------
    rankings : sequence of Ranking
        One per query, in the order of iteration; two of the same qid are a `ParameterError`.
    tag : str, default "greylag"
        The system's name.
    """

    rankings: tuple[Ranking, ...]
    tag: str = "greylag"
    _by_qid: dict[str, Ranking] = field(init=False, repr=False, compare=False)
    if not TYPE_CHECKING:
        __getattr__ = refuse_attribute

    def __post_init__(self) -> None:
        object.__setattr__(self, "rankings", tuple(self.rankings))
        if other := next((given for given in self.rankings if not isinstance(given, Ranking)), None):
            raise ParameterError(f"a run consists of rankings, not {shown(other)}: Run.from_dict reads scores by docid")
        object.__setattr__(self, "_by_qid", {ranking.qid: ranking for ranking in self.rankings})
        if len(self._by_qid) != len(self.rankings):
            qids = [ranking.qid for ranking in self.rankings]
            raise ParameterError(f"query {next(q for q in qids if qids.count(q) > 1)!r} has two rankings in one run")

    def head(self, k: int) -> Run:
        """Return the top `k` documents of each ranking, as `Ranking.head`."""
        return Run(tuple(ranking.head(k) for ranking in self.rankings), self.tag)

    @classmethod
    def from_dict(
        cls, scores: Mapping[Any, Scored], topics: Mapping[str, str] | None = None, *, tag: str = "greylag"
    ) -> Run:
        """Build a run from scores by qid and docid, the form of pytrec_eval, or from scored lists by qid.

        Parameters
        ----------
        scores : mapping of qid to docid to float, or to a list of pairs (docid, score)
            Scores by docid are ordered as in files: by score, rounded to float32, then by docid, both descending, as by
            trec_eval. Scores that are equal in float32 alone are lowered where docids reverse them. One score for all
            documents of most queries is warned of. Lists begin with the best document, and keep their order.
            Identifiers that are integers are converted.
        topics : mapping of qid to str, optional
            The texts of the queries, which stages and features read.
        tag : str, default "greylag"
            The system's name.

        Examples
        --------
        >>> Run.from_dict({"1": {"d2": 0.4, "d1": 0.9, "d3": 0.4}})["1"].docids
        ('d1', 'd3', 'd2')
        """
        texts, rankings, ties = ({} if topics is None else by_label(topics, "query")), list[Ranking](), Ties()
        for qid, by in by_label(scores, "query").items():
            query = texts.get(qid, "")
            if has_labels(by):
                rankings.append(_by_score(qid, query, by_label(by, "document")))
                ties.count(rankings[-1].scores)
            elif is_scored(by):  # in the order of ranks: sorting would hide a mistake
                rankings.append(Ranking.from_hits(qid, query, by))
            else:
                raise ParameterError(f"query {qid} has {shown(by)}: pass scores by qid and docid")
        ties.warn(f"run {tag}")
        return cls(tuple(rankings), tag)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """Return the scores by qid and docid, as pytrec_eval takes them, which lose the order of ties."""
        return {r.qid: dict(zip(r.docids, r.scores.tolist(), strict=True)) for r in self.rankings}

    def __getitem__(self, qid: str) -> Ranking:
        return self._by_qid[qid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_qid)

    def __len__(self) -> int:
        return len(self.rankings)

    def select_queries(self, qids: Collection[str]) -> Run:
        """Select the rankings of these queries, in the order of this run; queries that it lacks are ignored."""
        if isinstance(qids, str):
            raise ParameterError(f"qids: {shown(qids)} is one identifier; pass a list")
        # A set, as a run may have a hundred thousand queries.
        wanted = frozenset(qids)
        return Run(tuple(ranking for ranking in self.rankings if ranking.qid in wanted), self.tag)

    def _table(self) -> Table:
        rows: list[Row] = [(r.qid, r.query, len(r), r.docids[0] if len(r) else "") for r in self.rankings]
        documents = sum(map(len, self.rankings))
        caption = f"run {self.tag}, {len(self)} queries, {documents} documents"
        return Table(caption, ("qid", "query", "documents", "first"), rows)

    def to_frame(self, library: Library = "pandas") -> Any:
        """Make a data frame of pandas or polars: qid, query, docno, score and rank (from 0, as in PyTerrier).

        Scores are the rankings', which may tie; the column rank has the order.
        """
        rows = [
            (ranking.qid, ranking.query, docid, score, rank)
            for ranking in self.rankings
            for rank, (docid, score) in enumerate(zip(ranking.docids, ranking.scores.tolist(), strict=True))
        ]
        return as_frame({"qid": str, "query": str, "docno": str, "score": float, "rank": int}, rows, library)
