"""The report of the study, compared with scores and models."""

import re

import numpy as np
import pytest
from scipy import stats

from greylag.learning.data import linear_scores
from greylag_papers.metzler_2007 import learning
from greylag_papers.metzler_2007.learning import Curve
from greylag_papers.metzler_2007.report import pool
from tests.greylag.studies.samples import Page
from tests.greylag_papers.metzler_2007.samples import SYSTEMS

HAND_PICKED = ["LM", "BM25", "SDM", "MRF-LM", "MRF-BM25", "RM3"]


@pytest.fixture(scope="module")
def page(done):
    return Page((done.out / "report.html").read_text())


def test_the_report_counts_and_ranks(done, page):
    assert len(page.texts["svg"]) == 3
    found = done.results["comparisons"]
    for text in (
        *(f"{done.finished.scores[system]['AP']:.4f}" for system in SYSTEMS),
        "634 documents; 24 judged queries in 3 folds",
        f"have p < 0.05 before and {sum(c['corrected_p'] < 0.05 for c in found)} after",
        "Holm's correction over all 60 comparisons",
        f"in {sum(done.results['retraining']['same'])} of 3 folds",
    ):
        assert text in page.text
    best = max(HAND_PICKED, key=lambda name: done.finished.scores[name]["AP"])
    (gain,) = (c["difference"] for c in found if (c["run"], c["baseline"], c["measure"]) == ("MRF-FS", best, "AP"))
    assert re.match(rf"MRF-FS is .* {best}: its mean AP of [0-9.]+ is {abs(gain):.4f} ", page.texts["p"][0])


def test_letters_name_the_models_that_are_significantly_worse(done, page):
    for system in SYSTEMS:
        cells = next(row for row in page.rows if len(row) == 3 and row[0].split(" (")[0] == system)
        for cell, measure in zip(cells[1:], ("AP", "P@10"), strict=True):
            worse = [
                c["baseline"]
                for c in done.results["comparisons"]
                if (c["run"], c["measure"]) == (system, measure) and c["corrected_p"] < 0.05
            ]
            letters = "".join(letter for name, letter in zip(HAND_PICKED, "abcdef", strict=True) if name in worse)
            assert cell == f"{done.finished.scores[system][measure]:.4f} {letters}".strip()


def test_tables_show_the_models(done, page):
    for number, model in enumerate(done.models("mrf-fs-expansion"), 1):
        # each weight times the spread of its feature, in per cent of the sum of their sizes
        parts = np.multiply(model.weights, model.provenance["spreads"])
        for place, (feature, part) in enumerate(zip(model.features, parts, strict=True), 1):
            cell = f"{place}:\N{NO-BREAK SPACE}{100 * part / np.abs(parts).sum():+.1f}\N{NO-BREAK SPACE}%"
            assert any(row[0] == str(feature) and row[number] == cell for row in page.rows if len(row) == 4)


def test_the_corrections_are_holms(done):
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


def test_retraining_is_compared_on_training_and_test_queries(done):
    found = done.results["retraining"]
    runs = done.results["runs"]
    test = [[own["AP"] for own in runs[name]["per_query"].values()] for name in ("MRF-FS", "MRF-FS retrained")]
    np.testing.assert_allclose([found["test"][key] for key in ("against", "mean")], np.mean(test, axis=1))
    differ = stats.ttest_rel(*test).pvalue
    assert found["test"]["p"] == pytest.approx(1.0 if np.isnan(differ) else differ)
    folds = zip(done.models("mrf-fs"), done.models("mrf-fs-retrained"), strict=True)
    assert found["same"] == [set(model.features) == set(retrained.features) for model, retrained in folds]
    data = learning.Experiment(done.settings, done.opened)
    for tag, key in (("mrf-fs", "against"), ("mrf-fs-retrained", "mean")):
        values = {}
        for fold, model in zip(done.results["folds"], done.models(tag), strict=True):
            training = data.counted(model.features).data(model.parameters).select_queries(fold["training"])
            scores = linear_scores(training, list(range(len(model.features))), np.array(model.weights))
            for qid, value in zip(training.qids, data.measure.evaluate(training, scores), strict=True):
                values.setdefault(qid, []).append(value)
        assert found["training"][key] == pytest.approx(np.mean([np.mean(own) for own in values.values()]))


def test_a_curve_keeps_its_last_value_after_its_selection_stopped():
    curves = [
        Curve((0.1, 0.2), np.array([[0.0, 1.0], [0.5, 1.0]]), ()),
        Curve((0.3, 0.5, 0.9), np.array([[0.2], [0.4], [0.3]]), ()),
    ]
    pooled = pool(curves, 3)
    np.testing.assert_allclose(pooled.training, [0.2, 0.35, 0.55])
    np.testing.assert_allclose(pooled.test, [0.4, 1.9 / 3, 0.6])
    first, second = (stats.ttest_rel([0.5, 1, 0.3], other).pvalue for other in ([0, 1, 0.2], [0.5, 1, 0.4]))
    assert {pair: row["p"] for pair, row in pooled.rounds.items()} == {
        "3 features / 1 feature": pytest.approx(2 * first),
        "3 features / 2 features": pytest.approx(max(second, 2 * first)),
    }


def test_rounds_are_compared_with_the_fifth():
    rounds = np.vstack([np.full((4, 3), 0.1), [[0.9, 0.5, 0.7]], [[0.6, 0.3, 0.3]]])
    row = pool([Curve((0.5,) * 6, rounds, ())], 6).rounds["6 features / 5 features"]
    assert row["mean"] - row["against"] == pytest.approx(-0.3)
    assert row["p"] == pytest.approx(stats.ttest_1samp([0.3, 0.2, 0.4], 0).pvalue)
