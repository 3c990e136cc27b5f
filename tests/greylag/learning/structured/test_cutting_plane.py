"""Structured models and cutting planes, compared with other solvers and the conditions of optimality.

Tests `constraint_pool`, `dual_steps`, `model` and `greylag.base.core.checks`.
"""

import logging

import clarabel
import numpy as np
import pytest
from scipy.sparse import csc_matrix
from threadpoolctl import threadpool_limits

from greylag.base import ModelError, ParameterError
from greylag.learning import ConstraintPool, CuttingPlane, TrainingSet
from greylag.learning.structured.constraint_pool import IDLE_LIMIT
from greylag.learning.structured.dual_steps import climb
from tests.greylag.learning.structured.models import Table, optimum_around, random_tables
from tests.refusals import refuses


def optimum(examples, C, signs=()):
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
def test_converged_means_close_to_the_optimum_relative_to_it(seed, C):
    """At large C, where the optimum is a small part of C, too."""
    examples, signs = random_tables(seed, n=1 + seed, outputs=5 + 3 * seed, d=3 + 4 * seed), (0, 2)
    best, model = optimum(examples, C, signs), Table(nonnegative=signs)
    solution = CuttingPlane(C).fit(model, examples)
    assert solution.converged
    assert solution.objective - solution.gap <= best * (1 + 1e-6)
    assert best * (1 - 1e-6) <= solution.objective <= best * 1.0011


@pytest.mark.parametrize("signs", [(), (0, 3)])
@pytest.mark.parametrize(("seed", "C"), [(0, 0.01), (1, 1.0), (2, 1.0), (2, 30.0), (3, 30.0), (4, 1000.0)])
def test_reaches_the_optimum_of_an_independent_solver(seed, C, signs):
    examples, model = random_tables(seed, n=4, outputs=5, d=4), Table(nonnegative=signs)
    expected = optimum(examples, C, signs)
    solution = CuttingPlane(C=C, epsilon=1e-8).fit(model, examples)
    assert solution.converged
    assert (solution.weights[list(signs)] >= 0.0).all()
    assert -1e-9 <= solution.gap <= 1e-7 * max(1.0, solution.objective)
    assert solution.objective == pytest.approx(expected, rel=1e-6, abs=1e-9)
    assert TrainingSet(model, examples).objective(solution.weights, C) == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_equals_the_multiclass_svm_of_liblinear():
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
def test_the_gap_bounds_the_optimum(seed):
    examples = random_tables(seed, n=8, outputs=20, d=6)
    best = CuttingPlane(C=10.0, epsilon=1e-8).fit(Table(), examples).objective
    for epsilon in (0.3, 0.03, 0.003):
        solution = CuttingPlane(C=10.0, epsilon=epsilon).fit(Table(), examples)
        assert solution.objective - solution.gap <= best + 1e-6
        assert best - 1e-6 <= solution.objective
        assert solution.gap <= epsilon * solution.objective


def test_the_limit_warns_and_the_gap_still_holds(caplog):
    examples = random_tables(6, n=8, outputs=20, d=6)
    best = CuttingPlane(C=10.0, epsilon=1e-8).fit(Table(), examples).objective
    with caplog.at_level(logging.WARNING, "greylag"):
        assert not caplog.messages
        solution = CuttingPlane(C=10.0, max_iterations=2).fit(Table(), examples)
    assert "limit of 2 iterations" in caplog.text
    assert not solution.converged
    assert solution.objective - solution.gap <= best <= solution.objective
    assert TrainingSet(Table(), examples).objective(solution.weights, 10.0) == pytest.approx(solution.objective)


def test_a_path_has_the_optimum_of_each_cost_in_ascending_order():
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


def test_dropping_idle_constraints_keeps_the_optimum(monkeypatch):
    examples = random_tables(7, n=10, outputs=30, d=20)
    kept = CuttingPlane(C=100.0, epsilon=1e-6).fit(Table(), examples)
    monkeypatch.setattr("greylag.learning.structured.constraint_pool.IDLE_LIMIT", 2)
    dropped = CuttingPlane(C=100.0, epsilon=1e-6).fit(Table(), examples)
    assert not np.array_equal(dropped.weights, kept.weights)
    assert dropped.objective == pytest.approx(kept.objective, rel=1e-5)


def test_the_constraints_of_smaller_costs_save_passes():
    examples = random_tables(2, n=20, outputs=60, d=12)
    *_, (_, last) = CuttingPlane().fit_path(Table(), examples, [1.0, 10.0, 100.0])
    assert last.iterations < CuttingPlane(100.0).fit(Table(), examples).iterations


def test_same_bytes_on_any_number_of_threads():
    # BLAS splits sums of more than 10,000 terms among threads.
    examples = random_tables(8, n=4, outputs=10, d=30_000)
    learner = CuttingPlane()
    with threadpool_limits(1):
        one = learner.fit(Table(), examples)
    with threadpool_limits(2):
        two = learner.fit(Table(), examples)
    assert one.weights.tobytes() == two.weights.tobytes()
    assert (one.objective, one.gap) == (two.objective, two.gap)


def test_hinge_losses_are_exact_after_the_search_for_constraints():
    training = TrainingSet(Table(), random_tables(0, n=4, outputs=6, d=5))
    pool, weights = ConstraintPool(training, 3), np.random.default_rng(0).standard_normal((3, 5))
    expected = np.array([training.hinge_losses(member) for member in weights])
    assert (pool.hinge_losses(weights) == training.target_losses).all()
    costs = np.ones((3, 4))
    assert pool.search(weights, costs, 1e-9)[0]
    np.testing.assert_allclose(pool.hinge_losses(weights), expected, rtol=1e-12)
    assert not pool.search(weights, costs, 1e-9)[0]


def test_only_examples_with_costs_are_searched():
    training = TrainingSet(Table(), random_tables(0, n=4, outputs=6, d=5))
    pool, weights = ConstraintPool(training, 1), np.random.default_rng(0).standard_normal((1, 5))
    assert not pool.search(weights, np.zeros((1, 4)), 1e-9)[0]
    assert pool.search(weights, np.array([[0.0, 2.0, 0.0, 0.0]]), 1e-9)[0]
    hinges, expected = pool.hinge_losses(weights)[0], training.hinge_losses(weights[0])
    assert hinges[1] == pytest.approx(expected[1])
    assert hinges[[0, 2, 3]].tolist() == training.target_losses[[0, 2, 3]].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_optimum_with_signs_is_that_of_another_solver_of_pool(seed):
    examples, signs = random_tables(seed, n=4, outputs=6, d=5), (0, 2, 3)
    training = TrainingSet(Table(nonnegative=signs), examples)
    pool, rng, C = ConstraintPool(training, 3), np.random.default_rng(seed), np.array([0.1, 3.0, 30.0])
    centres, costs = rng.standard_normal((3, 5)), np.tile(C[:, None] / 4, (1, 4))
    weights, _ = pool.solve(centres, costs, 1e-9)
    while pool.search(weights, costs, 1e-9)[0]:
        weights, _ = pool.solve(centres, costs, 1e-9)
    for member, centre, cost in zip(weights, centres, C, strict=True):
        expected = optimum_around(centre, examples, cost, training.targets, signs)
        np.testing.assert_allclose(member, expected, atol=1e-5)
    assert (weights[:, signs] == 0.0).any()
    assert (weights[:, signs] >= 0.0).all()


@pytest.mark.parametrize("seed", range(3))
def test_members_without_examples_for_long_still_reach_the_optimum(seed):
    training = TrainingSet(Table(), random_tables(seed, n=4, outputs=8, d=5))
    pool, centres, C = ConstraintPool(training, 2), np.zeros((2, 5)), np.full((2, 4), 2.5)
    alone = C * np.array([[1.0], [0.0]])
    weights, _ = pool.solve(centres, alone, 1e-9)
    for _ in range(IDLE_LIMIT + 10):
        pool.search(weights, C, 1e-9)
        weights, _ = pool.solve(centres, alone, 1e-9)
    np.testing.assert_array_equal(weights[1], 0.0)
    best = CuttingPlane(10.0, epsilon=1e-8).fit(Table(), training.examples)
    np.testing.assert_allclose(weights[0], best.weights, atol=1e-4)
    for _ in range(IDLE_LIMIT):
        pool.search(weights, C, 1e-9)
        weights, _ = pool.solve(centres, C, 1e-9)
    np.testing.assert_allclose(weights, [best.weights, best.weights], atol=1e-4)
    assert training.objective(weights[1], 10.0) == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("signs", [(), (0, 2, 3)])
@pytest.mark.parametrize("seed", range(5))
def test_the_dual_shares_weight_among_the_most_violated_and_its_signs_are_complementary(seed, signs):
    rng, starts = np.random.default_rng(seed), np.array([0, 4, 8, 12])
    order = np.append(rng.permutation(12), np.arange(12, 12 + len(signs)))
    normals = np.vstack([rng.standard_normal((12, 5)), np.eye(5)[list(signs)]])
    bounds = np.append(rng.random(12), np.zeros(len(signs)))
    centre, alpha = (rng.standard_normal(5) - 3.0) * bool(signs), np.zeros(12 + len(signs))
    alpha[order[starts[:-1]]] = 2.0
    violations = bounds - normals @ (centre + normals.T @ alpha)
    climb(normals @ normals.T, violations, order, starts, alpha, 1e-10, 1000)
    weights = centre + normals.T @ alpha
    np.testing.assert_allclose(violations, bounds - normals @ weights, atol=1e-9)
    assert (alpha >= 0).all()
    for part in (order[:4], order[4:8], order[8:12]):
        assert alpha[part].sum() == pytest.approx(2.0)
        assert violations[part][alpha[part] > 0].min() >= violations[part].max() - 1e-9
    if signs:
        assert (weights[list(signs)] >= -1e-9).all()
        np.testing.assert_allclose(alpha[12:] * weights[list(signs)], 0.0, atol=1e-9)
        assert (alpha[12:] > 0).any()


def test_targets_constraints_and_objective_are_the_definitions():
    examples = random_tables(0, n=4, outputs=5, d=3)
    training, weights = TrainingSet(Table(), examples), np.random.default_rng(0).standard_normal(3)
    assert training.targets == tuple(int(np.argmin(truth)) for _, truth in examples)
    assert training.target_losses.tolist() == [truth.min() for _, truth in examples]
    hinges = [(x @ weights + truth).max() - x[np.argmin(truth)] @ weights for x, truth in examples]
    np.testing.assert_allclose(training.hinge_losses(weights), hinges, rtol=1e-12)
    assert training.objective(weights, 2.0) == pytest.approx(weights @ weights / 2 + 2.0 * np.mean(hinges))


def test_signs():
    training = TrainingSet(Table(nonnegative=(-1, 0, 2)), random_tables(0, n=2, outputs=3, d=3))
    assert training.nonnegative.tolist() == [0, 2]
    assert training.project(np.array([[-1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])).tolist() == [[0, -2, 3], [4, 5, 0]]
    assert TrainingSet(Table(), training.examples).nonnegative.tolist() == []


def training(*sizes, **options):
    return TrainingSet(Table(**options), [example for size in sizes for example in random_tables(0, *size)])


@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        *(
            ((lambda options=options: CuttingPlane(**options)), ParameterError, next(iter(options)))
            for options in ({"C": 0.0}, {"C": np.inf}, {"epsilon": 0.0}, {"epsilon": np.nan}, {"max_iterations": 0})
        ),
        (lambda: CuttingPlane().fit_path(Table(), random_tables(0, 2, 2, 3), [1.0, 0.0]), ParameterError, "C 0.0"),
        (training, ParameterError, "examples"),
        (lambda: training((1, 2, 3), (1, 2, 4)).target_features, ModelError, "3 4"),
        (lambda: CuttingPlane().fit(Table(), [(np.full((2, 2), np.nan), np.zeros(2))]), ModelError, "example 0 nan"),
        (lambda: training((2, 3, 3), nonnegative=(3,)).nonnegative, ModelError, "3"),
        (lambda: training((2, 3, 3), nonnegative=(-4,)).nonnegative, ModelError, "-4 3"),
        (lambda: CuttingPlane().fit(object(), random_tables(0, 2, 2, 3)), ParameterError, "object infer target"),
    ],
)
def test_refusals(call, error, parts):
    refuses(call, error, parts)
