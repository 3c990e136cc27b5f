"""Feature files: LETOR (SVMlight) text, which other learners read and write, and NumPy's .npz."""

from __future__ import annotations

import logging
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import accumulate, chain, groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greylag.base import (
    Faults,
    FloatArray,
    FormatError,
    IntArray,
    ParameterError,
    Ranking,
    Run,
    check_names,
    digest_rows,
    guided,
    is_file,
    name_rows,
    open_atomically,
    parse_number,
    read_arrays,
    read_blocks,
    read_rows,
    read_text_blocks,
    step,
)
from greylag.evaluation import MIN_BYTES, scan_features
from greylag.features import Column
from greylag.learning.data import MAX_FEATURE, Judgements, RankingData, positive_grades


def write_features(
    path: str | Path,
    names: Iterable[str],
    rows: Iterable[tuple[Ranking, FloatArray]],
    qrels: Judgements | None = None,
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
    qrels : mapping of qid to docid to grade, optional
        The grades; 0 without qrels, and for documents that are not judged.
    before : iterable of str, default none
        The qids of another file of text, which this one goes on: that file has the names, and qids are numbered on.
    """
    if Path(path).suffix == ".npz":
        _write_npz(path, list(names), rows, qrels or {})
    else:
        with open_atomically(path) as file:
            file.writelines(_letor_lines(list(names), rows, qrels or {}, list(before)))


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


class _Block(NamedTuple):
    """The content of some lines; a query has the number of its successive documents."""

    names: dict[int, str]
    queries: list[tuple[bytes, int]]
    grades: IntArray
    docids: list[str]  # "" for a document without one
    values: FloatArray
    first: int = 1  # the number of the first column, 0 or 1


# Bytes that are parsed at once. Memory of arrays of about this size is given back when they are freed.
BLOCK_BYTES = 1 << 26
MANY_SORTED = 10  # topics whose documents are all sorted by grade, hardly by chance
LARGE_ROWS = 100_000  # documents, from which on what was read is logged
_log = logging.getLogger("greylag")
# Qids that are no numbers, and larger ones, are numbered after it; below 2^31, for all readers.
FIRST_NAMED_QID = 900_000_000
MAX_VALUES = 1 << 32  # documents times features, of 8 bytes each
MAX_NUMBER = 100_000  # of a feature; all documents have a column for it

_REMEDY = "sort lines by query and remove duplicates"
_LINE = re.compile(
    rb"\s*([-+]?\d{1,9})\s+qid:([^\s#]+)"  # the grade and the query
    rb"((?:\s++(?:0|[1-9]\d{0,8}):[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?)+)"  # cells; )++ is wrong in 3.11.2
    rb"\s*(?:#(.*))?",  # the comment
    re.DOTALL,
)
_NAME = re.compile(rb"([1-9]\d*)=(\S+)")


@guided
def read_features(path: str | Path, qrels: Judgements | None = None) -> RankingData:
    """Read LETOR text, written by `write_features` or from the LETOR and MSLR collections, as training data.

    A missing feature is 0. Features are numbered from 1, or from 0 if a line has a feature 0, which is logged. One
    without a name is named by its number. Names, ``1=NAME 2=NAME ...``, follow the first docid, or are a line of
    comment before it. White space is that of ASCII. A model of the data has the features ``column:NAME``, and ranks
    such files alone.

    A document without a docid is named by the values of its features, whatever its line, grade and spelling of numbers:
    ``row-`` and 16 digits, and ``-2``, ``-3``, ... for others of its query that have the same values, in the order of
    lines. A missing feature is the same as 0 here, too.

    The grades of the lines are always those of the file; `qrels` tell of relevant documents that were not retrieved.
    `FormatError` if a line is malformed, or the lines of a query are not contiguous.
    """
    blocks: list[_Block] = []
    lines = rows = 0
    with Faults(path, lenient=None) as faults, step("reading features") as current:
        for text in read_text_blocks(path, faults, BLOCK_BYTES):
            blocks.append(_scan_block(path, text, lines, rows) or _parse_block(path, text, lines, rows))
            lines += text.count(b"\n")
            rows += len(blocks[-1].docids)
            current.reach(rows)
    if not rows:
        raise FormatError(path, None, "no line with a document; is this a feature file?")
    data = _assemble(path, blocks, qrels)
    if rows >= LARGE_ROWS:
        _log.info(f"{path}: {rows:,} documents of {len(data.qids):,} topics, {len(data.specs)} features")
    return data


read_letor = read_features  # what users of LETOR look for


def is_feature_file(path: str | Path) -> bool:
    """Return whether a file, unless it is a pipe, begins with a row of LETOR text after its comments."""
    if not is_file(path):
        return False
    lines = next(read_blocks(path), b"").split(b"\n")
    return bool(_LINE.match(next((line for line in lines if not line.startswith(b"#")), b"")))


def fold_folders(folder: str | Path) -> list[Path]:
    """Return LETOR's Fold1, Fold2, ... in a folder, without a gap; none of a path that has none."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    folds = sorted((int(name[4:]), Path(folder) / name) for name in names if re.fullmatch(r"Fold[0-9]+", name))
    numbers = [number for number, _ in folds]
    if numbers and numbers != [*range(min(numbers[0], 1), numbers[-1] + 1)]:
        raise FormatError(folder, None, f"has the folds {', '.join(map(str, numbers))}: add or rename what is missing")
    return [path for _, path in folds]


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
    return {
        qid: dict(zip(data.docids[first:end], data.grades[first:end].tolist(), strict=True))
        for qid, (first, end) in data.spans.items()
    }


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
        data = read_features(path)
        warn_of_order(path, data)
        return {qid: [*data.docids[first:end]] for qid, (first, end) in data.spans.items()}
    qids, docids = read_arrays(path, qids=("U", 1), docids=("U", 1))
    if len(qids) != len(docids):
        raise FormatError(path, None, f"has {len(qids)} qids for {len(docids)} docids: write it with greylag features")
    pairs = [*zip(qids.tolist(), docids.tolist(), strict=True)]
    # A query that comes back would replace its documents: the sum tells.
    found = {qid: [docid for _, docid in group] for qid, group in groupby(pairs, key=lambda pair: pair[0])}
    if sum(map(len, found.values())) != len(pairs):
        raise FormatError(path, None, f"the documents of a query are not contiguous; {_REMEDY}")
    return found


def _scan_block(path: str | Path, text: bytes, before: int, rows: int) -> _Block | None:
    """Do what `_parse_block` does, unless the file is small or something in the block out of the ordinary."""
    if not before and len(text) < MIN_BYTES:
        return None
    size = partial(_check_size, path, rows)
    found = scan_features(text, MAX_NUMBER, MAX_FEATURE, size)
    return found and _Block({} if rows else _parse_block(path, text[: found[0]], before, 0).names, *found[1:])


def _parse_block(path: str | Path, text: bytes, before: int, rows: int) -> _Block:
    """Parse lines that come after `before` lines with `rows` documents; the first document names the features."""
    names, header, rows_of_block = dict[int, str](), dict[int, str](), list[tuple[bytes, int, str, dict[int, float]]]()
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), before + 1):
        is_head = not rows and not rows_of_block
        if line.startswith(b"#") or not line.strip():
            header |= _names(path, number, line[1:].split()) if is_head else {}
            continue
        match = _LINE.fullmatch(line)
        # The pattern takes a carriage return for a space, and with it two lines for one.
        if not match or b"\r" in line:
            raise FormatError(path, number, _fault(line))
        grade, qid, cells, comment = match.groups(b"")
        names |= header | _names(path, number, comment.split()[1:]) if is_head else {}
        words = comment.split(None, 3)
        words = words[2:] if words[:2] == [b"docid", b"="] else words  # as in the LETOR collections
        if len(words) > 1 and words[1].startswith(b"qid=") and qid.isdigit():
            qid = words[1].removeprefix(b"qid=")
        values = dict[int, float]()
        for cell in cells.split():
            name, _, value = cell.partition(b":")
            feature = int(name)
            if feature in values:
                raise FormatError(path, number, f"feature {feature} is given twice; keep one of them")
            values[feature] = float(value)
        if (most := max(values)) > MAX_NUMBER:
            raise FormatError(path, number, f"feature {most}: numbers must be at most {MAX_NUMBER}; renumber them")
        if beyond := [feature for feature, value in values.items() if not abs(value) <= MAX_FEATURE]:
            raise FormatError(path, number, f"feature {beyond[0]} is beyond {MAX_FEATURE:g}; rescale it")
        rows_of_block.append((qid, int(grade), words[0].decode() if words else "", values))
    qids, grades, docids, features = [*zip(*rows_of_block, strict=True)] or [()] * 4
    begin = min([1, *map(min, features)])
    width = max(map(max, features), default=0) + 1 - begin
    _check_size(path, rows, len(docids), width)
    table = np.zeros((len(docids), width))
    for row, values in zip(table, features, strict=True):
        row[np.array([*values]) - begin] = [*values.values()]
    queries = [(qid, len(list(group))) for qid, group in groupby(qids)]
    return _Block(names, queries, np.array(grades, dtype=np.int64), list(docids), table, begin)


def _fault(line: bytes) -> str:
    """Say why a line is not LETOR text."""
    if b"\r" in line:
        return "has a carriage return; end lines with a line feed"
    words = line.partition(b"#")[0].decode().split()
    if not re.fullmatch(r"[-+]?[0-9]{1,9}", words[0] if words else ""):
        return f"grade {words[0] if words else ''!r:.40} is not an integer of at most nine digits; round the grades"
    if len(words) < 2 or not re.fullmatch(r"qid:.+", words[1]):
        return f"has no qid after the grade: {' '.join(words):.60}; write GRADE qid:QID NUMBER:VALUE ... # DOCID"
    for word in words[2:]:
        number, colon, value = word.partition(":")
        if colon and re.fullmatch(r"0|[1-9][0-9]{0,8}", number) and not math.isfinite(parse_number(value.encode())):
            return f"feature {number} is {value!r:.40}, not a finite number; leave it out to count as 0"
    return f"not of the form GRADE qid:QID NUMBER:VALUE ... # DOCID: {' '.join(words):.60}"


def _names(path: str | Path, number: int, words: list[bytes]) -> dict[int, str]:
    """Return the names of features among the words of a comment."""
    matches = [_NAME.fullmatch(word) for word in words]
    names = {int(match[1][:12]): match[2].decode() for match in matches if match}
    if max(names, default=0) > MAX_NUMBER:
        raise FormatError(path, number, f"names feature {max(names)}; numbers must be at most {MAX_NUMBER}")
    return names


def _check_size(path: str | Path, rows: int, more: int, width: int) -> None:
    if (rows + more) * width > MAX_VALUES:
        size = f"{rows + more} documents with {width} features"
        raise FormatError(path, None, f"{size} do not fit in memory; renumber the features or split the file")


def _assemble(path: str | Path, blocks: list[_Block], qrels: Judgements | None) -> RankingData:
    """Join the data of all blocks, which are freed one by one."""
    names, sizes = next(block.names for block in blocks if block.docids), dict[str, int]()
    for name, size in chain.from_iterable(block.queries for block in blocks):
        if (qid := name.decode()) in sizes and qid != next(reversed(sizes)):
            raise FormatError(path, None, f"query {qid!r} is not contiguous; {_REMEDY}")
        sizes[qid] = sizes.get(qid, 0) + size
    docids = [*chain.from_iterable(block.docids for block in blocks)]
    grades, offsets = np.concatenate([block.grades for block in blocks]), np.cumsum([0, *sizes.values()])
    start = min(block.first for block in blocks)
    if start == 0:
        _log.info("%s: features are numbered from 0", path)
    features = _by_column(path, blocks, max(names, default=1) + 1 - start, start)
    _name_documents(path, docids, features, start, offsets)
    relevant_grades = []
    for qid, first, end in zip(sizes, offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        ranked = docids[first:end]
        if len(set(ranked)) < len(ranked):
            twice = Counter(ranked).most_common(1)[0][0]
            raise FormatError(path, None, f"query {qid!r} has document {twice!r} twice; {_REMEDY}")
        judged = dict(zip(ranked, grades[first:end].tolist(), strict=True)) if qrels is None else qrels.get(qid, {})
        relevant_grades.append(positive_grades(judged.values()))
    return RankingData(
        specs=tuple(names.get(number, str(number)) for number in range(start, features.shape[1] + start)),
        qids=tuple(sizes),
        offsets=offsets,
        docids=tuple(docids),
        features=features,
        grades=grades,
        relevant_grades=tuple(relevant_grades),
    )


def _name_documents(path: str | Path, docids: list[str], features: FloatArray, start: int, offsets: IntArray) -> None:
    """Name the documents without a docid by their values."""
    lacking = np.flatnonzero([not docid for docid in docids])
    digests = digest_rows(features if len(lacking) == len(docids) else features[lacking], start)
    names, shared = name_rows(digests, np.searchsorted(offsets, lacking, side="right"))
    for one, other in shared:
        if not np.array_equal(features[lacking[one]], features[lacking[other]]):
            reason = f"{names[one]} stands for two documents of a query: write docids, as in 0 qid:1 1:0.5 # DOCID"
            raise FormatError(path, None, reason)
    for row, name in zip(lacking.tolist(), names, strict=True):
        docids[row] = name


def _by_column(path: str | Path, blocks: list[_Block], width: int, start: int) -> FloatArray:
    """Store features by column, as line searches read them, without a second copy; empties `blocks`."""
    rows = sum(len(block.docids) for block in blocks)
    width = max(width, *(block.values.shape[1] + block.first - start for block in blocks))
    _check_size(path, 0, rows, width)
    columns, first = np.empty((width, rows)), 0
    while blocks:
        block = blocks.pop(0)
        end, place = first + len(block.values), block.first - start
        last = place + block.values.shape[1]
        columns[:place, first:end], columns[place:last, first:end], columns[last:, first:end] = 0.0, block.values.T, 0.0
        first = end
    return columns.T
