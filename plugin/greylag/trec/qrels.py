"""Relevance judgements: of documents, and of documents for the subtopics of a query.

Both kinds have four columns: ``qid iteration docid grade`` in the ad hoc kind, whose second column means nothing, and
``qid subtopic docid grade`` in the diversity kind, where subtopic 0 stands for none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from greylag.errors import FormatError
from greylag.files import Faults, check_names, read_rows, write_text

Qrels = dict[str, dict[str, int]]
"""qid to docid to grade."""
SubtopicQrels = dict[str, dict[str, dict[str, int]]]
"""qid to subtopic to docid to grade."""

GRADE_LIMIT = 10_000  # trec_eval's time and memory grow with the square of the highest grade
NO_SUBTOPIC = ("0", "Q0")
COLUMNS = "qid iteration-or-subtopic docid grade"


def read_qrels(path: str | Path, *, lenient: bool = False) -> Qrels:
    """Read ad hoc judgements: four columns, ``qid iteration docid grade``, the second of which is not looked at.

    Returns
    -------
    Grades by qid and docid, in the file's order. A grade of 0 or less is not relevant.

    Raises
    ------
    FormatError
        Each with lenient reading's remedy in brackets: a line that does not have four columns (left out), a grade that
        is not a whole number from -10000 to 10000 (cut to one, or else left out), a document judged twice for a query
        (the first holds). Also what `greylag.files.read_text` refuses.
    """
    qrels: Qrels = {}
    with Faults(path, lenient) as faults:
        for judgement in _judgements(path, faults):
            where = f"query {judgement.qid!r} (if by subtopic, see read_subtopic_qrels)"
            _record(judgement, qrels.setdefault(judgement.qid, {}), where, faults)
    return qrels


def read_subtopic_qrels(path: str | Path, *, lenient: bool = False) -> SubtopicQrels:
    """Read judgements by subtopic, in the format of TREC's diversity tasks: ``qid subtopic docid grade``.

    A line ``qid 0 docid 0`` is a document that was judged and belongs to no subtopic. It adds nothing but the query.

    Returns
    -------
    Grades by qid, subtopic and docid, in the file's order; {} for a query without subtopics.

    Raises
    ------
    FormatError
        As `read_qrels`; also a document judged relevant to subtopic 0 (counted as not relevant).
    """
    qrels: SubtopicQrels = {}
    with Faults(path, lenient) as faults:
        for judgement in _judgements(path, faults):
            subtopics = qrels.setdefault(judgement.qid, {})
            if judgement.second not in NO_SUBTOPIC:
                where = f"query {judgement.qid!r} and subtopic {judgement.second!r}"
                _record(judgement, subtopics.setdefault(judgement.second, {}), where, faults)
            elif judgement.grade > 0:
                reason = f"document {judgement.docid!r} is relevant to subtopic 0, which stands for none"
                faults.repair(judgement.line, reason, "counts it as not relevant")
    return qrels


def has_subtopics(path: str | Path) -> bool:
    """Whether judgements are by subtopic: their second column has more than one value, 0 and Q0 counting as the same.

    Faults that lenient reading repairs are passed over: the reader that is then chosen reports them.

    Raises
    ------
    FormatError
        The file cannot be read or no line has four columns.
    """
    rows = read_rows(path, COLUMNS, Faults(path, lenient=True))
    seconds = {row[1].decode() for _, row in rows}
    return len({"0" if second in NO_SUBTOPIC else second for second in seconds}) > 1


def write_qrels(qrels: Mapping[str, Mapping[str, int]], path: str | Path) -> None:
    """Write ad hoc judgements, ``qid 0 docid grade``, in the mapping's order.

    Raises
    ------
    ParameterError
        A name that is empty or has white space, or a file that cannot be written.
    """
    check_names("query", qrels)
    for grades in qrels.values():
        check_names("document", grades)
    lines = (f"{qid} 0 {docid} {grade}\n" for qid, grades in qrels.items() for docid, grade in grades.items())
    write_text(path, "".join(lines))


class _Judgement(NamedTuple):
    line: int
    qid: str
    second: str
    docid: str
    grade: int


def _judgements(path: str | Path, faults: Faults) -> Iterator[_Judgement]:
    judged = False
    for line, (qid, second, docid, text) in read_rows(path, COLUMNS, faults):
        grade = _grade(text, line, faults)
        if grade is not None:
            judged = True
            yield _Judgement(line, qid.decode(), second.decode(), docid.decode(), grade)
    if not judged:
        raise FormatError(path, None, "no line has a grade in its fourth column; is this a file of judgements?")


def _grade(text: bytes, line: int, faults: Faults) -> int | None:
    try:
        grade = int(float(text))
    except (ValueError, OverflowError):
        grade = GRADE_LIMIT + 1
    usable = abs(grade) <= GRADE_LIMIT
    if usable and text.removeprefix(b"-").isdigit():
        return grade
    reason = f"grade {text.decode()!r} is not a whole number from -{GRADE_LIMIT} to {GRADE_LIMIT}"
    faults.repair(line, reason, "cuts the fraction off, as trec_eval does" if usable else "leaves the judgement out")
    return grade if usable else None


def _record(judgement: _Judgement, grades: dict[str, int], where: str, faults: Faults) -> None:
    if judgement.docid in grades:
        faults.repair(judgement.line, f"document {judgement.docid!r} is judged twice for {where}", "keeps the first")
    else:
        grades[judgement.docid] = judgement.grade
