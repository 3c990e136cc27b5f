"""Feature files: LETOR (SVMlight) text, which other learners read and write, and NumPy's .npz."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greylag.errors import FormatError, ParameterError
from greylag.ltr import letor_lines
from greylag.ltr.data import Qrels, RankingData, positive_grades
from greylag.ltr.letor_lines import COMMENT, GRADE, KIND, MAX_NUMBER, ODD, QID, QID_END
from greylag.ranking import FloatArray, IntArray, Ranking
from greylag.runtime.files import Faults, check_names, open_atomically, parse_number, read_text_blocks


def write_features(
    path: str | Path, names: Iterable[str], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Qrels | None = None
) -> None:
    """Write the features of rankings.

    LETOR text has a line ``GRADE qid:QID 1:VALUE 2:VALUE ... # DOCID`` for each document, with all digits of the
    values. The names of the features, ``1=NAME 2=NAME ...``, follow the first docid, since not all programs accept
    comment lines. A .npz file has the arrays ``features`` (n, f), ``names`` (f,), ``qids``, ``docids`` and ``grades``
    (n,).

    Parameters
    ----------
    path : str or Path
        A name that ends in .npz selects NumPy's format, and any other name LETOR text.
    names : iterable of str
        The names of the features, in the order of columns.
    rows : iterable of (Ranking, array of shape (documents, features))
        One pair for each query.
    qrels : mapping of qid to docid to grade, optional
        The grades; 0 without qrels, and for documents that are not judged.

    Raises
    ------
    ParameterError
        If LETOR text cannot contain a name (it is empty, or has white space or, if of a query, #), or the file cannot
        be written.
    """
    if Path(path).suffix == ".npz":
        _write_npz(path, tuple(names), rows, qrels or {})
    else:
        with open_atomically(path) as file:
            file.writelines(_letor_lines(names, rows, qrels or {}))


def _letor_lines(names: Iterable[str], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Qrels) -> Iterator[str]:
    names = list(names)
    check_names("feature", names)
    legend = "".join(f" {number}={name}" for number, name in enumerate(names, 1))
    for ranking, features in rows:
        check_names("query", [ranking.qid])
        check_names("document", ranking.docids)
        if "#" in ranking.qid:
            raise ParameterError(f"query {ranking.qid!r} has a #, which starts a comment in LETOR text; rename it")
        grades = qrels.get(ranking.qid, {})
        for docid, values in zip(ranking.docids, features.tolist(), strict=True):
            cells = " ".join(f"{number}:{value!r}" for number, value in enumerate(values, 1))
            yield f"{grades.get(docid, 0)} qid:{ranking.qid} {cells} # {docid}{legend}\n"
            legend = ""


def _write_npz(
    path: str | Path, names: tuple[str, ...], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Qrels
) -> None:
    kept = list(rows)
    docids = [docid for ranking, _ in kept for docid in ranking.docids]
    qids = [ranking.qid for ranking, _ in kept for _ in ranking.docids]
    grades = [qrels.get(qid, {}).get(docid, 0) for qid, docid in zip(qids, docids, strict=True)]
    features = np.concatenate([np.empty((0, len(names))), *(values for _, values in kept)])
    with open_atomically(path, binary=True) as file:
        np.savez_compressed(
            file,
            features=features,
            names=np.array(names),
            qids=np.array(qids),
            docids=np.array(docids),
            grades=np.array(grades, dtype=np.int64),
        )


class _Block(NamedTuple):
    """What some lines say: queries with their numbers of documents; grades, docids and values of documents."""

    lines: int
    names: dict[int, str]
    queries: list[tuple[bytes, int]]
    grades: IntArray
    docids: list[str]
    values: FloatArray


BLOCK = 1 << 26  # bytes that are parsed at once; memory of arrays of about this size is given back when they are freed
MAX_VALUES = 1 << 32

_REMEDY = "sort lines by query and remove duplicates"
_GRADE = re.compile(rb"[-+]?\d{1,9}")
_CELL = re.compile(rb"([1-9]\d{0,8}):(\S+)")
_NAME = re.compile(rb"([1-9]\d{0,8})=(\S+)")


def read_features(path: str | Path, qrels: Qrels | None = None, *, lenient: bool = False) -> RankingData:
    """Read LETOR text, written by `write_features` or from the LETOR and MSLR collections, as training data.

    A missing feature is 0. A feature without a name is named by its number, and a document without a docid by the
    number of its line. White space is that of ASCII. Learners can fit the data, but `train` rejects it, since a model
    could not compute its features.

    Parameters
    ----------
    path : str or Path
    qrels : mapping of qid to docid to grade, optional
        Judgements, for relevant documents that were not retrieved. The grades of the lines are always those of the
        file.
    lenient : bool, default False
        Whether to repair what `greylag.runtime.files.read_text` can, such as CR LF, with a warning.

    Raises
    ------
    FormatError
        If a line is malformed, the lines of a query are not contiguous, or `read_text` rejects the file.
    """
    blocks: list[_Block] = []
    before = rows = 0
    with Faults(path, lenient) as faults:
        for text in read_text_blocks(path, faults, BLOCK):
            width = blocks[-1].values.shape[1] if blocks else min(MAX_NUMBER, text.partition(b"\n")[0].count(b":"))
            blocks.append(_parse_block(path, text, before, rows, width))
            before += blocks[-1].lines
            rows += len(blocks[-1].docids)
    if not rows:
        raise FormatError(path, None, "no line with a document; is this a feature file?")
    return _assemble(path, blocks, qrels)


def _parse_block(path: str | Path, text: bytes, before: int, rows: int, width: int) -> _Block:
    """Parse whole lines, which come after `before` lines and `rows` documents; `width` features are expected."""
    content = np.frombuffer(text, dtype=np.uint8)
    ends = np.flatnonzero(content == ord("\n"))
    starts = np.concatenate([[0], ends + 1, [] if text.endswith(b"\n") else [len(text) + 1]]).astype(np.int64)
    heads = np.zeros((len(starts) - 1, 5), dtype=np.int64)
    values = np.zeros((len(heads), width))
    while (highest := letor_lines.parse(content, starts, values, heads)) > values.shape[1]:
        _check_size(path, rows + int(np.count_nonzero(heads[:, KIND] != COMMENT)), highest)
        values = np.zeros((len(heads), highest))
    for row in np.flatnonzero(heads[:, KIND] == ODD).tolist():
        line = text[starts[row] : starts[row + 1] - 1]
        heads[row, GRADE], qid, found = _parse_line(path, before + row + 1, line.partition(b"#")[0])
        heads[row, QID] = starts[row] + line.index(b"qid:") + len(b"qid:")
        heads[row, QID_END] = heads[row, QID] + len(qid)
        highest = max(highest, *found)
        if highest > values.shape[1]:
            _check_size(path, rows + len(heads), highest)
            values = np.pad(values, ((0, 0), (0, highest - values.shape[1])))
        values[row, np.array([*found]) - 1] = [*found.values()]
    kept, values = np.flatnonzero(heads[:, KIND] != COMMENT), values[:, :highest]
    grades, first, end, body_end, _ = heads[kept].T
    comments = [text[i + 1 : j] for i, j in zip(body_end.tolist(), (starts[kept + 1] - 1).tolist(), strict=True)]
    qids = groupby(text[i:j] for i, j in zip(first.tolist(), end.tolist(), strict=True))
    numbers = (kept + before + 1).tolist()
    return _Block(
        lines=len(heads),
        names=_names(comments[0]) if comments and not rows else {},
        queries=[(qid, len(list(lines))) for qid, lines in qids],
        grades=grades.copy(),
        docids=[_docid(comment, number) for comment, number in zip(comments, numbers, strict=True)],
        values=values if len(kept) == len(values) else values[kept],
    )


def _parse_line(path: str | Path, number: int, body: bytes) -> tuple[int, bytes, dict[int, float]]:
    """The grade, the query and the values of a line without comment; the rule of what is accepted."""
    grade, qid, *words = (*body.split(), b"", b"")
    cells = [_CELL.fullmatch(word) for word in words if word]
    values = {int(cell[1]): parse_number(cell[2]) for cell in cells if cell}
    name = qid.removeprefix(b"qid:")
    finite = values and all(cells) and all(map(math.isfinite, values.values()))
    if not (_GRADE.fullmatch(grade) and qid.startswith(b"qid:") and name and finite):
        form = "GRADE qid:QID NUMBER:VALUE ... # DOCID with finite values"
        raise FormatError(path, number, f"not of the form {form}: {body.decode():.60}")
    if len(values) < len(cells):
        raise FormatError(path, number, "has a feature twice; keep one of them")
    if max(values) > MAX_NUMBER:
        raise FormatError(path, number, f"feature {max(values)}: numbers must be at most {MAX_NUMBER}; renumber them")
    return int(grade), name, values


def _docid(comment: bytes, number: int) -> str:
    words = comment.split(None, 3)
    if words[:2] == [b"docid", b"="]:  # as in the LETOR collections
        words = words[2:]
    return words[0].decode() if words else str(number)


def _names(comment: bytes) -> dict[int, str]:
    names = [_NAME.fullmatch(word) for word in comment.split()[1:]]
    return {int(name[1]): name[2].decode() for name in names if name}


def _check_size(path: str | Path, rows: int, width: int) -> None:
    if rows * width > MAX_VALUES:
        size = f"{rows} documents with {width} features"
        raise FormatError(path, None, f"{size} do not fit in memory; renumber the features or split the file")


def _assemble(path: str | Path, blocks: list[_Block], qrels: Qrels | None) -> RankingData:
    """The data of all blocks, which are freed one by one."""
    names, sizes = next(block.names for block in blocks if block.docids), _sizes(path, blocks)
    docids = tuple(chain.from_iterable(block.docids for block in blocks))
    grades, offsets = np.concatenate([block.grades for block in blocks]), np.cumsum([0, *sizes.values()])
    relevant_grades = []
    for qid, first, end in zip(sizes, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        own = docids[first:end]
        if len(set(own)) < len(own):
            twice = Counter(own).most_common(1)[0][0]
            raise FormatError(path, None, f"query {qid!r} has document {twice!r} twice; {_REMEDY}")
        judged = dict(zip(own, grades[first:end].tolist(), strict=True)) if qrels is None else qrels.get(qid, {})
        relevant_grades.append(positive_grades(judged))
    features = _by_column(path, blocks, max((number for number in names if number <= MAX_NUMBER), default=1))
    return RankingData(
        specs=tuple(names.get(number, str(number)) for number in range(1, features.shape[1] + 1)),
        qids=tuple(sizes),
        offsets=offsets,
        docids=docids,
        features=features,
        grades=grades,
        relevant_grades=tuple(relevant_grades),
    )


def _sizes(path: str | Path, blocks: list[_Block]) -> dict[str, int]:
    """The number of lines of each query."""
    sizes: dict[str, int] = {}
    for name, size in chain.from_iterable(block.queries for block in blocks):
        qid = name.decode()
        if qid in sizes and qid != next(reversed(sizes)):
            raise FormatError(path, None, f"query {qid!r} is not contiguous; {_REMEDY}")
        sizes[qid] = sizes.get(qid, 0) + size
    return sizes


def _by_column(path: str | Path, blocks: list[_Block], width: int) -> FloatArray:
    """The features, stored by column as line searches read them, so that there is no second copy; empties `blocks`."""
    rows, width = sum(len(block.docids) for block in blocks), max(width, *(block.values.shape[1] for block in blocks))
    _check_size(path, rows, width)
    columns, first = np.empty((width, rows)), 0
    while blocks:
        values = blocks.pop(0).values
        end = first + len(values)
        columns[: values.shape[1], first:end], columns[values.shape[1] :, first:end] = values.T, 0.0
        first = end
    return columns.T
