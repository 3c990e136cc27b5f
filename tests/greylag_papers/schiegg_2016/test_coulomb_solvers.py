"""Electrostatics, and the assignments and solvers of the Coulomb structured SVM, by definition and by other solvers."""

from itertools import pairwise, product

import numpy as np
import pytest
from scipy.optimize import minimize

from greylag.learning import TrainingSet, task_losses
from greylag_papers.schiegg_2016.coulomb import Coulomb
from greylag_papers.schiegg_2016.coulomb_solvers import (
    CONVERGENCE_TOLERANCE,
    CoulombProblem,
    best_shares,
    descend,
    member_costs,
    relax,
    sampling_shares,
    walk,
)
from greylag_papers.schiegg_2016.electrostatics import (
    directions,
    displacements,
    energy_descent,
    lengths,
    mean_angle,
    riesz_energy,
    riesz_forces,
)
from tests.greylag.learning.structured.models import THOMSON, Table, optimum_around, random_tables

LOSSES = np.array([[0.0, 0.5, 1.0, 0.0, 4.0], [0.5, 0.5, 1.0, 0.0, 1.0], [0.5, 0.0, 1.0, 0.0, 5.0]])
DRAWS = 20_000
EXAMPLES = random_tables(0, n=6, outputs=5, d=4)
WEIGHTS = np.random.default_rng(1).standard_normal((3, 4))


def problem(table=None, examples=EXAMPLES, **given):
    parameters = {"C": 5.0, "alpha": 0.3, "s": 1.0, "repulsion": "displacement", "assignment": "all"}
    limits = {"epochs": 4, "epsilon": 1e-6}
    return CoulombProblem(TrainingSet(table or Table(), examples), **(parameters | limits | given))


def test_sampling_shares_fall_with_the_share_of_losses():
    # (1 - pi) / (M - 1) by hand, with pi = 0.4, 0.1, 0.5 in the last column.
    expected = np.array(
        [[0.5, 0.25, 1 / 3, 1 / 3, 0.3], [0.25, 0.25, 1 / 3, 1 / 3, 0.45], [0.25, 0.5, 1 / 3, 1 / 3, 0.25]]
    )
    np.testing.assert_allclose(sampling_shares(LOSSES), expected)
    np.testing.assert_allclose(sampling_shares(7.0 * LOSSES), expected)
    np.testing.assert_allclose(sampling_shares(np.array([[0.0, 0.2], [0.9, 0.6]])), [[1.0, 0.75], [0.0, 0.25]])
    assert sampling_shares(np.array([[0.0, 3.0]])).tolist() == [[1.0, 1.0]]


def test_best_draws_ties_and_keeps_its_members():
    rng, none = np.random.default_rng(0), np.zeros_like(LOSSES)
    drawn = np.array([best_shares(LOSSES, none, rng) for _ in range(DRAWS)])
    assert (drawn.sum(axis=1) == 1).all()
    third = 1 / 3
    expected = [[1, 0, third, third, 0], [0, 0, third, third, 1], [0, 1, third, third, 0]]
    np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.015)
    before = np.array([[0.0] * 5, [0.0] * 5, [1.0] * 5])
    for _ in range(20):
        assert best_shares(LOSSES, before, rng).tolist() == [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 1, 1, 1, 0]]


def test_costs_of_a_member_are_a_mean_over_its_examples():
    shares = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.2, 0.2, 0.6]])
    expected = [[3.0, 0.0, 3.0], [0.0, 6.0, 0.0], [0.0, 0.0, 0.0], [1.2, 1.2, 3.6]]
    np.testing.assert_allclose(member_costs(shares, 6.0), expected)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_costs_of_sampled_examples_are_means_over_all_draws(n):
    q = np.random.default_rng(n).random((1, n))
    expected, learning = np.zeros(n), 0.0
    for drawn in product([False, True], repeat=n):
        probability = float(np.prod(np.where(drawn, q[0], 1.0 - q[0])))
        if any(drawn):
            learning += probability
            expected += probability * 6.0 * np.array(drawn) / sum(drawn)
    costs, often = problem(assignment="sampled", C=6.0).expected_costs(q)
    assert often[0, 0] == pytest.approx(learning, rel=1e-12)
    np.testing.assert_allclose(costs[0], expected / learning, rtol=1e-12)


def test_drawn_shares_are_those_of_table_1():
    rng, none = np.random.default_rng(0), np.zeros((3, 6))
    losses = task_losses(Table(), EXAMPLES, WEIGHTS)
    assert (problem().drawn_shares(WEIGHTS, none, rng) == 1.0).all()
    best = problem(assignment="best").drawn_shares(WEIGHTS, none, rng)
    assert ((best * losses).sum(axis=0) == losses.min(axis=0)).all()
    assert (best.sum(axis=0) == 1.0).all()
    for assignment, axis, expected in (
        ("sampled", 0, sampling_shares(losses)),
        ("stochastic", 1, np.full((3, 6), 1 / 6)),
    ):
        drawing = problem(assignment=assignment)
        drawn = np.array([drawing.drawn_shares(WEIGHTS, none, rng) for _ in range(3000)])
        assert (drawn.sum(axis=1 + axis) == 1.0).all()
        np.testing.assert_allclose(drawn.mean(axis=0), expected, atol=0.04)
    both = (drawn[:, 0] * drawn[:, 1]).sum(axis=1).mean()
    assert both == pytest.approx(1 / 6, abs=0.03), "each member draws its own example"


def test_expected_shares_are_means_over_the_epochs():
    rng, shares, sampled = np.random.default_rng(0), np.zeros((3, 6)), problem(assignment="sampled")
    points = [np.random.default_rng(seed).standard_normal((3, 4)) for seed in range(4)]
    for epoch, weights in enumerate(points, 1):
        shares = sampled.expected_shares(weights, shares, epoch, rng)
    expected = np.mean([sampling_shares(task_losses(Table(), EXAMPLES, weights)) for weights in points], axis=0)
    np.testing.assert_allclose(shares, expected)
    for assignment in ("all", "stochastic"):
        assert (problem(assignment=assignment).expected_shares(WEIGHTS, shares, 1, rng) == 1.0).all()
    best = [problem(assignment="best").expected_shares(WEIGHTS, shares, epoch, rng) for epoch in (2, 3)]
    assert [(drawn.sum(axis=0) == 1.0).all() and set(np.unique(drawn)) == {0.0, 1.0} for drawn in best] == [True, False]
    np.testing.assert_array_equal(best[1], shares)


def test_points_return_to_spheres():
    moved = np.array([[3.0, 4.0, 0.0, -1.0], [0.0, 0.0, 0.0, -2.0]])
    weights = np.array([[0.0, 0.0, 0.0, 2.0], [1.0, 0.0, 0.0, 0.0]])
    found = problem(Table(nonnegative=(3,))).return_to_spheres(moved, weights)
    np.testing.assert_allclose(found, [[1.2, 1.6, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])


def subgradient(w, examples):
    """The mean of g over the examples of a member (eq. 7)."""
    found = []
    for x, truth in (EXAMPLES[i] for i in examples):
        found.append(x[np.argmin(truth)] - x[np.argmax(x @ w + truth)])
    return -np.mean(found, axis=0)


@pytest.mark.parametrize("repulsion", ["displacement", "gradient"])
def test_one_step_is_eq_8(repulsion):
    repel = {"displacement": displacements, "gradient": energy_descent}[repulsion](WEIGHTS, 0.3)
    slopes = [-(w + 5.0 * subgradient(w, [*range(6)]) - force) for w, force in zip(WEIGHTS, repel, strict=True)]
    eta = 1.0 / max(1.0, np.linalg.norm(slopes, axis=1).max() / 0.5)
    found = walk(problem(Table(), repulsion=repulsion, epochs=1), WEIGHTS, 0.5, np.random.default_rng(0))
    np.testing.assert_allclose(found.weights, WEIGHTS + eta * np.array(slopes))
    assert not found.converged


def test_a_stochastic_epoch_is_eq_9_with_an_example_for_each_member():
    found = walk(problem(Table(), assignment="stochastic", epochs=2), WEIGHTS, 0.5, np.random.default_rng(0))
    rng, weights, delay, suffix = np.random.default_rng(0), WEIGHTS.copy(), 0.0, []
    for step in range(12):
        drawn = rng.integers(6, size=3)
        slopes = displacements(weights, 0.3)
        for m, i in enumerate(drawn):
            slopes[m] -= weights[m] + 5.0 * subgradient(weights[m], [i])
        delay = delay or max(1.0, np.linalg.norm(slopes, axis=1).max() / 0.5)
        weights = weights + slopes / (step + delay)
        suffix.append(weights)
    np.testing.assert_allclose(found.weights, np.mean(suffix[6:], axis=0), rtol=1e-10)


def test_a_member_without_examples_is_only_repelled():
    # The first member is best on all examples; the others keep their lengths (eq. 10).
    examples = [(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.0, 1.0]))] * 2
    start = np.array([[3.0, 0.1], [-2.0, 0.5], [-0.5, 1.0]])
    alone = problem(examples=examples, C=1.0, alpha=0.05, assignment="best", epochs=1)
    after = walk(alone, start, 10.0, np.random.default_rng(0)).weights
    np.testing.assert_allclose(np.linalg.norm(after[1:], axis=1), np.linalg.norm(start[1:], axis=1))
    moved = (start + displacements(start, 0.05))[1:]
    np.testing.assert_allclose(after[1:], moved)
    assert np.linalg.norm(after[0]) < 2.5


def relaxed(table, examples, M, **given):
    rng, case = np.random.default_rng(0), problem(table, examples, **({"alpha": 0.1, "epochs": 300} | given))
    centres = rng.standard_normal((M, examples[0][0].shape[1]))
    return relax(case, case.training.project(centres), centres, rng)


def descended(table, examples, M, *, epochs=300, **given):
    rng, case = (
        np.random.default_rng(0),
        problem(table, examples, **({"alpha": 0.1, "repulsion": "gradient", "epochs": epochs} | given)),
    )
    start = case.training.project(rng.standard_normal((M, examples[0][0].shape[1])))
    return descend(case, start, rng)


SOLVERS = [(relaxed, displacements), (descended, energy_descent)]


@pytest.mark.parametrize("nonnegative", [(), (0, 3, 5)])
@pytest.mark.parametrize(("alpha", "s"), [(0.01, 1.0), (0.3, 1.0), (1.0, 1.0), (0.3, 2.0), (1.0, 2.0)])
@pytest.mark.parametrize(("solved", "repel"), SOLVERS)
def test_each_member_is_the_optimum_around_its_repulsion(solved, repel, alpha, s, nonnegative):
    """By another solver: a fixed point of eq. 8, or a point at which 0 is a subgradient of the objective."""
    table, examples = Table(nonnegative=nonnegative), random_tables(3, n=5, outputs=6, d=8)
    ensemble = solved(table, examples, 4, alpha=alpha, s=s)
    assert ensemble.converged
    assert (ensemble.weights[:, nonnegative] >= 0.0).all()
    targets = [int(np.argmin(truth)) for _, truth in examples]
    for member, centre in zip(ensemble.weights, repel(ensemble.weights, alpha, s), strict=True):
        expected = optimum_around(centre, examples, 5.0, targets, nonnegative)
        assert np.linalg.norm(member - expected) <= 2 * CONVERGENCE_TOLERANCE * np.linalg.norm(member)


@pytest.mark.parametrize(
    ("seed", "n", "d", "C", "alpha"), [(2, 2, 3, 20.0, 0.3), (3, 1, 2, 50.0, 1.0), (4, 2, 3, 20.0, 0.3)]
)
def test_members_that_stay_at_a_kink_are_optimal_before_their_centres_settle(seed, n, d, C, alpha):
    ensemble = relaxed(Table(), random_tables(seed, n=n, outputs=3, d=d), 3, alpha=alpha, C=C)
    assert ensemble.converged
    assert ensemble.epochs < 50


@pytest.mark.parametrize(("solved", "repel"), SOLVERS)
def test_members_without_examples_find_equilibrium_on_their_spheres(solved, repel):
    examples = random_tables(6, n=1, outputs=10, d=6)
    start = np.random.default_rng(0).standard_normal((3, 6))
    ensemble = solved(Table(), examples, 3, assignment="best", alpha=1.0)
    assert ensemble.converged
    losses = task_losses(Table(), examples, ensemble.weights)[:, 0]
    kept = np.isclose(lengths(ensemble.weights), lengths(start))
    assert kept.sum() == 2
    assert losses[~kept] == losses.min()
    assert lengths(repel(ensemble.weights, 1.0)[kept]).max() <= CONVERGENCE_TOLERANCE * lengths(ensemble.weights).mean()


@pytest.mark.parametrize("n", [1, 2])
def test_sampled_fixed_points_are_where_the_steps_end(n):
    """The repulsion of members that learn from few examples counts for more; "all" would give smaller angles."""
    examples = random_tables(n, n=n, outputs=10, d=6)
    ends = [
        Coulomb(4, alpha=0.05, C=5.0, assignment="sampled", update=update, epochs=epochs).fit(Table(), examples)
        for update, epochs in (("exact", 300), ("subgradient", 6000))
    ]
    together = Coulomb(4, alpha=0.05, C=5.0).fit(Table(), examples)
    assert ends[0].mean_angle == pytest.approx(ends[1].mean_angle, rel=0.1)
    assert together.mean_angle < 0.9 * ends[0].mean_angle


def objective(weights, examples, C, alpha, s):
    training = TrainingSet(Table(), examples)
    return alpha * riesz_energy(weights, s) + sum(training.objective(member, C) for member in weights)


@pytest.mark.parametrize("s", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("assignment", ["all", "stochastic"])
def test_the_objective_never_rises_and_is_that_of_the_weights(assignment, alpha, s):
    examples = random_tables(4, n=5, outputs=6, d=8)
    ensemble = descended(Table(), examples, 4, alpha=alpha, s=s, C=20.0, assignment=assignment)
    assert len(ensemble.objectives) == ensemble.epochs
    assert all(after <= before for before, after in pairwise(ensemble.objectives))
    assert ensemble.objectives[-1] < ensemble.objectives[0]
    assert objective(ensemble.weights, examples, 20.0, alpha, s) == pytest.approx(ensemble.objectives[-1], rel=1e-4)


@pytest.mark.parametrize("seed", range(3))
def test_no_local_search_lowers_the_objective_much(seed):
    examples = random_tables(seed, n=3, outputs=5, d=4)
    ensemble = descended(Table(), examples, 3, alpha=0.5, C=5.0)
    lowest = minimize(
        lambda flat: objective(flat.reshape(3, 4), examples, 5.0, 0.5, 1.0),
        ensemble.weights.ravel(),
        method="Nelder-Mead",
        options={"maxfev": 4000},
    )
    assert lowest.fun == pytest.approx(ensemble.objectives[-1], rel=1e-3)


@pytest.mark.parametrize("m", THOMSON)
def test_at_vanishing_risk_members_solve_the_thomson_problem(m):
    examples = random_tables(5, n=2, outputs=4, d=3)
    ensemble = descended(Table(), examples, m, C=1e-6, alpha=1.0, epochs=4)
    assert riesz_energy(ensemble.weights) == pytest.approx(THOMSON[m], rel=1e-4)


EXPONENTS = (0.5, 1.0, 2.0, 3.5)


def random_weights(seed, m, d):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((m, d)) * rng.uniform(0.1, 10.0, (m, 1))


def plain_energy(points, s=1.0):
    return sum(np.linalg.norm(points[m] - points[k]) ** -s for m in range(len(points)) for k in range(m))


def numerical_gradient(energy, points):
    gradient, step = np.zeros_like(points), 1e-6
    for place in np.ndindex(points.shape):
        moved = np.zeros_like(points)
        moved[place] = step
        gradient[place] = (energy(points + moved) - energy(points - moved)) / (2 * step)
    return gradient


@pytest.mark.parametrize("seed", range(4))
def test_energy_depends_only_on_directions(seed):
    weights = random_weights(seed, 5, 4)
    units = weights / np.linalg.norm(weights, axis=1, keepdims=True)
    np.testing.assert_allclose(directions(weights), units, rtol=1e-14)
    for s in EXPONENTS:
        assert riesz_energy(weights, s) == pytest.approx(plain_energy(units, s))


@pytest.mark.parametrize("s", EXPONENTS)
@pytest.mark.parametrize("seed", range(4))
def test_force_is_the_negative_gradient_of_the_energy(seed, s):
    units = directions(random_weights(seed, 4, 3))
    gradient = numerical_gradient(lambda points: plain_energy(points, s), units)
    np.testing.assert_allclose(riesz_forces(units, s), -gradient, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("s", EXPONENTS)
@pytest.mark.parametrize("seed", range(4))
def test_descent_is_the_negative_gradient_by_the_weights(seed, s):
    weights = random_weights(seed, 4, 3)
    gradient = numerical_gradient(lambda points: 0.7 * riesz_energy(points, s), weights)
    descent = energy_descent(weights, 0.7, s)
    np.testing.assert_allclose(descent, -gradient, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(np.einsum("md,md->m", descent, weights), 0.0, atol=1e-12 * np.abs(descent).max())
    # To first order in alpha, displacements are the descent in units of the squared lengths.
    small = displacements(weights, 1e-9, s)
    np.testing.assert_allclose(small, 1e-9 / 0.7 * lengths(weights)[:, None] ** 2 * descent, rtol=1e-5, atol=1e-14)


@pytest.mark.parametrize("alpha", [1e-3, 0.1, 10.0])
def test_displacement_stays_on_the_members_sphere_and_lowers_the_energy(alpha):
    weights = random_weights(3, 6, 5)
    lengths = np.linalg.norm(weights, axis=1)
    moved = weights + displacements(weights, alpha)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), lengths, rtol=1e-12)
    units = weights / lengths[:, None]
    expected = units + alpha * riesz_forces(weights)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(moved, lengths[:, None] * expected, rtol=1e-10)
    assert riesz_energy(weights + 1e-3 * displacements(weights, alpha)) < riesz_energy(weights)


def test_coinciding_and_zero_weights_are_finite():
    weights = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1e-300, 1e-300]])
    assert riesz_energy(weights) == np.inf
    assert np.isfinite(riesz_forces(weights)).all()
    assert np.isfinite(displacements(weights, 1.0)).all()
    assert np.isfinite(energy_descent(weights, 1.0)).all()
    np.testing.assert_array_equal(energy_descent(weights, 1.0)[2], 0.0)
    np.testing.assert_array_equal(directions(weights)[2], 0.0)
    np.testing.assert_allclose(directions(weights)[4], np.sqrt(0.5))
    # The two that coincide experience the same forces and exert none on each other.
    np.testing.assert_array_equal(riesz_forces(weights)[0], riesz_forces(weights)[1])


def test_angles():
    assert mean_angle(np.eye(3)) == pytest.approx(90.0)
    assert mean_angle(np.array([[1.0, 0.0], [-3.0, 0.0]])) == pytest.approx(180.0)
    assert mean_angle(np.ones((1, 4))) == 0.0
    assert mean_angle(np.array([[1.0, 0.0], [1.0, 1e-9]])) == pytest.approx(np.degrees(1e-9))
