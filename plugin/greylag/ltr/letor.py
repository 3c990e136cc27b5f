"""Feature files: LETOR (SVMlight) text, which other learners read and write, and NumPy's .npz."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greylag.errors import FormatError, ParameterError
from greylag.files import Faults, check_names, open_atomically, parse_number, read_text
from greylag.ltr.data import Qrels, RankingData, positive_grades
from greylag.ranking import FloatArray, Ranking


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


class _Line(NamedTuple):
    grade: int
    qid: str
    docid: str
    values: dict[int, float]


MAX_NUMBER = 100_000
"""The highest number of a feature: all documents have a column for it."""
MAX_VALUES = 1 << 32

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
        Whether to repair what `greylag.files.read_text` can, such as CR LF, with a warning.

    Raises
    ------
    FormatError
        If a line is malformed, the lines of a query are not contiguous, or `read_text` rejects the file.
    """
    with Faults(path, lenient) as faults:
        rows = enumerate(read_text(path, faults).removesuffix(b"\n").split(b"\n"), 1)
    numbered = [(number, line.partition(b"#")[::2]) for number, line in rows if not line.startswith(b"#")]
    if not numbered:
        raise FormatError(path, None, "no line with a document; is this a feature file?")
    lines = [_parse(path, number, *parts) for number, parts in numbered]
    names = [_NAME.fullmatch(word) for word in numbered[0][1][1].split()[1:]]
    return _assemble(path, {int(name[1]): name[2].decode() for name in names if name}, lines, qrels)


def _parse(path: str | Path, number: int, body: bytes, comment: bytes) -> _Line:
    grade, qid, *words = (*body.split(), b"", b"")
    cells = [_CELL.fullmatch(word) for word in words if word]
    values = {int(cell[1]): parse_number(cell[2]) for cell in cells if cell}
    name = qid.removeprefix(b"qid:").decode()
    finite = values and all(cells) and all(map(math.isfinite, values.values()))
    if not (_GRADE.fullmatch(grade) and qid.startswith(b"qid:") and name and finite):
        form = "GRADE qid:QID NUMBER:VALUE ... # DOCID with finite values"
        raise FormatError(path, number, f"not of the form {form}: {body.decode():.60}")
    if len(values) < len(cells):
        raise FormatError(path, number, "has a feature twice; keep one of them")
    if max(values) > MAX_NUMBER:
        raise FormatError(path, number, f"feature {max(values)}: numbers must be at most {MAX_NUMBER}; renumber them")
    docid = comment.split()
    if docid[:2] == [b"docid", b"="]:  # as in the LETOR collections
        docid = docid[2:]
    return _Line(int(grade), name, docid[0].decode() if docid else str(number), values)


def _assemble(path: str | Path, names: dict[int, str], lines: list[_Line], qrels: Qrels | None) -> RankingData:
    width = max(*(max(line.values) for line in lines), *(number for number in names if number <= MAX_NUMBER), 1)
    if len(lines) * width > MAX_VALUES:
        size = f"{len(lines)} documents with {width} features"
        raise FormatError(path, None, f"{size} do not fit in memory; renumber the features or split the file")
    features = np.zeros((len(lines), width))
    graded: dict[str, dict[str, int]] = {}
    for row, line in enumerate(lines):
        features[row, np.array([*line.values], dtype=np.int64) - 1] = [*line.values.values()]
        own = graded.setdefault(line.qid, {})
        if line.docid in own or (own and lines[row - 1].qid != line.qid):
            what = "is not contiguous" if lines[row - 1].qid != line.qid else f"has document {line.docid!r} twice"
            raise FormatError(path, None, f"query {line.qid!r} {what}; sort lines by query and remove duplicates")
        own[line.docid] = line.grade
    judgements = graded if qrels is None else qrels
    return RankingData(
        specs=tuple(names.get(number, str(number)) for number in range(1, width + 1)),
        qids=tuple(graded),
        offsets=np.cumsum([0, *map(len, graded.values())]),
        docids=tuple(line.docid for line in lines),
        features=features,
        grades=np.array([line.grade for line in lines], dtype=np.int64),
        relevant_grades=tuple(positive_grades(judgements.get(qid, {})) for qid in graded),
    )
