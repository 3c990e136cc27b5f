"""Bounds of measures of the top ranks, compared with the measure itself at many points."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.ltr import line_search as module
from greylag.ltr import tops
from greylag.ltr.line_search import mean, prepare
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data


@settings(deadline=None)
@given(
    st.sampled_from(["nDCG@3", "P@1", "nDCG@10", "P@5"]),
    st.integers(0, 10**6),
    st.sampled_from([None, 2, 5]),
    st.lists(st.floats(-50, 50, width=32), min_size=1, max_size=5, unique=True),
    st.sampled_from([1e-30, 1.0, 1e30]),
)
def test_bounds_hold_at_ends_and_between(
    name: str, seed: int, levels: int | None, inner: list[float], magnitude: float
) -> None:
    """Queries have 3 to 40 documents, so that some have fewer than the cut-off; `levels` makes ties."""
    data = random_data(seed, queries=6, documents=3 + seed % 38, levels=levels)
    problem = prepare(data, Objective.parse(name))
    depth, rows = int(np.isfinite(problem.divisor).sum()), problem.rows
    scores, direction = magnitude * data.columns[0], magnitude * data.columns[1]
    lines = scores[rows], direction[rows], rows, problem.offsets, problem.relevant_offsets
    ends = np.array([-np.inf, *sorted(inner), np.inf])
    wanted = np.arange(len(ends) - 1) % 3 != seed % 3
    values, bounds = tops.survey(
        depth, problem.divisor, lines, problem.gains[rows], problem.weights, module._points(lines, ends), wanted, 1
    )
    assert not values[~wanted].any()
    assert not bounds[~wanted].any()
    finite = np.clip(ends, -1e6, 1e6)
    for b in np.flatnonzero(wanted):
        inside = [mean(problem, scores + x * direction) for x in np.linspace(finite[b], finite[b + 1], 50)]
        assert max(inside) <= bounds[b] + 1e-12
        assert values[b] <= inside[0] + 1e-12


def test_bounds_are_reached_where_nothing_is_close() -> None:
    """Between points that are near each other, without a crossing, both are the measure."""
    data = random_data(4, queries=20, documents=60)
    problem, rows = prepare(data, Objective.parse("nDCG@10")), prepare(data, Objective.parse("nDCG@10")).rows
    lines = data.columns[0][rows], data.columns[1][rows], rows, problem.offsets, problem.relevant_offsets
    points = module._points(lines, np.array([0.3, 0.3 + 1e-7]))
    found = tops.survey(10, problem.divisor, lines, problem.gains[rows], problem.weights, points, np.array([True]), 1)
    expected = mean(problem, data.columns[0] + 0.3 * data.columns[1])
    np.testing.assert_allclose(np.ravel(found), expected, atol=1e-12)
