"""Feature files: LETOR (SVMlight) text, which other learners read and write, and NumPy's .npz."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greylag.errors import FormatError
from greylag.files import Faults, open_atomically, read_text
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
    """
    if Path(path).suffix == ".npz":
        _write_npz(path, tuple(names), rows, qrels or {})
    else:
        with open_atomically(path) as file:
            file.writelines(_letor_lines(names, rows, qrels or {}))


def _letor_lines(names: Iterable[str], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Qrels) -> Iterator[str]:
    legend = "".join(f" {number}={name}" for number, name in enumerate(names, 1))
    for ranking, features in rows:
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
    numbers: list[int]
    values: list[float]


_NAME = re.compile(r"\s(\d+)=(\S+)")
_DOCID = re.compile(r"(?:docid\s*=\s*)?(\S+)")  # the LETOR collections have "docid = ..." and more


def read_features(path: str | Path, qrels: Qrels | None = None, *, lenient: bool = False) -> RankingData:
    """Read LETOR text, written by `write_features` or from the LETOR and MSLR collections, as training data.

    A missing feature is 0. A feature without a name is named by its number, and a document without a docid by the
    number of its line. Learners can fit the data, but `train` rejects it, since a model could not compute its features.

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
        text = read_text(path, faults).decode()
    numbered = [(number, line) for number, line in enumerate(text.splitlines(), 1) if not line.startswith("#")]
    if not numbered:
        raise FormatError(path, None, "no line with a document; is this a feature file?")
    lines = [_parse(path, number, line) for number, line in numbered]
    names = {int(number): name for number, name in _NAME.findall(numbered[0][1].partition("#")[2])}
    return _assemble(path, names, lines, qrels)


def _parse(path: str | Path, number: int, line: str) -> _Line:
    body, _, comment = line.partition("#")
    grade, qid, *cells = body.split() if len(body.split()) > 1 else ("", "")
    pairs = [cell.partition(":") for cell in cells]
    docid = _DOCID.match(comment.strip())
    try:
        parsed = _Line(
            int(grade),
            qid.removeprefix("qid:"),
            docid[1] if docid else str(number),
            [int(key) for key, _, _ in pairs],
            [float(value) for _, _, value in pairs],
        )
    except ValueError:
        parsed = _Line(0, qid, "", [0], [])
    if not qid.startswith("qid:") or min(parsed.numbers, default=1) < 1:
        raise FormatError(path, number, f"not of the form GRADE qid:QID NUMBER:VALUE ... # DOCID: {line:.60}")
    return parsed


def _assemble(path: str | Path, names: dict[int, str], lines: list[_Line], qrels: Qrels | None) -> RankingData:
    width = max(*names, *(number for line in lines for number in line.numbers), 0, 0)
    features = np.zeros((len(lines), width))
    graded: dict[str, dict[str, int]] = {}
    for row, line in enumerate(lines):
        features[row, np.array(line.numbers, dtype=np.int64) - 1] = line.values
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
