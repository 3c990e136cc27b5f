"""The arrays of a positional index: their types, and the functions that both ways of making them share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.errors import CollectionError
from greylag.ranking import IntArray

Int32Array = NDArray[np.int32]

DTYPES = {
    "docid_order": "int32",
    "terms": "uint8",
    "term_offsets": "int64",
    "postings_offsets": "int64",
    "postings_docs": "int32",
    "postings_starts": "int64",
    "positions": "int32",
    "forward_offsets": "int64",
    "forward_terms": "int32",
    "forward_postings": "int64",
}
"""The arrays' types by name, except for ``docids``, whose width depends on the docids."""

DAMAGED = "the exported positions are damaged: greylag doctor --index names the file"
"""What is wrong if an array points outside another one."""

_BLOCK = 1 << 22  # postings processed at a time


def encode_docids(docids: Sequence[str]) -> NDArray[np.bytes_]:
    """Docids as fixed-width UTF-8, shape (N,)."""
    encoded = [docid.encode() for docid in docids]
    return np.array(encoded, dtype=f"S{max([1, *map(len, encoded)])}")


def offsets(counts: Any) -> IntArray:
    """0 followed by the cumulative sums of `counts`, int64, shape (len(counts) + 1,)."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The concatenated ranges ``starts[i], ..., starts[i] + counts[i] - 1``, shape (sum of counts,)."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


def check_bounds(values: Any, end: int) -> None:
    """Raise `CollectionError` unless all values are from 0 to `end` - 1, as in undamaged arrays."""
    if len(values) and not 0 <= values.min() <= values.max() < end:
        raise CollectionError(DAMAGED)


def document_lengths(postings_docs: Int32Array, postings_starts: IntArray, n_documents: int) -> IntArray:
    """Number of tokens of each document, shape (N,)."""
    lengths = np.zeros(n_documents, dtype=np.int64)
    for first in range(0, len(postings_docs), _BLOCK):
        tf = np.diff(postings_starts[first : first + _BLOCK + 1])
        docs = postings_docs[first : first + _BLOCK]
        check_bounds(docs, n_documents)
        check_bounds(tf, 1 << 31)
        lengths += np.bincount(docs, weights=tf, minlength=n_documents).astype(np.int64)
    return lengths


def document_sizes(postings_docs: Int32Array, n_documents: int) -> IntArray:
    """Number of distinct terms of each document, shape (N,)."""
    sizes = np.zeros(n_documents, dtype=np.int64)
    for first in range(0, len(postings_docs), _BLOCK):
        sizes += np.bincount(postings_docs[first : first + _BLOCK], minlength=n_documents)
    return sizes


def fingerprint(arrays: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of docids in ascending order, their lengths, terms, df and cf.

    It does not depend on the order in which documents were indexed.
    """
    order = arrays["docid_order"]
    lengths = document_lengths(arrays["postings_docs"], arrays["postings_starts"], len(order))
    df = np.diff(arrays["postings_offsets"])
    cf = np.diff(arrays["postings_starts"][arrays["postings_offsets"]])
    digest = hashlib.sha256()
    for part in (arrays["docids"][order], lengths[order], arrays["terms"], arrays["term_offsets"], df, cf):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()
