"""The assignment of training examples to the members of an ensemble by the task losses of their predictions.

References
----------
Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016,
section 3.4 and Table 1.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from greylag.ranking import FloatArray, IntArray

Assignment = Literal["all", "best", "sampled", "stochastic"]


def best_shares(losses: FloatArray, before: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Assign each of n examples to the member of lowest loss, shape (M, n), 0 or 1.

    Ties are drawn at random, except that an example stays with its member while no other has a lower loss.

    Parameters
    ----------
    losses : array, shape (M, n)
        Task losses of the members' predictions.
    before : array, shape (M, n)
        The last assignment; 0 if there is none.
    rng : Generator
        Draws ties.
    """
    tied = losses == losses.min(axis=0)
    chosen = np.where(tied, before + rng.random(losses.shape), -1.0).argmax(axis=0)
    return _one_member_each(chosen, len(losses))


def sampling_shares(losses: FloatArray) -> FloatArray:
    """q, shape (M, n): the probability that an example is assigned to a member,

        q_i^m = (1 - pi_i^m) / sum_j (1 - pi_i^j),    pi_i^m = Delta_i^m / sum_j Delta_i^j.

    The normalisation of pi makes any losses >= 0 probabilities, so that q_i^m = (1 - pi_i^m) / (M - 1). If all members
    have a loss of 0, all are equally probable. With one member, q is 1.
    """
    members = len(losses)
    if members == 1:
        return np.ones_like(losses)
    totals = losses.sum(axis=0)
    normalised = np.divide(losses, totals, out=np.full_like(losses, 1.0 / members), where=totals > 0)
    return np.asarray((1.0 - normalised) / (members - 1))


def draw_members(shares: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Draw one member for each example by its shares, which sum to 1; shape (M, n), 0 or 1."""
    members, n = shares.shape
    cumulated = shares.cumsum(axis=0)
    chosen = (cumulated <= rng.random(n) * cumulated[-1]).sum(axis=0)
    return _one_member_each(chosen, members)


def draw_examples(members: int, n: int, rng: np.random.Generator) -> FloatArray:
    """Draw one of n examples for each member; shape (M, n), 0 or 1."""
    return np.asarray(np.arange(n) == rng.integers(n, size=members)[:, None], dtype=np.float64)


def member_costs(shares: FloatArray, C: float) -> FloatArray:
    """The cost of each example for each member, shape (M, n): C times a mean over its own examples (eq. 10).

    The costs of a member sum to C, or to 0 if it has no example.
    """
    sums = shares.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(C * shares, sums, out=np.zeros_like(shares), where=sums > 0))


def _one_member_each(chosen: IntArray, members: int) -> FloatArray:
    return np.asarray(np.arange(members)[:, None] == chosen, dtype=np.float64)
