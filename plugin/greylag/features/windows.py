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
from greylag.ranking import FloatArray, IntArray

_jit = compiled(error_model="numpy")
NEVER = 1 << 62


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

    Equal terms of the clique are adjacent.

    ``at[j]`` is the first occurrence of term j within the window. The least of these is where the window begins and the
    greatest is where the shortest one ends. A term that the clique has twice needs its next occurrence, too.
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
def gain(weighting: int, tf: int, clique: float, document: float) -> float:
    """The gain of tf > 0 occurrences, by the code of the weighting."""
    if weighting == 0:
        return np.log1p(tf / clique)  # type: ignore[no-any-return]
    return clique * tf / (document + tf)


@_jit
def _once(weighting: int, clique: float, document: float) -> tuple[float, float]:
    """A factor of the clique and one of the document whose product is `gain` at tf = 1."""
    if weighting == 0:
        return np.log1p(1.0 / clique), 1.0
    return clique, 1.0 / (document + 1.0)


@_jit
def accumulate(  # noqa: PLR0912
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
    weightings: IntArray,
    multiplicity: FloatArray,
    clique_values: FloatArray,
    document_values: FloatArray,
    out: FloatArray,
) -> None:
    """Add the gains of the cliques that occur in each document to `out`.

    A clique whose terms occur once each, which is the most frequent case, is matched without a search.

    Parameters
    ----------
    cliques : shape (cliques, largest)
        Rows of `postings`, padded with -1.
    postings, having, having_offsets : from `locate`
    widths : shape (widths,)
    overlap, per_term : bool
        As in `CliqueTable`.
    weightings : shape (weightings,)
        Codes.
    multiplicity : shape (cliques, sets)
        How often the clique set has the clique.
    clique_values : shape (cliques, weightings x widths)
    document_values : shape (documents, weightings)
        The arguments of `gain`.
    out : shape (documents, sets, weightings x widths)
    """
    largest = cliques.shape[1]
    at, ends, copies = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    last, tf = np.empty(len(widths), np.int64), np.empty(len(widths), np.int64)
    n_widths = len(widths)
    values, once = np.empty(clique_values.shape[1]), np.empty(clique_values.shape[1])
    once_in = np.empty_like(document_values)
    for d in range(len(out)):
        for f in range(len(weightings)):
            once_in[d, f] = _once(weightings[f], 1.0, document_values[d, f])[1]
    for c in range(len(cliques)):
        size, rarest = 0, cliques[c, 0]
        for term in cliques[c]:
            if term >= 0:
                size += 1
                if (
                    having_offsets[term + 1] - having_offsets[term]
                    < having_offsets[rarest + 1] - having_offsets[rarest]
                ):
                    rarest = term
        if having_offsets[rarest] < having_offsets[rarest + 1]:
            for s in range(len(once)):
                once[s] = _once(weightings[s // n_widths], clique_values[c, s], 1.0)[0]
        for d in having[having_offsets[rarest] : having_offsets[rarest + 1]]:
            complete, single = True, True
            for j in range(size):
                posting = postings[cliques[c, j], d]
                if posting < 0:
                    complete = False
                    break
                at[j], ends[j] = _span(postings_starts, posting, len(positions))
                single &= ends[j] - at[j] == 1
            if not complete:
                continue
            if single:
                width = _width(ordered, positions, at, size, per_term)
                for s in range(len(values)):
                    f, w = s // n_widths, s % n_widths
                    values[s] = once[s] * once_in[d, f] if width <= widths[w] else 0.0
            else:
                count(ordered, positions, at, ends, copies, size, widths, overlap, per_term, last, tf)
                for s in range(len(values)):
                    f, w = s // n_widths, s % n_widths
                    values[s] = gain(weightings[f], tf[w], clique_values[c, s], document_values[d, f]) if tf[w] else 0.0
            for k in range(multiplicity.shape[1]):
                if multiplicity[c, k] > 0:
                    for s in range(len(values)):
                        out[d, k, s] += multiplicity[c, k] * values[s]


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
) -> IntArray:
    """Count each clique within each width over the whole collection.

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
    largest = cliques.shape[1]
    at, ends, copies = np.empty(largest, np.int64), np.empty(largest, np.int64), np.empty(largest, np.int64)
    last, tf = np.empty(len(widths), np.int64), np.empty(len(widths), np.int64)
    next_posting = np.empty(largest, np.int64)
    for c in range(len(cliques)):
        size, rarest = 0, 0
        for term in cliques[c]:
            size += term != FILLER
        if cliques[c, :size].min() < 0:
            continue
        if size == 1:
            first, end = _span(postings_offsets, cliques[c, 0], len(postings_docs))
            out[0, c, :], out[1, c, :] = postings_starts[end] - postings_starts[first], end - first
            continue
        for j in range(size):
            next_posting[j], _ = _span(postings_offsets, cliques[c, j], len(postings_docs))
            if _df(postings_offsets, cliques[c, j]) < _df(postings_offsets, cliques[c, rarest]):
                rarest = j
        for driver in range(postings_offsets[cliques[c, rarest]], postings_offsets[cliques[c, rarest] + 1]):
            complete = True
            for j in range(size):
                end = postings_offsets[cliques[c, j] + 1]
                posting = next_posting[j]
                posting += np.searchsorted(postings_docs[posting:end], postings_docs[driver])
                next_posting[j] = posting
                if posting == end or postings_docs[posting] != postings_docs[driver]:
                    complete = False
                    break
                at[j], ends[j] = _span(postings_starts, posting, len(positions))
            if not complete:
                continue
            count(ordered, positions, at, ends, copies, size, widths, overlap, per_term, last, tf)
            for w in range(len(widths)):
                out[0, c, w] += tf[w]
                out[1, c, w] += tf[w] > 0
    return out


@_jit
def _df(postings_offsets: IntArray, term: int) -> int:
    return postings_offsets[term + 1] - postings_offsets[term]  # type: ignore[no-any-return]
