"""Weight vectors as charges on the unit sphere, which repel each other: what makes an ensemble's members differ.

Only directions count, as predictions do not depend on a weight vector's length. u_m is w_m / ||w_m||.

References
----------
Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016.
"""

from __future__ import annotations

import numpy as np

from greylag.ranking import FloatArray


def lengths(vectors: FloatArray) -> FloatArray:
    """Euclidean lengths over the last axis; like `greylag.structured.model.inner`, not by BLAS."""
    return np.asarray(np.sqrt(np.einsum("...d,...d->...", vectors, vectors)))


def directions(weights: FloatArray) -> FloatArray:
    """u, shape (M, d), of weights of shape (M, d); 0 where they are 0."""
    scale = np.abs(weights).max(axis=1, keepdims=True)  # lest small weights' squares vanish
    scaled = np.divide(weights, scale, out=np.zeros_like(weights), where=scale > 0)
    divisors = lengths(scaled)[:, None]
    return np.asarray(np.divide(scaled, divisors, out=np.zeros_like(weights), where=divisors > 0))


def coulomb_energy(weights: FloatArray) -> float:
    """The sum over pairs m < k of 1 / ||u_m - u_k|| (eq. 3 on the sphere, eq. 5); infinite where two coincide."""
    _, distances = _pairs(weights)
    with np.errstate(divide="ignore"):
        return float((1.0 / distances[np.triu_indices(len(weights), 1)]).sum())


def coulomb_forces(weights: FloatArray) -> FloatArray:
    """F, shape (M, d), minus the energy's gradient by u: F_m = sum over k of (u_m - u_k) / ||u_m - u_k||³ (eq. 4).

    All forces together are 0. Between coinciding directions, which repel without a direction to go, there is none.
    """
    differences, distances = _pairs(weights)
    inverse = np.divide(1.0, distances**3, out=np.zeros_like(distances), where=distances > 0)
    return np.asarray(np.einsum("mkd,mk->md", differences, inverse))


def displacements(weights: FloatArray, alpha: float) -> FloatArray:
    """G, shape (M, d): how far the forces would move each weight vector along its sphere,

        G_m = ||w_m|| (P(u_m + alpha F_m) - u_m),    P(v) = v / ||v||.

    Eq. 6 as printed does not vanish at alpha = 0, where the ensemble is said to be a standard structured SVM; this is
    the displacement of the direction, brought back to the weights' length by the intercept theorem, as the text says.
    """
    units = directions(weights)
    moved = directions(units + alpha * coulomb_forces(weights)) - units
    return np.asarray(lengths(weights)[:, None] * moved)


def mean_angle(weights: FloatArray) -> float:
    """The mean angle between two of the weight vectors, in degrees; 0 where there is but one."""
    if len(weights) < 2:
        return 0.0
    _, distances = _pairs(weights)
    chords = distances[np.triu_indices(len(weights), 1)]
    return float(np.degrees(2.0 * np.arcsin(np.clip(chords / 2.0, 0.0, 1.0))).mean())


def _pairs(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """u_m - u_k, shape (M, M, d), and the lengths of these."""
    units = directions(weights)
    differences = units[:, None, :] - units[None, :, :]
    return differences, lengths(differences)
