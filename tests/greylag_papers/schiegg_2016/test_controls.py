from __future__ import annotations

import numpy as np
import pytest

from greylag.structured import Coulomb
from greylag_papers.schiegg_2016.report import ANGLE, SPREADS, TRAINING, control_tables, largest_spread, matched_trials
from greylag_papers.schiegg_2016.trials import Perturbed, Task, TrialTable, run_learners
from tests.greylag.structured.models import ComparingTable, random_tables

METHOD = "cssvm-all"


def test_the_largest_spread_is_found() -> None:
    assert largest_spread(lambda spread: spread**2, 4.0) == pytest.approx(2.0, rel=1e-3)
    assert largest_spread(lambda spread: spread**2, 4.0) <= 2.0
    assert largest_spread(lambda spread: 1.0, 0.5) == pytest.approx(SPREADS[0])
    assert largest_spread(lambda spread: 0.0, 0.5) == SPREADS[1]


def test_random_vectors_match_the_ensemble() -> None:
    examples = random_tables(0, 12, 6, 8)
    tasks = [
        Task(name, examples[at : at + 4], examples[8:10], {f"{name}{i}": e for i, e in enumerate(examples[10:])})
        for name, at in (("a", 0), ("b", 4))
    ]
    learners = {(METHOD, 3): [Coulomb(3, alpha=alpha, C=20.0) for alpha in (0.05, 0.5)]}
    table = TrialTable(tuple(run_learners(ComparingTable(6), tasks, learners)))
    matched = matched_trials(ComparingTable(6), tasks, table, [METHOD])
    by_angle, by_loss = matched.chosen(f"{ANGLE} {METHOD}", 3), matched.chosen(f"{TRAINING} {METHOD}", 3)
    for chosen, angle, loss in zip(table.chosen(METHOD, 3), by_angle, by_loss, strict=True):
        assert chosen.task == angle.task == loss.task
        assert angle.mean_angle == pytest.approx(chosen.mean_angle, rel=5e-3)
        assert loss.training <= chosen.training + 1e-12 or loss.learner == Perturbed(3, 20.0, pytest.approx(SPREADS[0]))
    shown, tests = control_tables(table, matched, [METHOD], "here")
    assert [row[0] for row in shown.rows] == [METHOD, f"{ANGLE} {METHOD}", f"{TRAINING} {METHOD}"]
    assert shown.rows[0][1:3] == pytest.approx(
        [
            np.mean([t.mean_angle for t in table.chosen(METHOD, 3)]),
            np.mean([t.training for t in table.chosen(METHOD, 3)]),
        ]
    )
    assert [row[:2] for row in tests.rows] == [(f"{ANGLE} {METHOD}", METHOD), (f"{TRAINING} {METHOD}", METHOD)]
    assert sum(tests.rows[0][5:8]) == 4  # test examples  # type: ignore[arg-type]
    by_task = control_tables(table, matched, [METHOD], "here", "task")[1]
    assert sum(by_task.rows[0][5:8]) == 2  # type: ignore[arg-type]
