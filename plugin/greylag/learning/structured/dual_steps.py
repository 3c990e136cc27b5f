"""The compiled solver of `greylag.learning.structured.constraint_pool`; apart because numba is slow to import.

Steps between pairs of constraints are cheap and find which constraints have weight, but creep where normals are nearly
dependent, as those of coverage are. Newton steps among the constraints with weight end there at once.

Arrays are written to by loops: Numba takes more than a second to compile an assignment of one to a part of another.
"""

from __future__ import annotations

import numpy as np

from greylag.base import FloatArray, IntArray, compiled

PASSES = 10  # of pairwise steps before Newton steps
RIDGE = 1e-10  # of the greatest squared length, so that dependent normals have a direction: to the next bound


@compiled()
def climb(
    gram: FloatArray,
    violations: FloatArray,
    order: IntArray,
    starts: IntArray,
    alpha: FloatArray,
    tolerance: float,
    max_rounds: int,
) -> None:
    """Maximise the dual of one member; updates `alpha` and `violations`, b_p - a_p' w, both of shape (K,), in place.

    `gram` has the inner products of the K normals. The constraints of example i, at least one, are
    ``order[starts[i]:starts[i + 1]]``, and their alphas keep their sum; those after the last start are sign
    constraints, with normals of length 1. Ends when the violations of two constraints of an example, the lower one
    with weight, differ by at most `tolerance`, and no step of a sign constraint changes a violation by more.
    """
    for _ in range(max_rounds):
        for _ in range(PASSES):
            widest = _pairwise_pass(gram, violations, order, starts, alpha, tolerance)
            widest = max(widest, _sign_steps(gram, violations, order[starts[-1] :], alpha))
            if widest <= tolerance:
                return
        _newton_steps(gram, violations, order, starts, alpha)


@compiled()
def _pairwise_pass(
    gram: FloatArray, violations: FloatArray, order: IntArray, starts: IntArray, alpha: FloatArray, tolerance: float
) -> float:
    """Take a step in each example; returns the widest difference of violations that a step could exploit.

    A step moves weight from the least violated constraint with weight to the one that raises the dual most by
    second-order information, by the optimal amount (Fan, Chen & Lin, JMLR 6, 2005).
    """
    widest = 0.0
    for i in range(len(starts) - 1):
        own = order[starts[i] : starts[i + 1]]
        low, high = np.inf, -np.inf
        worst = -1
        for p in own:
            high = max(high, violations[p])
            if alpha[p] > 0.0 and violations[p] < low:
                worst, low = p, violations[p]
        # No constraint of the example has weight, as its cost is 0.
        if worst < 0:
            continue
        widest = max(widest, high - low)
        if high - low <= tolerance:
            continue
        best = -1
        most, square = 0.0, 1.0
        for p in own:
            rise = violations[p] - low
            if rise > 0.0:
                # The curvature along the pair. The rise of the dual is rise² / (2 length), if the step is not cut off.
                length = max(gram[p, p] + gram[worst, worst] - 2.0 * gram[p, worst], 1e-12)
                if rise * rise / length > most:
                    best, most, square = p, rise * rise / length, length
        # The optimum of the parabola, or the bound: weights are not negative.
        step = min((violations[best] - low) / square, alpha[worst])
        alpha[best] += step
        alpha[worst] -= step
        for p in range(len(violations)):
            violations[p] -= step * (gram[best, p] - gram[worst, p])
    return widest


@compiled()
def _sign_steps(gram: FloatArray, violations: FloatArray, signs: IntArray, alpha: FloatArray) -> float:
    """Optimise the multipliers of sign constraints one by one; returns the greatest change of any other violation."""
    greatest = 0.0
    for p in signs:
        # Unit normals: the curvature is 1, so that the violation is the step.
        step = max(violations[p], -alpha[p])
        alpha[p] += step
        for q in range(len(violations)):
            change = step * gram[p, q]
            violations[q] -= change
            if q != p:
                greatest = max(greatest, abs(change))
    return greatest


@compiled()
def _newton_steps(
    gram: FloatArray, violations: FloatArray, order: IntArray, starts: IntArray, alpha: FloatArray
) -> None:
    """Go to the optimum among the constraints with weight, dropping each whose weight falls to 0 on the way."""
    free, base = _free_variables(order, starts, alpha)
    L, slopes, ridge = _derivatives(gram, violations, free, base)
    # Not positive definite in spite of the ridge: pairwise steps go on alone.
    if not _cholesky(L):
        return
    # `free[:m]` shrinks as weights reach 0; L is the factor of their Hessian throughout.
    before, change = alpha.copy(), np.zeros(len(alpha))
    m = len(free)
    while m > 0:
        step = slopes[:m].copy()
        _solve_triangles(L, step)
        change[:] = 0.0
        for a in range(m):
            change[free[a]] += step[a]
            if base[a] >= 0:
                change[base[a]] -= step[a]
        share, hit = _move(alpha, change)
        # No bound was in the way: the whole step is the optimum.
        if hit < 0:
            break
        dropped = 0
        while dropped < m and free[dropped] != hit:
            dropped += 1
        if dropped == m:  # a base: the next round chooses another
            break
        # The slopes after the move. H + ridge times the step is the slope, so that H times it is slope - ridge * step.
        for a in range(m):
            slopes[a] += share * (ridge * step[a] - slopes[a])
        for a in range(dropped, m - 1):
            free[a], base[a], slopes[a] = free[a + 1], base[a + 1], slopes[a + 1]
        _drop_row(L, dropped, m)
        m -= 1
    # Once for all moves: each change of a weight reads a row of the Gram matrix, which may not fit in the cache.
    for p in range(len(alpha)):
        moved = alpha[p] - before[p]
        if moved != 0.0:
            for q in range(len(alpha)):
                violations[q] -= moved * gram[p, q]


@compiled()
def _move(alpha: FloatArray, change: FloatArray) -> tuple[float, int]:
    """Change weights as far as the first one that would become negative; return the share, and which one, or -1."""
    share, hit = 1.0, -1
    for p in range(len(alpha)):
        if change[p] < 0.0 and alpha[p] + share * change[p] < 0.0:
            share, hit = -alpha[p] / change[p], p
    # The one that was hit is exactly 0: constraints above 0 are free in the next round, and this one has to be out.
    for p in range(len(alpha)):
        alpha[p] = max(0.0, alpha[p] + share * change[p]) if p != hit else 0.0
    return share, hit


@compiled()
def _free_variables(order: IntArray, starts: IntArray, alpha: FloatArray) -> tuple[IntArray, IntArray]:
    """List the constraints with weight but the heaviest of each example, and that, which takes up their changes.

    Sign constraints, whose weights have no sum, have the base -1.
    """
    free, base, m = np.empty(len(alpha), dtype=np.int64), np.full(len(alpha), -1), 0
    for i in range(len(starts) - 1):
        own = order[starts[i] : starts[i + 1]]
        heaviest = own[0]
        for p in own:
            if alpha[p] > alpha[heaviest]:
                heaviest = p
        for p in own:
            if alpha[p] > 0.0 and p != heaviest:
                free[m], base[m] = p, heaviest
                m += 1
    for p in order[starts[-1] :]:
        if alpha[p] > 0.0:
            free[m] = p
            m += 1
    return free[:m].copy(), base[:m].copy()


@compiled()
def _derivatives(
    gram: FloatArray, violations: FloatArray, free: IntArray, base: IntArray
) -> tuple[FloatArray, FloatArray, float]:
    """Return the Hessian (a_p - a_base(p))' (a_q - a_base(q)), lower triangle, plus a ridge; slopes; and the ridge."""
    m = len(free)
    H, slopes = np.empty((m, m)), np.empty(m)
    for i in range(m):
        p, r = free[i], base[i]
        slopes[i] = violations[p] - (violations[r] if r >= 0 else 0.0)
        for j in range(i + 1):
            q, s = free[j], base[j]
            # A free weight moves against its base, so that its direction is the difference of the two normals.
            H[i, j] = gram[p, q] - (gram[p, s] if s >= 0 else 0.0)
            if r >= 0:
                H[i, j] -= gram[r, q] - (gram[r, s] if s >= 0 else 0.0)
    longest = 0.0
    for i in range(m):
        longest = max(longest, H[i, i])
    ridge = RIDGE * longest
    for i in range(m):
        H[i, i] += ridge
    return H, slopes, ridge


@compiled()
def _cholesky(S: FloatArray) -> bool:
    """Replace the lower triangle of S by its Cholesky factor; whether S is positive definite."""
    n = len(S)
    column = np.empty(n)
    for k in range(n):
        # Dependent normals make a pivot 0 or, by rounding, negative or NaN.
        if not S[k, k] > 0.0:
            return False
        S[k, k] = np.sqrt(S[k, k])
        for i in range(k + 1, n):
            S[i, k] /= S[k, k]
            column[i] = S[i, k]
        for i in range(k + 1, n):
            row = S[i]
            for j in range(np.uint64(k + 1), np.uint64(i + 1)):  # unsigned, so that the loop is vectorized
                row[j] -= column[i] * column[j]
    return True


@compiled()
def _drop_row(L: FloatArray, k: int, m: int) -> None:
    """Replace the Cholesky factor of a matrix of size m by that without row and column k, by Givens rotations."""
    for i in range(k, m - 1):
        for j in range(i + 2):
            L[i, j] = L[i + 1, j]
    for j in range(k, m - 1):
        # Without its row k the factor has one entry above the diagonal in each row from k on; each rotation clears one.
        length = np.hypot(L[j, j], L[j, j + 1])
        cosine, sine = L[j, j] / length, L[j, j + 1] / length
        L[j, j] = length
        for i in range(j + 1, m - 1):
            first, second = L[i, j], L[i, j + 1]
            L[i, j], L[i, j + 1] = cosine * first + sine * second, cosine * second - sine * first


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
