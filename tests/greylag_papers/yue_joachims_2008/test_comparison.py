from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from greylag.base import greedy_picks
from greylag.diversity import PRESETS, Coverage, CoverageModel, EssentialPages, candidates_from_counts, subtopic_gain
from greylag.diversity.coverage_model import CoverageFeatures, Criterion
from greylag.evaluation import Subtopics
from greylag.learning import CuttingPlane, TrainingSet
from greylag.recipes import C_GRID
from greylag_papers.yue_joachims_2008.comparison import (
    BASELINES,
    LEARNER,
    METHODS,
    OKAPI,
    ORACLE,
    Loss,
    LossTable,
    Swapping,
    baseline_losses,
    constraint_bound,
    measure_losses,
    svmdiv_losses,
)
from greylag_papers.yue_joachims_2008.queries import Split, index_queries, rotations, synthetic_queries
from tests.greylag.diversity import samples
from tests.greylag_papers.yue_joachims_2008.samples import SETS


def three_documents():
    """One word in all documents; the first covers two subtopics, the others one."""
    features = CoverageFeatures((Criterion("count", 1),), (0.5,))
    counts = csr_matrix(np.ones((3, 1)))
    coverage = csr_matrix(np.array([[0.0, 1, 1], [1, 0, 0], [1, 0, 0]]))
    x = candidates_from_counts(features, counts, np.ones(1), {}, np.zeros((3, 0)))
    return x, Subtopics(coverage, np.array([0.5, 0.25, 0.25]))


def augmented(x, truth, weights, y):
    """w' Psi + Delta."""
    model, picked = CoverageModel(len(y)), np.array(y)
    return float(weights @ model.joint_feature(x, picked)) + truth.loss(picked)


def test_greedy_constraints_have_no_guarantee():
    """Section 5.1 claims 1 - 1/e, but Delta falls as documents are added, so that gains are negative."""
    (x, truth), weights = three_documents(), np.array([0.05])
    found = augmented(x, truth, weights, CoverageModel(2).infer_augmented(x, truth, weights).tolist())
    best = max(augmented(x, truth, weights, y) for y in combinations(range(3), 2))
    assert (found, best) == (pytest.approx(0.05), pytest.approx(0.55))
    assert found < (1 - 1 / np.e) * best
    swapped = Swapping(2).infer_augmented(x, truth, weights)
    assert augmented(x, truth, weights, swapped.tolist()) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(5))
def test_no_swap_improves_what_the_search_returns(seed):
    rng = np.random.default_rng(seed)
    counts, coverage = (csr_matrix(rng.random((8, n)) < 0.3, dtype=np.float64) for n in (12, 6))
    features = CoverageFeatures((Criterion("count", 1),), (0.1, 0.3))
    x = candidates_from_counts(features, counts, np.ones(12), {}, np.zeros((8, 0)))
    truth, weights = Subtopics(coverage, rng.dirichlet(np.ones(6))), rng.normal(size=2)
    greedy, found = (model(3).infer_augmented(x, truth, weights).tolist() for model in (CoverageModel, Swapping))
    value = augmented(x, truth, weights, found)
    assert value >= augmented(x, truth, weights, greedy) - 1e-12
    for y in combinations(range(8), 3):
        if len({*y} & {*found}) == 2:
            assert augmented(x, truth, weights, y) <= value + 1e-9


@pytest.mark.parametrize("C", [0.1, 100.0])
def test_the_bound_of_theorem_1_is_of_the_sets_that_training_meets(C):
    queries = synthetic_queries(replace(SETS, n_sets=2, n_documents=7))
    row, model = constraint_bound(queries, 2, C, "svmdiv"), CoverageModel(2)
    examples = [(query.candidates["svmdiv"], query.truth) for query in queries]
    every = [(x, truth, np.array(y)) for x, truth in examples for y in combinations(range(7), 2)]
    targets = {id(x): model.joint_feature(x, model.target(x, truth)) for x, truth in examples}
    R = max(np.linalg.norm(targets[id(x)] - model.joint_feature(x, y)) for x, _, y in every)
    delta = max(truth.loss(y) for _, truth, y in every)
    epsilon = 1e-3 * CuttingPlane(C).fit(model, examples).objective / C
    highest = np.log10(max(2 * 2 * delta / epsilon, 8 * C * delta * R**2 / epsilon**2))
    assert row["constraints"] <= min(np.log10(len(every)), row["bound"])
    assert highest - 0.5 < row["bound"] <= highest


def rows(method, values):
    return [Loss(method, 5, None, str(qid), value) for qid, value in enumerate(values)]


def test_comparisons_are_with_the_learned_model_and_without_the_oracle():
    table = LossTable(
        (*rows("svmdiv", [0.0, 0.1, 0.2, 0.3]), *rows("random", [0.5, 0.2, 0.2, 0.4]), *rows(ORACLE, [0.0] * 4))
    )
    (found,) = table.compare("svmdiv", ("random", ORACLE, "svmdiv"), 5).comparisons
    assert (found.run, found.wins, found.ties, found.losses) == ("random", 0, 1, 3)
    assert found.p == pytest.approx(0.25)  # all three differences of one sign: 2 of 2^3 cases


@pytest.mark.parametrize("space", PRESETS)
def test_the_default_learner_converges_at_every_cost(space):
    """Sets of which no weights give the targets, where the objective is far above 0 at every C."""
    examples = [(query.candidates[space], query.truth) for query in synthetic_queries(SETS)]
    for C, solution in LEARNER.fit_path(CoverageModel(), examples, C_GRID):
        assert solution.converged
        assert solution.gap <= 1e-3 * solution.objective
        assert solution.objective >= TrainingSet(CoverageModel(), examples).objective(solution.weights, C) * (1 - 1e-9)


def test_baselines_pick_what_the_stages_pick():
    n, qrels = 15, {"q": samples.judgements(0, 15), "none": {}}
    index, ranking = samples.index(1, n), samples.ranking(2, n)
    rankings = [ranking, samples.ranking(2, n, "none")]
    (query,) = index_queries(index, rankings, qrels, relevant_only=False)
    losses = {row.method: row.loss for row in baseline_losses(query, 4)}
    assert set(losses) == {"random", OKAPI, *BASELINES}
    assert losses[OKAPI] == query.truth.loss(np.argsort(-query.okapi, kind="stable")[:4])
    for name, stage in (("coverage", Coverage(index, k=4)), ("essential-pages", EssentialPages(index, k=4))):
        order = [ranking.docids.index(docid) for docid in stage(ranking).docids[:4]]
        assert losses[name] == query.truth.loss(np.array(order))
    assert losses[ORACLE] == query.truth.loss(greedy_picks(subtopic_gain(query.truth), 4))
    assert losses["first-stage"] == query.truth.loss(np.arange(4))
    assert losses[ORACLE] < losses["random"] < 1.0


def test_losses_are_complete_and_independent_of_the_number_of_processes():
    splits = rotations(synthetic_queries(SETS), n_training=3, n_validation=2)
    one, two = (measure_losses(splits, [1, 3], spaces=["svmdiv"], grid=(1.0, 100.0), n_jobs=n) for n in (1, 2))
    assert one == two
    for k in (1, 3):
        for method in (*METHODS, "svmdiv"):
            assert list(one.losses(method, k)) == [str(i) for i in range(8)]
            assert one.mean(ORACLE, k) <= one.mean(method, k) + 1e-12


def test_validation_chooses_the_best_cost():
    queries = tuple(synthetic_queries(SETS))
    rows, _ = svmdiv_losses(Split(queries[:3], queries[3:], queries[3:]), "svmdiv", 2, (1e-3, 1.0, 1e3))
    means = {C: np.mean([row.loss for row in rows if row.C == C]) for C in (None, 1e-3, 1.0, 1e3)}
    chosen = means.pop(None)
    assert chosen == min(means.values()) < means[1e3]


def test_fits_are_of_the_training_queries_of_each_split():
    queries = synthetic_queries(SETS)
    splits = rotations(queries, n_training=3, n_validation=2, n_splits=4)
    table = measure_losses(splits, [2], spaces=["svmdiv"], grid=(10.0, 1e-3))
    assert [fit.C for fit in table.fits] == [1e-3, 10.0] * 4
    model = CoverageModel(2)
    for split, fit in zip(splits, table.fits[1::2], strict=True):
        examples = [(query.candidates["svmdiv"], query.truth) for query in split.training]
        solution = dict(LEARNER.fit_path(model, examples, [1e-3, 10.0]))[10.0]
        losses = [truth.loss(model.infer(x, solution.weights)) for x, truth in examples]
        assert fit.loss == np.mean(losses)
        assert fit.greedy == pytest.approx(np.mean([t.loss(model.target(x, t)) for x, t in examples]))
        assert fit.iterations == solution.iterations
    assert table.fitted("svmdiv", 2, 10.0)["loss"] == pytest.approx(np.mean([fit.loss for fit in table.fits[1::2]]))


def test_without_the_factor_1_over_n_the_same_weights_need_n_squared_times_smaller_costs():
    model, C, n = CoverageModel(2), 1e-3, 20
    examples = [(query.candidates["svmdiv"], query.truth) for query in synthetic_queries(SETS)[:4]]

    class Divided(CoverageModel):
        """Psi / n."""

        def joint_feature(self, x, y):
            return super().joint_feature(x, y) / n

        def infer_augmented(self, x, truth, weights):
            return super().infer_augmented(x, truth, weights / n)

    plain = CuttingPlane(C, epsilon=1e-6).fit(model, examples)
    divided = CuttingPlane(C * n**2, epsilon=1e-6).fit(Divided(2), examples)
    np.testing.assert_allclose(divided.weights / n, plain.weights, rtol=1e-3, atol=1e-6)
    assert divided.objective == pytest.approx(plain.objective * n**2, rel=1e-4)
