"""Runs: six columns, ``qid Q0 docid rank score tag``.

trec_eval ignores the ranks and the order of lines: it sorts the documents of a query by score, rounded to float32, and
breaks ties by docid, descending. Reading a run applies that order, and writing a run adjusts scores to preserve the
order of the rankings. Thus measures of a `Run` equal those that trec_eval computes from its file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greylag.errors import FormatError, ParameterError
from greylag.ranking import FloatArray, Ranking, Run
from greylag.runtime.files import Faults, check_names, parse_number, read_rows, write_text

Float32Array = NDArray[np.float32]

COLUMNS = "qid Q0 docid rank score tag"
FLOAT32_MAX = float(np.finfo(np.float32).max)
FLOAT32_LIMIT = (2 - 2**-24) * 2.0**127  # the first number that float32 rounds to infinity


def read_run(path: str | Path, topics: Mapping[str, str] | None = None, *, lenient: bool = False) -> Run:
    """Read a run as trec_eval does: scores are rounded to float32 and ties broken by docid, descending.

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
        If a line does not have six columns (lenient: skipped), a rank is not an integer (ignored), a score is not a
        number (skipped) or exceeds float32 (the largest float32 is used), a document is duplicated (the first is
        kept), a score is higher than the one before it (sorted), the lines of a query are not contiguous (joined), a
        query is not in `topics` (skipped), no document is left, or `greylag.runtime.files.read_text` refuses the file.
    """
    with Faults(path, lenient) as faults:
        tag, queries = _scores_by_query(read_rows(path, COLUMNS, faults), topics, faults)
    if not any(queries.values()):
        raise FormatError(path, None, "no query has a document; is this the right run for these topics?")
    texts = topics or {}
    return Run(tuple(_ranking(qid, texts.get(qid, ""), scores) for qid, scores in queries.items()), tag)


def write_run(run: Run, path: str | Path) -> None:
    """Write a run atomically, such that trec_eval sees the documents in the order of the rankings.

    Lines are grouped by query, ranks start at 1, and scores have the digits that identify a float32 number. A score
    that is not below its predecessor in float32 is lowered to the next float32 number (see `strictly_decreasing`); all
    others are unchanged. Reading the file restores the order, and writing that run again gives identical bytes. A query
    without documents has no line.

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
    text = "".join(line for ranking in run.rankings for line in run_lines(ranking, run.tag))
    if not text:
        raise ParameterError(f"run {run.tag!r} has no documents, so {path} would be empty; check its queries and index")
    write_text(path, text)


def strictly_decreasing(scores: FloatArray) -> Float32Array:
    """Convert non-increasing scores to strictly decreasing float32 numbers, changing as few as possible.

    x_1 = f(s_1) and x_i = min(f(s_i), p(x_(i-1))), where f rounds to float32 and p(x) is the largest float32 number
    below x.

    Parameters
    ----------
    scores : float64 array, shape (n,)
        Finite and non-increasing.

    Returns
    -------
    float32 array, shape (n,)

    Raises
    ------
    ParameterError
        If a score exceeds the range of float32, or no lower number is left.
    """
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


def run_ranking(rows: Iterable[tuple[int, list[bytes]]], query: str, faults: Faults) -> Ranking:
    """The ranking in the lines of one query, as pairs of the line's number and its columns."""
    with faults:
        _, queries = _scores_by_query(rows, None, faults)
    ((qid, scores),) = queries.items()
    return _ranking(qid, query, scores)


def run_lines(ranking: Ranking, tag: str) -> Iterator[str]:
    """The lines of a ranking in a run file."""
    check_names("document", ranking.docids)
    scores = strictly_decreasing(ranking.scores).astype("U").tolist()
    for rank, (docid, score) in enumerate(zip(ranking.docids, scores, strict=True), 1):
        yield f"{ranking.qid} Q0 {docid} {rank} {score} {tag}\n"


def _scores_by_query(
    rows: Iterable[tuple[int, list[bytes]]], topics: Mapping[str, str] | None, faults: Faults
) -> tuple[str, dict[str, dict[str, float]]]:
    """The tag of the first line, and scores by qid and docid in the order of the lines."""
    run_tag, current, last = "", b"", math.inf
    queries: dict[str, dict[str, float]] = {}
    scores: dict[str, float] = {}
    for line, (qid, _, name, rank, text, tag) in rows:
        if qid != current:
            run_tag = run_tag or tag.decode()
            current, last = qid, math.inf
            scores = _scores_of(qid.decode(), queries, topics, line, faults)
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
    return run_tag, queries


def _scores_of(
    qid: str, queries: dict[str, dict[str, float]], topics: Mapping[str, str] | None, line: int, faults: Faults
) -> dict[str, float]:
    """The dictionary for a query's scores, at the first of a group of its lines."""
    if topics is not None and qid not in topics:
        faults.repair(line, f"query {qid!r} is not among the topics", "skips the query")
        return {}
    if qid in queries:
        faults.repair(line, f"the lines of query {qid!r} are not contiguous", "joins its lines")
    return queries.setdefault(qid, {})


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
