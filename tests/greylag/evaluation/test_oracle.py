"""Pick-best against brute force."""

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.evaluation import Scores, parse_measure, pick_best, pick_best_runs

AP, LOSS = parse_measure("AP"), parse_measure("subtopic-loss@5")


def brute_force(values, larger):
    """Sorted scores and proportions of wins, query by query."""
    M, n = len(values), len(values[0])
    ordered, wins = [], [0.0] * M
    for q in range(n):
        column = [values[m][q] for m in range(M)]
        ordered.append(sorted(column, reverse=larger))
        best = max(column) if larger else min(column)
        winners = [m for m in range(M) if column[m] == best]
        for m in winners:
            wins[m] += 1 / len(winners) / n
    return ordered, wins


@pytest.mark.parametrize("larger", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_equals_brute_force(seed, larger):
    rng = np.random.default_rng(seed)
    M, n = rng.integers(1, 7, size=2)
    values = rng.integers(0, 4, size=(M, n)) / 4  # with ties
    found = pick_best(values, larger=larger)
    ordered, wins = brute_force(values.tolist(), larger)
    assert found.ordered.tolist() == ordered
    np.testing.assert_allclose(found.wins, wins)
    assert found.wins.sum() == pytest.approx(1.0)
    for rank in range(1, M + 1):
        assert found.at(rank) == pytest.approx(np.mean([row[rank - 1] for row in ordered]))


def test_rounding_errors_do_not_decide_a_win():
    found = pick_best(np.array([[0.1 + 0.2, 0.5], [0.3, 0.4]]), larger=True)
    assert found.wins.tolist() == [0.75, 0.25]


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((0, 3)), np.zeros((3, 0)), np.array([[0.1, np.nan]])])
def test_invalid_scores(values):
    with pytest.raises(ParameterError, match="scores must be finite and of shape"):
        pick_best(values, larger=True)


@pytest.mark.parametrize("rank", [0, 3])
def test_invalid_rank(rank):
    with pytest.raises(ParameterError, match=f"rank must be between 1 and 2, not {rank}"):
        pick_best(np.zeros((2, 4)), larger=True).at(rank)


def scores(values, missing=()):
    return Scores((AP, LOSS), ("1", "2"), np.array(values), missing, ("9",))


def test_measures_keep_their_direction():
    runs = {
        "a": scores([[0.2, 0.7], [0.0, 1.0]], ("2",)),
        "b": scores([[0.5, 0.6], [0.0, 1.0]], ("2",)),
        "c": scores([[0.4, 0.1], [0.3, 0.2]]),
    }
    choice = pick_best_runs(runs)
    assert {name: run.values.tolist() for name, run in choice.scores.items()} == {
        "best of 3": [[0.5, 0.1], [0.3, 0.2]],
        "rank 2 of 3": [[0.4, 0.6], [0.0, 1.0]],
        "rank 3 of 3": [[0.2, 0.7], [0.0, 1.0]],
        "mean of 3": [pytest.approx([1.1 / 3, 1.4 / 3]), pytest.approx([0.1, 2.2 / 3])],
    }
    assert {name: shares.tolist() for name, shares in choice.wins.items()} == {
        "a": [0.0, 0.0],
        "b": [0.5, 0.0],
        "c": [0.5, 1.0],
    }
    assert {run.missing for run in choice.scores.values()} == {()}
    both = pick_best_runs({name: runs[name] for name in "ab"})
    assert {(run.missing, run.unjudged) for run in both.scores.values()} == {(("2",), ())}


def test_runs_that_cannot_be_chosen_from():
    with pytest.raises(ParameterError, match=r"needs at least two runs to choose from; there is only a$"):
        pick_best_runs({"a": scores([[0.2, 0.7], [0.0, 1.0]])})
    other = Scores((AP,), ("1", "2"), np.zeros((2, 1)), (), ())
    with pytest.raises(ParameterError, match="scored on different queries or by different measures"):
        pick_best_runs({"a": scores([[0.2, 0.7], [0.0, 1.0]]), "b": other})
