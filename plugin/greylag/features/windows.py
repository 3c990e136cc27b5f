"""Compiled window counting in located documents.

The matches of a clique are found in one pass over the positions of its terms for all widths at once, since a width only
decides which of the matches count. The tests compare it with a direct implementation of the definition. The loops use
none of NumPy's functions that Numba takes a quarter of a second to import, such as `max` and `append`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.base import IntArray, compiled
from greylag.index import Int32Array, offsets

_jit = compiled(error_model="numpy")
_jit_inline = compiled(error_model="numpy", inline="always")  # where a call would cost more than the work
SEVERAL = -1  # a term occurs more than once: in `Located.sole`, and among codes


@_jit_inline
# Arguments that many kernels share: `at[j]` and `ends[j]` bound the occurrences of term j of the clique in `positions`;
# `limits` are the windows' widths in tokens; `last[w]` is the end of the last match that counted in window w.
def _add_match(
    begin: int, end: int, span: int, limits: Any, overlap: bool, first: bool, lead: int, last: Any, tf: Any, row: int
) -> int:
    """Add a match to ``tf[row]`` for each limit that is not below `span`; whether there is one.

    A match that begins before ``last[w]``, the end of the one before it, counts only if matches may `overlap`; none
    that ends behind the `lead` does. If only the `first` one matters, ``tf[row]`` is its position, counted from 1.
    """
    matched = 0
    for w in range(len(last)):  # without branches, as they would be unpredictable
        matches = (span <= limits[w]) & (overlap | (begin >= last[w])) & (end <= lead)
        if first:
            tf[row, w] = begin + 1 if matches and tf[row, w] == 0 else tf[row, w]
        else:
            tf[row, w] += matches
        last[w] = end if matches else last[w]
        matched |= matches
    return matched


@_jit_inline
def _match_ordered(
    positions: Any, at: Any, ends: Any, size: int, limits: Any, overlap: bool, first: bool, lead: int,
    last: Any, tf: Any, row: int,
) -> int:  # fmt: skip
    """Add to ``tf[row]`` the matches of #M for each limit M; whether there is one."""
    matched = 0
    for start in range(at[0], ends[0]):
        begin = np.int64(positions[start])
        previous, gap = begin, np.int64(0)
        for j in range(1, size):
            # Each term goes to its first occurrence behind the term before it. As starts ascend, no term ever goes
            # back, so that the whole document costs one pass.
            while at[j] < ends[j] and positions[at[j]] <= previous:
                at[j] += 1
            # Later starts find no occurrence either.
            if at[j] == ends[j]:
                return matched
            # #M bounds the distance of neighbours: the widest gap decides in which windows the match counts.
            gap = max(gap, positions[at[j]] - previous)
            previous = np.int64(positions[at[j]])
        matched |= _add_match(begin, previous + 1, gap, limits, overlap, first, lead, last, tf, row)
    return matched


@_jit_inline
def _match_unordered(
    positions: Any, at: Any, ends: Any, copies: Any, size: int, limits: Any, overlap: bool, first: bool,
    lead: int, last: Any, tf: Any, row: int,
) -> int:  # fmt: skip
    """Add to ``tf[row]`` the matches within N tokens for each limit N; whether there is one.

    ``at[j]`` is the first occurrence of term j within the window. The least of these is where the window begins and the
    greatest is where the shortest one ends. A term that the clique has twice, at adjacent positions, needs its next
    one.
    """
    terms = matched = 0
    complete = True
    for j in range(size):
        # Rows are sorted when order does not matter, so that copies of a term stand side by side.
        if j > 0 and at[j] == at[terms - 1] and ends[j] == ends[terms - 1]:
            copies[terms - 1] += 1
        else:
            at[terms], ends[terms], copies[terms] = at[j], ends[j], 1
            terms += 1
        complete &= at[terms - 1] + copies[terms - 1] <= ends[terms - 1]
    while complete:
        # The shortest window that begins at the least occurrence. The next one cannot begin there, so that this term
        # moves on: again one pass.
        least, begin, end = 0, np.int64(positions[at[0]]), np.int64(0)
        for j in range(terms):
            here = np.int64(positions[at[j]])
            least, begin = (j, here) if here < begin else (least, begin)
            end = max(end, positions[at[j] + copies[j] - 1] + 1)
        matched |= _add_match(begin, end, end - begin, limits, overlap, first, lead, last, tf, row)
        at[least] += 1
        complete = at[least] + copies[least] <= ends[least]
    return matched


@_jit
def _count_repeated(
    ordered: bool, cliques: IntArray, sizes: IntArray, postings: IntArray, starts: IntArray, positions: Int32Array,
    widths: IntArray, overlap: bool, per_term: bool, first: bool, lead: int, limits: IntArray, last: IntArray,
    at: IntArray, ends: IntArray, copies: IntArray, offsets: IntArray, documents: Int32Array, codes: Int32Array,
    tf: Int32Array,
) -> int:  # fmt: skip
    """Count matches where a code is `SEVERAL`, drop documents without one, and return the number of rows of `tf` set.

    `limits` and `last` have room for a number of each window, and `at`, `ends` and `copies` for one of each term of a
    clique. The other arguments are as in `occurrences`; `offsets`, `documents`, `codes` and `tf` are updated.
    """
    begin = written = row = 0
    for c in range(len(cliques)):
        size = sizes[c]
        for w in range(len(widths)):
            # Per clique, as sizes differ.
            limits[w] = widths[w] * size if per_term and not ordered else widths[w]
        # `offsets[c + 1]` is rewritten below, after this clique was read: rows are compacted in place.
        for i in range(begin, offsets[c + 1]):
            document, code = documents[i], codes[i]
            # The window search proper, for the few documents where a term of the clique occurs more than once.
            if code == SEVERAL:
                for j in range(size):
                    posting = postings[cliques[c, j], document]
                    at[j], ends[j] = starts[posting], starts[posting + 1]
                for w in range(len(last)):
                    tf[row, w], last[w] = 0, -1
                if ordered:
                    matched = _match_ordered(positions, at, ends, size, limits, overlap, first, lead, last, tf, row)
                else:
                    matched = _match_unordered(
                        positions, at, ends, copies, size, limits, overlap, first, lead, last, tf, row
                    )
                if not matched:
                    continue
                # Negative, so that it is not a width; -1 itself is row 0 from here on.
                code = -1 - row
                row += 1
            documents[written], codes[written] = document, code
            written += 1
        begin, offsets[c + 1] = offsets[c + 1], written
    return row


@_jit
def _match(
    ordered: bool, cliques: IntArray, sole: Int32Array, having: IntArray, having_offsets: IntArray, widest: int,
    per_term: bool, first: bool, lead: int, sizes: IntArray, offsets: IntArray, documents: Int32Array,
    codes: Int32Array,
) -> int:  # fmt: skip
    """Match cliques in documents: write their sizes, the documents in which they may match, and their codes.

    The code is the least width that matches, or `SEVERAL` where a term occurs more than once or the `first` match is
    asked for. Returns how many codes are `SEVERAL`.
    """
    n = several = 0
    for c in range(len(cliques)):
        size, again, rarest = 1, False, cliques[c, 0]
        while size < cliques.shape[1] and cliques[c, size] >= 0:
            term = cliques[c, size]
            again |= not ordered and term == cliques[c, size - 1]
            if having_offsets[term + 1] - having_offsets[term] < having_offsets[rarest + 1] - having_offsets[rarest]:
                rarest = term
            size += 1
        sizes[c] = size
        for h in range(having_offsets[rarest], having_offsets[rarest + 1]):
            document = having[h]
            here = sole[np.uint64(cliques[c, 0]), np.uint64(document)]
            # `state` ends as the least of the sole positions: negative if a term is absent (below SEVERAL) or occurs
            # several times. One comparison then replaces a branch for each term.
            state = begin = last = here
            gap, in_order = np.int32(0), not again  # a term that occurs once is not there twice
            for j in range(1, size):
                here = sole[np.uint64(cliques[c, j]), np.uint64(document)]
                state = min(state, here)
                if ordered:
                    in_order &= here > last
                    gap, last = max(gap, here - last), here
                else:
                    begin, last = min(begin, here), max(last, here)
            if state >= 0 and in_order and last < lead:
                width = int(gap)
                if not ordered:
                    width = int(last) - int(begin) + 1
                    # The least N with N |clique| tokens, so that codes compare with the windows' own widths.
                    width = (width + size - 1) // size if per_term else width  # rounded up
                # Written in any case, and overwritten by the next document unless n grows: cheaper than a branch.
                documents[n], codes[n] = document, SEVERAL if first else width
                n += width <= widest
                several += first and width <= widest
            elif state == SEVERAL:
                documents[n], codes[n] = document, SEVERAL
                n += 1
                several += 1
        offsets[c + 1] = n
    return several


@_jit
def occurrences(
    ordered: bool, cliques: IntArray, postings: IntArray, sole: Int32Array, having: IntArray,
    having_offsets: IntArray, starts: IntArray, positions: Int32Array, widths: IntArray, overlap: bool, per_term: bool,
    first: bool, lead: int,
) -> tuple[IntArray, Int32Array, Int32Array, Int32Array]:  # fmt: skip
    """Find the occurrences of cliques, shape (cliques, largest): rows of `postings`, padded with -1.

    Cliques whose terms occur once each, which is the most frequent case, are matched without a search. Only matches
    within the first `lead` positions of a document count. The other arguments are those of `Located` and `CliqueTable`.

    Returns
    -------
    offsets : shape (cliques + 1,)
    documents : int32 array, shape (n,)
        ``documents[offsets[c]:offsets[c + 1]]`` are the documents in which clique c matches within some width.
    codes : int32 array, shape (n,)
        The least width in which the clique matches, if its terms occur once each in the document. Otherwise -1 - i,
        where i is a row of `tf`. All are of this kind if `first`.
    tf : int32 array, shape (m, widths)
        The number of matches within each width, or if `first` the position of the first one, counted from 1.
    """
    # A clique matches at most in the documents of its rarest term. Memory that is not written to costs nothing.
    most, widest, largest = np.int64(0), np.int64(0), cliques.shape[1]
    for t in range(len(having_offsets) - 1):
        most = max(most, having_offsets[t + 1] - having_offsets[t])
    for w in range(len(widths)):
        widest = max(widest, widths[w])
    sizes, offsets = np.empty(len(cliques), np.int64), np.zeros(len(cliques) + 1, np.int64)
    documents, codes = np.empty(len(cliques) * most, np.int32), np.empty(len(cliques) * most, np.int32)
    # First pass: decide all documents in which each term occurs once. Second: search the others.
    several = _match(
        ordered, cliques, sole, having, having_offsets, widest, per_term, first, lead, sizes, offsets, documents, codes
    )
    tf = np.empty((several, len(widths)), np.int32)
    if several:
        limits, last = np.empty(len(widths), np.int64), np.empty(len(widths), np.int64)
        at, ends, copies = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
        several = _count_repeated(
            ordered, cliques, sizes, postings, starts, positions, widths, overlap, per_term, first, lead, limits, last,
            at, ends, copies, offsets, documents, codes, tf,
        )  # fmt: skip
    n = offsets[-1]
    return offsets, documents[:n].copy(), codes[:n].copy(), tf[:several].copy()


def term_occurrences(frequencies: Int32Array, n_windows: int) -> tuple[IntArray, Int32Array, Int32Array, Int32Array]:
    """Return the result of `occurrences` for single terms, from their tf in documents, shape (terms, documents)."""
    # A single term is as frequent in every window: a code of 0 is below all widths, and rows of tf repeat a number.
    terms, documents = np.nonzero(frequencies)
    tf = frequencies[terms, documents]
    several = tf > 1
    codes = np.where(several, -several.cumsum(dtype=np.int32), np.int32(0))
    counts = np.bincount(terms, minlength=len(frequencies))
    return offsets(counts), documents.astype(np.int32), codes, np.repeat(tf[several, None], n_windows, axis=1)


@_jit
def add_counts(
    offsets: IntArray, codes: Int32Array, tf: Int32Array, widths: IntArray, columns: IntArray, out: IntArray
) -> None:
    """Add `occurrences` to cf and df, `out` of shape (2, all cliques, widths), in the `columns` of the cliques."""
    within = np.empty(len(widths), np.int64)
    for c in range(len(columns)):
        for w in range(len(widths)):
            within[w] = 0
        for i in range(offsets[c], offsets[c + 1]):
            code = codes[i]
            for w in range(len(widths)):
                # A code is the least width that matches, so that all wider windows have the match, too.
                if code >= 0:
                    within[w] += code <= widths[w]
                else:
                    out[0, columns[c], w] += tf[-1 - code, w]
                    out[1, columns[c], w] += tf[-1 - code, w] > 0
        for w in range(len(widths)):
            out[0, columns[c], w] += within[w]
            out[1, columns[c], w] += within[w]
