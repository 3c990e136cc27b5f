import pytest

from greylag_papers.schiegg_2016.report import ANGLE, SPREADS, TRAINING, claims, largest_spread, matched_trials
from greylag_papers.schiegg_2016.trials import EnsembleSettings, Perturbed, Task, TrialTable, run_trials
from tests.greylag.learning.structured.models import ComparingTable, random_tables
from tests.greylag_papers.schiegg_2016.samples import GRID, trial

TABLE = TrialTable((
    trial("a", 0.0, [[0.5, 0.2], [0.3, 0.6]]),
    trial("a", 0.0, [[0.4, 0.4]]),
    trial("a", 0.0, [[0.7, 0.5]], "ssvm"),
))  # fmt: skip


def test_claims_pair_examples_or_tasks_and_leave_out_random_vectors_of_what_has_none():
    table = TrialTable((*TABLE.trials, trial("a", 0.0, [[0.3, 0.4]], "cssvm-all")))
    matched = TrialTable(tuple(
        trial("a", 0.0, [[0.2, 0.4]], f"{kind} cssvm-all") for kind in (ANGLE, TRAINING)
    ))  # fmt: skip
    rows = claims(table, matched, ("mcl", "cssvm-all"), ("ssvm", "mcl"), "example", ["pick-best"])
    assert list(rows) == [
        *("mcl / ssvm, pick-best", "cssvm-all / ssvm, pick-best", "cssvm-all / mcl, pick-best"),
        *(f"cssvm-all / {kind} cssvm-all, pick-best" for kind in (ANGLE, TRAINING)),
    ]
    row = rows["mcl / ssvm, pick-best"]
    # both of one sign: 2 of 2^2 cases
    assert [row[key] for key in ("mean", "against", "p", "n")] == pytest.approx([0.25, 0.6, 0.5, 2])


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
    settings = EnsembleSettings(name="s", sizes=(3,), **GRID | {"ensemble_costs": (20.0,), "alphas": (0.05, 0.5)})
    table = TrialTable(tuple(run_trials(ComparingTable(6), tasks, settings, methods=[METHOD])))
    matched = matched_trials(ComparingTable(6), tasks, table, [METHOD])
    by_angle, by_loss = matched.chosen(f"{ANGLE} {METHOD}", 3), matched.chosen(f"{TRAINING} {METHOD}", 3)
    for chosen, angle, loss in zip(table.chosen(METHOD, 3), by_angle, by_loss, strict=True):
        assert chosen.task == angle.task == loss.task
        assert angle.mean_angle == pytest.approx(chosen.mean_angle, rel=5e-3)
        assert loss.training <= chosen.training + 1e-12 or loss.learner == Perturbed(3, 20.0, pytest.approx(SPREADS[0]))
