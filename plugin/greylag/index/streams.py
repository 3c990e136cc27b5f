"""The compressed postings and entries of a positional index: the compiled loops that write and read them.

**Numbers** in a stream are in variable-byte code: seven bits a byte, the lowest first, and the highest bit set in all
bytes but the last. 5 is 05; 300 = 2 * 128 + 44 is AC 02, with AC = 128 + 44.

**Postings** of all terms follow one another and are numbered through; ``postings_offsets`` says which are a term's. The
document of each is in ``postings_docs``, in as many bytes as N - 1 needs, the lowest first, so that a term's documents
can be searched by bisection. Its positions are in the stream ``positions``, as::

    2 (first position) + (tf > 1), tf if tf > 1, differences between positions

Most postings have tf 1, and are one number. A posting's offset in the stream depends on those before it; so
``block_places`` has the offset of every `BLOCK_POSTINGS`-th one, and reading begins there and skips at most
BLOCK_POSTINGS - 1 postings.

**Entries** are the terms of a document, ascending, in the stream ``forward``; ``forward_offsets`` says which bytes are
a document's. An entry is::

    2 (term - previous term) + (tf > 1), tf if tf > 1

where the previous term is 0 at the beginning of a document.

**Example**: document 0 is "york, new york" and document 1 is "new". The terms are 0, new, and 1, york::

    postings_offsets  0 2 3         new has postings 0 and 1, york has posting 2
    postings_docs     00 01 00      new in documents 0 and 1, york in document 0; a byte each, as N - 1 = 1
    positions         02            new at position 1 of document 0:  2 * 1 + 0
                      00            new at position 0 of document 1:  2 * 0 + 0
                      01 02 02      york in document 0, at 0 and 2:   2 * 0 + 1, tf 2, difference 2
    block_places      0             of posting 0; the next would be of posting 16
    forward_offsets   0 3 4
    forward           00 03 02      document 0: new, 2 * 0 + 0; york, 2 * 1 + 1 and tf 2
                      00            document 1: new

What is read is checked to be inside the arrays, so that damage ends in an error, and not in other memory; compiled
functions do not check by themselves. All loops are in one module, since Numba's cache does not notice changes in
another one. They use none of NumPy's functions that Numba takes a quarter of a second to import, such as `max` and
`append`, and index by unsigned numbers where speed matters, since Numba would count negative ones from the end of an
array. Variables are ``Any`` where mypy would take a compiled 64-bit integer for a Python ``int``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.base import CollectionError, IntArray, compiled
from greylag.index.tables import DAMAGE_ERROR, Bytes, Int32Array
from greylag.index.tables import offsets as offsets_of

# Postings from one offset at which reading can begin to the next. An offset has 8 bytes, so this adds half a byte to
# each posting. Twice as many postings would halve that, and double the bytes that are skipped to reach a posting.
BLOCK_POSTINGS = 16

_jit = compiled(error_model="numpy")
# Where a call would cost more than the work. Inlined by LLVM alone, they compile in half the time, and counting windows
# takes a third longer.
_jit_inline = compiled(error_model="numpy", inline="always")
# Of a number, in five bytes: 2 (first position) + 1 needs 32. A longer number is damage; without a limit, a run of
# bytes with the highest bit set would be read to the end of the file, with shifts that overflow.
_BITS = 35
_LAST = (1 << 31) - 129  # Lucene's greatest position (IndexWriter.MAX_POSITION); a sum of differences may not exceed it
_SEVERAL, ABSENT = -1, -2  # see `Located`


@_jit_inline
def _read(stream: Bytes, offset: int) -> tuple[int, int]:
    """Read the number at an offset, and the offset after it."""
    value: Any = np.int64(0)
    shift: Any = np.int64(0)
    while offset < len(stream) and shift < _BITS:
        byte = np.int64(stream[offset])
        offset += 1
        if byte < 128:
            return value | byte << shift, offset
        value |= (byte & 127) << shift
        shift += 7
    raise CollectionError(DAMAGE_ERROR)


@_jit_inline
# Most tf are 1, which costs one bit and no number.
def _read_pair(stream: Bytes, offset: int) -> tuple[int, int, int]:
    """Read the number and tf at the beginning of a posting or of an entry, and the offset after them."""
    value, offset = _read(stream, offset)
    tf: Any = np.int64(1)
    if value & 1:
        tf, offset = _read(stream, offset)
    # The lowest bit only said whether a tf follows.
    return value >> 1, tf, offset


@_jit_inline
def _skip(stream: Bytes, offset: int, n: int) -> int:
    """Return the offset after the next n numbers."""
    while n > 0 and offset < len(stream):
        # Only the last byte of a number is below 128, so that numbers are counted without decoding them.
        n -= stream[offset] < 128
        offset += 1
    if n > 0:
        raise CollectionError(DAMAGE_ERROR)
    return offset


@_jit
def _write(stream: Bytes, offset: int, value: int) -> int:
    """Write a number, and return the offset after it."""
    if value < 0:
        raise CollectionError("postings are not in ascending order: build the index again")
    while value > 127:
        stream[offset] = value & 127 | 128
        value >>= 7
        offset += 1
    stream[offset] = value
    return offset + 1


@_jit
def _write_pair(stream: Bytes, offset: int, number: int, tf: int) -> int:
    """Write a number and tf, and return the offset after them."""
    offset = _write(stream, offset, number << 1 | (tf > 1))
    return _write(stream, offset, tf) if tf > 1 else offset


def document_bytes(n_documents: int) -> int:
    """Count the bytes of a document number in a collection of some size."""
    return max(1, (max(0, n_documents - 1).bit_length() + 7) // 8)


def encode_documents(docs: Int32Array, width: int) -> Bytes:
    """Encode document numbers with `width` bytes each."""
    # The lowest bytes of each number come first, and the others are zero.
    return docs.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :width].ravel()


def encode(numbers: IntArray) -> tuple[Bytes, IntArray]:
    """Encode numbers; return the stream and their offsets in it, shape (len(numbers) + 1,)."""
    if len(numbers) and numbers.min() < 0:
        raise CollectionError("postings are not in ascending order: build the index again")
    # Of five bytes at most, the i-th is there if the number has a bit beyond the bytes before it.
    sizes = np.ones(len(numbers), dtype=np.int64)
    for i in range(1, 5):
        # Vectorised over all numbers: a loop over the five possible bytes, and not over numbers.
        sizes += numbers >> 7 * i > 0
    starts = offsets_of(sizes)
    stream = np.empty(starts[-1], dtype=np.uint8)
    left = np.arange(len(numbers))
    for i in range(5):
        more = sizes[left] > i + 1
        stream[starts[left] + i] = numbers[left] >> 7 * i & 127 | more << 7
        left = left[more]
    return stream, starts


def encode_pairs(numbers: IntArray, tfs: Int32Array) -> tuple[Bytes, IntArray]:
    """Encode a number and tf of each entry; return the stream and the entries' offsets in it."""
    several = tfs > 1
    places = offsets_of(1 + several)
    values = np.empty(places[-1], dtype=np.int64)
    values[places[:-1]] = numbers << 1 | several
    values[places[:-1][several] + 1] = tfs[several]
    stream, starts = encode(values)
    return stream, starts[places]


def encode_positions(first: int, offset: int, tfs: Int32Array, positions: Int32Array) -> tuple[Bytes, IntArray]:
    """Encode the positions of postings; return the offset of each block of `BLOCK_POSTINGS`.

    `first` and `offset` are the number of the first posting and its offset in the whole stream; this is a piece of it.
    `positions` ascend within a posting; their number is the sum of `tfs`.
    """
    several = tfs > 1
    begins, places = offsets_of(tfs), offsets_of(tfs + several)
    # A tf above 1 stands behind the first position of its posting, and moves the others on.
    at = np.arange(len(positions)) + np.repeat(places[:-1] - begins[:-1] + several, tfs)
    at[begins[:-1]] = places[:-1]
    values = np.empty(places[-1], dtype=np.int64)
    # Differences across postings are wrong here; the first positions overwrite them.
    values[at[1:]] = np.diff(positions.astype(np.int64))
    values[places[:-1]] = positions[begins[:-1]].astype(np.int64) << 1 | several
    values[places[:-1][several] + 1] = tfs[several]
    stream, starts = encode(values)
    # Of the posting that begins a block, counted from the beginning of the whole stream.
    return stream, offset + starts[places[:-1]][-first % BLOCK_POSTINGS :: BLOCK_POSTINGS]


@_jit_inline
def _document(docs: Bytes, width: int, posting: int) -> int:
    """Return the document of a posting."""
    offset = np.uint64(posting * width)  # unsigned, since Numba would count negative numbers from the end of an array
    value = np.int64(docs[offset])
    if width > 1:
        value |= np.int64(docs[offset + np.uint64(1)]) << 8
    if width > 2:
        value |= np.int64(docs[offset + np.uint64(2)]) << 16
    if width > 3:
        value |= np.int64(docs[offset + np.uint64(3)]) << 24
    return value  # type: ignore[return-value]


@_jit_inline
def _skip_postings(stream: Bytes, offset: int, n: int) -> int:
    """Return the offset after the next n postings."""
    while n > 0:
        # Neither a number of several bytes (128) nor a tf above 1 (1): this byte is the posting, as most are.
        while n > 0 and offset < len(stream) and stream[offset] & 129 == 0:
            offset += 1
            n -= 1
        if n > 0:
            _, tf, offset = _read_pair(stream, offset)
            offset = _skip(stream, offset, tf - 1)
            n -= 1
    return offset


@_jit_inline
def _search(docs: Bytes, width: int, first: int, end: int, document: int) -> int:
    """Find the first of the postings from `first` to `end` - 1 whose document is not below a document, or `end`."""
    step = 1  # doubled until it leads too far, as the posting is near for documents that are near each other
    while first + step < end and _document(docs, width, first + step) < document:
        first += step
        step *= 2
    end = min(end, first + step)
    while first < end:
        middle = (first + end) // 2
        if _document(docs, width, middle) < document:
            first = middle + 1
        else:
            end = middle
    return first


@_jit_inline
def _read_positions(stream: Bytes, offset: int, value: int, positions: Int32Array, first: int, end: int) -> int:
    """Write the positions of a posting, `value` first, and return the offset after them."""
    positions[first] = value
    for i in range(first + 1, end):
        difference, offset = _read(stream, offset)
        value += difference
        positions[i] = value
    if value > _LAST:
        raise CollectionError(DAMAGE_ERROR)
    return offset


@_jit
def bound(postings_offsets: IntArray, terms: IntArray, n_postings: int) -> IntArray:
    """Return what `Shard.bounds` does; the shard has `n_postings` at most."""
    bounds = np.zeros((2, len(terms)), np.int64)
    for t in range(len(terms)):
        if terms[t] >= 0:
            if terms[t] + 1 >= len(postings_offsets):
                raise CollectionError(DAMAGE_ERROR)
            bounds[0, t], bounds[1, t] = postings_offsets[terms[t]], postings_offsets[terms[t] + 1]
            if bounds[0, t] < 0 or bounds[1, t] < bounds[0, t] or bounds[1, t] > n_postings:
                raise CollectionError(DAMAGE_ERROR)
    return bounds


@_jit
def _room(block_places: IntArray, stream: Bytes, numbers: IntArray) -> int:
    """Bound the number of positions of postings by the bytes of the blocks they are in."""
    # Each position has a byte at least. The bound is what damage can make `read_postings` write at most.
    room: Any = 0
    for i in range(len(numbers)):
        block = numbers[i] // BLOCK_POSTINGS
        # A term may be asked for twice, whose postings begin again.
        if i == 0 or numbers[i] <= numbers[i - 1] or block != numbers[i - 1] // BLOCK_POSTINGS:
            begin = block_places[block]
            end = block_places[block + 1] if block + 1 < len(block_places) else np.int64(len(stream))
            if begin < 0 or end < begin or end > len(stream):
                raise CollectionError(DAMAGE_ERROR)
            room += end - begin
    return room  # type: ignore[no-any-return]


@_jit
def read_postings(
    block_places: IntArray, stream: Bytes, numbers: IntArray, having: IntArray, offsets: IntArray, n_documents: int
) -> tuple[IntArray, Int32Array, IntArray, Int32Array]:
    """Return the first two and the last two fields of `Located`, of postings with these numbers."""
    n_terms = len(offsets) - 1
    postings, sole = np.empty((n_terms, n_documents), np.int64), np.empty((n_terms, n_documents), np.int32)
    starts, positions = np.zeros(len(numbers) + 1, np.int64), np.empty(_room(block_places, stream, numbers), np.int32)
    for t in range(n_terms):
        for d in range(n_documents):
            postings[t, d], sole[t, d] = -1, ABSENT
        # So far back that the first posting of a term always begins at a block.
        at, offset = np.int64(-BLOCK_POSTINGS), np.int64(0)  # `offset` is of posting `at`
        for i in range(offsets[t], offsets[t + 1]):
            number = numbers[i]
            if number - at > number % BLOCK_POSTINGS:  # its block begins behind the offset: begin there
                at, offset = number - number % BLOCK_POSTINGS, block_places[number // BLOCK_POSTINGS]
            if number > at:
                offset = _skip_postings(stream, offset, number - at)
            value, tf, offset = _read_pair(stream, offset)
            # Before positions are written: there is room for undamaged postings alone.
            if tf < 1 or tf > len(positions) - starts[i]:
                raise CollectionError(DAMAGE_ERROR)
            starts[i + 1] = starts[i] + tf
            postings[t, having[i]], sole[t, having[i]] = i, value if tf == 1 else _SEVERAL
            offset = _read_positions(stream, offset, value, positions, starts[i], starts[i + 1])
            at = number + 1
    return postings, sole, starts, positions[: starts[-1]]


@_jit
def read_frequencies(
    bounds: IntArray, docs: Bytes, width: int, block_places: IntArray, stream: Bytes, n_documents: int
) -> tuple[IntArray, Int32Array, Int32Array]:
    """Return what `Shard.postings` does."""
    offsets = np.zeros(bounds.shape[1] + 1, np.int64)
    for t in range(bounds.shape[1]):
        offsets[t + 1] = offsets[t] + bounds[1, t] - bounds[0, t]
    documents, tfs, n = np.empty(offsets[-1], np.int32), np.empty(offsets[-1], np.int32), 0
    for t in range(bounds.shape[1]):
        if bounds[0, t] < bounds[1, t]:
            before = bounds[0, t] % BLOCK_POSTINGS
            offset = block_places[bounds[0, t] // BLOCK_POSTINGS]
            if offset < 0:  # what is beyond the end, reading finds
                raise CollectionError(DAMAGE_ERROR)
            offset = _skip_postings(stream, offset, before)
            for posting in range(bounds[0, t], bounds[1, t]):
                document = _document(docs, width, posting)
                _, tf, offset = _read_pair(stream, offset)
                if document >= n_documents or tf < 1 or tf >= 1 << 31:
                    raise CollectionError(DAMAGE_ERROR)
                offset = _skip(stream, offset, tf - 1)
                documents[n], tfs[n] = document, tf
                n += 1
    return offsets, documents, tfs


@_jit
def find(bounds: IntArray, docs: Bytes, width: int, documents: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Find the postings of `Shard.locate`: their numbers, their documents and the terms' offsets."""
    # Every term may be in every document; what is not used is never touched, and takes no memory.
    room, offsets = bounds.shape[1] * len(documents), np.zeros(bounds.shape[1] + 1, np.int64)
    numbers, having, count = np.empty(room, np.int64), np.empty(room, np.int64), 0
    for t in range(bounds.shape[1]):
        posting, end = bounds[0, t], bounds[1, t]
        for d in range(len(documents)):
            if posting < end and _document(docs, width, posting) < documents[d]:
                # Documents ascend on both sides, so that each search begins where the last one ended.
                posting = _search(docs, width, posting, end, documents[d])
            if posting >= end:
                break
            if _document(docs, width, posting) == documents[d]:
                numbers[count], having[count] = posting, d
                count += 1
        offsets[t + 1] = count
    return numbers[:count], having[:count], offsets


@_jit
def find_joint(
    bounds: IntArray, docs: Bytes, width: int, least: int, places: IntArray, begin: int, end: int, n_documents: int,
    numbers: Int32Array, ends: IntArray,
) -> tuple[int, int]:  # fmt: skip
    """Find the documents of `Shard.joint_block`; return how many there are, and how many postings they have."""
    # `numbers[d]` counts the terms of document d up to `least`. Once it has enough, it has the row that the document
    # has, as `least` + row, and is not counted on; at that moment the document's postings before count, too.
    n: Any = 0
    postings: Any = 0
    for t in range(len(ends)):
        first, last = bounds[0, t], bounds[1, t]
        posting, previous = first + places[t], begin - 1
        while posting < last:
            document = _document(docs, width, posting)
            if document <= previous or document >= n_documents:
                raise CollectionError(DAMAGE_ERROR)
            if document >= end:
                break
            before = np.int64(numbers[np.uint64(document - begin)])  # no branches, as they would be unpredictable
            enough, reached = np.int64(before >= least), np.int64(before == least - 1)
            numbers[np.uint64(document - begin)] = before + (1 - enough) + reached * n
            postings += enough + reached * least
            n += reached
            previous = document
            posting += 1
        # Where the next block of documents goes on with this term.
        ends[t] = posting - first
    return n, postings


@_jit
def join(
    firsts: IntArray, docs: Bytes, width: int, least: int, places: IntArray, begin: int, joint: Int32Array,
    ends: IntArray, numbers: IntArray, having: IntArray, offsets: IntArray,
) -> None:  # fmt: skip
    """Fill in the postings of `Shard.joint_block`, their documents and the terms' offsets."""
    count = 0
    for t in range(len(ends)):
        for posting in range(firsts[t] + places[t], firsts[t] + ends[t]):
            d = int(joint[np.uint64(_document(docs, width, posting) - begin)]) - least
            numbers[count], having[count] = posting, d  # the next one overwrites what is not joint
            count += d >= 0
        offsets[t + 1] = count


@_jit
def measure(docs: Bytes, width: int, stream: Bytes, postings_offsets: IntArray, n_documents: int) -> Any:
    """Count the tokens of each document, and the bytes of its entries, each of shape (N,)."""
    # A first pass finds the sizes of documents' streams, so that `transpose` can write each in its place.
    lengths, sizes = np.zeros(n_documents, np.int64), np.zeros(n_documents, np.int64)
    last_term, number, offset = np.zeros(n_documents, np.int64), np.empty(20, np.uint8), np.int64(0)
    for term in range(len(postings_offsets) - 1):
        for posting in range(postings_offsets[term], postings_offsets[term + 1]):
            _, tf, offset = _read_pair(stream, offset)
            offset = _skip(stream, offset, tf - 1)
            doc = _document(docs, width, posting)
            if doc >= n_documents:
                raise CollectionError(DAMAGE_ERROR)
            lengths[doc] += tf
            # Written to a scratch number, for its size alone.
            sizes[doc] += _write_pair(number, 0, term - last_term[doc], tf)
            last_term[doc] = term
    return lengths, sizes


@_jit
def transpose(
    docs: Bytes, width: int, stream: Bytes, postings_offsets: IntArray, forward_offsets: IntArray, forward: Bytes
) -> None:
    """Fill in the stream of every document's entries, in the order of terms, from the postings.

    The arguments are as in `Shard`; all documents are below N. `forward` is overwritten.
    """
    # Terms come in ascending order, so that each document's entries are appended in order.
    free, last_term, offset = forward_offsets[:-1].copy(), np.zeros(len(forward_offsets) - 1, np.int64), np.int64(0)
    for term in range(len(postings_offsets) - 1):
        for posting in range(postings_offsets[term], postings_offsets[term + 1]):
            _, tf, offset = _read_pair(stream, offset)
            offset = _skip(stream, offset, tf - 1)
            doc = _document(docs, width, posting)
            free[doc] = _write_pair(forward, free[doc], term - last_term[doc], tf)
            last_term[doc] = term


@_jit
def read_entries(
    forward_offsets: IntArray, forward: Bytes, documents: IntArray, n_terms: int, offsets: IntArray, terms: Int32Array,
    frequencies: Int32Array,
) -> None:  # fmt: skip
    """Fill in what `Shard.entries` returns."""
    n = 0
    for i in range(len(documents)):
        document = documents[i]
        if document >= 0:
            term, offset, end = np.int64(0), forward_offsets[document], forward_offsets[document + 1]
            while offset < end:
                difference, tf, offset = _read_pair(forward, offset)
                term += difference
                # A difference that is too large or too long is damage: it would index outside other arrays.
                if term >= n_terms or tf >= 1 << 31 or offset > end:
                    raise CollectionError(DAMAGE_ERROR)
                terms[n], frequencies[n] = term, tf
                n += 1
        offsets[i + 1] = n


@_jit
def frequencies(forward_offsets: IntArray, forward: Bytes, terms: IntArray, documents: IntArray) -> NDArray[np.int32]:
    """Count tf of terms, which have ascending numbers, in documents, shape (len(terms), len(documents))."""
    out = np.zeros((len(terms), len(documents)), np.int32)
    for i, document in enumerate(documents):
        begin, end = forward_offsets[document], forward_offsets[document + 1]
        if begin < 0 or end < begin or end > len(forward):
            raise CollectionError(DAMAGE_ERROR)
        term, t, offset = np.int64(0), 0, begin
        while offset < end and t < len(terms):
            difference, tf, offset = _read_pair(forward, offset)
            term += difference
            if offset > end:
                raise CollectionError(DAMAGE_ERROR)
            # Both lists ascend: one pass over a document finds all terms.
            while t < len(terms) and terms[t] < term:
                t += 1
            if t < len(terms) and terms[t] == term:
                if tf >= 1 << 31:
                    raise CollectionError(DAMAGE_ERROR)
                out[t, i] = tf
    return out
