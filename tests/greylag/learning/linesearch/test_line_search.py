"""The compiled line search: compared with every interval, and with sums written out.

Tests `kernels` and `objectives`; the search as it is defined stands beside it.
"""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.learning.data import RankingData
from greylag.learning.linesearch import kernels
from greylag.learning.linesearch import line_search as module
from greylag.learning.linesearch.line_search import Survey, line_search, mean, prepare, survey
from greylag.learning.linesearch.objectives import Objective
from tests.greylag.learning.linesearch import reference
from tests.greylag.learning.samples import random_data

OBJECTIVES = ["AP", "nDCG", "nDCG@5", "RR", "P@5", "ERR@20", "AP@4", "nDCG(dcg='exp-log2')@5"]


def one_query(lines, grades):
    return RankingData(
        specs=("a", "b"), qids=("1",), offsets=np.array([0, len(lines)]), docids=tuple(map(str, range(len(lines)))),
        features=np.array(lines, dtype=float), grades=np.array(grades),
        relevant_grades=(np.array([grade for grade in grades if grade > 0]),),
    )  # fmt: skip


def test_the_example_of_the_module():
    """r1 and r2 are relevant; u, v and w are not."""
    data = one_query([(0, 1), (3, 0), (4, 0), (2, 0), (-6, 2)], [1, 1, 0, 0, 0])
    problem, (scores, direction) = prepare(data, Objective("AP")), data.columns
    values = [mean(problem, scores + x * direction) for x in (1, 2.5, 3.5, 4.25, 4.75, 5.5, 7)]
    assert values == pytest.approx([1 / 2, 7 / 12, 7 / 12, 5 / 6, 3 / 4, 3 / 4, 1 / 2])
    assert line_search(problem, scores, direction) == (4.25, pytest.approx(5 / 6))
    assert reference.line_search(problem, scores, direction) == (4.25, pytest.approx(5 / 6))
    ends = np.array([-np.inf, 3.5, 4.2, np.inf])
    cuts = module._cell_numbers(ends[1:-1])
    surveyed = module._survey(
        problem, module._lines(problem, scores, direction, 1.0), survey(problem, scores, direction), cuts, 1
    )
    assert surveyed.values == pytest.approx([1 / 2, 7 / 12, 5 / 6])
    assert surveyed.bounds == pytest.approx([2 / 3, 5 / 6, 5 / 6])


@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_takes_the_middle_of_the_best_interval(scale):
    data = one_query([(0, 1), (2 * scale, 0), (-8 * scale, 2)], [1, 0, 0])
    found = line_search(prepare(data, Objective("AP")), data.columns[0], data.columns[1])
    assert found == (pytest.approx(5 * scale), 1.0)  # the first passes the second at 2, and is passed by the last at 8


def test_a_direction_that_changes_nothing():
    data = random_data(3)
    found = line_search(prepare(data, Objective("AP")), data.columns[0], np.zeros(len(data.docids)))
    assert found.step == 0.0
    assert found.value == pytest.approx(np.mean(Objective("AP").evaluate(data, data.columns[0])))


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("room", [1 << 20, 40, 3])
def test_equals_the_reference(name, room, monkeypatch):
    """With little room the x axis is divided and swept in parts."""
    monkeypatch.setattr(module, "MAX_SWAPS", room)
    monkeypatch.setattr(module, "MAX_SWEPT_PAIRS", room)
    monkeypatch.setattr(module, "SWAPS_PER_BIN", max(1, room // 4))
    objective = Objective.parse(name)
    for seed in range(12):
        monkeypatch.setattr(module, "FEW_RELEVANT", 12 if seed % 4 < 2 else 0)  # all documents, or those that count
        data = random_data(seed, queries=5, documents=16, levels=None if seed % 2 else 4)
        scores, direction = data.columns[0], data.columns[1]
        problem = prepare(data, objective)
        found = line_search(problem, scores, direction)
        expected = reference.line_search(problem, scores, direction)
        assert found.value == pytest.approx(expected.value, abs=1e-12)
        assert found.step == pytest.approx(expected.step, rel=1e-9)
        assert found.value == pytest.approx(mean(problem, scores + found.step * direction), abs=1e-12)


def test_buckets_whose_bound_is_below_their_ends_by_rounding_are_not_divided():
    values = np.array([0.5, 0.5, 0.5])
    surveyed = Survey(1.0, np.array([-np.inf, 0, 1, np.inf]), values, values - 1e-16, np.ones(3, int), np.zeros(1))
    assert (module._parts(surveyed, 16) == 0).all()


def test_of_equally_good_intervals_the_widest_and_then_the_leftmost_is_taken(monkeypatch):
    """Small integers as features make many ties; the order in which buckets are swept depends on the room."""
    monkeypatch.setattr(module, "MAX_SWEPT_PAIRS", 3)
    for seed, room in product(range(30), (1 << 20, 3)):
        monkeypatch.setattr(module, "MAX_SWAPS", room)
        monkeypatch.setattr(module, "FEW_RELEVANT", 12 if seed % 2 else 0)
        data = random_data(seed, queries=4, documents=14, levels=2 + seed % 3)
        for name in ("P@5", "AP@2", "RR"):
            problem = prepare(data, Objective.parse(name))
            found, expected = (search(problem, *data.columns[:2]) for search in (line_search, reference.line_search))
            assert found.value == pytest.approx(expected.value, abs=1e-12)
            assert found.step == expected.step


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("equal", [False, True])
def test_surveys_bound_the_measure(name, equal, monkeypatch):
    """Documents on the same line, of which some are relevant, are ordered by row."""
    monkeypatch.setattr(module, "MAX_SWEPT_PAIRS", 3)
    monkeypatch.setattr(module, "FEW_RELEVANT", 0)
    monkeypatch.setattr(module, "DOCUMENTS_PER_DEPTH", 2)
    data = random_data(5, queries=30, documents=30)
    if equal:
        data = replace(data, features=data.features[np.arange(len(data.docids)) // 3 * 3])
    problem = prepare(data, Objective.parse(name))
    scores, direction = data.columns[0], data.columns[1]
    found = survey(problem, scores, direction)
    ends = found.ends * found.scale
    assert len(found.values) > 5
    for bucket, (start, end) in enumerate(pairwise(ends)):
        left = start * (1 - np.sign(start) * 1e-7) if np.isfinite(start) else -1e9
        right = end if np.isfinite(end) else 1e9
        assert found.values[bucket] == pytest.approx(mean(problem, scores + left * direction), abs=1e-12)
        inside = [mean(problem, scores + x * direction) for x in np.linspace(max(start, -1e9), right, 7)[1:-1]]
        assert max(inside) <= found.bounds[bucket] + 1e-12


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("levels", [None, 6])
def test_surveys_do_not_change_the_result(name, levels, monkeypatch):
    data = random_data(8, queries=50, documents=120, levels=levels)
    problem = prepare(data, Objective.parse(name))
    assert problem.pairs > module.MAX_SWEPT_PAIRS
    found = line_search(problem, *data.columns[:2])
    monkeypatch.setattr(module, "MAX_SWEPT_PAIRS", problem.pairs)
    swept = line_search(problem, *data.columns[:2])
    assert found.value == pytest.approx(swept.value, abs=1e-12)
    assert found.step == pytest.approx(swept.step, rel=1e-9)


def test_values_below_a_floor_may_be_missed_and_others_not(monkeypatch):
    data = random_data(7, queries=6, documents=30)
    problem = prepare(data, Objective("AP"))
    best = line_search(problem, data.columns[0], data.columns[1])
    for room in (1 << 20, 3):
        monkeypatch.setattr(module, "MAX_SWAPS", room)
        monkeypatch.setattr(module, "MAX_SWEPT_PAIRS", room)
        above, below = (line_search(problem, *data.columns[:2], floor=best.value + by) for by in (0.1, -1e-9))
        assert above.value in (-np.inf, best.value)
        assert below == best


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("small", [3, 1 << 15])
def test_the_scale_of_a_feature_does_not_matter(name, small, monkeypatch):
    monkeypatch.setattr(module, "MAX_SWEPT_PAIRS", small)
    data = random_data(9, queries=12, documents=30)
    problem = prepare(data, Objective.parse(name))
    scores, direction = data.columns[0], data.columns[1]
    expected = line_search(problem, scores, direction).value
    for by_scores, by_direction in ((0, 30), (0, 60), (-300, 0), (300, -600), (-990, -300), (-990, -990), (300, 300)):
        found = line_search(problem, np.ldexp(scores, by_scores), np.ldexp(direction, by_direction))
        assert found.value == pytest.approx(expected, abs=1e-12)


ENDS = [-np.inf, -1.5, -0.25, 0.0, 0.5, 1.0, 3.0, np.inf]
TOP = ["nDCG@3", "P@1", "nDCG@10", "P@5", "ERR@1", "ERR@6", "RR", "RR@2", "nDCG(dcg='exp-log2')@3"]


@pytest.mark.parametrize("code", range(5))
@pytest.mark.parametrize("depth", [2, 100])
def test_measures_are_sums_of_terms(code, depth):
    rng = np.random.default_rng(code)
    scores, gains = rng.integers(4, size=30).astype(float), np.maximum(0, rng.integers(-2, 3, size=30)) / 4
    normalisers = np.array([0.5, 2.0])
    divisors = kernels.divisors(code, depth, 30)
    found = kernels.evaluate(code, divisors, np.array([0, 12, 30]), scores, gains, normalisers)
    for q, rows in enumerate((range(12), range(12, 30))):
        ranked = sorted(rows, key=lambda row: -scores[row])
        relevant = [(rank, gains[row]) for rank, row in enumerate(ranked, 1) if gains[row] > 0]
        total = 0.0
        for count, (rank, gain) in enumerate(relevant, 1):
            reach = np.prod([1 - above for _, above in relevant[: count - 1]])
            term = [count / rank, gain / np.log2(rank + 1), (count == 1) / rank, 1.0, gain * reach / rank][code]
            total += term if rank <= depth else 0.0
        assert found[q] == pytest.approx(total * normalisers[q], abs=1e-12)


@pytest.mark.parametrize("levels", [None, 3])
@pytest.mark.parametrize("shift", [0.0, 1e9])
@pytest.mark.parametrize(("start", "end"), list(pairwise(ENDS)))
def test_collects_the_swaps_and_the_places_before_them(levels, shift, start, end):
    """A shift of all scores leaves float32 nothing of their differences, were they not compared within queries."""
    data = random_data(4, queries=6, documents=40, levels=levels)
    problem = prepare(data, Objective("ERR"))
    lines = module._lines(problem, data.columns[0] + shift, data.columns[1], 1.0)
    s, v, rows, offsets, relevant_offsets = lines
    gains = problem.sorted_gains
    points = module._points(lines, (start, end))
    state, steps, events = kernels.collect(True, lines, gains, (start, end), points, problem.pairs)
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


@pytest.mark.parametrize("end", [-1e9, -1e4, -1.0, -1e-4])
def test_a_crossing_that_is_rounded_to_an_end_counts_to_its_right(end):
    """The relevant document has the least score and slope, so that scores in float32 cannot hide the difference."""
    end = float(np.float32(end))
    x = end * (1 + 2.0**-26)  # to the left of the end, which is the nearest float32
    lines = np.array([0.0, -x, -4 * x]), np.array([0.0, 1.0, 1.0]), np.arange(3), np.array([0, 3]), np.array([0, 1])
    assert x < end == np.float32(x)
    for ends, swaps in (((-np.inf, end), [4 * x]), ((end, np.inf), [x])):
        points = module._points(lines, ends)
        _, steps, _ = kernels.collect(False, lines, np.array([1.0, 0, 0]), ends, points, 3)
        assert steps.tolist() == swaps


@pytest.mark.parametrize("inverse", [False, True])
def test_bins_hold_all_swaps_in_the_order_of_the_axis(inverse):
    rng = np.random.default_rng(3)
    steps, events = rng.standard_cauchy(1000), rng.integers(4, size=1000) + (np.arange(1000) << 32)
    sorted_steps, sorted_events, bins = kernels.sort_by_bin(inverse, steps, events, (-np.inf, np.inf), 20)
    assert dict(zip(sorted_events, sorted_steps, strict=True)) == dict(zip(events, steps, strict=True))
    assert (len(bins), bins[0], bins[-1]) == (41, 0, 1000)
    for b in range(20):
        assert sorted_steps[: bins[2 * b]].max(initial=-np.inf) < sorted_steps[bins[2 * b] :].min(initial=np.inf)
        for e in range(bins[2 * b], bins[2 * b + 2]):
            up, past_relevant = sorted_events[e] & 1, sorted_events[e] & 2
            assert (e < bins[2 * b + 1]) == (bool(up) != (inverse and bool(past_relevant)))


@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([None, 1, 2, 5]),
    st.integers(1, 12),
    st.booleans(),
    st.sampled_from([(1e-30, 0.0), (1.0, 0.0), (1.0, 1e9), (1e30, 0.0)]),
)
def test_documents_that_come_to_the_top_may_count(seed, levels, depth, first, scale):
    """At a point in every interval between crossings; `levels` makes ties, and a shift of scores hides differences."""
    data = random_data(seed, queries=3, documents=2 + seed % 40, levels=levels)
    problem = prepare(data, Objective("AP"))
    lines = module._lines(problem, scale[0] * data.columns[0] + scale[1], data.columns[1], 1.0)
    s, v, rows, offsets, relevant_offsets = lines
    kept = kernels.may_count(first, depth, lines)
    for q, (begin, end) in enumerate(pairwise(offsets)):
        with np.errstate(divide="ignore", invalid="ignore"):
            crossings = ((s[begin:end, None] - s[begin:end]) / (v[begin:end] - v[begin:end, None])).ravel()
        places = np.unique(crossings[np.isfinite(crossings)])
        relevant = relevant_offsets[q + 1] - relevant_offsets[q]
        for x in (*(0.5 * (places[1:] + places[:-1])), *(places[:1] * 2 - 1), *(places[-1:] * 2 + 1)):
            order = begin + np.lexsort((rows[begin:end], -(s + x * v)[begin:end]))
            firsts = np.flatnonzero(order < begin + relevant)[:1] + 1 if first else ()  # of RR, no rank after it counts
            assert kept[order[: min([depth, *firsts])]].all()


def test_few_documents_come_to_the_top():
    data = random_data(1, queries=5, documents=500)
    lines = module._lines(prepare(data, Objective("AP")), *data.columns[:2], 1.0)
    assert kernels.may_count(False, 5, lines).mean() < 0.2
