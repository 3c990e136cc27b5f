"""The interior-point method against clarabel, and the factorisation against NumPy."""

from __future__ import annotations

import clarabel
import numpy as np
import pytest
from scipy.sparse import csc_matrix

from greylag.ranking import FloatArray, IntArray
from greylag.structured.interior_point import approach, cholesky


def optimum(A: FloatArray, b: FloatArray, owners: IntArray, costs: FloatArray, signs: list[int]) -> float:
    """min ||w||² / 2 + sum_i c_i xi_i such that A w + xi >= b, and w >= 0 in `signs`, by clarabel."""
    (K, d), n = A.shape, len(costs)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    scale = costs.max()  # its tolerances are absolute
    slack = np.eye(n)[owners]
    rows = np.vstack([np.hstack([-A, -slack]), np.hstack([-np.eye(d)[signs], np.zeros((len(signs), n))])])
    quadratic = csc_matrix(np.diag(np.append(np.ones(d), np.zeros(n)) / scale))
    linear, bounds = np.append(np.zeros(d), costs / scale), np.append(-b, np.zeros(len(signs)))
    cones = [clarabel.NonnegativeConeT(K + len(signs))]
    found = clarabel.DefaultSolver(quadratic, linear, csc_matrix(rows), bounds, cones, settings).solve()
    return float(scale * found.obj_val)


def primal(w: FloatArray, A: FloatArray, b: FloatArray, owners: IntArray, costs: FloatArray) -> float:
    """The objective of w."""
    xi = np.full(len(costs), -np.inf)
    np.maximum.at(xi, owners, b - A @ w)
    return float(w @ w / 2 + costs @ xi)


@pytest.mark.parametrize("signs", [[], [0, 3]])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("seed", range(3))
def test_reaches_the_optimum_of_another_solver(signs: list[int], scale: float, seed: int) -> None:
    rng, n, d = np.random.default_rng(seed), 5, 7
    owners = np.append(np.arange(n), rng.integers(n, size=40))
    A, b = 5 * rng.standard_normal((len(owners), d)), rng.random(len(owners))
    A[:n] = 0.0
    costs = scale * rng.random(n)
    best = optimum(A, b, owners, costs, signs)
    for tolerance in (0.1, 1e-3, 1e-6):
        alpha = (costs / np.bincount(owners))[owners]
        w = approach(A, b, owners, costs, np.array(signs, dtype=np.int64), alpha, tolerance * scale, 100)
        assert alpha.min() > 0
        np.testing.assert_allclose(np.bincount(owners, weights=alpha), costs, rtol=1e-9)
        assert (w[signs] > 0).all()
        assert best - 1e-7 * scale <= primal(w, A, b, owners, costs) <= best + tolerance * scale + 1e-7 * scale
        combined = A.T @ alpha
        combined[signs] = np.maximum(combined[signs], 0.0)
        dual = b @ alpha - combined @ combined / 2
        assert primal(w, A, b, owners, costs) - tolerance * scale - 1e-7 * scale <= dual <= best + 1e-7 * scale


def test_factor_is_that_of_numpy() -> None:
    rows = np.random.default_rng(0).standard_normal((30, 12))
    S = rows.T @ rows
    factor = S.copy()
    cholesky(factor, 0.0)
    np.testing.assert_allclose(np.tril(factor), np.linalg.cholesky(S), rtol=1e-9, atol=1e-12)


def test_factor_of_a_singular_matrix_multiplies_to_it() -> None:
    rows = np.random.default_rng(1).standard_normal((12, 4))
    rows[3] = 0.0
    gram = rows @ rows.T
    factor = gram.copy()
    cholesky(factor, 1e-12 * gram.max())
    factor = np.tril(factor)
    np.testing.assert_allclose(factor @ factor.T, gram, atol=1e-10)
    assert (factor != 0).any(axis=0).sum() == 4
