"""The kernel of `greylag.structured.constraint_pool`; in a module of its own, as numba is slow to import."""

from __future__ import annotations

import numba
import numpy as np

from greylag.ranking import FloatArray, IntArray


@numba.njit(cache=True, nogil=True)
def climb(
    gram: FloatArray,
    violations: FloatArray,
    order: IntArray,
    starts: IntArray,
    alpha: FloatArray,
    tolerance: float,
    max_passes: int,
) -> None:
    """Bring one member's dual weights to their optimum by pairwise steps; `alpha` and `violations` change in place.

    A step moves weight from an example's least violated constraint that has some to another one, as much as raises the
    dual most; the other is the one where that is most by second order (Fan, Chen & Lin, JMLR 6, 2005).

    Parameters
    ----------
    gram : inner products of the constraints' normals, shape (K, K).
    violations : b_p - a_p' w, shape (K,).
    order, starts : example i's constraints are those of numbers order[starts[i]:starts[i + 1]], at least one.
    alpha : shape (K,). An example's sum stays as it is.
    tolerance : stop when no two constraints of a step differ by more in their violations, in units of the loss.
    max_passes : over the examples, after which to stop anyway.
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
        if widest <= tolerance:
            break
