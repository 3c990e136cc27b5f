"""Making a shard's arrays from texts, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from greylag.errors import ParameterError
from greylag.index import analysis
from greylag.index.streams import document_bytes, encode_documents, encode_positions, measure, transpose
from greylag.index.tables import DTYPES, fingerprint, join, offsets


def invert(
    texts: Mapping[str, str], tokens: Callable[[str], Iterable[tuple[str, int]]] = analysis.tokens
) -> dict[str, Any]:
    """`Shard`'s arrays and fingerprint for a mapping of docid to text, and a function from a text to its tokens."""
    if "" in texts:
        raise ParameterError("a document has an empty docid")
    inverted: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, text in enumerate(texts.values()):
        for term, position in tokens(text):
            inverted[term][number].append(position)
    encoded = {term.encode(): postings for term, postings in inverted.items()}
    vocabulary = sorted(encoded)
    docids = [docid.encode() for docid in texts]
    arrays: dict[str, Any] = dict(zip(("docids", "docid_offsets"), join(docids), strict=True))
    arrays |= zip(("terms", "term_offsets"), join(vocabulary), strict=True)
    arrays["docid_order"] = np.array(sorted(range(len(docids)), key=docids.__getitem__), dtype=np.int32)
    arrays |= _streams([encoded[term] for term in vocabulary], len(docids))
    for array in arrays.values():
        array.flags.writeable = False
    return {name: arrays[name] for name in DTYPES} | {"fingerprint": fingerprint(arrays)}


def _streams(postings: list[dict[int, list[int]]], n_documents: int) -> dict[str, Any]:
    """The arrays made from the positions in each document of each term."""
    all_places = [places for of_term in postings for places in of_term.values()]
    df = np.array([len(of_term) for of_term in postings], dtype=np.int64)
    docs = np.array([doc for of_term in postings for doc in of_term], dtype=np.int32)
    tfs = np.array([len(places) for places in all_places], dtype=np.int32)
    positions = np.array([position for places in all_places for position in places], dtype=np.int32)
    postings_offsets = offsets(df)
    stream, block_places = encode_positions(0, 0, tfs, positions)
    width = document_bytes(n_documents)
    written = encode_documents(docs, width), width, stream, postings_offsets
    lengths, sizes = measure(*written, n_documents)
    forward_offsets = offsets(sizes)
    forward = np.empty(forward_offsets[-1], dtype=np.uint8)
    transpose(*written, forward_offsets, forward)
    return {
        "document_lengths": lengths,
        "collection_frequencies": np.diff(offsets(tfs)[postings_offsets]),
        "postings_offsets": postings_offsets,
        "postings_docs": written[0],
        "block_places": block_places,
        "positions": stream,
        "forward_offsets": forward_offsets,
        "forward": forward,
    }
