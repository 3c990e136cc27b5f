"""Relevance judgements, of documents for a query or for the subtopics of a query.

Both kinds have four columns. Ad hoc judgements have ``qid iteration docid grade``, whose second column is ignored;
judgements by subtopic have ``qid subtopic docid grade``, where subtopic 0 without a relevant document is none, or are
JSON lines with nuggets. The columns do not show which kind a file is, since TREC-COVID has the rounds of judging in the
second one, so the caller must. BEIR's ad hoc judgements have three columns, which their first line names.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, cast

from greylag.base import (
    UNNAMED_SUBTOPICS,
    Faults,
    FormatError,
    ParameterError,
    QrelsLike,
    SubtopicQrelsLike,
    as_qrels,
    as_subtopic_qrels,
    guided,
    named_subtopic,
    naming,
    parse_number,
    read_text,
    read_text_blocks,
    split_json_lines,
    split_rows,
)
from greylag.evaluation.trec.json_tables import is_table, read_table
from greylag.evaluation.trec.nuggets import Importance, nugget_judgements

Qrels = dict[str, dict[str, int]]
"""qid to docid to grade."""
SubtopicQrels = dict[str, dict[str, dict[str, int]]]
"""qid to subtopic to docid to grade."""


class Nuggets(dict[str, dict[str, int]]):
    """The judgements of a query by nugget and docid, with the importance of nuggets: "vital" or "okay", by nugget.

    Otherwise a dict like any other; a copy that is none has no importance.
    """

    def __init__(self, grades: Mapping[str, dict[str, int]], importance: Mapping[str, str]) -> None:
        super().__init__(grades)
        self.importance = dict(importance)

    def __reduce__(self) -> Any:
        return Nuggets, (dict(self), self.importance)


GRADE_LIMIT = 10_000  # the time and memory of trec_eval are quadratic in the highest grade
COLUMNS = "qid iteration-or-subtopic docid grade"
BEIR_COLUMNS = "query-id corpus-id score"
_log = logging.getLogger("greylag")


@guided
def read_qrels(path: str | Path | Sequence[str | Path] | QrelsLike, *, lenient: bool = False) -> Qrels:
    """Read ad hoc judgements, ``qid iteration docid grade``; the second column is ignored.

    BEIR's form, whose first line is ``query-id corpus-id score``, and JSON ``{qid: {docid: grade}}`` are read, too.
    `FormatError` if a line does not have four columns (lenient: skipped), a grade is not a whole number from -10000 to
    10000 (truncated to an integer, or skipped), or a document is judged twice for a query (the first is kept).

    Parameters
    ----------
    path : str, Path, a list of them, or QrelsLike
        The file, plain or gzipped, or a folder in BEIR's form with a single file ``qrels/*.tsv``. Of several files, a
        later one corrects the grades of those before it; a line of the log counts them. Whatever else
        `greylag.evaluate` takes as judgements is converted.
    lenient : bool, default False
        Repair faults and log them, instead of raising.

    Returns
    -------
    dict of str to dict of str to int
        Grades by qid and docid, in the file's order. A grade of 0 or less means not relevant.
    """
    if isinstance(path, list | tuple) and path and all(isinstance(file, str | Path) for file in path):
        return join_qrels({str(file): read_qrels(file, lenient=lenient) for file in path})
    if not isinstance(path, str | Path):
        path = cast(QrelsLike, path)
        return {qid: dict(grades) for qid, grades in as_qrels(path).items()}
    qrels: Qrels = {}
    # os.path.isdir answers for any name, where glob raises for some.
    files = sorted(Path(path).glob("qrels/*.tsv")) if os.path.isdir(path) else []
    if len(files) > 1:
        raise FormatError(path, None, f"has several files of judgements: give one of {', '.join(map(str, files))}")
    if not files and os.path.isdir(path):
        raise FormatError(
            path, None, "cannot be read: a folder without BEIR's qrels/NAME.tsv; name a file of judgements"
        )
    path = files[0] if files else path  # of a folder in BEIR's form
    with Faults(path, lenient) as faults:
        blocks = read_text_blocks(path, faults)
        head = next(blocks)
        if is_table(head):
            with naming(Path(path)):
                return as_qrels(read_table(chain([head], blocks), path))
        rows = split_rows(chain([head], blocks), COLUMNS, faults, BEIR_COLUMNS, comments=True)
        for line, qid, _, docid, grade in _judgements(rows, faults):
            grades = qrels.setdefault(qid, {})
            if docid in grades:
                where = f"query {qid!r} (are these judgements by subtopic?)"
                faults.repair(line, f"document {docid!r} is judged twice for {where}", "keeps the first")
            grades.setdefault(docid, grade)
    return qrels


def join_qrels(judgements: Mapping[str, Qrels]) -> Qrels:
    """Join judgements by name of their file; later grades correct earlier ones, and a line of the log counts them."""
    joined: Qrels = {}
    for name, qrels in judgements.items():
        again = [(q, d) for q, grades in qrels.items() for d in grades.keys() & joined.get(q, {}).keys()]
        corrected = sum(qrels[q][d] != joined[q][d] for q, d in again)
        if joined:
            number = sum(map(len, qrels.values()))
            text = "%s: of %d judgements, %d correct earlier ones, %d repeat them, %d are new"
            _log.info(text, name, number, corrected, len(again) - corrected, number - len(again))
        if joined and not joined.keys() & qrels.keys():
            _log.warning("%s: no topic in common with the judgements before it", name)
        for qid, grades in qrels.items():
            joined[qid] = joined.get(qid, {}) | grades
    return joined


def read_subtopic_qrels(path: str | Path | SubtopicQrelsLike, *, lenient: bool = False) -> SubtopicQrels:
    """Read judgements by subtopic or nugget: ``qid subtopic docid grade``, as in TREC's diversity tasks, or JSON lines.

    A line ``qid 0 docid 0`` is a judged document that belongs to no subtopic. If all lines of a query's subtopic 0 are
    such, its name is ``""``, which no measure counts; else it is a subtopic like any other, as for NIST's ndeval.

    A file that begins with ``{`` has one of these objects in each line:

    - a query of FreshStack: ``query_id``, and ``nuggets`` with ``_id``, ``relevant_corpus_ids`` (grade 1) and
      ``non_relevant_corpus_ids`` (grade 0);
    - a document to which the nuggetizer of TREC's RAG track assigned nuggets, by ``nuggetizer assign --input-kind
      retrieval``: ``qid``, ``docid``, and ``nuggets`` with ``text``, the subtopic's name, ``assignment``: support
      (grade 2), partial_support (1) or not_support (0), and perhaps ``importance``, vital or okay.

    `FormatError` as in `read_qrels`, if all judgements are of subtopic 0, and if an object is none of these.

    Parameters
    ----------
    path : str, Path or SubtopicQrelsLike
        The file, plain or gzipped. Other forms are converted.
    lenient : bool, default False
        Repair faults and log them, instead of raising.

    Returns
    -------
    dict of str to dict of str to dict of str to int
        Grades by qid, subtopic and docid, in the file's order; {} for a query without subtopics. Queries whose nuggets
        have an importance are `Nuggets`.
    """
    if not isinstance(path, str | Path):
        return as_subtopic_qrels(path)
    qrels: SubtopicQrels = {}
    importance: Importance = {}
    with Faults(path, lenient) as faults:
        content = read_text(path, faults)
        judgements: Iterator[tuple[int, str, str | None, str | None, int]]
        is_json = content.lstrip().startswith(b"{")
        if is_json:
            judgements = nugget_judgements(split_json_lines(content, path), faults, importance)
        else:
            judgements = _judgements(split_rows([content], COLUMNS, faults, comments=True), faults)
        for line, qid, subtopic, docid, grade in judgements:
            # A query without subtopics is there, too: it counts in means.
            subtopics = qrels.setdefault(qid, {})
            if subtopic is None:
                continue
            grades = subtopics.setdefault(subtopic, {})
            if docid is None:  # the subtopic has no judgement
                continue
            if docid in grades and (subtopic not in UNNAMED_SUBTOPICS or max(grade, grades[docid]) > 0):
                where = f"query {qid!r} and subtopic {subtopic!r}"
                faults.repair(line, f"document {docid!r} is judged twice for {where}", "keeps the first")
            grades.setdefault(docid, grade)
    if is_json:
        return {qid: Nuggets(of, importance[qid]) if qid in importance else of for qid, of in qrels.items()}
    # Ad hoc judgements as a single subtopic would give figures that look right.
    if all(name in UNNAMED_SUBTOPICS for judged in qrels.values() for name in judged) and any(
        grade > 0 for judged in qrels.values() for grades in judged.values() for grade in grades.values()
    ):
        raise FormatError(path, None, "all judgements are of subtopic 0, as those without subtopics are: give others")
    return {qid: dict(map(named_subtopic, judged.items())) for qid, judged in qrels.items()}


def at_level(qrels: QrelsLike, level: int) -> Mapping[str, Mapping[str, int]]:
    """Keep documents relevant from grade `level`, at least 1: lower positive grades become 0.

    Whatever takes judgements and counts a document as relevant from grade 1, such as feedback and training data, counts
    it from this grade then.
    """
    if level < 1:
        raise ParameterError(f"the relevance level must be at least 1, not {level}")
    qrels = as_qrels(qrels)
    if level == 1:
        return qrels
    return {
        qid: {docid: grade if grade >= level else min(grade, 0) for docid, grade in grades.items()}
        for qid, grades in qrels.items()
    }


def _judgements(rows: Iterator[tuple[int, list[bytes]]], faults: Faults) -> Iterator[tuple[int, str, str, str, int]]:
    """Yield each line number, qid, second column, docid and grade."""
    judged = named = False
    for line, row in rows:
        if len(row) == 3 and not named:
            if b" ".join(row).decode() != BEIR_COLUMNS:
                reason = f"3 columns instead of 4: {COLUMNS}; three are BEIR's, whose first line is {BEIR_COLUMNS}"
                raise FormatError(faults.path, line, reason)
            named = True
            continue
        # BEIR has no second column.
        qid, second, docid, text = row if len(row) == 4 else (row[0], b"0", *row[1:])
        grade = _grade(text, line, faults)
        if grade is not None:
            judged = True
            yield line, qid.decode(), second.decode(), docid.decode(), grade
    if not judged:
        reason = "no line has a grade in its fourth column; is this a file of relevance judgements?"
        raise FormatError(faults.path, None, reason)


def _grade(text: bytes, line: int, faults: Faults) -> int | None:
    if text.isdigit() and len(text) < 5:
        return int(text)
    number = parse_number(text)
    # 1e2 would be 1 for trec_eval, which reads up to the e.
    usable = abs(number) <= GRADE_LIMIT and b"e" not in text.lower()
    grade = int(number) if usable else 0
    if usable and number == grade:  # whole floats are whole numbers
        return grade
    reason = f"grade {text.decode()!r} is not a whole number from -{GRADE_LIMIT} to {GRADE_LIMIT}"
    faults.repair(line, reason, "truncates it, as trec_eval does" if usable else "skips the judgement")
    return grade if usable else None
