"""Making a shard's arrays from texts, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greylag.base import IntArray, ParameterError
from greylag.index import analysis
from greylag.index.streams import document_bytes, encode_documents, encode_pairs, encode_positions
from greylag.index.tables import DTYPES, Bytes, Int32Array, fingerprint, join, offsets, ranges


def invert(texts: Mapping[str, str], tokens: Callable[[str], Sequence[str | None]] = analysis.tokens) -> dict[str, Any]:
    """Make `Shard`'s arrays and fingerprint of texts by docid, and a function from a text to its terms."""
    # A term's position is its index in the sequence; None is a position without a term.
    if "" in texts:
        raise ParameterError("a document has an empty docid")
    numbers: defaultdict[str | None, int] = defaultdict()
    # A new term gets the next number when it is looked up: one pass over all tokens, without a test for each.
    numbers.default_factory = numbers.__len__
    gap, lengths = numbers[None], []

    def counted(terms: Sequence[str | None]) -> Sequence[str | None]:
        lengths.append(len(terms))
        return terms

    # Most texts may be empty (`greylag.passages.reranking`).
    in_texts = chain.from_iterable(counted(tokens(text) if text else ()) for text in texts.values())
    occurring = np.fromiter(map(numbers.__getitem__, in_texts), np.int32)
    vocabulary = sorted(term for term in numbers if term is not None)  # in the order of their bytes, too
    ranks = np.empty(len(numbers), dtype=np.min_scalar_type(len(numbers)))  # short, as in `narrow`
    ranks[[numbers[term] for term in vocabulary]] = np.arange(len(vocabulary))
    tokens_at = np.flatnonzero(occurring != gap)
    counts = np.array(lengths, dtype=np.int64)
    documents, positions = np.repeat(np.arange(len(texts)), counts), ranges(0 * counts, counts)
    postings = _postings(ranks[occurring[tokens_at]], documents[tokens_at], positions[tokens_at])
    return tables_of([*texts], *join([*map(str.encode, vocabulary)]), postings)


class Postings(NamedTuple):
    """P postings with C positions, ordered by term and document."""

    terms: IntArray  # shape (P,)
    documents: IntArray
    tfs: Int32Array
    positions: Int32Array  # of all postings, ascending within each, shape (C,)


def _postings(terms: Any, documents: IntArray, positions: IntArray) -> Postings:
    """Make postings of the term, document and position of each token, ordered by document and position."""
    # Stable, so that tokens of a term stay in the order of documents and positions.
    order = np.argsort(terms, kind="stable")
    terms, documents = terms[order], documents[order]
    first = np.append(True, (terms[1:] != terms[:-1]) | (documents[1:] != documents[:-1]))[: len(terms)]
    starts = np.flatnonzero(first)
    tfs = np.diff(np.append(starts, len(terms))).astype(np.int32)
    return Postings(terms[starts].astype(np.int64), documents[starts], tfs, positions[order].astype(np.int32))


def tables_of(docids: Sequence[str], terms: Bytes, term_offsets: IntArray, postings: Postings) -> dict[str, Any]:
    """Make `Shard`'s arrays and fingerprint of docids, the bytes of ascending terms, and postings."""
    try:
        encoded = [*map(str.encode, docids)]
    except UnicodeEncodeError as error:
        raise ParameterError(f"docid {error.object!r} has half of a surrogate pair: give whole characters") from None
    arrays: dict[str, Any] = dict(zip(("docids", "docid_offsets"), join(encoded), strict=True))
    arrays |= {"terms": terms, "term_offsets": term_offsets}
    arrays["docid_order"] = np.array(sorted(range(len(encoded)), key=encoded.__getitem__), dtype=np.int32)
    arrays |= _streams(postings, len(term_offsets) - 1, len(encoded))
    for array in arrays.values():
        array.flags.writeable = False
    return {name: arrays[name] for name in DTYPES} | {"fingerprint": fingerprint(arrays)}


def narrow(numbers: IntArray, end: int) -> NDArray[Any]:
    """Return numbers below `end` in the fewest bytes: NumPy sorts short integers by radix."""
    return numbers.astype(np.min_scalar_type(end))


def _streams(postings: Postings, n_terms: int, n_documents: int) -> dict[str, Any]:
    """Encode postings."""
    terms, documents, tfs, positions = postings
    stream, block_places = encode_positions(0, 0, tfs, positions)
    # Entries, ascending by term within a document.
    by_document = np.argsort(narrow(documents, n_documents), kind="stable")
    entry_terms, entry_tfs = terms[by_document], tfs[by_document]
    entries = offsets(np.bincount(documents, minlength=n_documents))
    # Entries store differences, which begin anew in each document.
    steps = np.diff(entry_terms, prepend=0)
    begins = entries[:-1][np.diff(entries) > 0]
    steps[begins] = entry_terms[begins]
    forward, places = encode_pairs(steps, entry_tfs)
    return {
        # In floats, which are exact up to 2**53 tokens.
        "document_lengths": np.bincount(documents, tfs, n_documents).astype(np.int64),
        "collection_frequencies": np.bincount(terms, tfs, n_terms).astype(np.int64),
        "postings_offsets": offsets(np.bincount(terms, minlength=n_terms)),
        "postings_docs": encode_documents(documents.astype(np.int32), document_bytes(n_documents)),
        "block_places": block_places,
        "positions": stream,
        "forward_offsets": places[entries],
        "forward": forward,
    }
