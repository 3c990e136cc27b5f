"""Assignments against the definitions of Table 1 and eq. 10."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.structured.assignment import best_shares, draw_examples, draw_members, member_costs, sampling_shares

LOSSES = np.array([[0.0, 0.5, 1.0, 0.0, 4.0], [0.5, 0.5, 1.0, 0.0, 1.0], [0.5, 0.0, 1.0, 0.0, 5.0]])
DRAWS = 20_000


def test_sampling_shares_fall_with_the_share_of_losses() -> None:
    # (1 - pi) / (M - 1) by hand, with pi = 0.4, 0.1, 0.5 in the last column.
    expected = np.array(
        [[0.5, 0.25, 1 / 3, 1 / 3, 0.3], [0.25, 0.25, 1 / 3, 1 / 3, 0.45], [0.25, 0.5, 1 / 3, 1 / 3, 0.25]]
    )
    np.testing.assert_allclose(sampling_shares(LOSSES), expected)
    np.testing.assert_allclose(sampling_shares(7.0 * LOSSES), expected)
    np.testing.assert_allclose(sampling_shares(np.array([[0.0, 0.2], [0.9, 0.6]])), [[1.0, 0.75], [0.0, 0.25]])
    assert sampling_shares(np.array([[0.0, 3.0]])).tolist() == [[1.0, 1.0]]


def test_members_are_drawn_by_their_shares() -> None:
    rng, shares = np.random.default_rng(0), sampling_shares(LOSSES)
    drawn = np.array([draw_members(shares, rng) for _ in range(DRAWS)])
    assert (drawn.sum(axis=1) == 1).all()
    np.testing.assert_allclose(drawn.mean(axis=0), shares, atol=0.015)


def test_best_draws_ties_and_keeps_its_members() -> None:
    rng, none = np.random.default_rng(0), np.zeros_like(LOSSES)
    drawn = np.array([best_shares(LOSSES, none, rng) for _ in range(DRAWS)])
    assert (drawn.sum(axis=1) == 1).all()
    third = 1 / 3
    expected = [[1, 0, third, third, 0], [0, 0, third, third, 1], [0, 1, third, third, 0]]
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.015)
    before = np.array([[0.0] * 5, [0.0] * 5, [1.0] * 5])
    for _ in range(20):
        assert best_shares(LOSSES, before, rng).tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 1, 1, 1, 0]]


def test_each_member_draws_its_own_example() -> None:
    rng = np.random.default_rng(0)
    drawn = np.array([draw_examples(2, 3, rng) for _ in range(DRAWS)])
    assert (drawn.sum(axis=2) == 1).all()
    np.testing.assert_allclose(drawn.mean(axis=0), 1 / 3, atol=0.015)
    both = (drawn[:, 0] * drawn[:, 1]).sum(axis=1).mean()
    assert both == pytest.approx(1 / 3, abs=0.015)  # independent draws


def test_costs_of_a_member_are_a_mean_over_its_examples() -> None:
    shares = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.2, 0.2, 0.6]])
    expected = [[3.0, 0.0, 3.0], [0.0, 6.0, 0.0], [0.0, 0.0, 0.0], [1.2, 1.2, 3.6]]
    np.testing.assert_allclose(member_costs(shares, 6.0), expected)
