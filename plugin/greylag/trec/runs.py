"""Runs: six columns, ``qid Q0 docid rank score tag``.

trec_eval ignores the ranks and the order of lines: it sorts the documents of a query by score, rounded to float32, and
breaks ties by docid, descending. Reading a run applies that order, and writing a run adjusts scores to preserve the
order of the rankings. Thus measures of a `Run` equal those that trec_eval computes from its file.

A run may be larger than memory: `open_run` reads a query at a time, and `write_rankings` writes queries as they are
ranked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.errors import FormatError, ParameterError
from greylag.ranking import FloatArray, Query, Ranking, Run
from greylag.runtime.files import (
    Faults,
    check_names,
    file_stamp,
    is_file,
    open_atomically,
    parse_number,
    read_rows,
    write_text,
)
from greylag.runtime.parallel import parallel_map

Float32Array = NDArray[np.float32]
Rows = Iterable[tuple[int, list[bytes]]]
"""Numbers of lines, from 1, with their columns."""

COLUMNS = "qid Q0 docid rank score tag"
FLOAT32_MAX = float(np.finfo(np.float32).max)
FLOAT32_LIMIT = (2 - 2**-24) * 2.0**127  # the first number that float32 rounds to infinity


def read_run(path: str | Path, topics: Mapping[str, str] | None = None, *, lenient: bool = False) -> Run:
    """Read a run as trec_eval does: scores are rounded to float32 and ties broken by docid, descending.

    Lenient reading skips lines without six columns, documents whose score is not a number and queries that are not in
    `topics`; uses the largest float32 for scores beyond it; keeps the first of duplicate documents; ignores ranks that
    are not integers; sorts by score; and joins the lines of a query that are not contiguous.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzipped.
    topics : mapping of str to str, optional
        Query texts by qid. By default the text of every query is "".
    lenient : bool, default False
        Repair faults and log them, instead of raising.

    Returns
    -------
    Run
        Rankings in the order in which the queries first appear, with the tag of the first line.

    Raises
    ------
    FormatError
        If the file cannot be read, has one of the faults above and `lenient` is false, or has no document.
    """
    with Faults(path, lenient) as faults:
        tag, groups = _read(path, topics, faults)
        queries = dict(groups)
    _check_documents(path, any(queries.values()))
    texts = topics or {}
    return Run(tuple(_ranking(qid, texts.get(qid, ""), scores) for qid, scores in queries.items()), tag)


class RunFile:
    """A run in a file: checked at once, then read a query at a time. Iterating gives the qids.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzipped, which can be read twice.
    topics : mapping of str to str, optional
        Query texts by qid.

    Attributes
    ----------
    tag : str
        The tag of the first line.

    Raises
    ------
    FormatError
        If `read_run` refuses the file.
    """

    def __init__(self, path: str | Path, topics: Mapping[str, str] | None = None) -> None:
        self.path, self._topics, self._stamp = Path(path), topics, file_stamp(path)
        self.tag, groups = _read(path, topics, Faults(path, lenient=False))
        self._lengths = {qid: len(scores) for qid, scores in groups}
        self._check_unchanged()
        _check_documents(path, any(self._lengths.values()))

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[str]:
        return iter(self._lengths)

    @property
    def rankings(self) -> Iterator[Ranking]:
        """Read the rankings, in order; raises `FormatError` if the file has changed since it was opened."""
        texts = self._topics or {}
        for qid, scores in _read(self.path, self._topics, Faults(self.path, lenient=False))[1]:
            self._check_unchanged()
            yield _ranking(qid, texts.get(qid, ""), scores)
        self._check_unchanged()

    def _check_unchanged(self) -> None:
        if file_stamp(self.path) != self._stamp:
            raise FormatError(self.path, None, "has changed while it was read; run the command again")


def open_run(path: str | Path, topics: Mapping[str, str] | None = None, *, lenient: bool = False) -> Run | RunFile:
    """Open a run to be read a query at a time; pipes, and every file with `lenient`, are read at once.

    Parameters
    ----------
    path, topics, lenient
        As for `read_run`.

    Raises
    ------
    FormatError
        As for `read_run`.
    """
    return RunFile(path, topics) if is_file(path) and not lenient else read_run(path, topics, lenient=lenient)


def write_run(run: Run, path: str | Path) -> None:
    """Write a run atomically, such that trec_eval sees the documents in the order of the rankings.

    Lines are grouped by query, ranks start at 1, and scores have the digits that identify a float32 number. A score
    that is not below its predecessor in float32 is lowered to the next float32 number; all others are unchanged: with
    f(x) for x in float32 and p(x) for the largest float32 number below x, x_1 = f(s_1), x_i = min(f(s_i), p(x_(i-1))).
    Reading the file restores the order, and writing that run again gives identical bytes. A query without documents has
    no line.

    Parameters
    ----------
    run : Run
        The rankings.
    path : str or Path
        The file; gzipped if its name ends in ``.gz``.

    Raises
    ------
    ParameterError
        If the run has no documents, a name is empty or has white space, a score exceeds float32, or the file cannot be
        written.
    """
    check_names("tag", [run.tag])
    check_names("query", run)
    text = "".join(_lines(ranking, run.tag) for ranking in run.rankings)
    _check_output(text, path, run.tag)
    write_text(path, text)


def write_rankings(
    rank: Callable[[Any], Ranking],
    inputs: Mapping[str, str] | Run | RunFile,
    path: str | Path,
    *,
    tag: str,
    n_jobs: int | None = None,
) -> None:
    """Rank every query and write the run as queries are ranked; the file is the same as that of `write_run`.

    The memory that it takes does not depend on the number of documents.

    Parameters
    ----------
    rank : callable
        A source, stage or pipeline.
    inputs : mapping of str to str, Run or RunFile
        Topics (qid to text) for a source, a run for a stage.
    path, tag
        As for `write_run`.
    n_jobs : int, optional
        Number of workers; see `greylag.parallel_map`.

    Raises
    ------
    ParameterError
        As for `write_run`.
    """
    _write(partial(_one, rank), inputs, [path], [tag], tag, n_jobs)


def write_members(
    rank: Callable[[Any], Sequence[Ranking]],
    inputs: Run | RunFile,
    paths: Sequence[str | Path],
    *,
    tag: str,
    n_jobs: int | None = None,
) -> None:
    """`write_rankings` for several runs, of which `rank` gives a ranking each; run m is tagged ``tag-m``, from 1."""
    _write(rank, inputs, paths, [f"{tag}-{member}" for member in range(1, len(paths) + 1)], tag, n_jobs)


def strictly_decreasing(scores: FloatArray) -> Float32Array:
    """Finite, non-increasing scores as strictly decreasing float32 numbers, by the formula in `write_run`."""
    if (np.abs(scores) >= FLOAT32_LIMIT).any():
        beyond = scores[np.abs(scores) >= FLOAT32_LIMIT][0]
        raise ParameterError(
            f"score {beyond} exceeds float32 (3.4e38), in which trec_eval compares scores; rescale the scores"
        )
    # Float32 numbers as integers: adjacent numbers have adjacent keys, and -0 has the key of 0.
    bits = scores.astype(np.float32).view(np.int32).astype(np.int64)
    keys = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    # key_i = min(key_i, key_(i-1) - 1) for all i at once.
    places = np.arange(len(keys))
    keys = np.minimum.accumulate(keys + places) - places
    numbers: Float32Array = np.where(keys < 0, 0x80000000 - keys, keys).astype(np.uint32).view(np.float32)
    if not np.isfinite(numbers).all():
        raise ParameterError("scores tie at the lowest float32 number (-3.4e38); rescale the scores")
    return numbers


def _one(rank: Callable[[Any], Ranking], item: Any) -> tuple[Ranking]:
    return (rank(item),)


def _write(
    rank: Callable[[Any], Sequence[Ranking]],
    inputs: Any,
    paths: Sequence[str | Path],
    tags: Sequence[str],
    what: str,
    n_jobs: int | None,
) -> None:
    """Write run m, tagged ``tags[m]``, to ``paths[m]``."""
    check_names("tag", tags)
    items: Iterable[Any] = inputs.rankings if isinstance(inputs, Run | RunFile) else _queries(inputs)
    work = partial(_ranked_lines, rank, tuple(tags))
    texts = parallel_map(work, items, what=f"run {what}", n_jobs=n_jobs, total=len(inputs))
    with ExitStack() as stack:
        files = [stack.enter_context(open_atomically(path)) for path in paths]
        filled = [False] * len(files)
        for parts in texts:
            for number, (file, text) in enumerate(zip(files, parts, strict=True)):
                file.write(text)
                filled[number] = filled[number] or bool(text)
        for path, tag, has_lines in zip(paths, tags, filled, strict=True):
            _check_output(has_lines, path, tag)


def _queries(topics: Mapping[str, str]) -> Iterator[Query]:
    return (Query(qid, text) for qid, text in topics.items())


def _ranked_lines(rank: Callable[[Any], Sequence[Ranking]], tags: Sequence[str], item: Any) -> list[str]:
    """The lines of a query in each run."""
    rankings = rank(item)
    check_names("query", [ranking.qid for ranking in rankings])
    return [_lines(ranking, tag) for ranking, tag in zip(rankings, tags, strict=True)]


def _lines(ranking: Ranking, tag: str) -> str:
    """The lines of a ranking in a run file."""
    check_names("document", ranking.docids)
    scores = strictly_decreasing(ranking.scores).astype("U").tolist()
    ranked = enumerate(zip(ranking.docids, scores, strict=True), 1)
    return "".join(f"{ranking.qid} Q0 {docid} {rank} {score} {tag}\n" for rank, (docid, score) in ranked)


def _check_output(has_lines: object, path: str | Path, tag: str) -> None:
    if not has_lines:
        raise ParameterError(f"run {tag!r} has no documents, so {path} would be empty; check its queries and index")


def _check_documents(path: str | Path, filled: bool) -> None:
    if not filled:
        raise FormatError(path, None, "no query has a document; is this the right run for these topics?")


def _read(
    path: str | Path, topics: Mapping[str, str] | None, faults: Faults
) -> tuple[str, Iterator[tuple[str, dict[str, float]]]]:
    """The tag of the first line, and the queries as `_groups` yields them."""
    rows = read_rows(path, COLUMNS, faults)
    first = next(rows)
    return first[1][5].decode(), _groups(chain([first], rows), topics, faults)


def _groups(rows: Rows, topics: Mapping[str, str] | None, faults: Faults) -> Iterator[tuple[str, dict[str, float]]]:
    """The qid and the scores by docid of each group of lines, of which strict reading keeps only the qids.

    In lenient reading, the scores of a query's later groups are added to those of its first.
    """
    queries: dict[str, dict[str, float]] = {}
    for column, lines in groupby(rows, key=lambda row: row[1][0]):
        group = list(lines)
        line = group[0][0]
        qid, scores = column.decode(), dict[str, float]()
        if topics is not None and qid not in topics:
            faults.repair(line, f"query {qid!r} is not among the topics", "skips the query")
            _collect(group, scores, faults)  # its faults are reported, too
            continue
        if qid in queries:
            reason = f"the lines of query {qid!r} are not contiguous"
            faults.repair(line, reason, "joins them, with the whole run in memory")
            scores = queries[qid]
        queries[qid] = scores if faults.lenient else {}
        _collect(group, scores, faults)
        yield qid, scores


def _collect(rows: Rows, scores: dict[str, float], faults: Faults) -> None:
    """Add the scores of the documents in a group of lines."""
    last = math.inf
    for line, (qid, _, name, rank, text, _) in rows:
        score, docid = _score(text, line, faults), name.decode()
        if score is None:
            continue
        if docid in scores:
            faults.repair(line, f"duplicate document {docid!r} for query {qid.decode()!r}", "keeps the first")
            continue
        if score > last:
            faults.repair(line, f"score {text.decode()} is higher than the one before it, {last}", "sorts by score")
        if not rank.isdigit():
            faults.repair(line, f"rank {rank.decode()!r} is not an integer", "ignores it")
        scores[docid] = last = score


def _score(text: bytes, line: int, faults: Faults) -> float | None:
    score = parse_number(text)
    if -FLOAT32_LIMIT < score < FLOAT32_LIMIT:
        return score
    if math.isnan(score):
        faults.repair(line, f"score {text.decode()!r} is not a number", "skips the document")
        return None
    faults.repair(line, f"score {text.decode()} exceeds float32 (3.4e38)", "uses the largest float32")
    return math.copysign(FLOAT32_MAX, score)


def _ranking(qid: str, query: str, scores: Mapping[str, float]) -> Ranking:
    docids = tuple(scores)
    values = np.fromiter(scores.values(), np.float32, len(docids))
    if (values[1:] >= values[:-1]).any():
        order = sorted(range(len(docids)), key=lambda i: (values[i], docids[i]), reverse=True)
        docids, values = tuple(docids[i] for i in order), values[order]
    return Ranking(qid, query, docids, values.astype(np.float64))
