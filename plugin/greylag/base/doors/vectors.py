"""Vectors come in here: one a document, by identifier or in order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from greylag.base.core import labels
from greylag.base.core.checks import check_sequences
from greylag.base.core.hints import shown
from greylag.base.core.labels import Frame, Series, has_labels, one_each
from greylag.base.errors import ParameterError

VectorsLike: TypeAlias = ArrayLike | Mapping[Any, ArrayLike] | Series | Frame
"""Vectors: an array or a sequence with a row for each document, in their order; or rows by docid, in a mapping, a
Series or a frame of pandas, by its labels.
"""


def as_vectors(value: VectorsLike, ids: Sequence[Hashable]) -> NDArray[Any]:
    """Return the vectors of documents with these identifiers, shape (n, m), a row each, in their order.

    An array keeps its type and stays where it is, as in a file that is mapped. `ParameterError` unless there is one
    row of numbers, all of one length, for each of the identifiers.
    """
    if labels.is_frame(value) and hasattr(value, "index"):  # polars' have no labels
        rows = dict(zip(value.index, range(len(value.index)), strict=True))  # type: ignore[arg-type]
        if len(rows) < len(value.index):  # type: ignore[arg-type]
            raise ParameterError("vectors: the frame has a label twice; drop one of the rows")
        try:
            order = one_each(rows, ids, "vectors", "document")
        except ParameterError as error:
            how = "give the frame the documents' labels, or pass frame.to_numpy() for rows in their order"
            raise ParameterError(f"{error}; {how}") from None
        value = value.to_numpy()[order]  # type: ignore[union-attr]
    elif has_labels(value):
        value = one_each(value, ids, "vectors", "document")
    check_sequences(vectors=value)
    try:
        array = np.asanyarray(value)
    except ValueError:  # NumPy's own names neither vectors nor a remedy
        raise ParameterError("vectors have rows of different lengths: give n x m numbers") from None
    if array.ndim == 1 and array.dtype.kind == "O" and len(array):
        array = _stacked(array)
    if not len(ids) and array.shape == (0,):
        return array.reshape(0, 0)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise ParameterError(f"vectors are an array of shape {array.shape} and type {array.dtype}: give n x m numbers")
    if len(array) != len(ids):
        raise ParameterError(f"{len(ids)} docids for {len(array)} vectors: give one for each")
    return array


def _stacked(rows: NDArray[Any]) -> NDArray[Any]:
    """Stack an array of arrays."""
    try:
        return np.stack([np.asarray(row) for row in rows])
    except ValueError:
        raise ParameterError(f"vectors are {shown(rows[0])} and others: give rows of one length") from None


def as_query_vectors(value: Any) -> Any:
    """Return vectors of queries by qid, of a mapping, Series or frame; a function from the text, or None, unchanged."""
    if value is None or callable(value):
        return value
    if labels.is_frame(value) and hasattr(value, "index"):
        value = dict(zip(value.index, value.to_numpy(), strict=True))
    if not has_labels(value):
        raise ParameterError(f"vectors of queries are {shown(value)}: give a mapping of qid to vector, or a function")
    return labels.by_label(value, "query")
