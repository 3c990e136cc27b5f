"""The cutting plane against other solvers of the same problem."""

from __future__ import annotations

import logging

import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from threadpoolctl import threadpool_limits

from greylag.errors import ModelError, ParameterError
from greylag.ranking import FloatArray
from greylag.structured import CuttingPlane, TrainingSet
from tests.greylag.structured.models import Table, optimum_around, random_tables

Examples = list[tuple[FloatArray, FloatArray]]


def optimum(examples: Examples, C: float) -> float:
    """The optimum under all constraints, by sequential quadratic programming over w and the slacks."""
    n, d = len(examples), examples[0][0].shape[1]
    targets = [int(np.argmin(truth)) for _, truth in examples]
    rows = [
        np.concatenate([x[t] - x[y], np.eye(n)[i]])
        for i, ((x, _), t) in enumerate(zip(examples, targets, strict=True))
        for y in range(len(x))
    ]
    A, b = np.array(rows), np.concatenate([truth for _, truth in examples])
    found = minimize(
        lambda v: v[:d] @ v[:d] / (2 * C) + v[d:].mean(),
        np.concatenate([np.zeros(d), np.ones(n)]),
        jac=lambda v: np.concatenate([v[:d] / C, np.full(n, 1 / n)]),
        constraints={"type": "ineq", "fun": lambda v: A @ v - b, "jac": lambda v: A},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert found.success
    return float(C * found.fun)


@pytest.mark.parametrize("slack", ["one", "n"])
@pytest.mark.parametrize(("seed", "C"), [(0, 0.01), (1, 1.0), (2, 1.0), (3, 30.0), (4, 1000.0)])
def test_reaches_the_optimum_of_an_independent_solver(slack: str, seed: int, C: float) -> None:
    examples = random_tables(seed, n=4, outputs=5, d=3)
    expected = optimum(examples, C)
    solution = CuttingPlane(C=C, epsilon=1e-8, slack=slack).fit(Table(), examples)  # type: ignore[arg-type]
    assert solution.converged
    assert solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert TrainingSet(Table(), examples).objective(solution.weights, C) == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("slack", ["one", "n"])
@pytest.mark.parametrize(("seed", "C"), [(0, 0.01), (1, 1.0), (2, 30.0), (3, 1000.0)])
def test_optimum_with_signs_is_that_of_another_solver(slack: str, seed: int, C: float) -> None:
    examples, signs = random_tables(seed, n=4, outputs=5, d=4), (0, -1)
    model = Table(nonnegative=signs)
    training = TrainingSet(model, examples)
    solution = CuttingPlane(C=C, epsilon=1e-8, slack=slack).fit(model, examples)  # type: ignore[arg-type]
    assert solution.converged
    assert (solution.weights[[0, 3]] >= 0.0).all()
    assert -1e-9 <= solution.gap <= 1e-7 * max(1.0, solution.objective)
    expected = optimum_around(np.zeros(4), examples, C, training.targets, (0, 3))
    assert solution.objective == pytest.approx(training.objective(expected, C), rel=1e-5)
    free = CuttingPlane(C=C, epsilon=1e-8).fit(Table(), examples)
    assert free.objective <= solution.objective + 1e-6
    assert solution.objective <= training.objective(training.project(free.weights), C) + 1e-6


@pytest.mark.parametrize("slack", ["one", "n"])
def test_optimum_with_signs_meets_the_kkt_conditions(slack: str) -> None:
    """Multipliers alpha of active constraints exist, with A' alpha = w where w > 0, and A' alpha <= 0 where w = 0."""
    examples, C = random_tables(5, n=3, outputs=6, d=6), 5.0
    model = Table(nonnegative=tuple(range(6)))
    weights = CuttingPlane(C=C, epsilon=1e-9, slack=slack).fit(model, examples).weights  # type: ignore[arg-type]
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


@pytest.mark.parametrize("slack", ["one", "n"])
@pytest.mark.parametrize("seed", range(5))
def test_the_gap_bounds_the_optimum(slack: str, seed: int) -> None:
    examples = random_tables(seed, n=8, outputs=20, d=6)
    best = CuttingPlane(C=10.0, epsilon=1e-8).fit(Table(), examples).objective
    for epsilon in (0.3, 0.03, 0.003):
        solution = CuttingPlane(C=10.0, epsilon=epsilon, slack=slack).fit(Table(), examples)  # type: ignore[arg-type]
        assert solution.objective - solution.gap <= best + 1e-6
        assert best - 1e-6 <= solution.objective
        assert solution.gap <= 10.0 * epsilon + 1e-6


@pytest.mark.parametrize("slack", ["one", "n"])
def test_the_limit_warns_and_the_gap_still_holds(slack: str, caplog: pytest.LogCaptureFixture) -> None:
    examples = random_tables(6, n=8, outputs=20, d=6)
    best = CuttingPlane(C=10.0, epsilon=1e-8).fit(Table(), examples).objective
    with caplog.at_level(logging.WARNING, "greylag"):
        assert not caplog.messages
        solution = CuttingPlane(C=10.0, slack=slack, max_iterations=2).fit(Table(), examples)  # type: ignore[arg-type]
    assert "limit of 2 iterations" in caplog.text
    assert not solution.converged
    assert solution.objective - solution.gap <= best <= solution.objective
    assert TrainingSet(Table(), examples).objective(solution.weights, 10.0) == pytest.approx(solution.objective)


@pytest.mark.parametrize("slack", ["one", "n"])
def test_a_path_has_the_optimum_of_each_cost_in_ascending_order(slack: str) -> None:
    examples, grid = random_tables(9, n=10, outputs=30, d=8), (30.0, 0.01, 1000.0, 1.0)
    learner = CuttingPlane(C=5.0, epsilon=1e-6, slack=slack)  # type: ignore[arg-type]
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
    best = CuttingPlane(C=100.0, epsilon=1e-6).fit(Table(), examples)
    monkeypatch.setattr("greylag.structured.cutting_plane.IDLE_LIMIT", 10**6)
    kept = CuttingPlane(C=100.0, epsilon=1e-6).fit(Table(), examples)
    assert not np.array_equal(best.weights, kept.weights)
    assert best.objective == pytest.approx(kept.objective, rel=1e-5)


@pytest.mark.parametrize("slack", ["one", "n"])
def test_same_bytes_on_any_number_of_threads(slack: str) -> None:
    # BLAS splits sums of more than 10,000 terms among threads.
    examples = random_tables(8, n=4, outputs=10, d=30_000)
    learner = CuttingPlane(slack=slack)  # type: ignore[arg-type]
    with threadpool_limits(1):
        one = learner.fit(Table(), examples)
    with threadpool_limits(2):
        two = learner.fit(Table(), examples)
    assert one.weights.tobytes() == two.weights.tobytes()
    assert (one.objective, one.gap) == (two.objective, two.gap)


@pytest.mark.parametrize(
    "options",
    [{"C": 0.0}, {"C": np.inf}, {"epsilon": 0.0}, {"epsilon": np.nan}, {"slack": "two"}, {"max_iterations": 0}],
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
