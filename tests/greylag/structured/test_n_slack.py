"""The search for constraints against Algorithm 2 of Yue & Joachims (2008) to the letter."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from greylag.diversity import CoverageModel
from greylag.ranking import FloatArray
from greylag.structured import CuttingPlane, TrainingSet
from greylag.structured.n_slack import NSlack, _in_few_coordinates
from tests.greylag.diversity import samples
from tests.greylag.structured.models import Table, random_tables


def algorithm_2(training: TrainingSet, C: float, epsilon: float) -> FloatArray:  # type: ignore[type-arg]
    """Algorithm 2, with the programme solved by sequential quadratic programming after each new constraint."""
    n, d = training.target_features.shape
    normals, losses = [np.zeros((1, d)) for _ in range(n)], [training.target_losses[[i]] for i in range(n)]
    w, changed = np.zeros(d), True
    while changed:
        changed = False
        for i in range(n):
            constraint = training.most_violated(i, w)
            if constraint.violation(w) > max(0.0, (losses[i] - normals[i] @ w).max()) + epsilon:
                normals[i], losses[i] = (
                    np.vstack([normals[i], constraint.normal]),
                    np.append(losses[i], constraint.loss),
                )
                w, changed = solve(normals, losses, C), True
    return w


def solve(normals: list[FloatArray], losses: list[FloatArray], C: float) -> FloatArray:
    """OP 1 under the constraints of each example."""
    n, d = len(normals), normals[0].shape[1]
    A = np.vstack([np.hstack([rows, np.tile(np.eye(n)[i], (len(rows), 1))]) for i, rows in enumerate(normals)])
    b = np.concatenate(losses)
    found = minimize(
        lambda v: v[:d] @ v[:d] / (2 * C) + v[d:].mean(),
        np.append(np.zeros(d), np.full(n, b.max())),
        jac=lambda v: np.append(v[:d] / C, np.full(n, 1 / n)),
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success
    return np.asarray(found.x[:d])


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_objective_is_that_of_algorithm_2(C: float) -> None:
    training = TrainingSet(Table(), random_tables(1, n=6, outputs=12, d=4))
    found = NSlack(training, 1e-6, 2000).solve(C)
    assert found.converged
    reference = training.objective(algorithm_2(training, C, 1e-6), C)
    assert training.objective(found.weights, C) == pytest.approx(reference, abs=3e-6 * C)
    assert found.lower <= reference + 1e-9


def test_starting_with_the_constraints_of_smaller_costs_takes_fewer_passes() -> None:
    training = TrainingSet(Table(), random_tables(2, n=20, outputs=60, d=12))
    path = NSlack(training, 1e-4, 2000)
    found = [path.solve(C) for C in (1.0, 10.0, 100.0)]
    alone = NSlack(training, 1e-4, 2000).solve(100.0)
    objectives = [training.objective(optimum.weights, 100.0) for optimum in (found[-1], alone)]
    assert objectives[0] == pytest.approx(objectives[1], abs=1e-2)
    assert found[-1].passes < alone.passes


def test_dropping_constraints_keeps_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    training = TrainingSet(Table(), random_tables(3, n=10, outputs=30, d=20))
    kept = NSlack(training, 1e-6, 2000).solve(100.0)
    monkeypatch.setattr("greylag.structured.n_slack.IDLE_LIMIT", 2)
    dropped = NSlack(training, 1e-6, 2000).solve(100.0)
    assert not np.array_equal(kept.weights, dropped.weights)
    assert training.objective(dropped.weights, 100.0) == pytest.approx(
        training.objective(kept.weights, 100.0), rel=1e-5
    )


@pytest.mark.parametrize("shape", [(9, 4), (9, 9), (9, 50)])
def test_few_coordinates_keep_inner_products(shape: tuple[int, int]) -> None:
    rows = np.random.default_rng(0).standard_normal(shape)
    rows[2] = 0.0
    rows[5] = rows[4]
    few = _in_few_coordinates(rows)
    assert few.shape == (9, min(shape[1], 9))
    np.testing.assert_allclose(few @ few.T, rows @ rows.T, atol=1e-9)


def test_with_greedy_inference_no_constraint_that_it_finds_is_violated_by_more_than_epsilon_on_average() -> None:
    model, C = CoverageModel(3), 10.0
    examples = [(samples.candidates(seed, 15), samples.subtopics(seed, 15)) for seed in range(6)]
    solution = CuttingPlane(C, slack="n").fit(model, examples)
    assert solution.converged
    assert -1e-9 <= solution.gap <= C * 1e-3 + 1e-9
    assert TrainingSet(model, examples).objective(solution.weights, C) <= solution.objective + 1e-9
