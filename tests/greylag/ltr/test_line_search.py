"""Exact line search, compared with dense scans and with the measure in every interval."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from greylag.ltr import line_search as module
from greylag.ltr.data import RankingData
from greylag.ltr.kernels import EQUAL, THIN
from greylag.ltr.line_search import Optimum, Problem, Survey, line_search, mean, prepare, survey
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data

OBJECTIVES = ["AP", "nDCG", "nDCG@5", "RR", "P@5", "ERR@20", "AP@4"]


def exact_reference(problem: Problem, scores: np.ndarray, direction: np.ndarray) -> Optimum:
    """The result of `line_search` by its definition: the measure between all crossings, one interval after another.

    It takes a ranking of all documents for each pair of documents.
    """
    crossings = set()
    for first, end in pairwise(problem.offsets.tolist()):
        for a in range(first, end):
            for d in range(first, end):
                if problem.gains[a] > 0 and direction[a] != direction[d]:
                    crossings.add(float((scores[d] - scores[a]) / (direction[a] - direction[d])))
    if not crossings:
        return Optimum(0.0, mean(problem, scores))
    ends = sorted(crossings)
    beyond = ends[0] - 2 * max(1.0, abs(ends[0])), ends[-1] + 2 * max(1.0, abs(ends[-1]))
    step, best, widest = 0.0, -np.inf, 0.0
    for left, right in pairwise([beyond[0], *ends, beyond[1]]):
        middle, width = left + 0.5 * (right - left), right - left
        value = mean(problem, scores + middle * direction)
        closed = left != beyond[0] and width <= THIN * max(1.0, abs(left))
        if not closed and (value > best + EQUAL or (value > best - EQUAL and width > widest)):
            step, best, widest = middle, max(value, best), width
    return Optimum(step, best)


def best_by_enumeration(data: RankingData, objective: Objective, scores: np.ndarray, direction: np.ndarray) -> float:
    """The best mean over one point in every interval between any two documents' crossings."""
    crossings = {0.0}
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        for i in range(first, end):
            for j in range(i + 1, end):
                if direction[i] != direction[j]:
                    crossings.add((scores[j] - scores[i]) / (direction[i] - direction[j]))
    places = np.array(sorted(crossings))
    points = [places[0] - 1, *((places[1:] + places[:-1]) / 2), places[-1] + 1]
    return max(float(np.mean(objective.evaluate(data, scores + x * direction))) for x in points)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("levels", [None, 3])
def test_finds_the_global_optimum(name: str, levels: int | None) -> None:
    objective = Objective.parse(name)
    for seed in range(25):
        data = random_data(seed, queries=3, documents=8, levels=levels)
        scores, direction = data.columns[0], data.columns[1]
        found = line_search(prepare(data, objective), scores, direction)
        assert found.value == pytest.approx(
            np.mean(objective.evaluate(data, scores + found.step * direction)), abs=1e-12
        )
        assert found.value == pytest.approx(best_by_enumeration(data, objective, scores, direction), abs=1e-9)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_is_never_below_a_dense_scan(name: str) -> None:
    objective = Objective.parse(name)
    for seed in range(5):
        data = random_data(100 + seed, queries=8, documents=40)
        problem = prepare(data, objective)
        scores, direction = data.columns[0], data.columns[1]
        scan = max(mean(problem, scores + x * direction) for x in np.linspace(-20, 20, 4001))
        assert line_search(problem, scores, direction).value >= scan - 1e-12


def one_query(lines: list[tuple[float, float]], grades: list[int]) -> RankingData:
    return RankingData(
        specs=("a", "b"), qids=("1",), offsets=np.array([0, len(lines)]), docids=tuple(map(str, range(len(lines)))),
        features=np.array(lines, dtype=float), grades=np.array(grades),
        relevant_grades=(np.array([grade for grade in grades if grade > 0]),),
    )  # fmt: skip


def test_the_example_of_the_module() -> None:
    """r1 and r2 are relevant; u, v and w are not."""
    data = one_query([(0, 1), (3, 0), (4, 0), (2, 0), (-6, 2)], [1, 1, 0, 0, 0])
    problem, (scores, direction) = prepare(data, Objective("AP")), data.columns
    values = [mean(problem, scores + x * direction) for x in (1, 2.5, 3.5, 4.25, 4.75, 5.5, 7)]
    assert values == pytest.approx([1 / 2, 7 / 12, 7 / 12, 5 / 6, 3 / 4, 3 / 4, 1 / 2])
    assert line_search(problem, scores, direction) == (4.25, pytest.approx(5 / 6))
    assert exact_reference(problem, scores, direction) == (4.25, pytest.approx(5 / 6))
    ends = np.array([-np.inf, 3.5, 4.2, np.inf])
    cuts = module._places(ends[1:-1])
    surveyed = module._survey(
        problem, module._lines(problem, scores, direction, 1.0), survey(problem, scores, direction), cuts, 1
    )
    assert surveyed.values == pytest.approx([1 / 2, 7 / 12, 5 / 6])
    assert surveyed.bounds == pytest.approx([2 / 3, 5 / 6, 5 / 6])


@pytest.mark.parametrize("scale", [1.0, 1e-20])
def test_takes_the_middle_of_the_best_interval(scale: float) -> None:
    data = one_query([(0, 1), (2 * scale, 0), (-8 * scale, 2)], [1, 0, 0])
    found = line_search(prepare(data, Objective("AP")), data.columns[0], data.columns[1])
    assert found == (pytest.approx(5 * scale), 1.0)  # the first passes the second at 2, and is passed by the last at 8


def test_a_direction_that_changes_nothing() -> None:
    data = random_data(3)
    found = line_search(prepare(data, Objective("AP")), data.columns[0], np.zeros(len(data.docids)))
    assert found.step == 0.0
    assert found.value == pytest.approx(np.mean(Objective("AP").evaluate(data, data.columns[0])))


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("room", [1 << 20, 40, 3])
def test_equals_the_reference(name: str, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With little room the x axis is divided and swept in parts."""
    monkeypatch.setattr(module, "ROOM", room)
    monkeypatch.setattr(module, "SMALL", room)
    monkeypatch.setattr(module, "BIN", max(1, room // 4))
    objective = Objective.parse(name)
    for seed in range(12):
        data = random_data(seed, queries=5, documents=16, levels=None if seed % 2 else 4)
        scores, direction = data.columns[0], data.columns[1]
        problem = prepare(data, objective)
        found = line_search(problem, scores, direction)
        expected = exact_reference(problem, scores, direction)
        assert found.value == pytest.approx(expected.value, abs=1e-12)
        assert found.step == pytest.approx(expected.step, rel=1e-9)


def test_buckets_whose_bound_is_below_their_ends_by_rounding_are_not_divided() -> None:
    values = np.array([0.5, 0.5, 0.5])
    surveyed = Survey(1.0, np.array([-np.inf, 0, 1, np.inf]), values, values - 1e-16, np.ones(3, int), np.zeros(1))
    assert (module._parts(surveyed, 16) == 0).all()


def test_of_equally_good_intervals_the_widest_and_then_the_leftmost_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small integers as features make many ties; the order in which buckets are swept depends on the room."""
    monkeypatch.setattr(module, "SMALL", 3)
    for seed, room in product(range(30), (1 << 20, 3)):
        monkeypatch.setattr(module, "ROOM", room)
        data = random_data(seed, queries=4, documents=14, levels=2 + seed % 3)
        for name in ("P@5", "AP@2", "RR"):
            problem = prepare(data, Objective.parse(name))
            found, expected = (search(problem, *data.columns[:2]) for search in (line_search, exact_reference))
            assert found.value == pytest.approx(expected.value, abs=1e-12)
            assert found.step == expected.step


@pytest.mark.parametrize("name", OBJECTIVES)
def test_surveys_bound_the_measure(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 3)
    data = random_data(5, queries=30, documents=30)
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
def test_surveys_do_not_change_the_result(name: str, levels: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(8, queries=50, documents=120, levels=levels)
    problem = prepare(data, Objective.parse(name))
    assert problem.pairs > module.SMALL
    found = line_search(problem, data.columns[0], data.columns[1])
    monkeypatch.setattr(module, "SMALL", problem.pairs)
    swept = line_search(problem, data.columns[0], data.columns[1])
    assert found.value == pytest.approx(swept.value, abs=1e-12)
    assert found.step == pytest.approx(swept.step, rel=1e-9)


def test_values_below_a_floor_may_be_missed_and_others_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_data(7, queries=6, documents=30)
    problem = prepare(data, Objective("AP"))
    best = line_search(problem, data.columns[0], data.columns[1])
    for room in (1 << 20, 3):
        monkeypatch.setattr(module, "ROOM", room)
        monkeypatch.setattr(module, "SMALL", room)
        assert line_search(problem, data.columns[0], data.columns[1], floor=best.value + 0.1).value in (
            -np.inf,
            best.value,
        )
        assert line_search(problem, data.columns[0], data.columns[1], floor=best.value - 1e-9) == best


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("small", [3, 1 << 15])
def test_the_scale_of_a_feature_does_not_matter(name: str, small: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", small)
    data = random_data(9, queries=12, documents=30)
    problem = prepare(data, Objective.parse(name))
    scores, direction = data.columns[0], data.columns[1]
    expected = line_search(problem, scores, direction).value
    for by_scores, by_direction in ((0, 30), (0, 60), (-300, 0), (300, -600), (-990, -300), (-990, -990), (300, 300)):
        found = line_search(problem, np.ldexp(scores, by_scores), np.ldexp(direction, by_direction))
        assert found.value == pytest.approx(expected, abs=1e-12)
