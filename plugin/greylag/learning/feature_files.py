"""Feature files beyond LETOR text with all its numbers: sizes of queries in a second file, missing values, frames."""

from __future__ import annotations

import math
import re
import tempfile
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from greylag.base import (
    Faults,
    FloatArray,
    FormatError,
    IntArray,
    ParameterError,
    as_feature_table,
    digest_rows,
    imported,
    is_file,
    is_frame,
    name_rows,
    naming,
    read_rows,
    read_text,
)
from greylag.evaluation import SORT_REMEDY, read_feature_rows

Rows = tuple[tuple[str, ...], tuple[str, ...], IntArray, tuple[str, ...], FloatArray, IntArray]
"""Names of features, qids, offsets, docids, features and grades, as in `RankingData`."""
GROUP_ENDINGS = ".group", ".query"
"""What XGBoost and LightGBM add to the name of a file for that of the sizes of its queries."""
_LABEL = re.compile(rb"^[ \t]*[-+]?\d{1,9}(?=[ \t]+\d+:|[ \t]*(?:#|$))", re.MULTILINE)  # of a line without a qid
_EMPTY = re.compile(rb"^[ \t]*[-+]?\d{1,9}[ \t]+qid:[^\s#]+(?=[ \t]*(?:#|$))", re.MULTILINE)
_CELL = re.compile(rb"\s(\d+):(\S+)")
_NAN = re.compile(rb"(?<=\d:)nan(?=\s|#|\Z)", re.IGNORECASE)


def feature_rows(source: Any, absent: float | None) -> Rows:
    """Read a feature file in any form, or a frame; `absent` as in `read_letor`."""
    if is_frame(source):
        return _rows_of(source, absent)
    path = Path(source)
    if path.suffix == ".parquet":
        with naming(path):
            return _rows_of(imported("polars", "polars").read_parquet(path), absent)
    groups = next((file for file in (Path(f"{path}{ending}") for ending in GROUP_ENDINGS) if is_file(file)), None)
    if absent is None and groups is None:
        return read_feature_rows(path)
    with Faults(path, lenient=None) as faults:
        text = read_text(path, faults)
    if groups is not None and _LABEL.search(text):
        text = _with_qids(text, groups, path)
    if absent is None:
        return _read_changed(path, text)
    lines = [line.partition(b"#")[0] for line in text.split(b"\n") if line.strip() and not line.startswith(b"#")]
    rows = _read_changed(path, _NAN.sub(b"0", text))
    return *rows[:4], np.where(_lacking(lines, rows[4].shape, absent), np.nan, rows[4]), rows[5]


def _with_qids(text: bytes, groups: Path, path: Path) -> bytes:
    """Add the number of its query to each line, by the sizes of queries in another file."""
    sizes = list[int]()
    with Faults(groups, lenient=None) as faults:
        for line, (size,) in read_rows(groups, "size", faults):
            if not size.isdigit() or not int(size):
                raise FormatError(groups, line, f"{size.decode()!r:.40} is no number of a query's documents, from 1 on")
            sizes.append(int(size))
    if (total := sum(sizes)) != (number := len(_LABEL.findall(text))):
        raise FormatError(groups, None, f"the queries have {total} documents, but {path} has {number}")
    qids = iter(np.repeat(np.arange(1, len(sizes) + 1), sizes).tolist())
    return _LABEL.sub(lambda label: b"%b qid:%d" % (label[0], next(qids)), text)


def _read_changed(path: Path, text: bytes) -> Rows:
    """Read the text that a file is changed to, with as many lines."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, "features.txt")
        copy.write_bytes(_EMPTY.sub(rb"\g<0> 1:0", text))  # lines may leave out all features
        try:
            return read_feature_rows(copy)
        except FormatError as error:
            raise FormatError(path, error.line, error.reason) from None


def _lacking(lines: list[bytes], shape: tuple[int, ...], absent: float) -> Any:
    """Return which values are NaN: written so, or left out if these are `absent`."""
    cells = [_CELL.findall(line) for line in lines]
    start = min([1, *(int(number) for row in cells for number, _ in row[:1])])
    lacking = np.full(shape, math.isnan(absent))
    for row, given in zip(lacking, cells, strict=True):
        row[[int(number) - start for number, _ in given]] = [value.lower() == b"nan" for _, value in given]
    return lacking


def _rows_of(frame: Any, absent: float | None) -> Rows:
    """Return the rows of a frame, whose queries are contiguous; documents without a docno are named by their values."""
    table = as_feature_table(frame)
    missing = np.isnan(table.features)
    if absent is None and missing.any():
        row, column = np.argwhere(missing)[0].tolist()
        raise ParameterError(f"row {row} lacks the feature {table.names[column]}: fill it in, or give absent=0.0")
    runs = [(qid, len(list(rows))) for qid, rows in groupby(table.qids)]
    sizes = dict(runs)
    if not runs or len(sizes) < len(runs):
        raise ParameterError("there are no rows" if not runs else f"a query is not contiguous; {SORT_REMEDY}")
    offsets, docids = np.cumsum([0, *sizes.values()]), table.docids
    if not any(docids):
        numbers = np.repeat(np.arange(len(sizes)), [*sizes.values()])
        docids, _ = name_rows(digest_rows(np.where(missing, 0.0, table.features), 1), numbers)
    if len({*zip(table.qids, docids, strict=True)}) < len(docids):
        raise ParameterError(f"a query has a document twice; {SORT_REMEDY}")
    return table.names, tuple(sizes), offsets, tuple(docids), table.features, np.array(table.grades, dtype=np.int64)
