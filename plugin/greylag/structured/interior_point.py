"""The compiled solver of `greylag.structured.n_slack`; a module of its own because numba is slow to import."""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled

CENTRING = 0.3  # of the mean distance from the worst constraint: how far inside the constraints the start is
DAMPING = 0.99  # of the longest step that keeps all variables positive


@compiled()
def cholesky(S: FloatArray, least: float) -> None:
    """Replace the lower triangle of S by its Cholesky factor; columns with a pivot of at most `least` become 0."""
    n = len(S)
    column = np.empty(n)
    for k in range(n):
        if not S[k, k] > least:
            S[k:, k] = 0.0
            continue
        S[k, k] = np.sqrt(S[k, k])
        for i in range(k + 1, n):
            S[i, k] /= S[k, k]
            column[i] = S[i, k]
        for i in range(k + 1, n):
            factor = S[i, k]
            if factor != 0.0:
                for j in range(k + 1, i + 1):
                    S[i, j] -= factor * column[j]


@compiled()
def _solve_triangles(L: FloatArray, x: FloatArray) -> None:
    """Replace x by the solution of L L' y = x."""
    for i in range(len(x)):
        for j in range(i):
            x[i] -= L[i, j] * x[j]
        x[i] /= L[i, i]
    for i in range(len(x) - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= L[i, j] * x[i]


@compiled()
def _add_products(rows: FloatArray, D: FloatArray, S: FloatArray) -> None:
    """Add rows' diag(D) rows to the lower triangle of S, four rows at a time, so that S is read less often."""
    full = len(rows) // 4 * 4
    for k in range(0, full, 4):
        a, b, c, d = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
        for i in range(len(S)):
            e, f, g, h = D[k] * a[i], D[k + 1] * b[i], D[k + 2] * c[i], D[k + 3] * d[i]
            for j in range(i + 1):
                S[i, j] += (e * a[j] + f * b[j]) + (g * c[j] + h * d[j])
    for k in range(full, len(rows)):
        for i in range(len(S)):
            factor = D[k] * rows[k, i]
            for j in range(i + 1):
                S[i, j] += factor * rows[k, j]


@compiled()
def _combine(rows: FloatArray, factors: FloatArray, total: FloatArray) -> None:
    """Add rows' factors to `total`."""
    for k in range(len(rows)):
        for j in range(len(total)):
            total[j] += factors[k] * rows[k, j]


@compiled()
def _product(row: FloatArray, vector: FloatArray) -> float:
    total = 0.0
    for j in range(len(row)):
        total += row[j] * vector[j]
    return total


@compiled()
def _start(
    A: FloatArray, b: FloatArray, owners: IntArray, alpha: FloatArray, signs: IntArray, n: int, least: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A strictly feasible point: w = A' alpha + z, z, and the distances s from the constraints."""
    w, z, s = np.zeros(A.shape[1]), np.zeros(len(signs)), np.empty(len(b))
    _combine(A, alpha, w)
    inside = max(0.1 * np.abs(w).max(), 1e-9)
    for p in range(len(signs)):
        z[p] = max(0.0, -w[signs[p]]) + inside
        w[signs[p]] += z[p]
    xi, cost, distance = np.full(n, -np.inf), 0.0, 0.0
    for k in range(len(b)):
        s[k] = _product(A[k], w) - b[k]
        xi[owners[k]] = max(xi[owners[k]], -s[k])
    for k in range(len(b)):
        s[k] += xi[owners[k]]
        cost += alpha[k]
        distance += alpha[k] * s[k]
    s += max(CENTRING * distance, least) / cost
    return w, z, s


@compiled()
def _system(
    A: FloatArray, D: FloatArray, owners: IntArray, n: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """S = I + the weighted scatter of the constraints around their example's mean, the means, weights and residuals."""
    means, weights, centred, S = np.zeros((n, A.shape[1])), np.zeros(n), np.empty_like(A), np.eye(A.shape[1])
    for k in range(len(A)):
        weights[owners[k]] += D[k]
        for j in range(A.shape[1]):
            means[owners[k], j] += D[k] * A[k, j]
    for i in range(n):
        means[i] /= weights[i]
    for k in range(len(A)):
        for j in range(A.shape[1]):
            centred[k, j] = A[k, j] - means[owners[k], j]
    _add_products(centred, D, S)
    return S, means, weights, centred


@compiled()
def _longest(values: FloatArray, steps: FloatArray, longest: float) -> float:
    """The longest step, at most `longest`, that keeps the values non-negative."""
    for k in range(len(values)):
        if steps[k] < 0.0:
            longest = min(longest, -values[k] / steps[k])
    return longest


@compiled()
def _solve_for_direction(
    A: FloatArray,
    owners: IntArray,
    signs: IntArray,
    point: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    system: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    aim: float,
    direction: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
) -> None:
    """Replace the direction by that to products alpha s and z w of `aim`, corrected by the last one's products."""
    (alpha, s, w, z), (S, means, weights, centred), (d_alpha, d_s, d_w, d_z) = point, system, direction
    wanted = (aim - alpha * s - d_alpha * d_s) / s
    d_z[:] = aim - z * w[signs] - d_z * d_w[signs]
    d_w[:] = 0.0
    _combine(centred, wanted, d_w)
    for p in range(len(signs)):
        d_w[signs[p]] += d_z[p] / w[signs[p]]
    _solve_triangles(S, d_w)
    d_xi = np.zeros(len(weights))
    for k in range(len(s)):
        d_xi[owners[k]] += wanted[k]
    for i in range(len(weights)):
        d_xi[i] = d_xi[i] / weights[i] - _product(means[i], d_w)
    for k in range(len(s)):
        d_s[k] = _product(A[k], d_w) + d_xi[owners[k]]
        d_alpha[k] = wanted[k] - alpha[k] / s[k] * d_s[k]
    d_z[:] = (d_z - z * d_w[signs]) / w[signs]


@compiled()
def approach(
    A: FloatArray,
    b: FloatArray,
    owners: IntArray,
    costs: FloatArray,
    signs: IntArray,
    alpha: FloatArray,
    tolerance: float,
    max_steps: int,
) -> FloatArray:
    """Move `alpha`, in place, towards the optimum of the dual of

        min ||w||² / 2 + sum_i c_i xi_i  such that  a_k' w + xi_i(k) >= b_k,  w_j >= 0 for j in signs

    by Mehrotra's predictor-corrector method (SIAM Journal on Optimization 2, 1992), within the feasible region. All
    products of a dual variable and the distance from its constraint stay of the same order.

    Parameters
    ----------
    A : array, shape (K, d)
        The normals a_k.
    b : array, shape (K,)
    owners : int array, shape (K,)
        i(k).
    costs : array, shape (n,)
        c > 0.
    signs : int array
        The j of non-negative weights.
    alpha : array, shape (K,)
        Positive; sums to c_i over the constraints of example i, and still does so afterwards.
    tolerance : float
        Stop when the duality gap is at most this.
    max_steps : int
        Maximum number of steps. The method stops earlier if rounding errors leave no direction.

    Returns
    -------
    array, shape (d,)
        w, strictly feasible.
    """
    w: FloatArray
    w, z, s = _start(A, b, owners, alpha, signs, len(costs), CENTRING * tolerance)
    for _ in range(max_steps):
        gap = (alpha * s).sum() + (z * w[signs]).sum()
        if gap <= tolerance:
            break
        system = _system(A, alpha / s, owners, len(costs))
        S = system[0]
        for p in range(len(signs)):
            S[signs[p], signs[p]] += z[p] / w[signs[p]]
        cholesky(S, 0.0)
        if not np.diag(S).min() > 0.0:
            break
        d_alpha, d_s, d_w, d_z = np.zeros(len(b)), np.zeros(len(b)), np.zeros(len(w)), np.zeros(len(z))
        aim = step = 0.0
        for _ in range(2):  # the predictor, then the corrector
            _solve_for_direction(A, owners, signs, (alpha, s, w, z), system, aim, (d_alpha, d_s, d_w, d_z))
            step = _longest(z, d_z, _longest(w[signs], d_w[signs], _longest(s, d_s, _longest(alpha, d_alpha, 1.0))))
            left = ((alpha + step * d_alpha) * (s + step * d_s)).sum()
            left += ((z + step * d_z) * (w[signs] + step * d_w[signs])).sum()
            aim = (left / gap) ** 3 * gap / (len(b) + len(z))
        if not np.isfinite(d_alpha).all():
            break
        step = min(1.0, DAMPING * step)
        alpha += step * d_alpha
        s += step * d_s
        w += step * d_w
        z += step * d_z
    return w
