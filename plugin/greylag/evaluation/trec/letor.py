"""Feature files as LETOR (SVMlight) text: lines of documents with a grade and numbered features, read into arrays."""

from __future__ import annotations

import logging
import math
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greylag.base import (
    MAX_VALUE,
    Faults,
    FloatArray,
    FormatError,
    IntArray,
    digest_rows,
    is_file,
    name_rows,
    parse_number,
    read_blocks,
    read_text_blocks,
    step,
)
from greylag.evaluation.trec.scan import MIN_BYTES, scan_features

# Bytes that are parsed at once. Memory of arrays of about this size is given back when they are freed.
BLOCK_BYTES = 1 << 26
LARGE_ROWS = 100_000  # documents, from which on what was read is logged
MAX_CELLS = 1 << 32  # documents times features, of 8 bytes each
MAX_NUMBER = 100_000  # of a feature; all documents have a column for it
SORT_REMEDY = "sort lines by query and remove duplicates"

_NUMBER = rb"[-+]?(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?"


def _line(value: bytes, times: bytes) -> re.Pattern[bytes]:
    return re.compile(
        rb"\s*([-+]?\d{1,9})\s+qid:([^\s#]+)"  # the grade and the query
        rb"((?:\s++(?:0|[1-9]\d{0,8}):" + value + rb")" + times + rb")"  # cells; )++ is wrong in 3.11.2
        rb"\s*(?:#(.*))?",  # the comment
        re.DOTALL,
    )


_LINE = _line(_NUMBER, b"+")
_SPARSE_LINE = _line(rb"(?i:nan|" + _NUMBER + rb")", b"*")  # which may lack values, or all features
_NAME = re.compile(rb"([1-9]\d*)=(\S+)")
_log = logging.getLogger("greylag")


class FeatureRows(NamedTuple):
    """The lines of a feature file: n documents of q queries, one query after another, with f features and a grade."""

    names: tuple[str, ...]  # of the features
    qids: tuple[str, ...]
    offsets: IntArray  # (q + 1,): query i has rows offsets[i]:offsets[i + 1]
    docids: tuple[str, ...]
    features: FloatArray  # (n, f)
    grades: IntArray  # (n,)


class _Form(NamedTuple):
    """What lines are like."""

    line: re.Pattern[bytes] = _LINE
    gap: float = 0.0  # the value of a feature that a line leaves out


class _Block(NamedTuple):
    """The content of some lines; a query has the number of its successive documents."""

    names: dict[int, str]
    queries: list[tuple[bytes, int]]
    grades: IntArray
    docids: list[str]  # "" for a document without one
    values: FloatArray
    first: int = 1  # the number of the first column, 0 or 1


def read_feature_rows(
    path: str | Path, absent: float | None = None, change: Callable[[bytes], bytes] | None = None
) -> FeatureRows:
    """Read LETOR text; `FormatError` if a line is malformed, or the lines of a query are not contiguous.

    With `absent`, a feature that a line leaves out is this, and a value may be ``nan``. `change` makes the text that is
    read from each block of lines. With either, lines may leave out all features.
    """
    form = _Form() if change is None else _Form(_line(_NUMBER, b"*"))
    form = form if absent is None else _Form(_SPARSE_LINE, float(absent))
    blocks: list[_Block] = []
    lines = rows = 0
    with Faults(path, lenient=None) as faults, step("reading features") as current:
        for text in read_text_blocks(path, faults, BLOCK_BYTES):
            text = text if change is None else change(text)  # noqa: PLW2901
            blocks.append(_scan_block(path, text, lines, rows, form) or _parse_block(path, text, lines, rows, form))
            lines += text.count(b"\n")
            rows += len(blocks[-1].docids)
            current.reach(rows)
    if not rows:
        raise FormatError(path, None, "no line with a document; is this a feature file?")
    data = _assemble(path, blocks, form.gap)
    if rows >= LARGE_ROWS:
        _log.info(f"{path}: {rows:,} documents of {len(data.qids):,} topics, {len(data.names)} features")
    return data


def read_grades(path: str | Path) -> dict[str, dict[str, int]]:
    """Read the grades of LETOR text as judgements, by qid and docid."""
    rows = read_feature_rows(path, 0.0)
    return grades_by_query(rows.qids, rows.offsets, rows.docids, rows.grades)


def grades_by_query(
    qids: Sequence[str], offsets: IntArray, docids: Sequence[str], grades: IntArray
) -> dict[str, dict[str, int]]:
    """Return grades by qid and docid, of documents that come one query after another, as in `FeatureRows`."""
    return {
        qid: dict(zip(docids[first:end], grades[first:end].tolist(), strict=True))
        for qid, (first, end) in zip(qids, pairwise(offsets.tolist()), strict=True)
    }


def is_feature_file(path: str | Path) -> bool:
    """Return whether a file, unless it is a pipe, begins with a row of LETOR text after its comments."""
    if not is_file(path):
        return False
    lines = next(read_blocks(path), b"").split(b"\n")
    return bool(_SPARSE_LINE.match(next((line for line in lines if not line.startswith(b"#")), b"")))


def fold_folders(folder: str | Path) -> list[Path]:
    """Return LETOR's Fold1, Fold2, ... in a folder, without a gap; none of a path that has none."""
    names = os.listdir(folder) if os.path.isdir(folder) else []
    folds = sorted((int(name[4:]), Path(folder) / name) for name in names if re.fullmatch(r"Fold[0-9]+", name))
    numbers = [number for number, _ in folds]
    if numbers and numbers != [*range(min(numbers[0], 1), numbers[-1] + 1)]:
        raise FormatError(folder, None, f"has the folds {', '.join(map(str, numbers))}: add or rename what is missing")
    return [path for _, path in folds]


def _scan_block(path: str | Path, text: bytes, before: int, rows: int, form: _Form) -> _Block | None:
    """Do what `_parse_block` does, unless the file is small or something in the block out of the ordinary."""
    if not before and len(text) < MIN_BYTES:
        return None
    size = partial(_check_size, path, rows)
    scanned = scan_features(text, MAX_NUMBER, MAX_VALUE, size, form.gap)
    names = {} if rows or not scanned else _parse_block(path, text[: scanned[0]], before, 0, form).names
    return scanned and _Block(names, *scanned[1:])


def _parse_block(path: str | Path, text: bytes, before: int, rows: int, form: _Form) -> _Block:
    """Parse lines that come after `before` lines with `rows` documents; the first document names the features."""
    names, header, rows_of_block = dict[int, str](), dict[int, str](), list[tuple[bytes, int, str, dict[int, float]]]()
    for number, line in enumerate(text.removesuffix(b"\n").split(b"\n"), before + 1):
        is_head = not rows and not rows_of_block
        if line.startswith(b"#") or not line.strip():
            header |= _feature_names(path, number, line[1:].split()) if is_head else {}
            continue
        match = form.line.fullmatch(line)
        # The pattern takes a carriage return for a space, and with it two lines for one.
        if not match or b"\r" in line:
            raise FormatError(path, number, _fault(line))
        grade, qid, cells, comment = match.groups(b"")
        names |= header | _feature_names(path, number, comment.split()[1:]) if is_head else {}
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
        if (most := max(values, default=0)) > MAX_NUMBER:
            raise FormatError(path, number, f"feature {most}: numbers must be at most {MAX_NUMBER}; renumber them")
        if beyond := [feature for feature, value in values.items() if abs(value) > MAX_VALUE]:
            raise FormatError(path, number, f"feature {beyond[0]} is beyond {MAX_VALUE:g}; rescale it")
        rows_of_block.append((qid, int(grade), words[0].decode() if words else "", values))
    qids, grades, docids, features = [*zip(*rows_of_block, strict=True)] or [()] * 4
    numbers = [*chain.from_iterable(features)]
    begin, end = min(numbers, default=1), max(numbers, default=0) + 1
    width = end - (begin := min(begin, 1))
    _check_size(path, rows, len(docids), width)
    table = np.full((len(docids), width), form.gap)
    for row, values in zip(table, features, strict=True):
        row[np.array([*values], dtype=np.int64) - begin] = [*values.values()]
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
            trees = ", or give absent=0.0, which keeps NaN, for trees" if value.lower() == "nan" else ""
            return f"feature {number} is {value!r:.40}, not a finite number; leave it out to count as 0{trees}"
    return f"not of the form GRADE qid:QID NUMBER:VALUE ... # DOCID: {' '.join(words):.60}"


def _feature_names(path: str | Path, number: int, words: list[bytes]) -> dict[int, str]:
    """Return the names of features among the words of a comment."""
    matches = [_NAME.fullmatch(word) for word in words]
    names = {int(match[1][:12]): match[2].decode() for match in matches if match}
    if max(names, default=0) > MAX_NUMBER:
        raise FormatError(path, number, f"names feature {max(names)}; numbers must be at most {MAX_NUMBER}")
    return names


def _check_size(path: str | Path, rows: int, more: int, width: int) -> None:
    if (rows + more) * width > MAX_CELLS:
        size = f"{rows + more} documents with {width} features"
        raise FormatError(path, None, f"{size} do not fit in memory; renumber the features or split the file")


def _assemble(path: str | Path, blocks: list[_Block], gap: float) -> FeatureRows:
    """Join the data of all blocks, which are freed one by one."""
    names, sizes = next(block.names for block in blocks if block.docids), dict[str, int]()
    for name, size in chain.from_iterable(block.queries for block in blocks):
        if (qid := name.decode()) in sizes and qid != next(reversed(sizes)):
            raise FormatError(path, None, f"query {qid!r} is not contiguous; {SORT_REMEDY}")
        sizes[qid] = sizes.get(qid, 0) + size
    docids = [*chain.from_iterable(block.docids for block in blocks)]
    grades, offsets = np.concatenate([block.grades for block in blocks]), np.cumsum([0, *sizes.values()])
    start = min(block.first for block in blocks)
    if start == 0:
        _log.info("%s: features are numbered from 0", path)
    features = _by_column(path, blocks, max(names, default=1) + 1 - start, start, gap)
    _name_documents(path, docids, features, start, offsets)
    for qid, (first, end) in zip(sizes, pairwise(offsets.tolist()), strict=True):
        ranked = docids[first:end]
        if len(set(ranked)) < len(ranked):
            twice = Counter(ranked).most_common(1)[0][0]
            raise FormatError(path, None, f"query {qid!r} has document {twice!r} twice; {SORT_REMEDY}")
    return FeatureRows(
        names=tuple(names.get(number, str(number)) for number in range(start, features.shape[1] + start)),
        qids=tuple(sizes),
        offsets=offsets,
        docids=tuple(docids),
        features=features,
        grades=grades,
    )


def _name_documents(path: str | Path, docids: list[str], features: FloatArray, start: int, offsets: IntArray) -> None:
    """Name the documents without a docid by their values, with 0 for a missing one."""
    lacking = np.flatnonzero([not docid for docid in docids])
    if len(lacking) and np.isnan(features).any():
        features = np.nan_to_num(features)
    digests = digest_rows(features if len(lacking) == len(docids) else features[lacking], start)
    names, shared = name_rows(digests, np.searchsorted(offsets, lacking, side="right"))
    for first, second in shared:
        if not np.array_equal(features[lacking[first]], features[lacking[second]]):
            reason = f"{names[first]} stands for two documents of a query: write docids, as in 0 qid:1 1:0.5 # DOCID"
            raise FormatError(path, None, reason)
    for row, name in zip(lacking.tolist(), names, strict=True):
        docids[row] = name


def _by_column(path: str | Path, blocks: list[_Block], width: int, start: int, gap: float) -> FloatArray:
    """Store features by column, as line searches read them, without a second copy; empties `blocks`."""
    rows = sum(len(block.docids) for block in blocks)
    width = max(width, *(block.values.shape[1] + block.first - start for block in blocks))
    _check_size(path, 0, rows, width)
    columns, first = np.empty((width, rows)), 0
    while blocks:
        block = blocks.pop(0)
        end, place = first + len(block.values), block.first - start
        last = place + block.values.shape[1]
        columns[:place, first:end], columns[place:last, first:end], columns[last:, first:end] = gap, block.values.T, gap
        first = end
    return columns.T
