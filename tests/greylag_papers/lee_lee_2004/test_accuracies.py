"""The choice of lambda by accuracies, their means, and the test of differences."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from greylag_papers.lee_lee_2004.accuracies import (
    ALL,
    BEST,
    IG,
    KS,
    MMR,
    OTHERS,
    SVM,
    accuracy_table,
    corrected_t_test,
    differences,
    verdict,
)
from tests.greylag_papers.lee_lee_2004.samples import accuracies


@pytest.mark.parametrize("seed", range(3))
def test_lambda_is_chosen_by_validation_for_each_split_and_the_best_for_all(seed):
    a = accuracies(seed)
    for k, learner in np.ndindex(2, 2):
        for s in range(4):
            w = max(range(3), key=lambda w: (a.validated[s, w, k, learner], w))  # ties: the highest lambda
            assert a.chosen[s, k, learner] == w
            assert a.systems[MMR][s, k, learner] == a.mmr[s, w, k, learner]
        w = max(range(3), key=lambda w: (round(a.mmr[:, w, k, learner].mean(), 9), w))
        assert a.best[k, learner] == w
        np.testing.assert_array_equal(a.systems[BEST][:, k, learner], a.mmr[:, w, k, learner])


def test_rounding_errors_do_not_break_ties():
    a = accuracies(splits=1, sizes=(5,), learners=("one",))
    a.validated[0, :, 0, 0] = [0.1 + 0.2, 0.3, 0.3]
    assert a.validated[0, 0, 0, 0] > 0.3
    assert a.chosen.item() == 2


def test_means_by_name():
    a = accuracies()
    means = a.means()
    assert means["SVM"] == {ALL: a.svm.mean()}
    assert set(means["two"]) == {ALL, *(f"{name}@{n}" for name in (IG, KS, MMR, BEST, "range") for n in a.sizes)}
    assert means["two"]["IG@10"] == a.information_gain[:, 1, 1].mean()
    assert means["one"][ALL] == a.all_words[:, 0].mean()
    np.testing.assert_array_equal(a.systems[SVM][:, 1, 0], a.svm)
    np.testing.assert_array_equal(a.systems[ALL][:, 1, 0], a.all_words[:, 0])
    np.testing.assert_array_equal(a.systems[KS], a.koller_sahami)


def test_claims_are_the_differences_with_their_means():
    a = accuracies()
    row, found, means = a.claims()[f"MMR / {KS}, two@10"], differences(a, a.systems[MMR]), a.means()
    assert set(found) == {(learner, other, n) for learner in a.learners for other in OTHERS for n in a.sizes}
    assert found["two", ALL, 10].mean == pytest.approx(means["two"]["MMR@10"] - means["two"][ALL])
    test = corrected_t_test(a.systems[MMR][:, 1, 1] - a.koller_sahami[:, 1, 1], 0.25)
    assert found["two", KS, 10] == test
    assert row["mean"] - row["against"] == pytest.approx(test.mean)
    assert row["against"] == pytest.approx(a.koller_sahami[:, 1, 1].mean())
    assert test.p <= row["p"] <= len(found) * test.p


def test_a_lambda_of_a_half_is_compared_with_the_best_and_with_information_gain():
    """Of two equally good values of lambda, either is best."""
    a = accuracies()
    rows = replace(a, mmr=np.broadcast_to(a.mmr[:, 1:2], a.mmr.shape)).claims()
    for learner in a.learners:
        row = rows[f"MMR, lambda 0.5 / {BEST}, {learner}@5"]
        assert (row["mean"], row["p"]) == (row["against"], 1)
    fixed = a.mmr[:, 1, 1, 0]  # by "one", of ten words
    row, test = a.claims()["MMR, lambda 0.5 / IG, one@10"], corrected_t_test(fixed - a.information_gain[:, 1, 0], 0.25)
    assert row["mean"] == pytest.approx(fixed.mean())
    assert test.p <= row["p"] <= len(a.learners) * len(a.sizes) * test.p
    assert not any("lambda" in name for name in replace(a, relevance_weights=(0.0, 0.4, 1.0)).claims())


def test_corrected_t():
    # Differences 1, 2, 3: mean 2, variance 1. With n_test / n_training = 1/6: t = 2 / sqrt(1/3 + 1/6) = 2 sqrt 2. With
    # two degrees of freedom p = 1 - t / sqrt(t^2 + 2) = 1 - sqrt(8 / 10).
    found = corrected_t_test(np.array([1.0, 2.0, 3.0]), 1 / 6)
    assert (found.mean, found.t) == (2.0, pytest.approx(2 * math.sqrt(2)))
    assert found.p == pytest.approx(1 - math.sqrt(0.8))
    drawn = np.random.default_rng(0).normal(0.3, 1, 10)
    student, found = stats.ttest_1samp(drawn, 0), corrected_t_test(drawn, 0.0)
    assert (found.t, found.p) == (pytest.approx(student.statistic), pytest.approx(student.pvalue))
    assert corrected_t_test(-drawn, 0.0).p == found.p
    for value, t, p in ((0.0, 0.0, 1.0), (0.1, math.inf, 2 / 2**10), (-0.1, -math.inf, 2 / 2**10)):
        found = corrected_t_test(np.full(10, value), 0.25)
        assert (found.mean, found.t, found.p) == (pytest.approx(value), t, p)


def test_tables_and_verdict_show_the_means():
    a = accuracies()
    means = a.means()
    table = accuracy_table(a)
    assert table.header == ("learner", "words", "5 words", "10 words")
    cells = {tuple(row[:2]): row[2:] for row in table.rows}
    assert len(cells) == 2 * 5 + 1
    values = 100 * a.systems[BEST][:, 1, 0]
    assert cells["one", BEST][1] == f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
    assert cells["SVM", "all words"] == [f"{100 * a.svm.mean():.2f} ± {100 * a.svm.std(ddof=1):.2f}", ""]
    above = sum(means[name][f"MMR@{k}"] >= means[name][f"{KS}@{k}"] - 1e-9 for name in a.learners for k in a.sizes)
    assert f"Koller-Sahami in {above}, all words in" in verdict(a)
