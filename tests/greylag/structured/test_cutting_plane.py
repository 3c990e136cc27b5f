"""The cutting plane against other solvers of the same problem."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import get_args

import clarabel
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from scipy.sparse import csc_matrix
from threadpoolctl import threadpool_limits

from greylag.errors import ModelError, ParameterError
from greylag.ranking import FloatArray
from greylag.structured import Coulomb, CuttingPlane, TrainingSet
from greylag.structured.coulomb_solvers import Repulsion
from tests.greylag.structured.models import Table, optimum_around, random_tables

Examples = list[tuple[FloatArray, FloatArray]]


def optimum(examples: Examples, C: float, signs: Sequence[int] = ()) -> float:
    """The optimum under all constraints, by clarabel's interior-point method over w and the slacks."""
    n, d = len(examples), examples[0][0].shape[1]
    rows, bounds = [-np.eye(n + d)[list(signs)]], [np.zeros(len(signs))]
    for i, (x, truth) in enumerate(examples):
        rows.append(np.hstack([x - x[np.argmin(truth)], np.tile(-np.eye(n)[i], (len(x), 1))]))
        bounds.append(-truth)
    A, b = csc_matrix(np.vstack(rows)), np.concatenate(bounds)
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    quadratic, linear = csc_matrix(np.diag(np.repeat([1.0, 0.0], [d, n]))), np.repeat([0.0, C / n], [d, n])
    return float(
        clarabel.DefaultSolver(quadratic, linear, A, b, [clarabel.NonnegativeConeT(len(b))], settings).solve().obj_val
    )


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0, 1e5])
@pytest.mark.parametrize("seed", range(6))
def test_converged_means_close_to_the_optimum_relative_to_it(seed: int, C: float) -> None:
    """At large C, where the optimum is a small part of C, too; an ensemble of one member is the same."""
    examples, signs = random_tables(seed, n=1 + seed, outputs=5 + 3 * seed, d=3 + 4 * seed), (0, 2)
    best, model = optimum(examples, C, signs), Table(nonnegative=signs)
    solution = CuttingPlane(C).fit(model, examples)
    assert solution.converged
    assert solution.objective - solution.gap <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= solution.objective <= best * 1.0011
    for repulsion in get_args(Repulsion):
        alone = Coulomb(1, C=C, repulsion=repulsion).fit(model, examples)
        assert alone.converged
        assert TrainingSet(model, examples).objective(alone.weights[0], C) <= 1.03 * best


@pytest.mark.parametrize(("seed", "C"), [(0, 0.01), (1, 1.0), (2, 1.0), (3, 30.0), (4, 1000.0)])
def test_reaches_the_optimum_of_an_independent_solver(seed: int, C: float) -> None:
    examples = random_tables(seed, n=4, outputs=5, d=3)
    expected = optimum(examples, C)
    solution = CuttingPlane(C=C, epsilon=1e-8).fit(Table(), examples)
    assert solution.converged
    assert solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert TrainingSet(Table(), examples).objective(solution.weights, C) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("seed", "C"), [(0, 0.01), (1, 1.0), (2, 30.0), (3, 1000.0)])
def test_optimum_with_signs_is_that_of_another_solver(seed: int, C: float) -> None:
    examples, signs = random_tables(seed, n=4, outputs=5, d=4), (0, -1)
    model = Table(nonnegative=signs)
    training = TrainingSet(model, examples)
    solution = CuttingPlane(C=C, epsilon=1e-8).fit(model, examples)
    assert solution.converged
    assert (solution.weights[[0, 3]] >= 0.0).all()
    assert -1e-9 <= solution.gap <= 1e-7 * max(1.0, solution.objective)
    expected = optimum_around(np.zeros(4), examples, C, training.targets, (0, 3))
    assert solution.objective == pytest.approx(training.objective(expected, C), rel=1e-5)
    free = CuttingPlane(C=C, epsilon=1e-8).fit(Table(), examples)
    assert free.objective <= solution.objective + 1e-6
    assert solution.objective <= training.objective(training.project(free.weights), C) + 1e-6


def test_optimum_with_signs_meets_the_kkt_conditions() -> None:
    """Multipliers alpha of active constraints exist, with A' alpha = w where w > 0, and A' alpha <= 0 where w = 0."""
    examples, C = random_tables(5, n=3, outputs=6, d=6), 5.0
    model = Table(nonnegative=tuple(range(6)))
    weights = CuttingPlane(C=C, epsilon=1e-9).fit(model, examples).weights
    training = TrainingSet(model, examples)
    normals, owners = [], []
    for i, ((x, truth), hinge) in enumerate(zip(examples, training.hinge_losses(weights), strict=True)):
        active = truth - (x[training.targets[i]] - x) @ weights >= hinge - 1e-5
        normals.append((x[training.targets[i]] - x)[active])
        owners += [i] * int(active.sum())
    A, positive = np.vstack(normals), weights > 1e-6
    assert 0 < positive.sum() < 6
    found = linprog(
        np.zeros(len(A)),
        A_ub=A.T[~positive],
        b_ub=np.zeros((~positive).sum()),
        A_eq=np.vstack([np.array(owners) == np.arange(3)[:, None], A.T[positive]]),
        b_eq=np.concatenate([np.full(3, C / 3), weights[positive]]),
        options={"primal_feasibility_tolerance": 1e-4},
    )
    assert found.status == 0


def test_equals_the_multiclass_svm_of_liblinear() -> None:
    from sklearn.svm import LinearSVC

    rng = np.random.default_rng(5)
    n, d, classes, C = 30, 4, 3, 2.0
    X, labels = rng.standard_normal((n, d)), rng.integers(classes, size=n)
    labels[:classes] = range(classes)
    examples = [(np.kron(np.eye(classes), x), 1.0 - np.eye(classes)[label]) for x, label in zip(X, labels, strict=True)]
    solution = CuttingPlane(C=C, epsilon=1e-8).fit(Table(), examples)
    other = LinearSVC(
        C=C / n, multi_class="crammer_singer", fit_intercept=False, tol=1e-10, max_iter=10**6, random_state=0
    )
    np.testing.assert_allclose(solution.weights, other.fit(X, labels).coef_.ravel(), atol=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_the_gap_bounds_the_optimum(seed: int) -> None:
    examples = random_tables(seed, n=8, outputs=20, d=6)
    best = CuttingPlane(C=10.0, epsilon=1e-8).fit(Table(), examples).objective
    for epsilon in (0.3, 0.03, 0.003):
        solution = CuttingPlane(C=10.0, epsilon=epsilon).fit(Table(), examples)
        assert solution.objective - solution.gap <= best + 1e-6
        assert best - 1e-6 <= solution.objective
        assert solution.gap <= epsilon * solution.objective


def test_the_limit_warns_and_the_gap_still_holds(caplog: pytest.LogCaptureFixture) -> None:
    examples = random_tables(6, n=8, outputs=20, d=6)
    best = CuttingPlane(C=10.0, epsilon=1e-8).fit(Table(), examples).objective
    with caplog.at_level(logging.WARNING, "greylag"):
        assert not caplog.messages
        solution = CuttingPlane(C=10.0, max_iterations=2).fit(Table(), examples)
    assert "limit of 2 iterations" in caplog.text
    assert not solution.converged
    assert solution.objective - solution.gap <= best <= solution.objective
    assert TrainingSet(Table(), examples).objective(solution.weights, 10.0) == pytest.approx(solution.objective)


def test_a_path_has_the_optimum_of_each_cost_in_ascending_order() -> None:
    examples, grid = random_tables(9, n=10, outputs=30, d=8), (30.0, 0.01, 1000.0, 1.0)
    learner = CuttingPlane(C=5.0, epsilon=1e-6)
    path = dict(learner.fit_path(Table(), examples, grid))
    assert list(path) == sorted(grid)
    for C, solution in path.items():
        assert solution.converged
        alone = CuttingPlane(C, epsilon=1e-6).fit(Table(), examples)
        assert abs(solution.objective - alone.objective) <= 1e-6 * C + 1e-9 * alone.objective
    again = dict(learner.fit_path(Table(), examples, sorted(grid)))
    assert [again[C].weights.tobytes() for C in grid] == [path[C].weights.tobytes() for C in grid]
    with pytest.raises(ParameterError, match="C must be a finite number above 0, not 0"):
        learner.fit_path(Table(), examples, [1.0, 0.0])


def test_dropping_idle_constraints_keeps_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    examples = random_tables(7, n=10, outputs=30, d=20)
    kept = CuttingPlane(C=100.0, epsilon=1e-6).fit(Table(), examples)
    monkeypatch.setattr("greylag.structured.constraint_pool.IDLE_LIMIT", 2)
    dropped = CuttingPlane(C=100.0, epsilon=1e-6).fit(Table(), examples)
    assert not np.array_equal(dropped.weights, kept.weights)
    assert dropped.objective == pytest.approx(kept.objective, rel=1e-5)


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
    result = minimize(
        lambda v: v[:d] @ v[:d] / (2 * C) + v[d:].mean(),
        np.append(np.zeros(d), np.full(n, b.max())),
        jac=lambda v: np.append(v[:d] / C, np.full(n, 1 / n)),
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert result.success
    return np.asarray(result.x[:d])


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_objective_is_that_of_algorithm_2(C: float) -> None:
    training = TrainingSet(Table(), random_tables(1, n=6, outputs=12, d=4))
    solution = CuttingPlane(C, epsilon=1e-6).solve(training)
    reference = training.objective(algorithm_2(training, C, 1e-6), C)
    assert training.objective(solution.weights, C) == pytest.approx(reference, abs=3e-6 * C)
    assert solution.objective - solution.gap <= reference + 1e-9


def test_the_constraints_of_smaller_costs_save_passes() -> None:
    examples = random_tables(2, n=20, outputs=60, d=12)
    *_, (_, last) = CuttingPlane().fit_path(Table(), examples, [1.0, 10.0, 100.0])
    assert last.iterations < CuttingPlane(100.0).fit(Table(), examples).iterations


def test_same_bytes_on_any_number_of_threads() -> None:
    # BLAS splits sums of more than 10,000 terms among threads.
    examples = random_tables(8, n=4, outputs=10, d=30_000)
    learner = CuttingPlane()
    with threadpool_limits(1):
        one = learner.fit(Table(), examples)
    with threadpool_limits(2):
        two = learner.fit(Table(), examples)
    assert one.weights.tobytes() == two.weights.tobytes()
    assert (one.objective, one.gap) == (two.objective, two.gap)


@pytest.mark.parametrize(
    "options",
    [{"C": 0.0}, {"C": np.inf}, {"epsilon": 0.0}, {"epsilon": np.nan}, {"max_iterations": 0}],
)
def test_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        CuttingPlane(**options)  # type: ignore[arg-type]


def test_bad_examples() -> None:
    with pytest.raises(ParameterError, match="no examples"):
        CuttingPlane().fit(Table(), [])
    with pytest.raises(ModelError, match="from 3 to 4 joint features"):
        CuttingPlane().fit(Table(), [*random_tables(0, 1, 2, 3), *random_tables(0, 1, 2, 4)])
    with pytest.raises(ModelError, match="example 0 is nan"):
        CuttingPlane().fit(Table(), [(np.full((2, 2), np.nan), np.zeros(2))])
