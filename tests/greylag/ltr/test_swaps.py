"""Swaps in a part of the x axis, compared with the crossing of every pair."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from greylag.ltr import kernels, swaps
from greylag.ltr.line_search import _lines, _points, prepare
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data

ENDS = [-np.inf, -1.5, -0.25, 0.0, 0.5, 1.0, 3.0, np.inf]


@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("shift", [0.0, 1e9])
@pytest.mark.parametrize(("start", "end"), list(pairwise(ENDS)))
def test_collects_the_swaps_and_the_places_before_them(
    levels: int | None, shift: float, start: float, end: float
) -> None:
    """A shift of all scores leaves float32 nothing of their differences, were they not compared within queries."""
    data = random_data(4, queries=6, documents=40, levels=levels)
    problem = prepare(data, Objective("ERR"))
    lines = _lines(problem, data.columns[0] + shift, data.columns[1], 1.0)
    s, v, rows, offsets, relevant_offsets = lines
    gains = problem.sorted_gains
    points = _points(lines, np.array([start - 1e-6 * abs(start), end + 1e-6 * abs(end)]))
    state, steps, events = swaps.collect(True, lines, gains, (start, end), points, kernels.FAR, problem.pairs)
    found = sorted(zip(steps.tolist(), events.tolist(), strict=True))
    expected = []
    for q in range(len(data.qids)):
        relevant = relevant_offsets[q + 1] - relevant_offsets[q]
        for a in range(offsets[q], offsets[q] + relevant):
            i = relevant_offsets[q] + a - offsets[q]
            above, count, reach = 0, 1, 1.0
            for d in range(offsets[q], offsets[q + 1]):
                apart, slope = s[d] - s[a], v[a] - v[d]
                other = relevant_offsets[q] + d - offsets[q] + 1 if d - offsets[q] < relevant else 0
                if slope == 0:
                    before = apart > 0 or (apart == 0 and rows[d] < rows[a])
                else:
                    x = apart / slope
                    before = (np.float32(x) >= start) == (slope > 0)
                    if start <= np.float32(x) < end:
                        expected.append((x, (i << 32) + (other << 1) + int(slope > 0)))
                above += before and not other
                count += before and bool(other)
                reach *= 1 - gains[d] if before and other else 1.0
            assert (state[0][i], state[1][i]) == (above, count)
            assert state[2][i] == pytest.approx(reach, rel=1e-12)
    assert found == sorted(expected)


@pytest.mark.parametrize("inverse", [False, True])
def test_bins_hold_all_swaps_in_the_order_of_the_axis(inverse: bool) -> None:
    rng = np.random.default_rng(3)
    steps, events = rng.standard_cauchy(1000), rng.integers(4, size=1000) + (np.arange(1000) << 32)
    sorted_steps, sorted_events, bins = swaps.sort_by_bin(inverse, steps, events, (-np.inf, np.inf), 20)
    assert dict(zip(sorted_events.tolist(), sorted_steps.tolist(), strict=True)) == dict(
        zip(events.tolist(), steps.tolist(), strict=True)
    )
    assert (len(bins), bins[0], bins[-1]) == (41, 0, 1000)
    for b in range(20):
        assert sorted_steps[: bins[2 * b]].max(initial=-np.inf) < sorted_steps[bins[2 * b] :].min(initial=np.inf)
        for e in range(bins[2 * b], bins[2 * b + 2]):
            up, past_relevant = sorted_events[e] & 1, sorted_events[e] & 2
            assert (e < bins[2 * b + 1]) == (bool(up) != (inverse and bool(past_relevant)))
