"""Feature files beyond LETOR text with all its numbers: sizes of queries in a second file, missing values, frames."""

from __future__ import annotations

import re
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
    shown,
)
from greylag.evaluation import SORT_REMEDY, read_feature_rows

Rows = tuple[tuple[str, ...], tuple[str, ...], IntArray, tuple[str, ...], FloatArray, IntArray]
"""Names of features, qids, offsets, docids, features and grades, as in `RankingData`."""
GROUP_ENDINGS = ".group", ".query"
"""What XGBoost and LightGBM add to the name of a file for that of the sizes of its queries."""
_LABEL = re.compile(rb"^[ \t]*[-+]?\d{1,9}(?=[ \t]+\d+:|[ \t]*(?:#|$))", re.MULTILINE)  # of a line without a qid


def feature_rows(source: Any, absent: float | None) -> Rows:
    """Read a feature file in any form, or a frame; `absent` as in `read_letor`."""
    if absent not in (None, 0) and absent == absent:  # noqa: PLR0124
        raise ParameterError(f"absent is {shown(absent)}: give 0.0 or math.nan, as `RankingModel.absent` does")
    if is_frame(source):
        return _rows_of(source, absent)
    path = Path(source)
    if path.suffix == ".parquet":
        polars = imported("polars", "polars")
        try:
            frame = polars.read_parquet(path)
        except (OSError, polars.exceptions.PolarsError) as error:
            raise FormatError(path, None, f"cannot be read as Parquet: {str(error).splitlines()[0]:.99}") from None
        with naming(path):
            return _rows_of(frame, absent)
    groups = next((file for file in (Path(f"{path}{ending}") for ending in GROUP_ENDINGS) if is_file(file)), None)
    if groups is None:
        return read_feature_rows(path, absent)
    sizes, labels = list[int](), 0

    def with_qids(block: bytes) -> bytes:
        """Add the number of its query to each line that has none."""
        nonlocal labels
        if not labels and _LABEL.search(block):
            sizes.extend(_sizes(groups))
        first, labels = labels, labels + len(_LABEL.findall(block))
        qids = iter(np.searchsorted(np.cumsum(sizes), np.arange(first, labels), side="right").tolist())
        return _LABEL.sub(lambda label: b"%b qid:%d" % (label[0], next(qids) + 1), block)

    rows = read_feature_rows(path, absent, with_qids)
    if labels and not sum(sizes) == labels == len(rows.docids):
        number = f"{labels} without a qid" if labels < len(rows.docids) else labels
        raise FormatError(groups, None, f"the queries have {sum(sizes)} documents, but {path} has {number}")
    return rows


def _sizes(path: Path) -> list[int]:
    """Read the sizes of queries."""
    sizes = list[int]()
    with Faults(path, lenient=None) as faults:
        for line, (size,) in read_rows(path, "size", faults):
            if not size.isdigit() or not int(size):
                raise FormatError(path, line, f"{size.decode()!r:.40} is no number of a query's documents, from 1 on")
            sizes.append(int(size))
    return sizes


def _rows_of(frame: Any, absent: float | None) -> Rows:
    """Return the rows of a frame, whose queries are contiguous; documents without a docno are named by their values."""
    table = as_feature_table(frame)
    missing = np.isnan(table.features)
    if absent is None and missing.any():
        row, column = np.argwhere(missing)[0].tolist()
        reason = f"row {row} lacks the feature {table.names[column]}"
        raise ParameterError(f"{reason}: fill it in, or give absent=0.0, which keeps NaN, for trees")
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
