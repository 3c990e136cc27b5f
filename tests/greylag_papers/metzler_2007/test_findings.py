"""Comparisons and curves over all folds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from greylag.ltr.data import linear_scores
from greylag_papers.metzler_2007 import learning
from greylag_papers.metzler_2007.learning import Curve
from greylag_papers.metzler_2007.report import mean_by_query, pool
from tests.greylag_papers.metzler_2007.samples import Done


def test_the_corrections_are_holms(done: Done) -> None:
    comparisons = done.results["comparisons"]
    assert len(comparisons) == 6 * 5 * 2
    runs = done.results["runs"]
    p = []
    for c in comparisons:
        pair = [[own[c["measure"]] for own in runs[name]["per_query"].values()] for name in (c["run"], c["baseline"])]
        p.append(stats.ttest_rel(*pair, alternative="greater").pvalue)
        assert c["p"] == pytest.approx(p[-1], rel=1e-6, nan_ok=True)
    order = np.argsort(p, kind="stable")
    expected = np.minimum(1, np.maximum.accumulate(np.array(p)[order] * np.arange(len(p), 0, -1)))
    np.testing.assert_allclose(np.array([c["corrected_p"] for c in comparisons])[order], expected, rtol=1e-6)


def test_retraining_is_compared_on_training_and_test_queries(done: Done) -> None:
    found = done.results["retraining"]
    runs = done.results["runs"]
    test = [[own["AP"] for own in runs[name]["per_query"].values()] for name in ("MRF-FS", "MRF-FS retrained")]
    np.testing.assert_allclose(found["test"][:2], np.mean(test, axis=1))
    differ = stats.ttest_rel(*test).pvalue
    assert found["test"][2] == pytest.approx(1.0 if np.isnan(differ) else differ)
    folds = zip(done.models("mrf-fs"), done.models("mrf-fs-retrained"), strict=True)
    assert found["same"] == [set(model.features) == set(retrained.features) for model, retrained in folds]
    data = learning.Experiment(done.settings, done.opened)
    values: dict[str, list[list[float]]] = {}
    for fold, *models in zip(
        done.results["folds"], done.models("mrf-fs"), done.models("mrf-fs-retrained"), strict=True
    ):
        for system, model in enumerate(models):
            training = data.counted(model.features).data(model.parameters).select_queries(fold["training"])
            scores = linear_scores(training, list(range(len(model.features))), np.array(model.weights))
            for qid, value in zip(training.qids, data.measure.evaluate(training, scores), strict=True):
                values.setdefault(qid, [[], []])[system].append(value)
    by_query = np.array([[np.mean(own) for own in pair] for pair in values.values()])
    np.testing.assert_allclose(found["training"][:2], by_query.mean(axis=0))


def test_a_query_has_its_mean_over_folds() -> None:
    assert mean_by_query([{"b": 1.0, "a": 0.5}, {"b": 0.0}]).tolist() == [0.5, 0.5]


def test_a_curve_keeps_its_last_value_after_its_selection_stopped() -> None:
    curves = [
        Curve((0.1, 0.2), np.array([[0.0, 1.0], [0.5, 1.0]]), ()),
        Curve((0.3, 0.5, 0.9), np.array([[0.2], [0.4], [0.3]]), ()),
    ]
    pooled = pool(curves, 3)
    np.testing.assert_allclose(pooled.training, [0.2, 0.35, 0.55])
    np.testing.assert_allclose(pooled.test, [0.4, 1.9 / 3, 0.6])
    assert pooled.after_fifth is None


def test_whether_features_after_the_fifth_overfit() -> None:
    falling = np.array([[0.9, 0.5, 0.7]] * 5 + [[0.6, 0.3, 0.3]])
    lost, p = pool([Curve((0.5,) * 6, falling, ())], 6).after_fifth or (0.0, 0.0)
    assert lost == pytest.approx(0.3)
    assert p == pytest.approx(stats.ttest_1samp([0.3, 0.2, 0.4], 0, alternative="greater").pvalue)
