"""Inverting texts, and turning postings round: the two ways in which a PositionalIndex's arrays are made in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from numba import njit

from greylag.errors import ParameterError
from greylag.index import analysis
from greylag.index.positional import Int32Array, fingerprint
from greylag.ranking import IntArray


def index_texts(texts: Mapping[str, str]) -> dict[str, Any]:
    """`PositionalIndex`'s arrays and fingerprint for docid -> text."""
    if "" in texts:
        raise ParameterError("a document has an empty docid")
    found: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, text in enumerate(texts.values()):
        for term, position in analysis.tokens(text):
            found[term][number].append(position)
    encoded = {term.encode(): postings for term, postings in found.items()}
    vocabulary = sorted(encoded)
    postings = [(doc, places) for term in vocabulary for doc, places in encoded[term].items()]
    docs = np.array([doc for doc, _ in postings], dtype=np.int32)
    arrays: dict[str, Any] = {
        "docids": (docids := encode_docids(list(texts))),
        "docid_order": np.argsort(docids, kind="stable").astype(np.int32),
        "terms": np.frombuffer(b"".join(vocabulary), dtype=np.uint8),
        "term_offsets": offsets([len(term) for term in vocabulary]),
        "postings_offsets": offsets([len(encoded[term]) for term in vocabulary]),
        "postings_docs": docs,
        "postings_starts": offsets([len(places) for _, places in postings]),
        "positions": np.array([position for _, places in postings for position in places], dtype=np.int32),
        "forward_offsets": offsets(np.bincount(docs, minlength=len(texts))),
        "forward_terms": np.empty(len(docs), dtype=np.int32),
        "forward_postings": np.empty(len(docs), dtype=np.int64),
    }
    transpose(
        arrays["postings_offsets"], docs, arrays["forward_offsets"], arrays["forward_terms"], arrays["forward_postings"]
    )
    for array in arrays.values():
        array.flags.writeable = False
    return {**arrays, "fingerprint": fingerprint(arrays)}


def offsets(counts: Any) -> IntArray:
    """0 and the running sums of counts, int64, shape (len(counts) + 1,)."""
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def encode_docids(docids: list[str]) -> np.ndarray[Any, np.dtype[np.bytes_]]:
    """Docids as fixed-width UTF-8, shape (N,)."""
    encoded = [docid.encode() for docid in docids]
    return np.array(encoded, dtype=f"S{max([1, *map(len, encoded)])}")


@njit(cache=True, nogil=True)
def transpose(
    postings_offsets: IntArray,
    postings_docs: Int32Array,
    forward_offsets: IntArray,
    forward_terms: Int32Array,
    forward_postings: IntArray,
) -> None:
    """Fill each document's entries, term by term, so that they come out in the order of terms."""
    free = forward_offsets[:-1].copy()
    for term in range(len(postings_offsets) - 1):
        for posting in range(postings_offsets[term], postings_offsets[term + 1]):
            document = postings_docs[posting]
            forward_terms[free[document]] = term
            forward_postings[free[document]] = posting
            free[document] += 1
