import numpy as np
import pytest

from greylag.learning import CuttingPlane, TrainingSet
from greylag_papers.schiegg_2016.trials import (
    METHODS,
    EnsembleSettings,
    Perturbed,
    Task,
    TrialTable,
    candidates,
    run_trials,
    win_shares,
)
from tests.greylag.learning.structured.models import Table, random_tables
from tests.greylag_papers.schiegg_2016.samples import GRID, trial


def test_the_first_candidate_with_the_lowest_validation_loss_is_chosen():
    table = TrialTable((
        trial("a", 0.4, [[0.0, 0.0], [0.0, 0.0]]),
        trial("a", 0.2, [[0.5, 0.2], [0.3, 0.6]]),
        trial("a", 0.2, [[1.0, 1.0], [1.0, 1.0]]),
        trial("b", 0.9, [[0.1, 0.4], [0.3, 0.4]]),
        trial("a", 0.0, [[0.0, 0.0]]),
    ))  # fmt: skip
    assert [found.validation for found in table.chosen("mcl", 2)] == [0.2, 0.9]
    assert table.sizes("mcl") == [1, 2]
    # By hand: the means over tasks a and b of the lower and of the higher loss.
    ordered = table.ordered("mcl", 2)
    np.testing.assert_allclose(ordered["q0"], [(0.3 + 0.1) / 2, (0.5 + 0.3) / 2])
    np.testing.assert_allclose(ordered["q1"], [(0.2 + 0.4) / 2, (0.6 + 0.4) / 2])
    assert table.score("mcl", 2) == pytest.approx(0.25)
    assert table.score("mcl", 2, "mean") == pytest.approx(0.35)
    # In a, each member wins one example; in b, the first wins one and shares the other.
    np.testing.assert_allclose(table.wins("mcl", 2), [(0.5 + 0.75) / 2, (0.5 + 0.25) / 2])
    assert table.restrict(["b"]).scores("mcl") == {
        "pick-best@2": pytest.approx(0.25), "mean@2": pytest.approx(0.3), "worst@2": pytest.approx(0.35),
        "stopped@2": 1.0,
    }  # fmt: skip


def test_trials_test_their_learner_and_do_not_depend_on_processes():
    examples = [(x, truth - truth.min()) for x, truth in random_tables(1, 12, 5, 8)]
    tasks = [
        Task(name, examples[at : at + 3], examples[9:], {"x": examples[8], "y": examples[7]})
        for name, at in (("a", 0), ("b", 3))
    ]
    methods = ("ssvm", "perturbed", "cssvm-all")
    settings = EnsembleSettings(name="s", sizes=(1, 3), **GRID)
    trials = run_trials(Table(), tasks, settings, methods=methods)
    assert [(t.method, t.M) for t in trials[:: 2 * len(tasks)]] == [
        ("ssvm", 1), *((method, M) for method in methods[1:] for M in (1, 3))
    ]  # fmt: skip
    for found in trials:
        assert found.learner
        own = tasks[found.task == "b"].training
        training = TrainingSet(Table(), own)
        weights = found.learner.solve(training, CuttingPlane(found.learner.C).solve(training).weights).weights
        tested, validated, trained = (
            [[truth[int(np.argmax(x @ member))] for x, truth in part] for member in weights]
            for part in (tasks[0].test.values(), examples[9:], own)
        )
        np.testing.assert_array_equal(found.losses, tested)
        assert found.validation == pytest.approx(np.min(validated, axis=0).mean())
        assert found.training == pytest.approx(np.mean(trained))
        assert found.fitted == np.mean([max(losses) == 0 for losses in trained])
    assert any(found.fitted for found in trials)
    again = run_trials(Table(), tasks, settings, methods=methods, n_jobs=2)
    assert [t.losses.tobytes() for t in again] == [t.losses.tobytes() for t in trials]


def test_perturbed_members_have_the_given_distance_from_the_svm():
    training = TrainingSet(Table(), random_tables(0, 4, 5, 20))
    optimum = np.linspace(-1.0, 2.0, 20)
    np.testing.assert_array_equal(Perturbed(1, 10.0, 0.0).solve(training, optimum).weights, [optimum])
    members = Perturbed(6, 10.0, 0.5, seed=1).solve(training, optimum).weights
    distances = np.linalg.norm(members - optimum, axis=1)
    np.testing.assert_allclose(distances, 0.5 * np.linalg.norm(optimum))
    assert len(np.unique(members.round(6), axis=0)) == 6
    signed = TrainingSet(Table(nonnegative=(0,)), random_tables(0, 4, 5, 20))
    free = np.where(np.arange(20) == 0, np.maximum(members, 0.0), members)
    np.testing.assert_array_equal(Perturbed(6, 10.0, 0.5, seed=1).solve(signed, optimum).weights, free)


def test_all_methods_have_the_same_number_of_candidates():
    found = candidates(EnsembleSettings(name="s", **GRID), 3)
    assert tuple(found) == METHODS
    assert {len(learners) for learners in found.values()} == {2}
    assert len({str(learner) for learners in found.values() for learner in learners}) == 2 * len(METHODS)


@pytest.mark.parametrize("seed", range(8))
def test_win_shares_equal_a_loop(seed):
    rng = np.random.default_rng(seed)
    losses = rng.integers(0, 4, size=rng.integers(1, 7, size=2)) / 4  # with ties
    shares = np.zeros(len(losses))
    for column in losses.T:
        winners = [m for m, loss in enumerate(column) if loss == min(column)]
        shares[winners] += 1 / len(winners) / losses.shape[1]
    np.testing.assert_allclose(win_shares(losses), shares)


def test_rounding_errors_do_not_decide_a_win():
    assert win_shares(np.array([[0.1 + 0.2, 0.4], [0.3, 0.5]])).tolist() == [0.75, 0.25]
