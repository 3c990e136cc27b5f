"""Feature files as training data, and written: LETOR (SVMlight) text, as other learners read it, and NumPy's .npz."""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate, groupby, pairwise
from pathlib import Path

import numpy as np

from greylag.base import (
    Faults,
    FloatArray,
    FormatError,
    Frame,
    ParameterError,
    QrelsLike,
    Ranking,
    Run,
    as_qrels,
    check_names,
    guided,
    open_atomically,
    parse_number,
    read_arrays,
    read_rows,
)
from greylag.evaluation import SORT_REMEDY, grades_by_query
from greylag.features import Column
from greylag.learning.data import Judgements, RankingData, positive_grades
from greylag.learning.feature_files import feature_rows

MANY_SORTED = 10  # topics whose documents are all sorted by grade, hardly by chance
# Qids that are no numbers, and larger ones, are numbered after it; below 2^31, for all readers.
FIRST_NAMED_QID = 900_000_000
_log = logging.getLogger("greylag")


def write_features(
    path: str | Path,
    names: Iterable[str],
    rows: Iterable[tuple[Ranking, FloatArray]],
    qrels: QrelsLike | None = None,
    *,
    before: Iterable[str] = (),
) -> None:
    """Write the features of rankings.

    LETOR text has a line ``GRADE qid:QID 1:VALUE 2:VALUE ... # DOCID`` for each document, with all digits of the
    values. The names of the features, ``1=NAME 2=NAME ...``, follow the first docid, since not all programs accept
    comment lines. LightGBM and scikit-learn accept only numbers as qids: another qid, and a larger number, is numbered
    from 900000001, and follows the docids as ``qid=QID``. A .npz file has the arrays ``features`` (n, f), ``names``
    (f,), ``qids``, ``docids`` and ``grades`` (n,).

    Parameters
    ----------
    path : str or Path
        A name that ends in .npz selects NumPy's format, and any other name LETOR text.
    names : iterable of str
    rows : iterable of (Ranking, array of shape (documents, features))
    qrels : QrelsLike, optional
        The grades; 0 without qrels, and for documents that are not judged.
    before : iterable of str, default none
        The qids of another file of text, which this one goes on: that file has the names, and qids are numbered on.
    """
    judged = {} if qrels is None else as_qrels(qrels)
    if Path(path).suffix == ".npz":
        _write_npz(path, list(names), rows, judged)
    else:
        with open_atomically(path) as file:
            file.writelines(_letor_lines(list(names), rows, judged, list(before)))


def _letor_lines(
    names: list[str], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Judgements, before: list[str]
) -> Iterator[str]:
    check_names("feature", names)
    legend = "" if before else "".join(f" {number}={name}" for number, name in enumerate(names, 1))
    # The numbers of one file go on in the next, or two queries would have the same.
    numbered = sum(not _is_number(qid) for qid in before)
    for ranking, features in rows:
        check_qids([ranking.qid])
        check_names("document", ranking.docids)
        grades = qrels.get(ranking.qid, {})
        number, named = ranking.qid, ""
        if not _is_number(ranking.qid):
            numbered += 1
            number, named = str(FIRST_NAMED_QID + numbered), f" qid={ranking.qid}"
        for docid, values in zip(ranking.docids, features.tolist(), strict=True):
            cells = " ".join(f"{column}:{value!r}" for column, value in enumerate(values, 1))
            yield f"{grades.get(docid, 0)} qid:{number} {cells} # {docid}{named}{legend}\n"
            legend = ""


def check_qids(qids: Iterable[str]) -> None:
    """Raise `ParameterError` for a qid that LETOR text cannot have."""
    for qid in qids:
        check_names("query", [qid])
        if "#" in qid:
            raise ParameterError(f"query {qid!r} has a #, which starts a comment in LETOR text; rename it")


def _is_number(qid: str) -> bool:
    """Return whether other programs write the qid as it stands, and no other qid gets its number."""
    # Without zeros in front: 007 would be read as 7, which may be another query.
    return qid.isascii() and qid.isdigit() and len(qid) < 10 and str(int(qid)) == qid and int(qid) <= FIRST_NAMED_QID


def _write_npz(
    path: str | Path, names: list[str], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Judgements
) -> None:
    kept = list(rows)
    docids = [docid for ranking, _ in kept for docid in ranking.docids]
    qids = [ranking.qid for ranking, _ in kept for _ in ranking.docids]
    grades = [qrels.get(qid, {}).get(docid, 0) for qid, docid in zip(qids, docids, strict=True)]
    features = np.concatenate([np.empty((0, len(names))), *(values for _, values in kept)])
    with open_atomically(path, binary=True) as file:
        np.savez_compressed(
            file, features=features, names=np.array(names), qids=np.array(qids), docids=np.array(docids),
            grades=np.array(grades, dtype=np.int64),
        )  # fmt: skip


@guided
def read_letor(path: str | Path | Frame, qrels: QrelsLike | None = None, *, absent: float | None = None) -> RankingData:
    """Read LETOR text, written by `write_features` or from the LETOR and MSLR collections, as training data.

    Text without qids has the sizes of queries in a second file, FILE.group (XGBoost) or FILE.query (LightGBM), and its
    queries are numbered from 1. A name that ends in .parquet is Parquet, which polars reads. A frame and Parquet have
    the columns qid, label and, perhaps, docno; all others are features, null or NaN being missing values.

    Features are numbered from 1, or from 0 if a line has a feature 0, which is logged. One without a name is named by
    its number. Names, ``1=NAME 2=NAME ...``, follow the first docid, or are a line of
    comment before it. White space is that of ASCII. A model of the data has the features ``column:NAME``, and ranks
    such files alone.

    A document without a docid is named by the values of its features, whatever its line, grade and spelling of numbers:
    ``row-`` and 16 digits, and ``-2``, ``-3``, ... for others of its query that have the same values, in the order of
    lines. A missing feature is the same as 0 here, too.

    The grades of the lines are always those of the file; `qrels` tell of relevant documents that were not retrieved.
    A feature that a line of text leaves out is 0. With `absent`, it is this, and there may be NaN, a missing value, for
    trees: `RankingModel.absent` is what the library that grew them takes it for, 0 (LightGBM, and to learn by
    `LambdaMART`) or NaN (XGBoost).

    `FormatError` if a line is malformed, or the lines of a query are not contiguous.
    """
    rows, judged = feature_rows(path, absent), None if qrels is None else as_qrels(qrels)
    _, qids, offsets, _, _, listed = rows
    relevant_grades = []
    for qid, (first, end) in zip(qids, pairwise(offsets.tolist()), strict=True):
        grades = listed[first:end].tolist() if judged is None else judged.get(qid, {}).values()
        relevant_grades.append(positive_grades(grades))
    return RankingData(*rows, tuple(relevant_grades))


def _column_values(data: RankingData, column: int, ranking: Ranking) -> FloatArray:
    """Return the values of a column for the documents of a ranking, shape (n,), NaN for those that the data lacks."""
    if ranking.qid not in data.spans:
        raise ParameterError(f"query {ranking.qid!r} is not among those of the features")
    first, end = data.spans[ranking.qid]
    listed, values = data.docids[first:end], data.features[first:end, column]
    if ranking.docids == listed:
        return values
    by_docid = dict(zip(listed, values.tolist(), strict=True))
    return np.array([by_docid.get(docid, np.nan) for docid in ranking.docids], dtype=np.float64)


def bound_columns(data: RankingData) -> tuple[Column, ...]:
    """Return the features ``column:NAME`` of data that was read from a file, which have their values."""
    names = (name.removeprefix("column:") for name in data.names)
    return tuple(Column(name, partial(_column_values, data, column)) for column, name in enumerate(names))


def listed_run(data: RankingData, tag: str) -> Run:
    """Rank the documents in the order of their lines, with descending scores."""
    return Run(
        tuple(
            Ranking(qid, "", data.docids[first:end], np.arange(end - first, 0.0, -1.0))
            for qid, (first, end) in data.spans.items()
        ),
        tag,
    )


def warn_of_order(path: str | Path, data: RankingData) -> None:
    """Warn if the documents of each of ten topics or more with different grades are sorted by these."""
    query = np.repeat(np.arange(len(data.qids)), data.groups)
    steps, within = np.diff(data.grades), np.diff(query) == 0
    if not (steps[within] > 0).any() and (mixed := len(np.unique(query[1:][within & (steps < 0)]))) >= MANY_SORTED:
        _log.warning(
            f"{path}: the documents of all {mixed} topics with different grades are in descending order of grade, "
            "which equal scores keep, so that measures are too high: shuffle the documents within topics"
        )


def listed_grades(data: RankingData) -> dict[str, dict[str, int]]:
    """Return the grades as judgements, by qid and docid."""
    return grades_by_query(data.qids, data.offsets, data.docids, data.grades)


def read_scores(path: str | Path, features: str | Path) -> Run:
    """Read a run of the scores that another program gave to the documents of a feature file, LETOR text or .npz."""
    # Scores are in the order of the documents: one per line, as of LightGBM and SVMrank, or in RankLib's lines
    # ``QID INDEX SCORE``, with the number of the document within its query, from 0. Equal scores keep that order.
    by_query = _documents(features)
    expected = [(qid, place) for qid, docids in by_query.items() for place in range(len(docids))]
    scores: list[float] = []
    with Faults(path, lenient=None) as faults:
        for line, row in read_rows(path, "score", faults, "qid index score"):
            scores.append(parse_number(row[-1]))
            if not math.isfinite(scores[-1]):
                raise FormatError(path, line, f"score {row[-1].decode()!r:.60} is not a finite number")
            if len(row) == 3 and len(scores) <= len(expected):
                (qid, place), given = expected[len(scores) - 1], row[0].decode()
                # It may be the number of another qid.
                if row[1] != b"%d" % place or (given != qid and given in by_query and _is_number(given)):
                    reason = f"document {row[1].decode()!r:.20} of query {given!r} instead of {place} of {qid!r}"
                    raise FormatError(path, line, f"{reason}, as in {features}: sort it as that file")
    if len(scores) != len(expected):
        raise FormatError(path, None, f"has {len(scores)} scores, but {features} has {len(expected)} documents")
    ends = accumulate(map(len, by_query.values()))
    rankings = (
        Ranking.sort(qid, "", docids, scores[end - len(docids) : end])
        for (qid, docids), end in zip(by_query.items(), ends, strict=True)
    )
    return Run(tuple(rankings), Path(path).name.split(".")[0] or "scores")


def _documents(path: str | Path) -> dict[str, list[str]]:
    """Return the documents of each query of a feature file, in order."""
    if Path(path).suffix != ".npz":
        data = read_letor(path, absent=0.0)
        warn_of_order(path, data)
        return {qid: [*data.docids[first:end]] for qid, (first, end) in data.spans.items()}
    qids, docids = read_arrays(path, qids=("U", 1), docids=("U", 1))
    if len(qids) != len(docids):
        raise FormatError(path, None, f"has {len(qids)} qids for {len(docids)} docids: write it with greylag features")
    pairs = [*zip(qids.tolist(), docids.tolist(), strict=True)]
    # A query that comes back would replace its documents: the sum tells.
    by_query = {qid: [docid for _, docid in group] for qid, group in groupby(pairs, key=lambda pair: pair[0])}
    if sum(map(len, by_query.values())) != len(pairs):
        raise FormatError(path, None, f"the documents of a query are not contiguous; {SORT_REMEDY}")
    return by_query
