"""The arrays of a positional index: their types, and the functions that both ways of making them share."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.ranking import IntArray

Int32Array = NDArray[np.int32]

DTYPES = {
    "docids": "uint8",
    "docid_offsets": "int64",
    "docid_order": "int32",
    "document_lengths": "int64",
    "terms": "uint8",
    "term_offsets": "int64",
    "collection_frequencies": "int64",
    "postings_offsets": "int64",
    "postings_docs": "uint8",
    "block_places": "int64",
    "positions": "uint8",
    "forward_offsets": "int64",
    "forward": "uint8",
}
"""The arrays' types by name."""

DAMAGED = "the exported positions are damaged: greylag doctor --index names the file"
"""What is wrong if an array points outside another one."""

_BLOCK = 1 << 16  # documents hashed at a time


def offsets(counts: Any) -> IntArray:
    """0 followed by the cumulative sums of `counts`, int64, shape (len(counts) + 1,)."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def ranges(starts: IntArray, counts: IntArray) -> IntArray:
    """The concatenated ranges ``starts[i], ..., starts[i] + counts[i] - 1``, shape (sum of counts,)."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(starts - ends + counts, counts)


def join(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], IntArray]:
    """The concatenated bytes of texts, and their offsets, shape (len(texts) + 1,)."""
    return np.frombuffer(b"".join(texts), dtype=np.uint8), offsets([len(text) for text in texts])


def fingerprint(arrays: Mapping[str, Any]) -> str:
    """SHA-256 (hex) of docids in ascending order, their lengths, terms, df and cf.

    Docids are padded with zero bytes to the longest. The fingerprint does not depend on the order in which documents
    were indexed.
    """
    order, docids, starts = arrays["docid_order"], arrays["docids"], arrays["docid_offsets"]
    sizes = np.diff(starts)
    width = max(1, int(sizes.max(initial=0)))
    block = max(1, _BLOCK // width)
    digest = hashlib.sha256()
    for first in range(0, len(order), block):
        own = order[first : first + block]
        padded = np.zeros((len(own), width), dtype=np.uint8)
        padded[np.arange(width) < sizes[own, None]] = docids[ranges(starts[own], sizes[own])]
        digest.update(padded.data)
    df, cf = np.diff(arrays["postings_offsets"]), arrays["collection_frequencies"]
    for part in (arrays["document_lengths"][order], arrays["terms"], arrays["term_offsets"], df, cf):
        digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()
