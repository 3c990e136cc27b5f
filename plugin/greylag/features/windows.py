"""Compiled window counting in located documents.

The matches of a clique are found in one pass over the positions of its terms for all widths at once, since a width only
decides which of the matches count. The tests compare it with a direct implementation of the definition. The loops use
none of NumPy's functions that Numba takes a quarter of a second to import, such as `max` and `append`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.compilation import compiled
from greylag.index.arrays import Int32Array, offsets
from greylag.ranking import IntArray

_jit = compiled(error_model="numpy")
_jit_inline = compiled(error_model="numpy", inline="always")  # where a call would cost more than the work
NEVER = 1 << 62
MANY = -1
_ROOM = 1024  # occurrences, at first


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
    starts: IntArray,
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
        at[j], ends[j] = starts[posting], starts[posting + 1]
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
def _largest(values: IntArray) -> int:
    """The largest of some values, or 0 if they are negative."""
    largest = 0
    for value in values:
        largest = max(largest, value)
    return largest


@_jit
def _doubled(rows: Any) -> Any:
    """An array with twice as many rows, of which the first half are those given."""
    grown = np.empty((2 * len(rows), *rows.shape[1:]), rows.dtype)
    grown[: len(rows)] = rows
    return grown


@_jit
def occurrences(
    ordered: bool,
    cliques: IntArray,
    postings: IntArray,
    having: IntArray,
    having_offsets: IntArray,
    starts: IntArray,
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
    postings, having, having_offsets, starts, positions
        As in `Located`.
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
    largest, n_widths, widest = cliques.shape[1], len(widths), _largest(widths)
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
                ordered, cliques[c], size, postings, d, starts, positions, widths, overlap, per_term,
                at, ends, copies, last, tf,
            )  # fmt: skip
            if width > widest or (width == MANY and _largest(tf) == 0):
                continue
            if n == len(documents):
                documents, codes = _doubled(documents), _doubled(codes)
            documents[n], codes[n] = d, width
            if width == MANY:
                if m == len(several):
                    several = _doubled(several)
                several[m], codes[n] = tf, -1 - m
                m += 1
            n += 1
        offsets[c + 1] = n
    return offsets, documents[:n].copy(), codes[:n].copy(), several[:m].copy()


def term_occurrences(frequencies: Int32Array, n_windows: int) -> tuple[IntArray, Int32Array, Int32Array, Int32Array]:
    """What `occurrences` returns for terms, from their tf in documents, shape (terms, documents)."""
    terms, documents = np.nonzero(frequencies)
    tf = frequencies[terms, documents]
    several = tf > 1
    codes = np.where(several, -several.cumsum(dtype=np.int32), np.int32(0))
    counts = np.bincount(terms, minlength=len(frequencies))
    return offsets(counts), documents.astype(np.int32), codes, np.repeat(tf[several, None], n_windows, axis=1)


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
def add_counts(
    offsets: IntArray, codes: Int32Array, tf: Int32Array, widths: IntArray, places: IntArray, out: Any
) -> None:
    """Add the occurrences of cliques to cf and df.

    Parameters
    ----------
    offsets, codes, tf
        As `occurrences` returns them.
    widths : shape (widths,)
    places : shape (cliques,)
        The place of each clique in `out`.
    out : shape (2, all cliques, widths)
        Cf and df.
    """
    for c in range(len(places)):
        for code in codes[offsets[c] : offsets[c + 1]]:
            for w in range(len(widths)):
                matches = np.int64(tf[-1 - code, w] if code < 0 else code <= widths[w])
                out[0, places[c], w] += matches
                out[1, places[c], w] += matches > 0
