"""Frames of features come in here: a row for each document, with its query, grade and features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from greylag.base.core import labels
from greylag.base.core.labels import Frame
from greylag.base.errors import ParameterError
from greylag.base.ranking import FloatArray


class FeatureTable(NamedTuple):
    """The rows of a frame: n documents with f features."""

    names: tuple[str, ...]
    qids: list[str]
    docids: list[str]  # "" without a column of them
    grades: list[int]
    features: FloatArray  # (n, f), by column; NaN where a value is missing


def as_feature_table(frame: Frame) -> FeatureTable:
    """Return the rows of a frame with the columns qid, label and, if there is one, docno; all others are features."""
    own = [labels.column_name(frame, column) for column in ("qid", "label", "docno")]
    names = [name for name in frame.columns if name not in own]
    qids, judged = labels.qids_of(frame), labels.column_of(frame, "label")
    docids = [""] * len(qids)
    if own[2] is not None:
        docids = [labels.as_identifier(docid, "a document's identifier") for docid in labels.column_of(frame, "docno")]
    grades = [
        labels.check_grade(grade, f"row {row} of query {qid}")
        for row, (qid, grade) in enumerate(zip(qids, judged, strict=True))
    ]
    features = np.empty((len(names), len(qids)))
    for place, name in enumerate(names):
        features[place] = _numbers(frame, name)
    return FeatureTable(tuple(map(str, names)), qids, docids, grades, features.T)


def _numbers(frame: Any, name: Any) -> Any:
    """Return the numbers of a column, NaN where one is missing."""
    values = np.asarray(frame[name])
    if values.ndim == 1 and values.dtype.kind in "biuf":
        return values
    column = labels.column_values(frame, name)
    if odd := [value for value in column if isinstance(value, str)]:
        raise ParameterError(f"the column {name} has texts, such as {odd[0]!r:.40}: drop it, or call it qid or docno")
    return [
        np.nan if labels.is_missing(value) else labels.check_number(value, f"a value of {name}") for value in column
    ]
