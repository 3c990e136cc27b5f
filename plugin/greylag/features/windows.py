"""Counting windows, compiled: in the documents of a ranking, and over the whole collection.

A clique's matches are found in one pass over its terms' positions for all widths at once: what a width decides is only
which of the matches it admits. `tests/features/test_windows.py` holds the slow and obvious version beside this one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from greylag.index.positional import Int32Array
from greylag.ranking import FloatArray, IntArray

_jit = njit(cache=True, nogil=True, error_model="numpy")
FILLER = -2


@_jit
def _match_ordered(
    positions: Any, at: Any, ends: Any, size: int, widths: Any, overlap: bool, last: Any, tf: Any
) -> None:
    """Add to `tf` the matches of #M for each width M.

    ``at[j]:ends[j]`` are the positions of the clique's j-th term; `at` is used up, `last` is scratch space.
    """
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
    size: int,
    widths: Any,
    overlap: bool,
    last: Any,
    tf: Any,
    merged: Any,
    need: Any,
) -> None:
    """Add to `tf` the matches of #uw(N x size) for each width N; equal terms of the clique stand side by side.

    `merged` (2, tokens) and `need` (size,) are scratch space: the clique's occurrences in order, and how many of
    each term the window between `left` and `right` still lacks.
    """
    last[:] = -1
    missing = size
    total = 0
    need[:size] = 0
    distinct = 0
    for j in range(size):  # a term that stands twice is merged once and needed twice
        if j > 0 and at[j] == at[distinct - 1] and ends[j] == ends[distinct - 1]:
            need[distinct - 1] += 1
        else:
            at[distinct], ends[distinct] = at[j], ends[j]
            need[distinct] = 1
            distinct += 1
    while True:
        best = -1
        for j in range(distinct):
            if at[j] < ends[j] and (best < 0 or positions[at[j]] < positions[at[best]]):
                best = j
        if best < 0:
            break
        merged[0, total], merged[1, total] = positions[at[best]], best
        at[best] += 1
        total += 1
    right = 0
    for left in range(total):
        while missing > 0:
            if right == total:
                return
            term = merged[1, right]
            missing -= need[term] > 0
            need[term] -= 1
            right += 1
        begin, end = merged[0, left], merged[0, right - 1] + 1
        for w in range(len(widths)):
            if end - begin <= widths[w] * size and (overlap or begin >= last[w]):
                tf[w] += 1
                last[w] = end
        term = merged[1, left]
        need[term] += 1
        missing += need[term] > 0


@_jit
def count(
    ordered: bool,
    positions: Int32Array,
    at: IntArray,
    ends: IntArray,
    size: int,
    widths: IntArray,
    overlap: bool,
    last: IntArray,
    tf: IntArray,
    merged: IntArray,
    need: IntArray,
) -> None:
    """Set `tf`, shape (widths,), to how often a clique occurs in one document within each width."""
    tf[:] = 0
    if ordered:
        _match_ordered(positions, at, ends, size, widths, overlap, last, tf)
    else:
        _match_unordered(positions, at, ends, size, widths, overlap, last, tf, merged, need)


@_jit
def locate(postings_offsets: IntArray, postings_docs: Int32Array, terms: IntArray, documents: IntArray) -> Any:
    """Where each of a query's terms occurs among some documents.

    Parameters
    ----------
    terms : shape (t,), term numbers, -1 for a term that the collection lacks.
    documents : shape (n,), ascending document numbers.

    Returns
    -------
    postings : shape (t, n): the term's posting in the document, or -1.
    having : the numbers 0, ..., n - 1 of the documents that have term i, ascending, at ``offsets[i]:offsets[i + 1]``.
    offsets : shape (t + 1,).
    """
    n = len(documents)
    postings = np.full((len(terms), n), -1, np.int64)
    having, offsets = np.empty(len(terms) * n, np.int64), np.zeros(len(terms) + 1, np.int64)
    for t in range(len(terms)):
        found = offsets[t]
        first = end = 0
        if terms[t] >= 0:
            first, end = postings_offsets[terms[t]], postings_offsets[terms[t] + 1]
        skip = end - first > 16 * n  # a long list is searched, a short one read through
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
    """What tf > 0 occurrences add, by the weighting's code."""
    if weighting == 0:
        return np.log1p(tf / clique)  # type: ignore[no-any-return]
    return clique * tf / (document + tf)


@_jit
def accumulate(
    ordered: bool,
    cliques: IntArray,
    postings: IntArray,
    having: IntArray,
    having_offsets: IntArray,
    postings_starts: IntArray,
    positions: Int32Array,
    widths: IntArray,
    overlap: bool,
    longest: int,
    signals: IntArray,
    features: IntArray,
    multiplicity: FloatArray,
    clique_values: FloatArray,
    document_values: FloatArray,
    out: FloatArray,
) -> None:
    """Add to `out`, shape (documents, features), what the cliques that occur in each document give.

    Parameters
    ----------
    cliques : shape (cliques, largest), rows of `postings`, filled up with -1.
    postings, having, having_offsets : from `locate`.
    widths : shape (widths,); overlap: count matches that overlap too; longest: tokens of the longest document.
    signals : shape (signals, 2): each one's width's number and weighting's code.
    features : shape (features, 2): each one's signal and clique set.
    multiplicity : shape (cliques, sets): how often the clique set has the clique, 0 for not at all.
    clique_values : shape (cliques, signals); document_values, shape (documents, signals): the weightings' parameters.
    """
    at, ends = np.empty(cliques.shape[1], np.int64), np.empty(cliques.shape[1], np.int64)
    last, tf = np.empty(len(widths), np.int64), np.empty(len(widths), np.int64)
    merged, need = np.empty((2, longest), np.int64), np.empty(cliques.shape[1], np.int64)
    values = np.empty(len(signals))
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
        for d in having[having_offsets[rarest] : having_offsets[rarest + 1]]:
            complete = True
            for j in range(size):
                posting = postings[cliques[c, j], d]
                if posting < 0:
                    complete = False
                    break
                at[j], ends[j] = postings_starts[posting], postings_starts[posting + 1]
            if not complete:
                continue
            count(ordered, positions, at, ends, size, widths, overlap, last, tf, merged, need)
            for s in range(len(signals)):
                found = tf[signals[s, 0]]
                values[s] = gain(signals[s, 1], found, clique_values[c, s], document_values[d, s]) if found else 0.0
            for f in range(len(features)):
                out[d, f] += multiplicity[c, features[f, 1]] * values[features[f, 0]]


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
    longest: int,
) -> IntArray:
    """Counts cf and df of each clique within each width over the whole collection, shape (2, cliques, widths).

    cliques : shape (cliques, largest): term numbers, -1 for one that the collection lacks, filled up with `FILLER`.
    """
    out = np.zeros((2, len(cliques), len(widths)), np.int64)
    at, ends = np.empty(cliques.shape[1], np.int64), np.empty(cliques.shape[1], np.int64)
    last, tf = np.empty(len(widths), np.int64), np.empty(len(widths), np.int64)
    merged, need = np.empty((2, longest), np.int64), np.empty(cliques.shape[1], np.int64)
    next_posting = np.empty(cliques.shape[1], np.int64)
    for c in range(len(cliques)):
        size, rarest = 0, 0
        for term in cliques[c]:
            size += term != FILLER
        if cliques[c, :size].min() < 0:
            continue
        if size == 1:
            first, end = postings_offsets[cliques[c, 0]], postings_offsets[cliques[c, 0] + 1]
            out[0, c, :], out[1, c, :] = postings_starts[end] - postings_starts[first], end - first
            continue
        for j in range(size):
            next_posting[j] = postings_offsets[cliques[c, j]]
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
                at[j], ends[j] = postings_starts[posting], postings_starts[posting + 1]
            if not complete:
                continue
            count(ordered, positions, at, ends, size, widths, overlap, last, tf, merged, need)
            for w in range(len(widths)):
                out[0, c, w] += tf[w]
                out[1, c, w] += tf[w] > 0
    return out


@_jit
def _df(postings_offsets: IntArray, term: int) -> int:
    return postings_offsets[term + 1] - postings_offsets[term]  # type: ignore[no-any-return]
