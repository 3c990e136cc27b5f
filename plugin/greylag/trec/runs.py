"""Runs: six columns, ``qid Q0 docid rank score tag``.

trec_eval looks at neither the ranks nor the order of the lines: it orders a query's documents by score, rounded to
float32, and those of one score by docid, descending. Reading gives that order, and writing makes it every ranking's
own. So what is computed from a `Run` is what trec_eval computes from its file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from greylag.errors import FormatError, ParameterError
from greylag.files import Faults, check_names, read_rows, write_text
from greylag.ranking import FloatArray, Ranking, Run

Float32Array = NDArray[np.float32]

COLUMNS = "qid Q0 docid rank score tag"
FLOAT32_MAX = float(np.finfo(np.float32).max)
FLOAT32_LIMIT = (2 - 2**-24) * 2.0**127  # the first number that float32 rounds to infinity


def read_run(path: str | Path, topics: Mapping[str, str] | None = None, *, lenient: bool = False) -> Run:
    """Read a run as trec_eval does: scores rounded to float32, documents of one score by docid, descending.

    Parameters
    ----------
    topics : the queries' text by qid; without it the text is "".

    Returns
    -------
    Rankings in the order of the queries' first lines, under the first line's tag.

    Raises
    ------
    FormatError
        Each with lenient reading's remedy in brackets: a line that does not have six columns (left out); a rank that is
        not a whole number (not needed); a score that is not a number (left out), or infinite or beyond float32 (the
        largest float32); a document twice (the first holds); a score above the one before it (sorted); a query's lines
        apart from each other (joined); a query that `topics` lacks (left out). Also what `greylag.files.read_text`
        refuses, and a file that leaves nothing.
    """
    with Faults(path, lenient) as faults:
        tag, queries = _scores_by_query(path, topics, faults)
    if not any(queries.values()):
        raise FormatError(path, None, "no query is left with a document; is this the right run for these topics?")
    texts = topics or {}
    return Run(tuple(_ranking(qid, texts.get(qid, ""), scores) for qid, scores in queries.items()), tag)


def write_run(run: Run, path: str | Path) -> None:
    """Write a run whole or not at all, so that trec_eval's order is every ranking's order.

    Lines are grouped by query, ranks count from 1, and scores have the digits that tell float32 numbers apart. A score
    that float32 would not put below the one before it is lowered to the next float32 number (`strictly_decreasing`);
    other scores are left alone. Reading the file gives the same order, and writing what was read the same bytes. A
    query without documents has no line.

    Raises
    ------
    ParameterError
        A run without documents, a name that is empty or has white space, a score beyond float32, or a file that cannot
        be written.
    """
    check_names("tag", [run.tag])
    check_names("query", run)
    text = "".join(line for ranking in run.rankings for line in _lines(ranking, run.tag))
    if not text:
        raise ParameterError(f"run {run.tag!r} has no document, and {path} would be empty; check its queries and index")
    write_text(path, text)


def strictly_decreasing(scores: FloatArray) -> Float32Array:
    """Non-increasing scores as strictly decreasing float32 numbers, changed as little as that allows.

    x_1 = f(s_1) and x_i = min(f(s_i), the float32 number next below x_(i-1)), where f rounds to float32.

    Parameters
    ----------
    scores : shape (n,), finite, non-increasing.

    Raises
    ------
    ParameterError
        A score beyond float32's range, or no number left below the last one.
    """
    if (np.abs(scores) >= FLOAT32_LIMIT).any():
        beyond = scores[np.abs(scores) >= FLOAT32_LIMIT][0]
        raise ParameterError(f"score {beyond} is beyond float32 (3.4e38), in which trec_eval compares; scale them")
    # Float32 numbers as whole ones: neighbours have neighbouring keys, and -0 shares the key of 0.
    bits = scores.astype(np.float32).view(np.int32).astype(np.int64)
    keys = np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)
    # key_i = min(key_i, key_(i-1) - 1) for all i at once.
    places = np.arange(len(keys))
    keys = np.minimum.accumulate(keys + places) - places
    numbers: Float32Array = np.where(keys < 0, 0x80000000 - keys, keys).astype(np.uint32).view(np.float32)
    if not np.isfinite(numbers).all():
        raise ParameterError("scores tie at float32's lowest number (-3.4e38), with none left below it; scale them")
    return numbers


def _scores_by_query(
    path: str | Path, topics: Mapping[str, str] | None, faults: Faults
) -> tuple[str, dict[str, dict[str, float]]]:
    """The first line's tag, and scores by qid and docid in the order of the lines."""
    run_tag, current, last = "", b"", math.inf
    queries: dict[str, dict[str, float]] = {}
    scores: dict[str, float] = {}
    for line, (qid, _, name, rank, text, tag) in read_rows(path, COLUMNS, faults):
        if qid != current:
            run_tag = run_tag or tag.decode()
            current, last = qid, math.inf
            scores = _scores_of(qid.decode(), queries, topics, line, faults)
        score, docid = _score(text, line, faults), name.decode()
        if score is None:
            continue
        if docid in scores:
            faults.repair(line, f"document {docid!r} is ranked twice for query {qid.decode()!r}", "keeps the first")
            continue
        if score > last:
            faults.repair(line, f"score {text.decode()} is above the one before it, {last}", "sorts by score")
        if not rank.isdigit():
            faults.repair(line, f"rank {rank.decode()!r} is not a whole number", "ranks by score alone")
        scores[docid] = last = score
    return run_tag, queries


def _scores_of(
    qid: str, queries: dict[str, dict[str, float]], topics: Mapping[str, str] | None, line: int, faults: Faults
) -> dict[str, float]:
    """The dictionary for a query's scores, at the first of some lines of it."""
    if topics is not None and qid not in topics:
        faults.repair(line, f"query {qid!r} is not among the topics", "leaves the query out")
        return {}
    if qid in queries:
        faults.repair(line, f"query {qid!r} comes back after another one", "joins its lines")
    return queries.setdefault(qid, {})


def _score(text: bytes, line: int, faults: Faults) -> float | None:
    try:
        score = math.nan if b"_" in text else float(text)  # 1_0 is a number to Python alone
    except ValueError:
        score = math.nan
    if -FLOAT32_LIMIT < score < FLOAT32_LIMIT:
        return score
    if math.isnan(score):
        faults.repair(line, f"score {text.decode()!r} is not a number", "leaves the document out")
        return None
    faults.repair(line, f"score {text.decode()} is beyond float32 (3.4e38)", "takes float32's last number")
    return math.copysign(FLOAT32_MAX, score)


def _ranking(qid: str, query: str, scores: Mapping[str, float]) -> Ranking:
    docids = tuple(scores)
    values = np.fromiter(scores.values(), np.float32, len(docids))
    if (values[1:] >= values[:-1]).any():
        order = sorted(range(len(docids)), key=lambda i: (values[i], docids[i]), reverse=True)
        docids, values = tuple(docids[i] for i in order), values[order]
    return Ranking(qid, query, docids, values.astype(np.float64))


def _lines(ranking: Ranking, tag: str) -> Iterator[str]:
    check_names("document", ranking.docids)
    scores = strictly_decreasing(ranking.scores).astype("U").tolist()
    for rank, (docid, score) in enumerate(zip(ranking.docids, scores, strict=True), 1):
        yield f"{ranking.qid} Q0 {docid} {rank} {score} {tag}\n"
