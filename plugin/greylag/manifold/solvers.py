"""Three solvers for the limit of f <- alpha S f + (1 - alpha) y, where S = D^-1/2 W D^-1/2.

Arguments are checked by `greylag.manifold.ranking`: W is symmetric and non-negative, y is float64 of shape (n,) or
(n, q), and alpha is in [0, 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import numpy as np
from scipy import sparse

from greylag.errors import ParameterError
from greylag.manifold.graph import AffinityGraph, InnerProductGraph
from greylag.ranking import FloatArray

TOLERANCE = 1e-12  # relative, for conjugate gradients and the iteration
BLAS_SPLITS_FROM = 10_000


def inverse_root_degree(W: AffinityGraph) -> FloatArray:
    """The diagonal of D^-1/2, shape (n,), 1 for isolated points."""
    degree = W @ np.ones(W.shape[0])
    return np.where(degree > 0, degree, 1.0) ** -0.5


def spreading(W: AffinityGraph, root: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """The map f -> S f."""
    return lambda f: (root * (W @ (root * f.T).T).T).T


def iteration(spread: Callable[[FloatArray], FloatArray], y: FloatArray, alpha: float) -> Iterator[FloatArray]:
    """Iterate f(0) = y, f(1), f(2), ... without end."""
    f = y
    while True:
        yield f
        f = alpha * spread(f) + (1 - alpha) * y


def steps(alpha: float) -> int:
    """A t for which |f(t) - f*| <= TOLERANCE |f*|.

    Since the eigenvalues of S are in [-1, 1], |f(t) - f*| <= alpha^t |y - f*| <= 2 alpha^t |y|, and
    |f*| >= |y| (1 - alpha) / (1 + alpha).
    """
    return math.ceil(math.log(TOLERANCE * (1 - alpha) / 4) / math.log(alpha)) if alpha else 1


def conjugate_gradients(spread: Callable[[FloatArray], FloatArray], y: FloatArray, alpha: float) -> FloatArray:
    """f*, one column at a time, from products with S alone."""
    from scipy.sparse.linalg import LinearOperator, cg
    from threadpoolctl import threadpool_limits

    system = LinearOperator((len(y), len(y)), matvec=lambda f: f - alpha * spread(f), dtype=np.float64)
    limit = np.empty_like(y)
    # BLAS splits long sums over threads, which is slower here and makes the last bits depend on their number.
    long = len(y) > BLAS_SPLITS_FROM
    with threadpool_limits(1, user_api="blas") if long else nullcontext():
        for column, target in zip(limit.reshape(len(y), -1).T, y.reshape(len(y), -1).T, strict=True):
            column[:], unfinished = cg(system, (1 - alpha) * target, rtol=TOLERANCE, atol=0.0)
            if unfinished:
                raise ParameterError(f"conjugate gradients do not converge for alpha = {alpha}; use solver='direct'")
    return limit


def direct(W: AffinityGraph, root: FloatArray, y: FloatArray, alpha: float, *, overwrite: bool) -> FloatArray:
    """f* by a factorisation of I - alpha S; `overwrite` permits overwriting a dense W."""
    if isinstance(W, InnerProductGraph):
        W, overwrite = W.toarray(), True
    solution = _sparse_lu(W, root, y, alpha) if sparse.issparse(W) else _cholesky(W, root, y, alpha, overwrite)
    return (1 - alpha) * solution


def _cholesky(W: FloatArray, root: FloatArray, y: FloatArray, alpha: float, overwrite: bool) -> FloatArray:
    from scipy.linalg import cho_factor, cho_solve

    system = np.multiply(W, root, out=W if overwrite else None)
    system *= -alpha * root[:, np.newaxis]
    system.flat[:: len(root) + 1] += 1
    # The transpose is the same matrix in the memory order that LAPACK factorises in place.
    factor = cho_factor(system.T, lower=True, overwrite_a=True, check_finite=False)
    return np.asarray(cho_solve(factor, y, check_finite=False))


def _sparse_lu(W: sparse.csr_array, root: FloatArray, y: FloatArray, alpha: float) -> FloatArray:
    from scipy.sparse.linalg import splu

    scale = sparse.diags_array(root)
    system = (sparse.eye_array(len(root)) - alpha * scale @ W @ scale).tocsc()
    # SuperLU's settings for a symmetric, diagonally dominant matrix.
    factor = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.asarray(factor.solve(y))
