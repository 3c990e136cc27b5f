"""What is chosen by accuracies, and the test of their differences."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from greylag_papers.lee_lee_2004.accuracies import ALL, BEST, IG, KS, MMR, SVM, Accuracies, corrected_t_test

WEIGHTS = (0.0, 0.5, 1.0)


def example(seed=0, splits=4, sizes=(5, 10), learners=("one", "two")):
    """Accuracies in eighths, with many ties."""
    rng = np.random.default_rng(seed)

    def draw(*shape):
        return rng.integers(0, 9, shape) / 8

    shape = (splits, len(sizes), len(learners))
    by_weight = (splits, len(WEIGHTS), len(sizes), len(learners))
    return Accuracies(
        learners, sizes, WEIGHTS, draw(splits, len(learners)), draw(splits), draw(*shape), draw(*shape),
        draw(*by_weight), draw(*by_weight), test_ratio=0.25,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
def test_lambda_is_chosen_by_validation_alone_and_for_each_split(seed):
    a = example(seed)
    for s in range(4):
        for k in range(2):
            for learner in range(2):
                w = max(range(3), key=lambda w: (a.validated[s, w, k, learner], w))  # of equal ones the highest lambda
                assert a.chosen[s, k, learner] == w
                assert a.systems[MMR][s, k, learner] == a.mmr[s, w, k, learner]


@pytest.mark.parametrize("seed", range(3))
def test_the_best_lambda_is_one_for_all_splits(seed):
    a = example(seed)
    for k in range(2):
        for learner in range(2):
            w = max(range(3), key=lambda w: (round(a.mmr[:, w, k, learner].mean(), 9), w))
            assert a.best[k, learner] == w
            np.testing.assert_array_equal(a.systems[BEST][:, k, learner], a.mmr[:, w, k, learner])
    assert (a.systems[BEST].mean(axis=0) >= a.mmr.mean(axis=0)).all()


def test_rounding_does_not_choose():
    a = example(splits=1, sizes=(5,), learners=("one",))
    a.validated[0, :, 0, 0] = [0.1 + 0.2, 0.3, 0.3]
    assert a.validated[0, 0, 0, 0] > 0.3
    assert a.chosen.item() == 2


def test_means_by_their_names():
    a = example()
    means = a.means()
    assert means["SVM"] == {ALL: a.svm.mean()}
    assert set(means["two"]) == {
        ALL,
        "IG@5",
        "IG@10",
        f"{KS}@5",
        f"{KS}@10",
        "MMR@5",
        "MMR@10",
        f"{BEST}@5",
        f"{BEST}@10",
    }
    assert means["two"]["IG@10"] == a.information_gain[:, 1, 1].mean()
    assert means["one"][ALL] == a.all_words[:, 0].mean()
    np.testing.assert_array_equal(a.systems[SVM][:, 1, 0], a.svm)
    np.testing.assert_array_equal(a.systems[ALL][:, 1, 0], a.all_words[:, 0])
    np.testing.assert_array_equal(a.systems[IG], a.information_gain)
    np.testing.assert_array_equal(a.systems[KS], a.koller_sahami)


def test_json_holds_all_of_it():
    a = example()
    back = json.loads(json.dumps(a.to_dict()))
    np.testing.assert_array_equal(back["mmr"], a.mmr)
    assert back["relevance_weights"] == [0.0, 0.5, 1.0]
    assert set(back) == {
        "learners", "sizes", "relevance_weights", "all_words", "svm", "information_gain", "koller_sahami", "mmr",
        "validated", "test_ratio",
    }  # fmt: skip


def test_corrected_t_by_hand():
    # Differences 1, 2, 3: mean 2, variance 1. With n_test / n_training = 1/6: t = 2 / sqrt(1/3 + 1/6) = 2 sqrt 2. With
    # two degrees of freedom p = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(8 / 10).
    found = corrected_t_test(np.array([1.0, 2.0, 3.0]), 1 / 6)
    assert (found.mean, found.t) == (2.0, pytest.approx(2 * math.sqrt(2)))
    assert found.p == pytest.approx(1 - math.sqrt(0.8))


def test_corrected_t_is_students_where_nothing_is_tested_on():
    differences = np.random.default_rng(0).normal(0.3, 1, 10)
    expected = stats.ttest_1samp(differences, 0)
    found = corrected_t_test(differences, 0.0)
    assert (found.t, found.p) == (pytest.approx(expected.statistic), pytest.approx(expected.pvalue))
    assert corrected_t_test(-differences, 0.0).p == found.p
    assert corrected_t_test(differences, 0.25).p > found.p


@pytest.mark.parametrize(("value", "t", "p"), [(0.0, 0.0, 1.0), (0.1, math.inf, 0.0), (-0.1, -math.inf, 0.0)])
def test_differences_that_are_all_equal(value, t, p):
    found = corrected_t_test(np.full(10, value), 0.25)
    assert (found.mean, found.t, found.p) == (pytest.approx(value), t, p)
