"""The compressed postings and entries of a positional index: the compiled loops that write and read them.

A stream is a sequence of numbers in variable-byte code: seven bits a byte, the lowest first, and the highest bit set in
all bytes but the last. A posting is::

    2 (document - previous document) + (tf > 1), tf if tf > 1, first position, differences between positions

where the previous document is 0 at the beginning of a term. The postings of all terms follow one another and are
numbered through. Every `BLOCK`-th one has its document and its place in the stream in tables of their own, from where
reading can begin. An entry of the forward view is::

    2 (term - previous term) + (tf > 1), tf if tf > 1

where the previous term is 0 at the beginning of a document. What is read is checked to be inside the arrays, so that
damage ends in an error. All loops are in one module, since Numba's cache does not notice changes in another one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.compilation import compiled
from greylag.errors import CollectionError
from greylag.index.arrays import DAMAGED, Int32Array
from greylag.ranking import IntArray

BLOCK = 16
"""The number of postings from one place at which reading can begin to the next."""

Bytes = NDArray[np.uint8]

_jit = compiled(error_model="numpy")
_BITS = 35  # of a number
_ROOM = 1024  # postings and positions, at first


@_jit
def _read(stream: Bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place after it."""
    value: Any = np.int64(0)
    shift: Any = np.int64(0)
    while place < len(stream) and shift < _BITS:
        byte = np.int64(stream[place])
        place += 1
        if byte < 128:
            return value | byte << shift, place
        value |= (byte & 127) << shift
        shift += 7
    raise CollectionError(DAMAGED)


@_jit
def _read_pair(stream: Bytes, place: int) -> tuple[int, int, int]:
    """The difference and tf at the beginning of a posting or of an entry, and the place after them."""
    value, place = _read(stream, place)
    tf: Any = np.int64(1)
    if value & 1:
        tf, place = _read(stream, place)
    return value >> 1, tf, place


@_jit
def _skip(stream: Bytes, place: int, n: int) -> int:
    """The place after the next n numbers."""
    while n > 0 and place < len(stream):
        n -= stream[place] < 128
        place += 1
    if n > 0:
        raise CollectionError(DAMAGED)
    return place


@_jit
def _write(stream: Bytes, place: int, value: int) -> int:
    """Write a number, and return the place after it."""
    if value < 0:
        raise CollectionError("postings are not in ascending order: build the index again")
    while value > 127:
        stream[place] = value & 127 | 128
        value >>= 7
        place += 1
    stream[place] = value
    return place + 1


@_jit
def _write_pair(stream: Bytes, place: int, difference: int, tf: int) -> int:
    """Write a difference and tf, and return the place after them."""
    place = _write(stream, place, difference << 1 | (tf > 1))
    return _write(stream, place, tf) if tf > 1 else place


@_jit
def encode(
    first: int, place: int, df: IntArray, docs: Int32Array, tfs: Int32Array, positions: Int32Array
) -> tuple[Bytes, Int32Array, IntArray]:
    """The stream of the postings of some terms.

    Parameters
    ----------
    first, place : int
        The number of the first posting, and its place in the stream.
    df : shape (t,)
        The number of postings of each term, of which there are p altogether.
    docs, tfs : shape (p,)
    positions : shape (sum of tfs,)

    Returns
    -------
    stream : shape (bytes,)
    block_docs, block_places : shape (blocks,)
        The document and the place of each posting whose number is a multiple of `BLOCK`.
    """
    stream = np.empty(10 * len(docs) + 5 * len(positions), np.uint8)
    n_blocks = (first + len(docs) + BLOCK - 1) // BLOCK - (first + BLOCK - 1) // BLOCK
    block_docs, block_places = np.empty(n_blocks, np.int32), np.empty(n_blocks, np.int64)
    end, posting, position, block = 0, 0, 0, 0
    for t in range(len(df)):
        previous_doc = np.int64(0)
        for _ in range(df[t]):
            if (first + posting) % BLOCK == 0:
                block_docs[block], block_places[block] = docs[posting], place + end
                block += 1
            end = _write_pair(stream, end, docs[posting] - previous_doc, tfs[posting])
            previous_doc = np.int64(docs[posting])
            previous = np.int64(0)
            for _ in range(tfs[posting]):
                end = _write(stream, end, positions[position] - previous)
                previous = np.int64(positions[position])
                position += 1
            posting += 1
    return stream[:end].copy(), block_docs, block_places


@_jit
def _postings_of(postings_offsets: IntArray, block_docs: Int32Array, term: int) -> tuple[int, int]:
    """The number of a term's first posting, and of the one after its last."""
    first, end = postings_offsets[term], postings_offsets[term + 1]
    if first < 0 or end < first or end > len(block_docs) * BLOCK:
        raise CollectionError(DAMAGED)
    return first, end


@_jit
def _place_of(block_places: IntArray, stream: Bytes, posting: int) -> int:
    """The place of a posting."""
    place: int = block_places[posting // BLOCK]
    if place < 0:
        raise CollectionError(DAMAGED)
    for _ in range(posting % BLOCK):
        _, tf, place = _read_pair(stream, place)
        place = _skip(stream, place, tf)
    return place


@_jit
def _last_block(block_docs: Int32Array, first: int, end: int, document: int) -> int:
    """The last of the blocks from `first` to `end` - 1 that does not begin after a document; `first` - 1 if all do."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if block_docs[middle] <= document:
            low = middle + 1
        else:
            high = middle
    return low - 1


@_jit
def _read_positions(stream: Bytes, place: int, tf: int, positions: Int32Array, end: int) -> tuple[Int32Array, int]:
    """Append positions to the first `end` ones of an array, which grows, and return the place after them."""
    if tf > len(stream) - place:  # each has a byte at least
        raise CollectionError(DAMAGED)
    if end + tf > len(positions):
        positions = np.append(positions, np.empty(len(positions) + tf, np.int32))
    value = np.int64(0)
    for i in range(tf):
        difference, place = _read(stream, place)
        value += difference
        positions[end + i] = value
    return positions, place


@_jit
def locate(
    postings_offsets: IntArray,
    block_docs: Int32Array,
    block_places: IntArray,
    stream: Bytes,
    terms: IntArray,
    documents: IntArray,
) -> Any:
    """Find terms in some documents; see `Located`.

    Parameters
    ----------
    postings_offsets, block_docs, block_places, stream
        The arrays of `Shard`.
    terms : shape (t,)
        Term numbers, -1 for a term that the collection lacks.
    documents : shape (n,)
        Ascending document numbers.
    """
    n = len(documents)
    postings = np.full((len(terms), n), -1, np.int64)
    having, offsets = np.empty(len(terms) * n, np.int64), np.zeros(len(terms) + 1, np.int64)
    starts, positions = np.zeros(_ROOM, np.int64), np.empty(_ROOM, np.int32)
    found = 0
    for t in range(len(terms)):
        if terms[t] >= 0 and n > 0:
            first, end = _postings_of(postings_offsets, block_docs, terms[t])
            posting, place, doc, tf = first - 1, np.int64(-1), np.int64(-1), np.int64(0)
            last_block = (end - 1) // BLOCK
            for d in range(n):
                while doc < documents[d]:
                    block = (posting + BLOCK) // BLOCK  # the next one
                    if block <= last_block and block * BLOCK > first and block_docs[block] <= documents[d]:
                        posting = _last_block(block_docs, block, last_block + 1, documents[d]) * BLOCK
                        place = _place_of(block_places, stream, posting)
                    else:
                        posting += 1
                        if posting >= end:
                            break
                        place = _place_of(block_places, stream, first) if place < 0 else _skip(stream, place, tf)
                    difference, tf, place = _read_pair(stream, place)
                    if posting > first and posting % BLOCK == 0:
                        doc = np.int64(block_docs[posting // BLOCK])
                    else:
                        doc = difference if posting == first else doc + difference
                if posting >= end:
                    break
                if doc == documents[d]:
                    if found + 1 == len(starts):
                        starts = np.append(starts, np.empty_like(starts))
                    positions, place = _read_positions(stream, place, tf, positions, starts[found])
                    starts[found + 1] = starts[found] + tf
                    postings[t, d], having[found] = found, d
                    found, tf = found + 1, np.int64(0)  # nothing is left to skip
        offsets[t + 1] = found
    return postings, having[:found], offsets, starts[: found + 1], positions[: starts[found]]


@_jit
def documents_of(
    postings_offsets: IntArray,
    block_docs: Int32Array,
    block_places: IntArray,
    stream: Bytes,
    term: int,
    first: int,
    end: int,
    n_documents: int,
) -> IntArray:
    """The documents of the postings `first` to `end` - 1 of a term, counted from its first one, in ascending order."""
    begin, last = _postings_of(postings_offsets, block_docs, term)
    first, end = begin + first, min(begin + end, last)
    out = np.empty(max(0, end - first), np.int64)
    # Reading begins where the document is known: at the term's first posting, or at a block.
    known = max(begin, first // BLOCK * BLOCK)
    place, doc, previous = _place_of(block_places, stream, known), np.int64(0), np.int64(-1)
    for posting in range(known, end):
        difference, tf, place = _read_pair(stream, place)
        place = _skip(stream, place, tf)
        doc = np.int64(block_docs[posting // BLOCK]) if posting % BLOCK == 0 else doc + difference
        if doc <= previous or doc >= n_documents:
            raise CollectionError(DAMAGED)
        previous = doc
        if posting >= first:
            out[posting - first] = doc
    return out


@_jit
def measure(postings_offsets: IntArray, stream: Bytes, n_documents: int) -> tuple[IntArray, IntArray]:
    """The number of tokens of each document, and the bytes of its entries, each of shape (N,)."""
    lengths, sizes = np.zeros(n_documents, np.int64), np.zeros(n_documents, np.int64)
    last_term, number, place = np.zeros(n_documents, np.int64), np.empty(20, np.uint8), 0
    for term in range(len(postings_offsets) - 1):
        doc = np.int64(0)
        for _ in range(postings_offsets[term], postings_offsets[term + 1]):
            difference, tf, place = _read_pair(stream, place)
            place = _skip(stream, place, tf)
            doc += difference
            if doc >= n_documents:
                raise CollectionError(DAMAGED)
            lengths[doc] += tf
            sizes[doc] += _write_pair(number, 0, term - last_term[doc], tf)
            last_term[doc] = term
    return lengths, sizes


@_jit
def transpose(postings_offsets: IntArray, stream: Bytes, forward_offsets: IntArray, forward: Bytes) -> None:
    """Fill in the stream of every document's entries, in the order of terms, from the postings.

    Parameters
    ----------
    postings_offsets, stream : arrays
        As in `Shard`; all documents are below N.
    forward_offsets : shape (N + 1,)
    forward : uint8 array
        Overwritten.
    """
    free, last_term, place = forward_offsets[:-1].copy(), np.zeros(len(forward_offsets) - 1, np.int64), 0
    for term in range(len(postings_offsets) - 1):
        doc = np.int64(0)
        for _ in range(postings_offsets[term], postings_offsets[term + 1]):
            difference, tf, place = _read_pair(stream, place)
            place = _skip(stream, place, tf)
            doc += difference
            free[doc] = _write_pair(forward, free[doc], term - last_term[doc], tf)
            last_term[doc] = term


@_jit
def entries(
    forward_offsets: IntArray, forward: Bytes, documents: IntArray, n_terms: int
) -> tuple[IntArray, Int32Array, Int32Array]:
    """The entries of documents.

    Parameters
    ----------
    forward_offsets, forward : arrays
        As in `Shard`.
    documents : shape (n,)
        Document numbers; -1 for a document without entries.
    n_terms : int
        V.

    Returns
    -------
    offsets : shape (n + 1,)
        The entries of document i are ``offsets[i], ..., offsets[i + 1] - 1``.
    terms : shape (entries,)
        Ascending within a document.
    tf : shape (entries,)
    """
    offsets, size = np.zeros(len(documents) + 1, np.int64), 0
    for document in documents:
        if document >= 0:
            begin, end = forward_offsets[document], forward_offsets[document + 1]
            if begin < 0 or end < begin or end > len(forward):
                raise CollectionError(DAMAGED)
            size += end - begin
    terms, frequencies = np.empty(size, np.int32), np.empty(size, np.int32)  # each entry has a byte at least
    n = 0
    for i, document in enumerate(documents):
        if document >= 0:
            term, place, own = np.int64(0), forward_offsets[document], forward[: forward_offsets[document + 1]]
            while place < len(own):
                difference, tf, place = _read_pair(own, place)
                term += difference
                if term >= n_terms or tf >= 1 << 31:
                    raise CollectionError(DAMAGED)
                terms[n], frequencies[n] = term, tf
                n += 1
        offsets[i + 1] = n
    return offsets, terms[:n].copy(), frequencies[:n].copy()


@_jit
def frequencies(forward_offsets: IntArray, forward: Bytes, terms: IntArray, documents: IntArray) -> NDArray[np.int32]:
    """Tf of terms, which have ascending numbers, in documents, shape (len(terms), len(documents))."""
    out = np.zeros((len(terms), len(documents)), np.int32)
    for i, document in enumerate(documents):
        begin, end = forward_offsets[document], forward_offsets[document + 1]
        if begin < 0 or end < begin or end > len(forward):
            raise CollectionError(DAMAGED)
        term, t, place, own = np.int64(0), 0, begin, forward[:end]
        while place < end and t < len(terms):
            difference, tf, place = _read_pair(own, place)
            term += difference
            while t < len(terms) and terms[t] < term:
                t += 1
            if t < len(terms) and terms[t] == term:
                out[t, i] = tf
    return out


@_jit
def find(text: Bytes, offsets: IntArray, order: Int32Array, wanted: Bytes, wanted_offsets: IntArray) -> IntArray:
    """The numbers of texts in a table, -1 for one that it lacks.

    Parameters
    ----------
    text, offsets : arrays
        Text i of the table is ``text[offsets[i]:offsets[i + 1]]``.
    order : array
        The numbers of the texts in ascending order of their bytes; empty if they are in this order already.
    wanted, wanted_offsets : arrays
        The texts to find.
    """
    size = len(offsets) - 1
    found = np.full(len(wanted_offsets) - 1, -1, np.int64)
    for i in range(len(found)):
        low, high, mine = 0, size, wanted[wanted_offsets[i] : wanted_offsets[i + 1]]
        while low < high:
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else np.int64(middle)
            if number < 0 or number >= size:
                raise CollectionError(DAMAGED)
            begin, end = offsets[number], offsets[number + 1]
            if begin < 0 or end < begin or end > len(text):
                raise CollectionError(DAMAGED)
            j, common = 0, min(end - begin, len(mine))
            while j < common and text[begin + j] == mine[j]:
                j += 1
            if j == len(mine) and j == end - begin:
                found[i] = number
                break
            if (j < common and text[begin + j] < mine[j]) or (j == common and j < len(mine)):
                low = middle + 1
            else:
                high = middle
    return found
