"""Compiled window counting, in the documents of a ranking and over the whole collection.

The matches of a clique are found in one pass over the positions of its terms for all widths at once, since a width only
decides which of the matches count. The tests compare it with a direct implementation of the definition.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.compilation import compiled
from greylag.errors import CollectionError
from greylag.features.cliques import FILLER
from greylag.index.arrays import DAMAGED, Int32Array
from greylag.ranking import IntArray

_jit = compiled(error_model="numpy")
_jit_inline = compiled(error_model="numpy", inline="always")  # where a call would cost more than the work
NEVER = 1 << 62
MANY = -1
_ROOM = 1024  # occurrences, at first
_BLOCK = 1 << 14  # numbers in memory while a collection is counted


@_jit
def _span(offsets: IntArray, number: int, size: int) -> tuple[int, int]:
    """Where a term's postings, or a posting's positions, begin and end in an array of the given size."""
    begin, end = offsets[number], offsets[number + 1]
    if begin < 0 or end < begin or end > size:
        raise CollectionError(DAMAGED)
    return begin, end


@_jit
def _match_ordered(
    positions: Any, at: Any, ends: Any, size: int, widths: Any, overlap: bool, last: Any, tf: Any
) -> None:
    """Add to `tf` the matches of #M for each width M."""
    last[:] = -1
    for first in range(at[0], ends[0]):
        begin = positions[first]
        previous, gap = begin, 0
        for j in range(1, size):
            while at[j] < ends[j] and positions[at[j]] <= previous:
                at[j] += 1
            if at[j] == ends[j]:
                return
            gap = max(gap, positions[at[j]] - previous)
            previous = positions[at[j]]
        for w in range(len(widths)):
            if gap <= widths[w] and (overlap or begin >= last[w]):
                tf[w] += 1
                last[w] = previous + 1


@_jit
def _match_unordered(
    positions: Any,
    at: Any,
    ends: Any,
    copies: Any,
    size: int,
    widths: Any,
    overlap: bool,
    per_term: bool,
    last: Any,
    tf: Any,
) -> None:
    """Add to `tf` the matches within N tokens, or N x size `per_term`, for each width N.

    ``at[j]`` is the first occurrence of term j within the window. The least of these is where the window begins and the
    greatest is where the shortest one ends. A term that the clique has twice, at adjacent places, needs its next one.
    """
    last[:] = -1
    copies[:] = 1
    terms, scale = 0, size if per_term else 1
    for j in range(size):
        if j > 0 and at[j] == at[terms - 1] and ends[j] == ends[terms - 1]:
            copies[terms - 1] += 1
        else:
            at[terms], ends[terms] = at[j], ends[j]
            terms += 1
    for j in range(terms):
        if at[j] + copies[j] > ends[j]:
            return
    while True:
        first, end = 0, 0
        for j in range(terms):
            first = j if positions[at[j]] < positions[at[first]] else first
            end = max(end, positions[at[j] + copies[j] - 1] + 1)
        begin = positions[at[first]]
        for w in range(len(widths)):
            if end - begin <= widths[w] * scale and (overlap or begin >= last[w]):
                tf[w] += 1
                last[w] = end
        at[first] += 1
        if at[first] + copies[first] > ends[first]:
            return


@_jit
def count(
    ordered: bool,
    positions: Int32Array,
    at: IntArray,
    ends: IntArray,
    copies: IntArray,
    size: int,
    widths: IntArray,
    overlap: bool,
    per_term: bool,
    last: IntArray,
    tf: IntArray,
) -> None:
    """Set `tf`, shape (widths,), to the number of matches of a clique in one document within each width.

    ``positions[at[j]:ends[j]]`` are the positions of the clique's j-th term. `at`, `ends`, `copies` (size,) and `last`
    (widths,) are scratch buffers, overwritten.
    """
    tf[:] = 0
    if ordered:
        _match_ordered(positions, at, ends, size, widths, overlap, last, tf)
    else:
        _match_unordered(positions, at, ends, copies, size, widths, overlap, per_term, last, tf)


@_jit
def locate(postings_offsets: IntArray, postings_docs: Int32Array, terms: IntArray, documents: IntArray) -> Any:
    """Locate query terms in some documents.

    Parameters
    ----------
    terms : shape (t,)
        Term numbers, -1 for a term that the collection lacks.
    documents : shape (n,)
        Ascending document numbers.

    Returns
    -------
    postings : shape (t, n)
        The posting of the term in the document, or -1.
    having : shape (t * n,)
        ``having[offsets[i]:offsets[i + 1]]`` are the documents with term i, as ascending places in `documents`.
    offsets : shape (t + 1,)
    """
    n = len(documents)
    postings = np.full((len(terms), n), -1, np.int64)
    having, offsets = np.empty(len(terms) * n, np.int64), np.zeros(len(terms) + 1, np.int64)
    for t in range(len(terms)):
        found = offsets[t]
        first = end = 0
        if terms[t] >= 0:
            first, end = _span(postings_offsets, terms[t], len(postings_docs))
        skip = end - first > 16 * n  # search long lists, scan short ones
        for d in range(n):
            if skip:
                first += np.searchsorted(postings_docs[first:end], documents[d])
            else:
                while first < end and postings_docs[first] < documents[d]:
                    first += 1
            if first == end:
                break
            if postings_docs[first] == documents[d]:
                postings[t, d] = first
                having[found] = d
                found += 1
        offsets[t + 1] = found
    return postings, having, offsets


@_jit
def _complete(clique: IntArray, size: int, postings: IntArray, d: int) -> bool:
    """Whether document `d` has all terms of a clique."""
    for j in range(size):  # noqa: SIM110 - Numba has no all()
        if postings[clique[j], d] < 0:
            return False
    return True


@_jit_inline
def _occur(
    ordered: bool,
    clique: IntArray,
    size: int,
    postings: IntArray,
    d: int,
    postings_starts: IntArray,
    positions: Int32Array,
    widths: IntArray,
    overlap: bool,
    per_term: bool,
    at: IntArray,
    ends: IntArray,
    copies: IntArray,
    last: IntArray,
    tf: IntArray,
) -> int:
    """Match a clique in document `d`, which has its terms: `MANY` with `tf` set, or `_width` if they occur once each.

    A clique whose terms occur once each, which is the most frequent case, is matched without a search.
    """
    single = True
    for j in range(size):
        posting = postings[clique[j], d]
        at[j], ends[j] = _span(postings_starts, posting, len(positions))
        single &= ends[j] - at[j] == 1
    found = MANY
    if single:
        found = _width(ordered, positions, at, size, per_term)
    else:
        count(ordered, positions, at, ends, copies, size, widths, overlap, per_term, last, tf)
    return found


@_jit
def _rarest(clique: IntArray, having_offsets: IntArray) -> tuple[int, int]:
    """The number of a clique's terms, and the one that the fewest documents have."""
    size, rarest = 0, clique[0]
    for term in clique:
        if term >= 0:
            size += 1
            if having_offsets[term + 1] - having_offsets[term] < having_offsets[rarest + 1] - having_offsets[rarest]:
                rarest = term
    return size, rarest


@_jit
def occurrences(
    ordered: bool,
    cliques: IntArray,
    postings: IntArray,
    having: IntArray,
    having_offsets: IntArray,
    postings_starts: IntArray,
    positions: Int32Array,
    widths: IntArray,
    overlap: bool,
    per_term: bool,
) -> Any:
    """Find the occurrences of cliques in documents.

    Parameters
    ----------
    cliques : shape (cliques, largest)
        Rows of `postings`, padded with -1.
    postings, having, having_offsets : from `locate`
    widths : shape (widths,)
    overlap, per_term : bool
        As in `CliqueTable`.

    Returns
    -------
    offsets : shape (cliques + 1,)
    documents : int32 array, shape (n,)
        ``documents[offsets[c]:offsets[c + 1]]`` are the documents in which clique c matches within some width.
    codes : int32 array, shape (n,)
        The least width in which the clique matches, if its terms occur once each in the document. Otherwise -1 - i,
        where i is a row of `tf`.
    tf : int32 array, shape (m, widths)
        The number of matches within each width.
    """
    largest, n_widths, widest = cliques.shape[1], len(widths), widths.max()
    at, ends, copies = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    last, tf = np.empty(n_widths, np.int64), np.empty(n_widths, np.int64)
    offsets = np.zeros(len(cliques) + 1, np.int64)
    documents, codes = np.empty(_ROOM, np.int32), np.empty(_ROOM, np.int32)
    several = np.empty((_ROOM, n_widths), np.int32)
    n = m = 0
    for c in range(len(cliques)):
        size, rarest = _rarest(cliques[c], having_offsets)
        for d in having[having_offsets[rarest] : having_offsets[rarest + 1]]:
            if not _complete(cliques[c], size, postings, d):
                continue
            width = _occur(
                ordered, cliques[c], size, postings, d, postings_starts, positions, widths, overlap, per_term,
                at, ends, copies, last, tf,
            )  # fmt: skip
            if width > widest or (width == MANY and tf.max() == 0):
                continue
            if n == len(documents):
                documents = np.append(documents, np.empty_like(documents))
                codes = np.append(codes, np.empty_like(codes))
            documents[n], codes[n] = d, width
            if width == MANY:
                if m == len(several):
                    several = np.concatenate((several, np.empty_like(several)))
                several[m], codes[n] = tf, -1 - m
                m += 1
            n += 1
        offsets[c + 1] = n
    return offsets, documents[:n].copy(), codes[:n].copy(), several[:m].copy()


@_jit
def _width(ordered: bool, positions: Int32Array, at: IntArray, size: int, per_term: bool) -> int:
    """The least width in which terms that occur once, at ``positions[at[j]]``, match; `NEVER` if there is none."""
    first = last = positions[at[0]]
    gap = 0
    for j in range(1, size):
        here = positions[at[j]]
        if at[j] == at[j - 1] or (ordered and here <= last):  # a repeated term, or the wrong order
            return NEVER
        gap = max(gap, here - last)
        first, last = (first, here) if ordered else (min(first, here), max(last, here))
    if ordered:
        return gap
    span = last - first + 1
    return (span + size - 1) // size if per_term else span  # type: ignore[no-any-return]  # rounded up


@_jit
def collection_counts(
    ordered: bool,
    cliques: IntArray,
    postings_offsets: IntArray,
    postings_docs: Int32Array,
    postings_starts: IntArray,
    positions: Int32Array,
    widths: IntArray,
    overlap: bool,
    per_term: bool,
    collection_size: int,
) -> IntArray:
    """Count each clique within each width over the whole collection, a block of documents at a time.

    Parameters
    ----------
    cliques : shape (cliques, largest)
        Term numbers, -1 for a term that the collection lacks, padded with `FILLER`.

    Returns
    -------
    shape (2, cliques, widths)
        Cf and df.
    """
    out = np.zeros((2, len(cliques), len(widths)), np.int64)
    largest, n_widths = cliques.shape[1], len(widths)
    at, ends, copies = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    last, tf = np.empty(n_widths, np.int64), np.empty(n_widths, np.int64)
    _count_terms(cliques, postings_offsets, postings_starts, len(postings_docs), out)
    vocabulary, rows = _several_terms(cliques)
    next_posting, last_posting, n_documents = np.empty_like(vocabulary), np.empty_like(vocabulary), 0
    for t, term in enumerate(vocabulary):
        next_posting[t], last_posting[t] = _span(postings_offsets, term, len(postings_docs))
        if next_posting[t] < last_posting[t]:
            n_documents = max(n_documents, postings_docs[last_posting[t] - 1] + 1)
    block = max(1, min(n_documents, _BLOCK // max(1, len(vocabulary))))
    postings = np.full((len(vocabulary), block), -1, np.int64)
    having, offsets = np.empty(len(vocabulary) * block, np.int64), np.zeros(len(vocabulary) + 1, np.int64)
    for start in range(0, min(n_documents, collection_size), block):
        _fill(start, postings_docs, next_posting, last_posting, postings, having, offsets)
        for c in range(len(cliques)):
            if rows[c, 0] < 0:
                continue
            size, rarest = _rarest(rows[c], offsets)
            for d in having[offsets[rarest] : offsets[rarest + 1]]:
                if not _complete(rows[c], size, postings, d):
                    continue
                width = _occur(
                    ordered, rows[c], size, postings, d, postings_starts, positions, widths, overlap, per_term,
                    at, ends, copies, last, tf,
                )  # fmt: skip
                for w in range(n_widths):
                    matches = tf[w] if width == MANY else int(width <= widths[w])
                    out[0, c, w] += matches
                    out[1, c, w] += matches > 0
    if np.any(next_posting != last_posting) or np.any(out[0] < out[1]):
        raise CollectionError(DAMAGED)
    return out


@_jit
def _count_terms(
    cliques: IntArray, postings_offsets: IntArray, postings_starts: IntArray, size: int, out: IntArray
) -> None:
    """Set the counts of the cliques of one term, which the index has."""
    for c in range(len(cliques)):
        term = cliques[c, 0]
        if term >= 0 and (cliques.shape[1] == 1 or cliques[c, 1] == FILLER):
            first, end = _span(postings_offsets, term, size)
            out[0, c, :], out[1, c, :] = postings_starts[end] - postings_starts[first], end - first


@_jit
def _several_terms(cliques: IntArray) -> tuple[IntArray, IntArray]:
    """The terms of the cliques of several known terms, and these cliques as places among them.

    Rows are padded with -1; the rows of other cliques are -1 altogether.
    """
    rows = np.full(cliques.shape, -1, np.int64)
    for c in range(len(cliques)):
        known = cliques.shape[1] > 1 and cliques[c, 1] != FILLER
        for term in cliques[c]:
            known &= term != -1
        if known:
            rows[c] = np.maximum(cliques[c], -1)
    vocabulary = np.unique(rows)
    vocabulary = vocabulary[vocabulary >= 0]
    for c in range(len(rows)):
        for j, term in enumerate(rows[c]):
            if term >= 0:
                rows[c, j] = np.searchsorted(vocabulary, term)
    return vocabulary, rows


@_jit
def _fill(
    start: int,
    postings_docs: Int32Array,
    next_posting: IntArray,
    last_posting: IntArray,
    postings: IntArray,
    having: IntArray,
    offsets: IntArray,
) -> None:
    """Locate terms in the next block of documents, as `locate` does, in the buffers of the previous block."""
    for t in range(len(postings)):
        postings[t, having[offsets[t] : offsets[t + 1]]] = -1
    for t in range(len(postings)):
        posting, found = next_posting[t], offsets[t]
        while posting < last_posting[t] and postings_docs[posting] < start + postings.shape[1]:
            d = postings_docs[posting] - start
            if d < 0 or postings[t, d] >= 0:  # not ascending
                raise CollectionError(DAMAGED)
            postings[t, d], having[found] = posting, d
            found += 1
            posting += 1
        next_posting[t], offsets[t + 1] = posting, found
