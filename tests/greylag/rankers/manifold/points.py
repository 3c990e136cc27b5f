"""Random points and direct implementations for the tests of manifold ranking."""

import numpy as np

GRAPHS = ("knn", "mutual_knn", "full")
ALPHAS = (0.1, 0.5, 0.9, 0.99)
SOLVERS = ("direct", "cg")


def random_points(seed, n=40, m=5):
    """Non-negative points, with about half of their coordinates 0, so that sparse and dense forms make sense."""
    rng = np.random.default_rng(seed)
    return rng.random((n, m)) * (rng.random((n, m)) < 0.5)


def dense(W):
    return W if isinstance(W, np.ndarray) else W.toarray()


def distances_of(X):
    return np.array([[np.sqrt(((a - b) ** 2).sum()) for b in X] for a in X])


def joined_pairs(W):
    return {(int(i), int(j)) for i, j in np.argwhere(W) if i < j}


def closed_form(W, y, alpha, exponent=0.5):
    """(1 - alpha) (I - alpha D^-k W D^(k-1))^-1 y by a dense solve, without loops; isolated points have degree 1."""
    W = W - np.diag(W.diagonal())
    degree = W.sum(axis=1)
    degree[degree <= 1e-14] = 1
    spread = degree[:, None] ** -exponent * W * degree ** (exponent - 1)
    return (1 - alpha) * np.linalg.solve(np.eye(len(W)) - alpha * spread, y)
