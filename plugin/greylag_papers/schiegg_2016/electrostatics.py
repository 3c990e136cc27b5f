"""Weight vectors as mutually repelling charges on the unit sphere.

Only directions u_m = w_m / ||w_m|| count, since predictions do not depend on the length of a weight vector. Equations
are of Schiegg, Diego and Hamprecht (2016), see `greylag_papers.schiegg_2016.coulomb`.
"""

from __future__ import annotations

import numpy as np

from greylag.base import FloatArray


def lengths(vectors: FloatArray) -> FloatArray:
    """Compute Euclidean lengths over the last axis, by einsum like `greylag.learning.inner`."""
    return np.asarray(np.sqrt(np.einsum("...d,...d->...", vectors, vectors)))


def directions(weights: FloatArray) -> FloatArray:
    """Return the directions u of weights, both of shape (M, d); 0 for a zero vector."""
    scale = np.abs(weights).max(axis=1, keepdims=True)  # prevents underflow of the squares of small weights
    scaled = np.divide(weights, scale, out=np.zeros_like(weights), where=scale > 0)
    divisors = lengths(scaled)[:, None]
    return np.asarray(np.divide(scaled, divisors, out=np.zeros_like(weights), where=divisors > 0))


def riesz_energy(weights: FloatArray, s: float = 1.0) -> float:
    """Compute E_s, the sum over pairs m < k of 1 / ||u_m - u_k||^s (eq. 3, 5), infinite if two directions coincide.

    Eq. 3 counts each pair twice, eq. 4 once; the strength of the repulsion absorbs the factor.
    """
    _, distances = _pairs(weights)
    with np.errstate(divide="ignore"):
        return float((1.0 / distances[np.triu_indices(len(weights), 1)] ** s).sum())


def riesz_forces(weights: FloatArray, s: float = 1.0) -> FloatArray:
    """Compute F, shape (M, d), minus the gradient of E_s by u: F_m = s sum_k (u_m - u_k) / ||u_m - u_k||^(s + 2).

    With s = 1, this is eq. 4. The forces sum to 0. Coinciding directions exert no force on each other, as it would have
    no direction.
    """
    differences, distances = _pairs(weights)
    inverse = np.divide(s, distances ** (s + 2), out=np.zeros_like(distances), where=distances > 0)
    return np.asarray(np.einsum("mkd,mk->md", differences, inverse))


def displacements(weights: FloatArray, alpha: float, s: float = 1.0) -> FloatArray:
    """Compute G, shape (M, d): the displacement of each weight vector along its sphere by the forces,

        G_m = ||w_m|| (P(u_m + alpha F_m) - u_m),    P(v) = v / ||v||.

    This is eq. 6 as Figure 2 draws it: the moved direction, projected back to the weight vector by similar triangles.
    The printed formula, ||w_m||² P(u_m + alpha F_m), does not vanish at alpha = 0, where the paper has the structured
    SVM. G is bounded: as alpha grows, it approaches ||w_m|| (P(F_m) - u_m).
    """
    units = directions(weights)
    moved = directions(units + alpha * riesz_forces(weights, s)) - units
    return np.asarray(lengths(weights)[:, None] * moved)


def energy_descent(weights: FloatArray, alpha: float, s: float = 1.0) -> FloatArray:
    """Compute minus the gradient of alpha E_s by the weights, shape (M, d): alpha / ||w_m|| (I - u_m u_m') F_m.

    Orthogonal to the weights; 0 for a zero vector.
    """
    units, forces, sizes = directions(weights), riesz_forces(weights, s), lengths(weights)[:, None]
    tangential = forces - np.einsum("md,md->m", units, forces)[:, None] * units
    return np.asarray(np.divide(alpha * tangential, sizes, out=np.zeros_like(weights), where=sizes > 0))


def mean_angle(weights: FloatArray) -> float:
    """Compute the mean angle between two weight vectors, in degrees; 0 for a single vector."""
    if len(weights) < 2:
        return 0.0
    _, distances = _pairs(weights)
    chords = distances[np.triu_indices(len(weights), 1)]
    return float(np.degrees(2.0 * np.arcsin(np.clip(chords / 2.0, 0.0, 1.0))).mean())


def _pairs(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Compute u_m - u_k, shape (M, M, d), and their lengths."""
    units = directions(weights)
    differences = units[:, None, :] - units[None, :, :]
    return differences, lengths(differences)
