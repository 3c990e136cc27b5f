"""Compiled weighing: occurrences of cliques in, gains by feature out."""

from __future__ import annotations

import numpy as np

from greylag.index.tables import Int32Array
from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled

_jit = compiled(error_model="numpy")


@_jit
def gain(weighting: int, tf: int, clique: float, document: float) -> float:
    """Return the gain of tf > 0 occurrences, or of a first one at position tf from 1, by the code of the weighting."""
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


def set_absent(
    offsets: IntArray,
    of_cliques: FloatArray,
    totals: FloatArray,
    of_documents: FloatArray,
    sets: IntArray,
    sources: IntArray,
    n_windows: int,
    out: FloatArray,
) -> None:
    """Set features to their values if no clique occurs: ``of_cliques + totals * of_documents``."""
    # offsets (queries + 1,): the rows of each query. of_cliques (queries, sets, weightings x windows): the sums over
    # the clique sets of the cliques' terms. totals (queries, sets): numbers of cliques. of_documents (rows,
    # weightings): the documents' terms. The others as in add_gains.
    _set_absent(offsets, of_cliques, totals, of_documents, sets, sources, sources // n_windows, out)


@_jit
def _set_absent(
    offsets: IntArray, of_cliques: FloatArray, totals: FloatArray, of_documents: FloatArray, sets: IntArray,
    sources: IntArray, functions: IntArray, out: FloatArray,
) -> None:  # fmt: skip
    """Do what `set_absent` does; `functions` are the columns of `of_documents` that features need."""
    for q in range(len(offsets) - 1):
        for d in range(offsets[q], offsets[q + 1]):
            for u in range(len(sets)):
                constant, factor = of_cliques[q, sets[u], sources[u]], totals[q, sets[u]]
                out[d, u] = constant + factor * of_documents[d, functions[u]]


def add_gains(
    offsets: IntArray,
    rows: Int32Array,
    codes: Int32Array,
    tf: Int32Array,
    widths: IntArray,
    weightings: IntArray,
    multiplicity: FloatArray,
    sets: IntArray,
    sources: IntArray,
    clique_values: FloatArray,
    document_values: FloatArray,
    out: FloatArray,
) -> None:
    """Add the gains of the cliques that occur in each document to `out`, shape (rows, features)."""
    # offsets, rows, codes, tf, multiplicity: of GroupCounts. weightings: their codes. sets, sources (features,): the
    # clique set of each feature, and its column of clique_values. clique_values (cliques, weightings x widths) and
    # document_values (rows, weightings): the arguments of gain.
    n = clique_values.shape[1]
    _add_gains(
        offsets, rows, codes, tf, widths, weightings, multiplicity, sets, sources, clique_values, document_values, out,
        np.empty((2, n)), np.empty(document_values.shape), np.arange(n) // len(widths), np.empty(len(sets), np.int64),
        np.empty(n, np.int64), np.zeros(n, np.int64),
    )  # fmt: skip


@_jit
def _add_gains(
    offsets: IntArray, rows: Int32Array, codes: Int32Array, tf: Int32Array, widths: IntArray, weightings: IntArray,
    multiplicity: FloatArray, sets: IntArray, sources: IntArray, clique_values: FloatArray,
    document_values: FloatArray, out: FloatArray, values: FloatArray, once_in: FloatArray, functions: IntArray,
    features: IntArray, used: IntArray, seen: IntArray,
) -> None:  # fmt: skip
    """Do what `add_gains` does, in arrays for the values, those at tf = 1 by document, and what features need."""
    # ``values[1]`` and `once_in` split the gain at tf = 1 into a factor of the clique and one of the document: by far
    # the most frequent case is then one multiplication. `seen` has the last clique with a value in a column, from 1.
    for d in range(len(out)):
        for f in range(len(weightings)):
            once_in[d, f] = _once(weightings[f], 1.0, document_values[d, f])[1]
    for c in range(len(offsets) - 1):
        if offsets[c] == offsets[c + 1]:
            continue
        n_features = n_used = 0
        for u in range(len(sets)):
            # Only the features whose clique set has this clique, and the columns that any of them needs.
            if multiplicity[sets[u], c] > 0:
                s = sources[u]
                features[n_features] = u
                n_features += 1
                if seen[s] != c + 1:
                    seen[s], used[n_used] = c + 1, s
                    n_used += 1
                    values[1, s] = _once(weightings[functions[s]], clique_values[c, s], 1.0)[0]
        for i in range(offsets[c], offsets[c + 1]):
            d, code = rows[i], codes[i]
            # A value is computed once for each weighting and window, however many features share it.
            for u in range(n_used):
                s = used[u]
                f, w = functions[s], s - functions[s] * len(widths)  # a division would take longer than the rest
                if code >= 0:
                    values[0, s] = values[1, s] * once_in[d, f] if code <= widths[w] else 0.0
                else:
                    matches = tf[-1 - code, w]
                    values[0, s] = (
                        gain(weightings[f], matches, clique_values[c, s], document_values[d, f]) if matches else 0.0
                    )
            for n in range(n_features):
                u = features[n]
                out[d, u] += multiplicity[sets[u], c] * values[0, sources[u]]
