"""Runs: six columns, ``qid Q0 docid rank score tag``, MS MARCO's ``qid docid rank``, or JSON ``{qid: {docid: score}}``.

trec_eval ignores the ranks and the order of lines: it sorts the documents of a query by score, rounded to float32, and
breaks ties by docid, descending. Reading a run applies that order, and writing a run adjusts scores to preserve the
order of the rankings. Thus measures of a `Run` equal those that trec_eval computes from its file.
"""

from __future__ import annotations

import logging
import math
from array import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from io import BytesIO
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from greylag.base import (
    FLOAT32_LIMIT,
    SEEN,
    Faults,
    FloatArray,
    FormatError,
    IntArray,
    ParameterError,
    Query,
    Ranking,
    Run,
    RunLike,
    Ties,
    TopicsLike,
    as_run,
    check_float32,
    check_names,
    file_stamp,
    fitting,
    guided,
    is_file,
    marked,
    open_atomically,
    parallel_map,
    parse_number,
    read_text_blocks,
    split_rows,
    trec_order,
    write_text,
)
from greylag.evaluation.trec.json_tables import is_table, read_table
from greylag.evaluation.trec.parts import Part
from greylag.evaluation.trec.scan import Lines, Scan, scan
from greylag.evaluation.trec.topics import read_topics

Float32Array = NDArray[np.float32]
Rows = Iterable[tuple[int, list[bytes]]]
"""Numbers of lines, from 1, with their columns."""

T = TypeVar("T")

ALL_TOPICS = Part()
PART_DOCUMENTS = 50_000
COLUMNS = "qid Q0 docid rank score tag"
_log = logging.getLogger("greylag")
FLOAT32_MAX = float(np.finfo(np.float32).max)


@guided
def read_run(
    path: str | Path | RunLike, topics: TopicsLike | str | Path | None = None, *, lenient: bool = False
) -> Run:
    """Read a run as trec_eval does: scores are rounded to float32 and ties broken by docid, descending.

    The lines of a query may be anywhere, and not in the order of scores if their ranks are. Lines that begin with # are
    comments, and columns after the sixth are ignored with a warning. Queries that are not in `topics` are left out. The
    log has the numbers of queries with one score for all documents, and with ranks in another order. MS MARCO's form,
    ``qid docid rank``, has the scores 1 / rank and the file's name as its tag; JSON has no tag, either.

    A file that cannot be read or has no document is a `FormatError`, and so are faults, unless reading is lenient: it
    skips lines with fewer columns and documents whose score is not a number; uses the largest float32 for scores beyond
    it; keeps the first of duplicate documents; ignores ranks that are not integers; and sorts by score, against ranks.

    Parameters
    ----------
    path : str, Path or RunLike
        The file, plain or gzipped. Other forms are converted.
    topics : TopicsLike or path, optional
        Query texts by qid, or the path of their file. By default all queries are read, and the text of each is "".
    lenient : bool, default False
        Repair faults and log them, instead of raising.

    Returns
    -------
    Run
        Rankings in the order in which the queries first appear, with the tag of the first line.
    """
    topics = None if topics is None else read_topics(topics)
    if not isinstance(path, str | Path):
        return as_run(path, topics)
    with Faults(path, lenient) as faults:
        notes = _Notes(path)
        tag, found = _read(path, topics, faults, notes, whole=True)
        rankings = tuple(found)
    notes.log(tag)
    return Run(rankings, tag)


class RunParts:
    """A run in a file, with the parameters of `read_run`, read in parts of whole queries: it may exceed memory."""

    def __init__(
        self, path: str | Path, topics: Mapping[str, str] | str | Path | None = None, *, lenient: bool = False
    ) -> None:
        self._path, self._lenient = path, lenient
        self._topics = None if topics is None else read_topics(topics)

    def whole(self) -> Run:
        """Read the run with `read_run`."""
        return read_run(self._path, self._topics, lenient=self._lenient)

    def apply(self, use: Callable[[Iterable[Run]], T]) -> T:
        """Return `use(parts)`; `use` is called again, with the whole run, if the lines of a query are apart."""
        if is_file(self._path) and not self._lenient:
            with suppress(_ApartError):
                return use(self._parts())
        return use([self.whole()])

    def _parts(self) -> Iterator[Run]:
        notes, part, documents = _Notes(self._path), list[Ranking](), 0
        tag, rankings = _read(self._path, self._topics, Faults(self._path, lenient=False), notes, whole=False)
        for ranking in rankings:
            part.append(ranking)
            documents += len(ranking)
            if documents >= PART_DOCUMENTS:
                yield Run(tuple(part), tag)
                part, documents = [], 0
        notes.log(tag)
        if part:
            yield Run(tuple(part), tag)


class RunFile:
    """A run in a file: checked at once, then read query by query. Iterating gives the qids."""

    def __init__(self, path: str | Path, topics: Mapping[str, str] | None = None) -> None:
        self.path, self._topics, self._stamp = Path(path), topics, file_stamp(path)
        # The first pass checks every line and keeps the qids alone; `rankings` then reads a query at a time.
        notes, self._faults = _Notes(self.path), Faults(self.path, lenient=False)
        self.tag, rankings = _read(self.path, topics, self._faults, notes, whole=False)
        self._qids = [ranking.qid for ranking in rankings]
        self._check_unchanged()
        notes.log(self.tag)

    def __len__(self) -> int:
        return len(self._qids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._qids)

    @property
    def rankings(self) -> Iterator[Ranking]:
        """Read the rankings, in order; raises `FormatError` if the file has changed since it was opened."""
        for ranking in _read(self.path, self._topics, self._faults, _Notes(self.path), whole=False)[1]:
            self._check_unchanged()
            yield ranking
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        # The qids of one file and the lines of another would make a run that nobody wrote.
        if file_stamp(self.path) != self._stamp:
            raise FormatError(self.path, None, "has changed while it was read; run the command again")


@dataclass(frozen=True)
class JoinedRuns:
    """Several runs side by side, to combine the rankings of each query. Iterating gives the qids."""

    # Queries are in the order of the first run; those that it lacks follow. Queries wait in
    # memory while files differ in order.
    runs: tuple[Run | RunFile, ...]

    @cached_property
    def _qids(self) -> dict[str, None]:
        return dict.fromkeys(qid for run in self.runs for qid in run)

    @property
    def tag(self) -> str:
        """The mark of topics that a model was trained on, if one of the runs has it."""
        return marked("", *(run.tag for run in self.runs))

    def __len__(self) -> int:
        return len(self._qids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._qids)

    @property
    def rankings(self) -> Iterator[tuple[Ranking, ...]]:
        """Each query's rankings, one of each run: without documents if a run lacks the query."""
        readers = [(set(run), iter(run.rankings), dict[str, Ranking]()) for run in self.runs]
        for qid in self._qids:
            of_query = [_next(qid, *reader) for reader in readers]
            query = next(ranking.query for ranking in of_query if ranking is not None)
            none = Ranking(qid, query, (), np.empty(0))
            yield tuple(
                none if one is None else replace(one, query=query) if one.query != query else one for one in of_query
            )


def _next(qid: str, known: Collection[str], rankings: Iterator[Ranking], waiting: dict[str, Ranking]) -> Ranking | None:
    """Return the query's ranking in a run, if the run has one; those that come before it wait."""
    if qid not in known:
        return None
    while qid not in waiting:
        ranking = next(rankings)
        # Runs may have their queries in another order: the rankings that are passed over wait here.
        waiting[ranking.qid] = ranking
    return waiting.pop(qid)


def open_run(path: str | Path, topics: Mapping[str, str] | None = None, *, lenient: bool = False) -> Run | RunFile:
    """Open a run to be read a query at a time, with the parameters and errors of `read_run`.

    Pipes are read at once, as are files in which the lines of a query are apart, and every file with `lenient`.
    """
    if is_file(path) and not lenient:
        with suppress(_ApartError):
            return RunFile(path, topics)
    return read_run(path, topics, lenient=lenient)


def run_tag(path: Path) -> str:
    """Read the tag of the first line of a file, "" if it is not a run or cannot be read twice."""
    if is_file(path):
        with suppress(FormatError):
            return _read(path, None, Faults(path, lenient=False), _Notes(path), whole=False, line_by_line=True)[0]
    return ""


@guided
def write_run(run: RunLike, path: str | Path, *, metadata: Mapping[str, Any] | None = None) -> None:
    """Write a run atomically, so that trec_eval sees the documents in the order of the rankings.

    Lines are grouped by query, ranks start at 1, and scores have the digits that identify a float32 number. A score
    that is not below its predecessor in float32 is lowered to the next float32 number; all others are unchanged: with
    f(x) for x in float32 and p(x) for the largest float32 number below x, x_1 = f(s_1), x_i = min(f(s_i), p(x_(i-1))).
    Reading the file restores the order, and writing that run again gives identical bytes. A query without documents has
    no line. `ParameterError` if none has any, a name is empty or has white space, or a score exceeds float32.

    Parameters
    ----------
    run : Run or mapping
        The rankings, or scores by qid and docid, whose ties are broken as in `Run.from_dict`.
    path : str or Path
        The file; gzipped if its name ends in ``.gz``.
    metadata : mapping, optional
        How the run was made, for comments at the head of the file (ir_metadata), which older programs cannot read.
    """
    run = as_run(run)
    check_names("tag", [run.tag])
    check_names("query", run)
    text = "".join(_lines(ranking, run.tag) for ranking in run.rankings)
    _check_output(text, path, run.tag)
    write_text(path, _metadata_header(run.tag, metadata) + text)


def write_rankings(
    rank: Callable[[Any], Ranking],
    inputs: Mapping[str, str] | Run | RunFile | JoinedRuns,
    path: str | Path,
    *,
    tag: str,
    n_jobs: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    part: Part = ALL_TOPICS,
) -> None:
    """Rank every query and write the run as queries are ranked; the file is the same as that of `write_run`.

    The memory that it takes does not depend on the number of documents. Errors are those of `write_run`.

    Parameters
    ----------
    rank : callable
        A source, stage or pipeline, or a fusion.
    inputs : mapping of str to str, Run, RunFile or JoinedRuns
        Topics (qid to text) for a source, a run for a stage, several for a fusion.
    path, tag, metadata
        As for `write_run`; ``+training-topics`` follows the tag if the run that is reranked has it.
    n_jobs : int, optional
        Number of workers; see `greylag.base.parallel_map`.
    part : Part, default all queries
        The part of the queries to rank. The files of all parts in order are the file of all queries: only the first has
        the metadata, and one may be empty.
    """
    check_names("tag", [tag])
    items: Iterable[Any]
    if isinstance(inputs, Run | RunFile | JoinedRuns):
        tag, items = marked(tag, inputs.tag), inputs.rankings
    else:
        items = map(Query, inputs, inputs.values())
    what, qids, empty = f"run {tag}", [*part.among(inputs, inputs)], list[str]()
    # Workers make the lines: text is smaller than rankings, and takes no time here.
    work = partial(_ranked_lines, rank, tag)
    texts = parallel_map(work, part.among(items, inputs), what=what, n_jobs=n_jobs, total=len(qids))
    with open_atomically(path) as file:
        file.write(_metadata_header(tag, metadata if part.number == 1 else None))
        for qid, text in zip(qids, texts, strict=True):
            if not text:
                empty.append(qid)
            file.write(text)
        _check_output(len(empty) < len(qids) or part.of > 1, path, tag)
    if not isinstance(inputs, Run):
        tell_empty(empty, len(qids), searched=not isinstance(inputs, RunFile | JoinedRuns))
    else:  # whoever made it has told of rankings that were empty before
        tell_empty([qid for qid in empty if len(inputs[qid])], len(qids))


def _metadata_header(tag: str, metadata: Mapping[str, Any] | None) -> str:
    """Write the comments at the head of a run with this tag, as ir-metadata.org defines them; none without metadata."""
    if metadata is None:
        return ""
    from greylag.base import write_yaml  # few runs have metadata

    text = write_yaml({"schema-version": 0.1, "run-version": 1.0, **metadata, "tag": tag})
    lines = ("ir_metadata.start", *text.removesuffix("\n").split("\n"), "ir_metadata.end")
    return "".join(f"# {line}\n" for line in lines)


def strictly_decreasing(scores: FloatArray) -> Float32Array:
    """Convert finite, non-increasing scores to strictly decreasing float32 numbers, by the formula in `write_run`."""
    check_float32(scores)
    # Float32 numbers as integers: adjacent numbers have adjacent keys, and -0 has the key of 0.
    bits = scores.astype(np.float32).view(np.int32).astype(np.int64)
    # IEEE 754 orders positive numbers as integers; negative ones count backwards from the sign bit.
    keys = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    # key_i = min(key_i, key_(i-1) - 1) for all i at once.
    ranks = np.arange(len(keys))
    keys = np.minimum.accumulate(keys + ranks) - ranks
    numbers: Float32Array = np.where(keys < 0, 0x80000000 - keys, keys).astype(np.uint32).view(np.float32)
    if not np.isfinite(numbers).all():
        raise ParameterError("scores tie at the lowest float32 number (-3.4e38); rescale the scores")
    return numbers


def tell_empty(qids: Sequence[str], n: int, *, searched: bool = False) -> None:
    """Log which of `n` queries have no documents, and why if they were searched for."""
    if qids:
        why = ", as none has a word of theirs" if searched else ""
        _log.warning("%d of %d queries have no documents%s: %s", len(qids), n, why, ", ".join(map(repr, qids[:5])))


def _ranked_lines(rank: Callable[[Any], Ranking], tag: str, item: Any) -> str:
    """Rank a query, and write the lines of its ranking."""
    ranking = rank(item)
    check_names("query", [ranking.qid])
    return _lines(ranking, tag)


def _lines(ranking: Ranking, tag: str) -> str:
    """Write the lines of a ranking in a run file."""
    check_names("document", ranking.docids)
    # The fewest digits that read back as the same float32.
    scores = strictly_decreasing(ranking.scores).astype("U").tolist()
    ranked = enumerate(zip(ranking.docids, scores, strict=True), 1)
    return "".join(f"{ranking.qid} Q0 {docid} {rank} {score} {tag}\n" for rank, (docid, score) in ranked)


def _check_output(has_lines: object, path: str | Path, tag: str) -> None:
    if not has_lines:
        raise ParameterError(f"run {tag!r} has no documents, so {path} would be empty; check its queries and index")


@dataclass
class _Notes:
    """Warnings about a run, issued once after reading."""

    path: str | Path
    left_out: list[str] = field(default_factory=list)  # queries that are not among the topics
    of_ranks: bool = False
    further: list[int] = field(default_factory=list)  # lines with more than six columns
    ties: Ties = field(default_factory=Ties)

    def log(self, tag: str) -> None:
        """Log the warnings about a run with this tag; `FormatError` if there are no documents."""
        left_out = (
            f"{len(self.left_out)} queries that are not among the topics, such as {next(iter(self.left_out), '')!r}"
        )
        if not self.ties.queries:
            reason = "no query has a document; is this the right run for these topics?"
            raise FormatError(self.path, None, f"{reason} It has {left_out}" if self.left_out else reason)
        if self.left_out:
            _log.info("%s: left out are %s", self.path, left_out)
        if self.of_ranks:
            _log.info("%s: has ranks but no scores (%s): 1 / rank is the score", self.path, MsMarcoRun.columns)
        if self.further:
            what = f"{len(self.further)} lines have more columns than {COLUMNS}, which are ignored, as by trec_eval"
            _log.warning("%s:%d: %s", self.path, self.further[0], what)
        if SEEN in tag:
            what = f"its tag has {SEEN}: a model ranked topics that it was trained on"
            _log.warning("%s: %s, and their scores say nothing about other topics", self.path, what)
        self.ties.warn(self.path)


def _read(
    path: str | Path,
    topics: Mapping[str, str] | None,
    faults: Faults,
    notes: _Notes,
    *,
    whole: bool,
    line_by_line: bool = False,
) -> tuple[str, Iterator[Ranking]]:
    """Read the tag of the first line, and the rankings; a query's lines may be apart only if `whole`."""
    blocks = fitting(path, read_text_blocks(path, faults))
    head = next(blocks)
    blocks, tag = chain([head], blocks), Path(path).name.split(".")[0] or "run"
    if is_table(head):
        return tag, _known(JsonRun.groups(read_table(blocks, path), faults), topics, notes)
    if not (faults.lenient or math.isnan(parse_number(head.partition(b"\n")[0].strip()))):
        raise FormatError(path, 1, "has a score alone: write a run, as greylag rerank --letor FILE --out FILE.run does")
    others = [form.columns for form in RUN_FORMATS[1:]]
    scanned = None if line_by_line else scan
    rows: Rows = fitting(path, split_rows(blocks, COLUMNS, faults, *others, comments=True, further=True, scan=scanned))
    first = next(iter(rows))
    rows = chain([first], rows)
    form = next((form for form in RUN_FORMATS if len(form.columns.split()) == len(first[1])), TrecRun)
    groups = fitting(path, _groups(form.rows(rows, faults, notes), faults, notes, whole=whole))
    return form.tag(first[1], tag), _known(groups, topics, notes)


class TrecRun:
    """TREC's six columns, of which trec_eval ignores the second and the ranks."""

    columns: ClassVar[str] = COLUMNS

    @staticmethod
    def tag(row: list[bytes] | Scan, name: str) -> str:
        """Return the run's tag from its first line, here the sixth column, or else the file's name."""
        return (row.block.split(None, 6) if isinstance(row, Scan) else row)[5].decode()

    @staticmethod
    def rows(rows: Rows, faults: Faults, notes: _Notes) -> Rows:
        """Yield the rows in these six columns."""
        return rows


class MsMarcoRun(TrecRun):
    """MS MARCO's three columns, which have neither scores nor a tag: 1 / rank is the score."""

    columns = "qid docid rank"

    @staticmethod
    def tag(row: list[bytes] | Scan, name: str) -> str:
        """Return the file's name."""
        return name

    @staticmethod
    def rows(rows: Rows, faults: Faults, notes: _Notes) -> Rows:
        """Yield rows with scores."""
        notes.of_ranks, before = True, (b"", 0)
        for line, (qid, docid, text) in rows:
            rank = int(text) if text.isdigit() and len(text) < 10 else 0
            if not rank:
                faults.repair(line, f"rank {text.decode()!r} is not a positive integer", "skips the document")
                continue
            # Ranks may have gaps, as where documents were left out, but have to rise.
            if before >= (qid, rank) and before[0] == qid:
                faults.repair(line, f"rank {rank} is not above the one before it, {before[1]}", "sorts by rank")
            before = qid, rank
            yield line, [qid, b"Q0", docid, b"0", repr(1 / rank).encode(), b""]


class JsonRun:
    """JSON ``{qid: {docid: score}}``, whose scores state no order where they tie."""

    @staticmethod
    def groups(table: Mapping[str, Mapping[str, Any]], faults: Faults) -> Iterator[tuple[str, _Lines]]:
        """Yield the documents of each query."""
        for qid, scores in table.items():
            lines = _Lines()
            for docid, given in scores.items():
                score = _score(repr(given).encode(), None, faults, f"query {qid!r}, document {docid!r}: ")
                if score is not None:
                    lines.scores[docid] = score
                    lines.ranks.append(-1)
            if lines.scores:
                yield qid, lines


RUN_FORMATS: tuple[type[TrecRun], ...] = TrecRun, MsMarcoRun
"""Runs in columns, told apart by their number; `JsonRun` begins with a brace."""


@dataclass
class _Lines:
    """The lines of a query."""

    scores: dict[str, float] = field(default_factory=dict)
    ranks: array[int] = field(default_factory=partial(array, "q"))  # in the order of the scores, -1 if ignored
    numbers: array[int] = field(default_factory=partial(array, "q"))  # of the lines, in that order
    duplicate: bool = False
    last: float = math.inf
    packed: Lines | None = None  # a query's only lines so far, since a dict of most queries is never needed
    rise: tuple[int, str] | None = None  # the first line whose score is above the one before it, and the reason

    def add(self, rows: Rows, faults: Faults, notes: _Notes) -> None:
        """Add the documents in a group of lines."""
        self._unpack()
        for line, (qid, _, name, rank, text, _, *further) in rows:
            if further:
                notes.further.append(line)
            score, docid = _score(text, line, faults), name.decode()
            if score is None:
                continue
            if docid in self.scores:
                reason = f"duplicate document {docid!r} for query {qid.decode()!r}"
                if not self.duplicate:  # only the first is reported, and looking for a line takes time
                    reason += f", which is on line {self.numbers[list(self.scores).index(docid)]}, too"
                self.duplicate = True
                faults.repair(line, reason, "keeps the first")
                continue
            if score > self.last and not self.rise:
                reason = f"score {text.decode()} is higher than the one before it, {self.last}, and ranks differ"
                self.rise = line, f"{reason}; if the order of ranks is right, write scores that fall with it"
            if not rank.isdigit():
                faults.repair(line, f"rank {rank.decode()!r} is not an integer", "ignores it")
            self.scores[docid] = self.last = score
            self.numbers.append(line)
            self.ranks.append(int(rank) if rank.isdigit() and len(rank) < 10 else -1)

    def add_scanned(self, lines: Lines, faults: Faults, notes: _Notes) -> None:
        """Add the documents of lines that are in order and have no fault, at once; others line by line."""
        scores, names = lines.scores, set(lines.docids)
        falls = scores[0] <= self.last and (scores[1:] <= scores[:-1]).all()
        within = scores[0] < FLOAT32_LIMIT and scores[-1] > -FLOAT32_LIMIT
        self._unpack()
        if not (falls and within and len(names) == len(lines.docids) and names.isdisjoint(self.scores)):
            self.add(enumerate(map(bytes.split, BytesIO(lines.text)), lines.number), faults, notes)
        else:
            self.last, self.packed = float(scores[-1]), lines
            if self.scores:
                self._unpack()

    def _unpack(self) -> None:
        if self.packed:
            number, _, docids, scores, ranks = self.packed
            self.scores.update(zip(docids, scores.tolist(), strict=True))
            self.ranks.frombytes(ranks.tobytes())
            self.numbers.frombytes(np.arange(number, number + len(docids)).tobytes())
            self.packed = None

    @property
    def columns(self) -> tuple[Sequence[str], FloatArray, IntArray]:
        """The docids, their scores and their ranks."""
        if self.packed:
            return self.packed.docids, self.packed.scores, self.packed.ranks
        scores = np.fromiter(self.scores.values(), np.float64, len(self.scores))
        return [*self.scores], scores, np.array(self.ranks, np.int64)

    def check_order(self, faults: Faults) -> None:
        """Check that lines in another order than scores have ranks in that order, so that all programs agree."""
        # trec_eval sorts by score; other programs by rank, or keep the order of lines.
        if self.rise:
            pairs = sorted(zip(self.scores.values(), self.ranks, strict=True), key=lambda pair: (-pair[0], pair[1]))
            if any(rank <= above and score < higher for (higher, above), (score, rank) in pairwise(pairs)):
                faults.repair(*self.rise, "sorts by score, as trec_eval does")
                self.rise = None


class _ApartError(Exception):
    """The lines of a query are apart."""


def _groups(rows: Rows, faults: Faults, notes: _Notes, *, whole: bool) -> Iterator[tuple[str, _Lines]]:
    """Yield the lines of each query: after all lines if `whole`, else at once, when they must not be apart."""
    # Nearly all files have the lines of a query together, and then memory for a single query is enough.
    queries, none = dict[bytes, _Lines](), _Lines()
    for qid, parts in groupby(_parts(rows), key=itemgetter(0)):
        apart, lines = qid in queries, queries.get(qid, _Lines())
        if apart and not whole:
            raise _ApartError
        queries[qid] = lines if whole else none  # a query at a time keeps the names alone
        for _, part in parts:
            if isinstance(part, Lines):
                lines.add_scanned(part, faults, notes)
            else:
                lines.add(part, faults, notes)
        if not apart:
            lines.check_order(faults)
        if not whole:
            yield qid.decode(), lines
    while whole and queries:  # a ranking takes the place of its lines
        qid, lines = next(iter(queries.items()))
        del queries[qid]
        lines.check_order(faults)
        yield qid.decode(), lines


def _parts(rows: Rows) -> Iterator[tuple[bytes, Rows | Lines]]:
    """Yield successive lines of a query with its qid, as rows or as they were scanned; one query may have several."""
    for scanned, some in groupby(rows, key=lambda row: isinstance(row[1], Scan)):
        if scanned:
            for number, found in some:
                yield from found.parts(number)  # type: ignore[attr-defined]
        else:
            yield from groupby(some, key=lambda row: row[1][0])


def _known(groups: Iterable[tuple[str, _Lines]], topics: Mapping[str, str] | None, notes: _Notes) -> Iterator[Ranking]:
    """Rank the documents of the queries that are among the topics; the faults of others are reported, too."""
    # A file is right or wrong for every program, whatever topics it is read for.
    for qid, lines in groups:
        if topics is not None and qid not in topics:
            notes.left_out.append(qid)
        else:
            yield _ranking(qid, topics[qid] if topics else "", *lines.columns, notes.ties)


def _score(text: bytes, line: int | None, faults: Faults, where: str = "") -> float | None:
    # trec_eval would make infinity of a score beyond float32, and any order of such ties.
    score = parse_number(text)
    if -FLOAT32_LIMIT < score < FLOAT32_LIMIT:
        return score
    if math.isnan(score):
        faults.repair(line, f"{where}score {text.decode()!r} is not a number", "skips the document")
        return None
    faults.repair(line, f"{where}score {text.decode()} exceeds float32 (3.4e38)", "uses the largest float32")
    return math.copysign(FLOAT32_MAX, score)


def _ranking(qid: str, query: str, docids: Sequence[str], scores: FloatArray, ranks: IntArray, ties: Ties) -> Ranking:
    values = scores.astype(np.float32).astype(np.float64)
    if order := trec_order(docids, values):
        docids, values, ranks = [docids[place] for place in order], values[order], ranks[order]
    ranks = ranks[ranks >= 0]
    ties.count(values, turned=bool((ranks[1:] < ranks[:-1]).any()))
    # What a ranking checks, the reader has.
    return Ranking.trusted(qid, query, tuple(docids), values)
