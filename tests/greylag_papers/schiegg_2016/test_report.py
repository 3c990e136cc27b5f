import numpy as np
import pytest

from greylag.core.tables import cell_text
from greylag.learning.structured import Coulomb
from greylag.studies import comparison_table
from greylag_papers.schiegg_2016.report import (
    ANGLE,
    GREY,
    SPREADS,
    TRAINING,
    compare_methods,
    control_tables,
    draw_gallery,
    largest_spread,
    matched_trials,
    member_tables,
    mosaic,
    rank_table,
    size_table,
    wins_table,
)
from greylag_papers.schiegg_2016.trials import Perturbed, Task, TrialTable, run_learners
from tests.greylag.learning.structured.models import ComparingTable, random_tables
from tests.greylag_papers.schiegg_2016.samples import N_FEATURES, trial

TABLE = TrialTable((
    trial("a", 0.0, [[0.5, 0.2], [0.3, 0.6]]),
    trial("a", 0.0, [[0.4, 0.4]]),
    trial("a", 0.0, [[0.7, 0.5]], "ssvm"),
))  # fmt: skip


def test_size_table():
    shown = size_table(TABLE, ("ssvm", "mcl"), "")
    assert shown.header == ("", "1", "2")
    assert [list(row) for row in shown.rows] == [["ssvm", pytest.approx(0.6), None], ["mcl", 0.4, pytest.approx(0.25)]]


def test_rank_table():
    ranks = rank_table(TABLE, ("ssvm", "mcl"), "")
    assert ranks.header == ("", "mean", "1", "angle", "training", "2")
    assert list(ranks.rows[0]) == ["ssvm", *[pytest.approx(0.6)] * 2, 30.0, 0.1, None]
    assert list(ranks.rows[1]) == ["mcl", *map(pytest.approx, (0.4, 0.25)), 30.0, 0.1, pytest.approx(0.55)]


def test_wins():
    assert wins_table(TABLE, ("mcl",), "").rows == [("mcl", 0.5, 0.5)]


def test_member_tables_skip_methods_they_do_not_apply_to():
    mean, ranks, wins, angles = member_tables(TABLE, ("ssvm", "mcl"), "here")
    assert all(table.caption.endswith("here") for table in (mean, ranks, wins, angles))
    assert [[row[0] for row in table.rows] for table in (mean, ranks, wins)] == [["mcl"], ["ssvm", "mcl"], ["mcl"]]
    assert not angles.rows


def test_comparisons():
    (test,) = compare_methods(TABLE, ("ssvm",), ("mcl",), "pick-best", "example")
    (row,) = comparison_table("", test).rows
    p = pytest.approx(0.5)  # both of one sign: 2 of 2^2 cases
    assert (*row[:3], cell_text(row[3], 4), *row[8:]) == ("mcl", "ssvm", "loss", "-0.3500", p, p, 2, 0, 0)


def test_only_coulomb_is_compared_with_further_baselines():
    table = TrialTable(tuple(trial("a", 0.0, [[0.1, 0.2]], name) for name in ("ssvm", "random", "mcl", "cssvm-all")))
    tests = compare_methods(table, ("ssvm", "random"), ("random", "mcl", "cssvm-all"), "mean", "example")
    assert [[found.run for found in test.comparisons] for test in tests] == [
        ["random", "mcl", "cssvm-all"], ["cssvm-all"]
    ]  # fmt: skip


def test_mosaic():
    black, white = np.zeros((2, 1, 3)), np.ones((2, 1, 3))
    assert mosaic([[black, white], [white]])[:, :, 0].tolist() == [
        [0.0, GREY, 1.0, GREY],
        [0.0, GREY, 1.0, GREY],
        [GREY] * 4,
        [1.0, GREY, GREY, GREY],
        [1.0, GREY, GREY, GREY],
        [GREY] * 4,
    ]


def test_gallery_has_a_row_for_each_ensemble():
    rng = np.random.default_rng(0)
    colours, labels = rng.random((4, 5, 3)), rng.integers(2, size=20)
    ensembles = {"one": rng.random((1, N_FEATURES + 2)), "three": rng.random((3, N_FEATURES + 2))}
    svg = draw_gallery("", colours, labels, ensembles).svg
    assert all(f">{name}</text>" in svg for name in ("image, labels", "one", "three"))


METHOD = "cssvm-all"


def test_the_largest_spread_is_found():
    assert largest_spread(lambda spread: spread**2, 4.0) == pytest.approx(2.0, rel=1e-3)
    assert largest_spread(lambda spread: spread**2, 4.0) <= 2.0
    assert largest_spread(lambda spread: 1.0, 0.5) == pytest.approx(SPREADS[0])
    assert largest_spread(lambda spread: 0.0, 0.5) == SPREADS[1]


def test_random_vectors_match_the_ensemble():
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
    shown, tests = control_tables(table, matched, [METHOD], "here", "example")
    assert [row[0] for row in shown.rows] == [METHOD, f"{ANGLE} {METHOD}", f"{TRAINING} {METHOD}"]
    assert shown.rows[0][1:3] == pytest.approx(
        [
            np.mean([t.mean_angle for t in table.chosen(METHOD, 3)]),
            np.mean([t.training for t in table.chosen(METHOD, 3)]),
        ]
    )
    assert [row[:2] for row in tests.rows] == [(f"{ANGLE} {METHOD}", METHOD), (f"{TRAINING} {METHOD}", METHOD)]
    assert sum(tests.rows[0][10:13]) == 4  # test examples  # type: ignore[arg-type]
    by_task = control_tables(table, matched, [METHOD], "here", "task")[1]
    assert sum(by_task.rows[0][10:13]) == 2  # type: ignore[arg-type]
    alone = table.restrict(["a"]), matched.restrict(["a"])
    assert len(control_tables(*alone, [METHOD], "here", "task")) == 1  # one ensemble has no test
