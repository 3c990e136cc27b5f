"""Compiled weighing: occurrences of cliques in, gains by feature out."""

from __future__ import annotations

import numpy as np

from greylag.base import FloatArray, IntArray, compiled
from greylag.index import Int32Array

_jit = compiled(error_model="numpy")


@_jit
def gain(weighting: int, tf: int, clique: float, document: float) -> float:
    """Return the gain of tf > 0 occurrences, or of a first one at position tf from 1, by the code of the weighting."""
    # Comparisons and not a table of functions, which Numba would call by pointer for every document.
    if weighting == 0:
        return np.log1p(tf / clique)  # type: ignore[no-any-return]
    if weighting == 2:
        return clique / (1.0 + (tf - 1) / 10.0)
    return clique * tf / (document + tf)


@_jit
def _once(weighting: int, clique: float, document: float) -> tuple[float, float]:
    """Return a factor of the clique and one of the document whose product is `gain` at tf = 1."""
    # Weightings by position never get here, as all of their codes are negative (see `windows.occurrences`).
    if weighting == 0:
        return np.log1p(1.0 / clique), 1.0
    return clique, 1.0 / (document + 1.0)


@_jit
def set_absent(
    offsets: IntArray, clique_terms: FloatArray, totals: FloatArray, document_terms: FloatArray, sets: IntArray,
    sources: IntArray, n_windows: int, out: FloatArray,
) -> None:  # fmt: skip
    """Set features to their values if no clique occurs: ``clique_terms + totals * document_terms``."""
    # offsets (queries + 1,): the rows of each query. clique_terms (queries, sets, weightings x windows): the sums over
    # the clique sets of the cliques' terms. totals (queries, sets): numbers of cliques. document_terms (rows,
    # weightings): the documents' terms. The others as in add_gains.
    for q in range(len(offsets) - 1):
        # By feature and then document, so that what the documents share is read once.
        for u in range(len(sets)):
            constant, factor, f = clique_terms[q, sets[u], sources[u]], totals[q, sets[u]], sources[u] // n_windows
            for d in range(offsets[q], offsets[q + 1]):
                out[d, u] = constant + factor * document_terms[d, f]


@_jit
def add_gains(
    offsets: IntArray, rows: Int32Array, codes: Int32Array, tf: Int32Array, widths: IntArray, weightings: IntArray,
    multiplicity: FloatArray, sets: IntArray, sources: IntArray, clique_values: FloatArray,
    document_values: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Add the gains of the cliques that occur in each document to `out`, shape (rows, features)."""
    # offsets, rows, codes, tf, multiplicity: of GroupCounts. weightings: their codes. sets, sources (features,): the
    # clique set of each feature, and its column of clique_values. clique_values (cliques, weightings x widths) and
    # document_values (rows, weightings): the arguments of gain.
    # ``values[1]`` and `once_in` split the gain at tf = 1 into a factor of the clique and one of the document: by far
    # the most frequent case is then one multiplication. `seen` has the last clique with a value in a column, from 1.
    n_columns = clique_values.shape[1]
    values, once_in = np.empty((2, n_columns)), np.empty(document_values.shape)
    used, functions = np.empty(n_columns, np.int64), np.empty(n_columns, np.int64)
    seen = np.zeros(n_columns, np.int64)
    features = np.empty(len(sets), np.int64)
    for d in range(len(out)):
        for f in range(len(weightings)):
            once_in[d, f] = _once(weightings[f], 1.0, document_values[d, f])[1]
    for c in range(len(offsets) - 1):
        if offsets[c] == offsets[c + 1]:  # most cliques of a long query occur nowhere
            continue
        n_features = n_used = 0
        for u in range(len(sets)):
            # Only the features whose clique set has this clique, and the columns that any of them needs.
            if multiplicity[sets[u], c] > 0:
                s = sources[u]
                features[n_features] = u
                n_features += 1
                if seen[s] != c + 1:
                    seen[s], used[n_used], functions[n_used] = c + 1, s, s // len(widths)
                    values[1, s] = _once(weightings[functions[n_used]], clique_values[c, s], 1.0)[0]
                    n_used += 1
        for i in range(offsets[c], offsets[c + 1]):
            d, code = rows[i], codes[i]
            # A value is computed once for each weighting and window, however many features share it.
            for u in range(n_used):
                s, f = used[u], functions[u]
                w = s - f * len(widths)  # a division would take longer than the rest
                if code >= 0:
                    values[0, s] = values[1, s] * once_in[d, f] if code <= widths[w] else 0.0
                else:
                    matches = tf[-1 - code, w]
                    values[0, s] = (
                        gain(weightings[f], matches, clique_values[c, s], document_values[d, f]) if matches else 0.0
                    )
            # In the order of the cliques, which is the same for one ranking and for many: sums keep their last bits.
            for n in range(n_features):
                u = features[n]
                out[d, u] += multiplicity[sets[u], c] * values[0, sources[u]]
