"""Weight vectors as mutually repelling charges on the unit sphere.

Only directions u_m = w_m / ||w_m|| count, since predictions do not depend on the length of a weight vector.

References
----------
Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016.
"""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray


def lengths(vectors: FloatArray) -> FloatArray:
    """Euclidean lengths over the last axis, by einsum like `greylag.structured.inner`."""
    return np.asarray(np.sqrt(np.einsum("...d,...d->...", vectors, vectors)))


def directions(weights: FloatArray) -> FloatArray:
    """The directions u of weights, both of shape (M, d); 0 for a zero vector."""
    scale = np.abs(weights).max(axis=1, keepdims=True)  # prevents underflow of the squares of small weights
    scaled = np.divide(weights, scale, out=np.zeros_like(weights), where=scale > 0)
    divisors = lengths(scaled)[:, None]
    return np.asarray(np.divide(scaled, divisors, out=np.zeros_like(weights), where=divisors > 0))


def coulomb_energy(weights: FloatArray) -> float:
    """The sum over pairs m < k of 1 / ||u_m - u_k|| (eq. 3 on the sphere, eq. 5); infinite if two coincide."""
    _, distances = _pairs(weights)
    with np.errstate(divide="ignore"):
        return float((1.0 / distances[np.triu_indices(len(weights), 1)]).sum())


def coulomb_forces(weights: FloatArray) -> FloatArray:
    """F, shape (M, d), minus the energy's gradient by u: F_m = sum over k of (u_m - u_k) / ||u_m - u_k||³ (eq. 4).

    The forces sum to 0. Coinciding directions exert no force on each other, as it would have no direction.
    """
    differences, distances = _pairs(weights)
    inverse = np.divide(1.0, distances**3, out=np.zeros_like(distances), where=distances > 0)
    return np.asarray(np.einsum("mkd,mk->md", differences, inverse))


def displacements(weights: FloatArray, alpha: float) -> FloatArray:
    """G, shape (M, d): the displacement of each weight vector along its sphere by the forces,

        G_m = ||w_m|| (P(u_m + alpha F_m) - u_m),    P(v) = v / ||v||.

    Eq. 6 as printed does not vanish at alpha = 0, although the paper states that the ensemble is a standard structured
    SVM there. This is the displacement of the direction, scaled to the length of the weights, as the text describes.
    """
    units = directions(weights)
    moved = directions(units + alpha * coulomb_forces(weights)) - units
    return np.asarray(lengths(weights)[:, None] * moved)


def mean_angle(weights: FloatArray) -> float:
    """The mean angle between two weight vectors, in degrees; 0 for a single vector."""
    if len(weights) < 2:
        return 0.0
    _, distances = _pairs(weights)
    chords = distances[np.triu_indices(len(weights), 1)]
    return float(np.degrees(2.0 * np.arcsin(np.clip(chords / 2.0, 0.0, 1.0))).mean())


def _pairs(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """u_m - u_k, shape (M, M, d), and their lengths."""
    units = directions(weights)
    differences = units[:, None, :] - units[None, :, :]
    return differences, lengths(differences)
