"""Exact line search, compared with dense scans and with the measure in every interval."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.ltr.data import RankingData
from greylag.ltr.line_search import line_search, mean, prepare
from greylag.ltr.objectives import Objective
from tests.greylag.ltr.randomdata import random_data

OBJECTIVES = ["AP", "nDCG", "nDCG@5", "RR", "P@5", "ERR@20", "AP@4"]


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


def test_takes_the_middle_of_the_best_interval() -> None:
    data = RankingData(
        specs=("a", "b"), qids=("1",), offsets=np.array([0, 3]), docids=("r", "x", "y"),
        features=np.array([[0.0, 1.0], [2.0, 0.0], [-8.0, 2.0]]), grades=np.array([1, 0, 0]),
        relevant_grades=(np.array([1]),),
    )  # fmt: skip
    found = line_search(prepare(data, Objective("AP")), data.columns[0], data.columns[1])
    assert found == (5.0, 1.0)  # r passes x at 2 and is passed by y at 8


def test_a_direction_that_changes_nothing() -> None:
    data = random_data(3)
    found = line_search(prepare(data, Objective("AP")), data.columns[0], np.zeros(len(data.docids)))
    assert found.step == 0.0
    assert found.value == pytest.approx(np.mean(Objective("AP").evaluate(data, data.columns[0])))
