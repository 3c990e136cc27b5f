"""The compiled solver of `greylag.structured.constraint_pool`; a module of its own because numba is slow to import."""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled


@compiled()
def _sign_steps(gram: FloatArray, violations: FloatArray, signs: IntArray, alpha: FloatArray) -> float:
    """Optimise the multipliers of sign constraints one by one; returns the greatest change of any other violation."""
    greatest = 0.0
    for p in signs:
        step = max(violations[p], -alpha[p])
        alpha[p] += step
        for q in range(len(violations)):
            change = step * gram[p, q]
            violations[q] -= change
            if q != p:
                greatest = max(greatest, abs(change))
    return greatest


@compiled()
def climb(
    gram: FloatArray,
    violations: FloatArray,
    order: IntArray,
    starts: IntArray,
    alpha: FloatArray,
    tolerance: float,
    max_passes: int,
) -> None:
    """Maximise the dual of one member by coordinate steps; updates `alpha` and `violations` in place.

    A step moves weight between two constraints of an example: from the least violated one with positive weight to the
    one that raises the dual most by second-order information, by the optimal amount (Fan, Chen & Lin, JMLR 6, 2005).
    The multipliers of sign constraints, which have no sum, take single steps.

    Parameters
    ----------
    gram : array, shape (K, K)
        Inner products of the normals of the constraints.
    violations : array, shape (K,)
        b_p - a_p' w.
    order, starts : int arrays
        The constraints of example i, at least one, are ``order[starts[i]:starts[i + 1]]``; those after the last start
        are sign constraints, with normals of length 1.
    alpha : array, shape (K,)
        Dual weights, whose sum over an example does not change.
    tolerance : float
        Stop when the violations of the two constraints of any step differ by at most this, and no step of a multiplier
        changes a violation by more than this, in units of the loss.
    max_passes : int
        Maximum number of passes over the examples.
    """
    for _ in range(max_passes):
        widest = 0.0
        for i in range(len(starts) - 1):
            own = order[starts[i] : starts[i + 1]]
            low, worst, high = np.inf, -1, -np.inf
            for p in own:
                high = max(high, violations[p])
                if alpha[p] > 0.0 and violations[p] < low:
                    worst, low = p, violations[p]
            if worst < 0 or high <= low:
                continue
            widest = max(widest, high - low)
            best, most = -1, 0.0
            for p in own:
                rise = violations[p] - low
                if rise > 0.0:
                    length = max(gram[p, p] + gram[worst, worst] - 2.0 * gram[p, worst], 1e-12)
                    if rise * rise / length > most:
                        best, most = p, rise * rise / length
            length = max(gram[best, best] + gram[worst, worst] - 2.0 * gram[best, worst], 1e-12)
            step = min((violations[best] - low) / length, alpha[worst])
            alpha[best] += step
            alpha[worst] -= step
            for p in range(len(violations)):
                violations[p] -= step * (gram[best, p] - gram[worst, p])
        widest = max(widest, _sign_steps(gram, violations, order[starts[-1] :], alpha))
        if widest <= tolerance:
            break
