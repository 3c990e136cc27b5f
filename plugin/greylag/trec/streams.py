"""Runs that are larger than memory: read a query at a time, and written as queries are ranked."""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from greylag.errors import FormatError, ParameterError
from greylag.ranking import Query, Ranking, Run
from greylag.runtime.files import Faults, check_names, is_file, open_atomically, read_blocks
from greylag.runtime.parallel import parallel_map
from greylag.runtime.stamps import Stamp, file_stamp
from greylag.trec.runs import read_run, run_lines, run_ranking

# The lines of a query; its qid and first tag. Nothing is tried twice, so that the time is linear in any file's size.
_NUMBER = rb"[-+]?+\d++(?:\.\d*+)?+(?:[eE][-+]?+\d++)?+"
_REST = rb"[ \t]++\S++[ \t]++\S++[ \t]++\d++[ \t]++" + _NUMBER + rb"[ \t]++(\S++)[ \t]*+\n"
_GROUP = re.compile(rb"(\S++)" + _REST + rb"(?:\1" + _REST + rb")*+")


@dataclass(frozen=True)
class QueryLines:
    """The lines of one query in a run file, not read yet.

    Parameters
    ----------
    path : Path
    line : int
        The number of the first line, from 1.
    content : bytes
    query : str
        The text of the query.
    """

    path: Path
    line: int
    content: bytes
    query: str

    def ranking(self) -> Ranking:
        """The ranking that the lines hold; raises `FormatError` as `read_run` does."""
        rows = ((number, line.split()) for number, line in enumerate(io.BytesIO(self.content), self.line))
        return run_ranking(rows, self.query, Faults(self.path, lenient=False))


class RunFile:
    """A run in a file, of which one query at a time is read. Iterating gives the qids, in order.

    `open_run` makes one.

    Parameters
    ----------
    path : Path
    tag : str
        The tag of the first line.
    queries : mapping of str to str
        The text of each query of the run, in order.
    spans : sequence of pairs of int
        The bytes and the lines of each query.
    """

    def __init__(self, path: Path, tag: str, queries: Mapping[str, str], spans: Sequence[tuple[int, int]]) -> None:
        self.path, self.tag, self._queries = path, tag, queries
        self._sizes, self._lines = array("q", (size for size, _ in spans)), array("q", (lines for _, lines in spans))
        self._stamp = file_stamp(path)

    def __len__(self) -> int:
        return len(self._queries)

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    @property
    def rankings(self) -> Iterator[QueryLines]:
        """The lines of each query, in order.

        Raises
        ------
        FormatError
            If the file has changed since it was opened.
        """
        stream = _Stream(read_blocks(self.path))
        line = 1
        for query, size, lines in zip(self._queries.values(), self._sizes, self._lines, strict=True):
            content = stream.read(size)
            _check_unchanged(self.path, self._stamp)
            yield QueryLines(self.path, line, content, query)
            line += lines


def open_run(path: str | Path, topics: Mapping[str, str] | None = None, *, lenient: bool = False) -> Run | RunFile:
    """Open a run to be read a query at a time.

    A file that is not in the usual form, such as one whose queries are not contiguous, is read at once by `read_run`,
    which refuses it or, with `lenient`, repairs it. So are pipes, and every file with `lenient`.

    Parameters
    ----------
    path, topics, lenient
        As for `read_run`.

    Raises
    ------
    FormatError
        As `read_run` does. Duplicate documents and increasing scores are found when the query is read.
    """
    found = _scan(path, topics) if is_file(path) and not lenient else None
    return read_run(path, topics, lenient=lenient) if found is None else found


def write_rankings(
    rank: Callable[[Any], Ranking],
    inputs: Mapping[str, str] | Run | RunFile,
    path: str | Path,
    *,
    tag: str,
    n_jobs: int | None = None,
) -> None:
    """Rank every query and write the run as queries are ranked; the file is the same as that of `write_run`.

    The memory that it takes does not depend on the number of queries.

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
    FormatError
        As for `QueryLines.ranking`.
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
    check_names("tag", tags)
    items: Iterable[Any] = inputs.rankings if isinstance(inputs, Run | RunFile) else _queries(inputs)
    work = partial(_ranked_lines, rank, tuple(tags))
    texts = parallel_map(work, items, what=f"run {what}", n_jobs=n_jobs, total=len(inputs))
    with ExitStack() as stack:
        files = [stack.enter_context(open_atomically(path)) for path in paths]
        written = [0] * len(files)
        for parts in texts:
            for number, (file, text) in enumerate(zip(files, parts, strict=True)):
                file.write(text)
                written[number] += len(text)
        for path, tag, size in zip(paths, tags, written, strict=True):
            if not size:
                raise ParameterError(
                    f"run {tag!r} has no documents, so {path} would be empty; check its queries and index"
                )


def _queries(topics: Mapping[str, str]) -> Iterator[Query]:
    return (Query(qid, text) for qid, text in topics.items())


def _ranked_lines(rank: Callable[[Any], Sequence[Ranking]], tags: Sequence[str], item: Any) -> list[str]:
    """The lines of a query in each run."""
    rankings = rank(item.ranking() if isinstance(item, QueryLines) else item)
    check_names("query", [ranking.qid for ranking in rankings])
    return ["".join(run_lines(ranking, tag)) for ranking, tag in zip(rankings, tags, strict=True)]


def _scan(path: str | Path, topics: Mapping[str, str] | None) -> RunFile | None:
    """The queries of a file and where their lines are; None if something about it is unusual."""
    queries: dict[str, str] = {}
    spans: list[tuple[int, int]] = []
    tag, current, stamp = "", b"", file_stamp(path)
    for block in _whole_lines(path):
        if not _is_plain(block):
            return None
        end = 0
        while end < len(block):
            match = _GROUP.match(block, end)
            if match is None:
                return None
            end, qid = match.end(), match[1].decode()
            tag = tag or match[2].decode()
            lines = block.count(b"\n", match.start(), end)
            if match[1] == current:
                spans[-1] = spans[-1][0] + end - match.start(), spans[-1][1] + lines
            elif qid in queries or (topics is not None and qid not in topics):
                return None
            else:
                queries[qid], current = (topics or {}).get(qid, ""), match[1]
                spans.append((end - match.start(), lines))
    _check_unchanged(path, stamp)
    return RunFile(Path(path), tag, queries, spans) if queries else None


def _whole_lines(path: str | Path) -> Iterator[bytes]:
    """The blocks of a file, cut at the ends of lines; the last line is given an end."""
    rest = b""
    for block in read_blocks(path):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest + b"\n"


def _is_plain(block: bytes) -> bool:
    """Whether a block is UTF-8 without NUL and byte-order mark."""
    try:
        block.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in block and not block.startswith(b"\xef\xbb\xbf")


class _Stream:
    """Blocks as a stream of bytes."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._rest = blocks, b""

    def read(self, size: int) -> bytes:
        """The next bytes, fewer at the end."""
        parts, missing = [self._rest], size - len(self._rest)
        while missing > 0 and (block := next(self._blocks, b"")):
            parts.append(block)
            missing -= len(block)
        joined = b"".join(parts)
        self._rest = joined[size:]
        return joined[:size]


def _check_unchanged(path: str | Path, stamp: Stamp) -> None:
    if file_stamp(path) != stamp:
        raise FormatError(path, None, "has changed while it was read; run the command again")
