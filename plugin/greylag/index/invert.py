"""Making a PositionalIndex's arrays from texts, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np

from greylag.errors import ParameterError
from greylag.index import analysis
from greylag.index.arrays import encode_docids, fingerprint, offsets
from greylag.index.transpose import transpose


def invert(texts: Mapping[str, str]) -> dict[str, Any]:
    """`PositionalIndex`'s arrays and fingerprint for a mapping of docid to text.

    Raises
    ------
    ParameterError
        If a docid is empty.
    """
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
