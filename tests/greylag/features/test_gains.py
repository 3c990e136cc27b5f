"""Compiled weighing, against the formulas and an explicit loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from greylag.features.gains import add_gains, gain, set_absent


@pytest.mark.parametrize("tf", [1, 2, 7])
def test_gains_are_the_formulas(tf: int) -> None:
    assert gain(0, tf, 0.3, 5.0) == pytest.approx(math.log(1 + tf / 0.3), rel=1e-15)
    assert gain(1, tf, 0.3, 5.0) == pytest.approx(0.3 * tf / (5.0 + tf), rel=1e-15)


def test_gains_are_added_to_the_features_of_their_sets() -> None:
    rng = np.random.default_rng(3)
    cliques, rows, widths = 6, 9, np.array([2, 5, 1 << 40])
    weightings, sets, sources = np.array([0, 1]), np.array([0, 1, 1, 0, 1]), np.array([0, 1, 5, 4, 3])
    multiplicity = rng.integers(0, 3, (2, cliques)).astype(float)
    tf = rng.integers(0, 4, (rows * cliques, 3)).astype(np.int32)
    offsets, found, codes, counted = [0], [], [], []
    for clique in range(cliques):
        for row in np.flatnonzero(rng.random(rows) < 0.6):
            once = rng.random() < 0.5
            code = int(rng.integers(0, 8)) if once else -1 - int(rng.integers(len(tf)))
            counted.append((clique, row, (code <= widths).astype(int) if once else tf[-1 - code]))
            found.append(row)
            codes.append(code)
        offsets.append(len(found))
    clique_values, document_values = rng.random((cliques, 6)) + 0.1, rng.random((rows, 2)) + 0.1
    out = rng.random((rows, 5))
    expected = out.copy()
    for clique, row, own in counted:
        for u, (k, s) in enumerate(zip(sets, sources, strict=True)):
            if own[s % 3]:
                added = gain(s // 3, own[s % 3], clique_values[clique, s], document_values[row, s // 3])
                expected[row, u] += multiplicity[k, clique] * added
    add_gains(
        np.array(offsets), np.array(found, dtype=np.int32), np.array(codes, dtype=np.int32), tf, widths, weightings,
        multiplicity, sets, sources, clique_values, document_values, out,
    )  # fmt: skip
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_absent_values_are_those_of_the_query_and_the_document() -> None:
    rng = np.random.default_rng(4)
    of_cliques, totals, of_documents = rng.random((2, 2, 6)), rng.random((2, 2)), rng.random((5, 2))
    sets, sources, out = np.array([1, 0, 1]), np.array([0, 5, 2]), np.empty((5, 3))
    set_absent(np.array([0, 2, 5]), of_cliques, totals, of_documents, sets, sources, 3, out)
    for row, query in enumerate((0, 0, 1, 1, 1)):
        for u, (k, s) in enumerate(zip(sets, sources, strict=True)):
            assert out[row, u] == of_cliques[query, k, s] + totals[query, k] * of_documents[row, s // 3]
