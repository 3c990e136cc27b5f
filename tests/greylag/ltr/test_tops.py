"""Measures of the top ranks along a line, compared with the measure itself between all crossings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.ltr import line_search as module
from greylag.ltr.data import RankingData
from greylag.ltr.line_search import Problem, Survey, mean, prepare
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data

OBJECTIVES = ["nDCG@3", "P@1", "nDCG@10", "P@5", "ERR@1", "ERR@6", "RR", "RR@2"]


def divided(problem: Problem, scores: np.ndarray, direction: np.ndarray, span: tuple[float, float]) -> Survey:
    """The survey of a part of the x axis."""
    unknown = np.array([np.inf])
    whole = Survey(1.0, np.array(span), -unknown, unknown, np.array([problem.pairs]), np.empty(0))
    return module._divide(problem, module._lines(problem, scores, direction, 1.0), whole, np.array([True]))


@settings(deadline=None)
@given(
    st.sampled_from(OBJECTIVES),
    st.integers(0, 10**6),
    st.sampled_from([None, 1, 2, 5]),
    st.lists(st.floats(-50, 50, width=32), max_size=2, unique=True),
    st.sampled_from([1e-30, 1.0, 1e30]),
)
def test_bounds_hold_at_ends_and_between(
    name: str, seed: int, levels: int | None, ends: list[float], magnitude: float
) -> None:
    """Queries have up to 40 documents, so that some have fewer than the cut-off; `levels` makes ties."""
    data = random_data(seed, queries=6, documents=3 + seed % 38, levels=levels)
    problem = prepare(data, Objective.parse(name))
    scores, direction = magnitude * data.columns[0], magnitude * data.columns[1]
    span = (-np.inf, *ends, np.inf) if len(ends) < 2 else sorted(ends)
    found = divided(problem, scores, direction, (float(span[0]), float(span[1])))
    finite = np.clip(found.ends, -1e6, 1e6)
    for b in np.random.default_rng(seed).choice(len(found.values), 20):  # at ends themselves, documents may be equal
        left, width = finite[b], finite[b + 1] - finite[b]
        inside = [mean(problem, scores + (left + part * width) * direction) for part in (1e-9, 0.123, 0.456, 0.789)]
        assert max(inside) <= found.bounds[b] + 1e-12
        assert found.values[b] <= inside[0] + 1e-12


def best_between(data: RankingData, problem: Problem, low: float, high: float) -> float:
    """The highest measure between two points, by one point in every interval between crossings of any documents."""
    s, v = data.columns[0], data.columns[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = ((s[:, None] - s) / (v - v[:, None])).ravel()
    places = np.concatenate([[low], np.unique(crossings[(crossings > low) & (crossings < high)]), [high]])
    return max(mean(problem, s + x * v) for x in 0.5 * (places[1:] + places[:-1]))


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("span", [(-np.inf, np.inf), (-0.5, 2.0), (1.0, np.inf)])
def test_bounds_of_one_query_are_its_best(name: str, span: tuple[float, float]) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        data = RankingData(
            specs=("a", "b"), qids=("1",), offsets=np.array([0, 50]), docids=tuple(map(str, range(50))),
            features=rng.standard_normal((50, 2)), grades=np.maximum(0, rng.integers(-6, 4, 50)),
            relevant_grades=(np.array([3, 2, 1]),),
        )  # fmt: skip
        problem = prepare(data, Objective.parse(name))
        found = divided(problem, data.columns[0], data.columns[1], span)
        exact = 0
        for b in np.flatnonzero(np.isfinite(found.ends[1:]) & np.isfinite(found.ends[:-1]))[::25]:
            best = best_between(data, problem, found.ends[b], found.ends[b + 1])
            assert best <= found.bounds[b] + 1e-12
            exact += abs(best - found.bounds[b]) < 1e-12
        assert exact >= 0.95 * len(found.values[::25])


def test_two_documents_that_never_cross_keep_their_order() -> None:
    """Equal lines are ordered by row, and parallel ones by score."""
    data = RankingData(
        specs=("a", "b"), qids=("1",), offsets=np.array([0, 4]), docids=("w", "x", "y", "z"),
        features=np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 1.0]]), grades=np.array([0, 1, 0, 1]),
        relevant_grades=(np.array([1, 1]),),
    )  # fmt: skip
    for name, value in (("RR", 1 / 3), ("P@2", 0.0), ("P@3", 1 / 3)):
        problem = prepare(data, Objective.parse(name))
        found = divided(problem, data.columns[0], data.columns[1], (-np.inf, np.inf))
        np.testing.assert_allclose(found.values, value, rtol=1e-12)
        np.testing.assert_allclose(found.bounds, value, rtol=1e-12)
