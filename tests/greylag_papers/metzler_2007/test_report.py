"""The report of the study, compared with scores and models."""

import re

import numpy as np
import pytest
from scipy import stats

from greylag.evaluation import Scores, critical_t, detectable_difference, parse_measure
from greylag.learning.data import linear_scores
from greylag_papers.metzler_2007 import learning
from greylag_papers.metzler_2007.learning import Curve
from greylag_papers.metzler_2007.report import compare_all, mean_by_query, pool
from tests.greylag.studies.samples import Page
from tests.greylag_papers.metzler_2007.samples import SYSTEMS


@pytest.fixture(scope="module")
def page(done):
    return Page((done.out / "report.html").read_text())


def test_the_report_is_self_contained(done, page):
    links = [value or "" for _, name, value in page.attributes if name in ("src", "href", "xlink:href")]
    assert all(link.startswith("#") for link in links)
    assert len(page.texts["svg"]) == 3
    assert not {"link", "img"} & {*page.texts, *(tag for tag, *_ in page.attributes)}
    for system in SYSTEMS:
        assert f"{done.finished.scores[system]['AP']:.4f}" in page.text
    significant = sum(c["corrected_p"] < 0.05 for c in done.results["comparisons"])
    for text in (
        "634 documents; 24 judged queries in 3 folds",
        f"have p < 0.05 before and {significant} after",
        "Holm's correction over all 60 comparisons",
        "6 features / 5 features",
        "28 candidates",
        f"in {sum(done.results['retraining']['same'])} of 3 folds",
    ):
        assert text in page.text


def test_the_first_sentence_is_about_the_best_hand_picked_model(done, page):
    best = max(("LM", "BM25", "SDM", "MRF-LM", "MRF-BM25", "RM3"), key=lambda name: done.finished.scores[name]["AP"])
    (difference,) = (
        abs(c["difference"])
        for c in done.results["comparisons"]
        if (c["run"], c["baseline"], c["measure"]) == ("MRF-FS", best, "AP")
    )
    assert re.match(rf"MRF-FS is .* {best}: its mean AP of [0-9.]+ is {difference:.4f} ", page.texts["p"][0])


def test_letters_name_the_models_that_are_significantly_worse(done, page):
    names = ["LM", "BM25", "SDM", "MRF-LM", "MRF-BM25", "RM3"]
    for system in SYSTEMS:
        cells = next(row for row in page.rows if len(row) == 3 and row[0].split(" (")[0] == system)
        for cell, measure in zip(cells[1:], ("AP", "P@10"), strict=True):
            worse = [
                c["baseline"]
                for c in done.results["comparisons"]
                if (c["run"], c["measure"]) == (system, measure) and c["corrected_p"] < 0.05
            ]
            letters = "".join(letter for name, letter in zip(names, "abcdef", strict=True) if name in worse)
            assert cell == f"{done.finished.scores[system][measure]:.4f} {letters}".strip()


def shares(model):
    """Each feature's weight times the spread of its values, in per cent of the sum of their sizes."""
    parts = np.multiply(model.weights, model.provenance["spreads"])
    per_cent = 100 * parts / np.abs(parts).sum()
    return {str(name): f"{part:+.1f}\N{NO-BREAK SPACE}%" for name, part in zip(model.features, per_cent, strict=True)}


def test_tables_show_the_models(done, page):
    rm3, models = done.models("rm3"), done.models
    assert ["RM3", "fb_terms", *(str(model.parameters.fb_terms) for model in rm3)] in page.rows
    assert ["RM3", "FI/expansion/BM25", *(f"{model.weights[1]:.4g}" for model in rm3)] in page.rows
    assert ["SDM", "AP, training", *(f"{own.provenance['training_score']:.4f}" for own in models("sdm"))] in page.rows
    ascent = [shares(own)["FI/term/LM"] for own in models("coordinate-ascent")]
    assert ["FI/term/LM", *ascent] in page.rows
    for number, (textual, expanded) in enumerate(
        zip(models("mrf-fs-inner-cv"), models("mrf-fs-expansion"), strict=True), 1
    ):
        sizes = [f"{len(own.features)} by AP" for own in (textual, expanded)]
        assert any(row[:1] == [str(number)] and row[-2:] == sizes for row in page.rows)
        for place, (feature, share) in enumerate(shares(expanded).items(), 1):
            cell = f"{place}:\N{NO-BREAK SPACE}{share}"
            assert any(row[0] == feature and row[number] == cell for row in page.rows if len(row) == 4)
    at_end = sum(model.parameters.k1 in (0.9, 1.6) for model in models("bm25"))  # k1 has these two values, b has one
    assert f"; k1 of BM25 in {at_end} of 3 folds; mu of SDM" in page.text


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
    values = {}
    for fold, *models in zip(
        done.results["folds"], done.models("mrf-fs"), done.models("mrf-fs-retrained"), strict=True
    ):
        for system, model in enumerate(models):
            training = data.counted(model.features).data(model.parameters).select_queries(fold["training"])
            scores = linear_scores(training, list(range(len(model.features))), np.array(model.weights))
            for qid, value in zip(training.qids, data.measure.evaluate(training, scores), strict=True):
                values.setdefault(qid, [[], []])[system].append(value)
    by_query = np.array([[np.mean(own) for own in pair] for pair in values.values()])
    np.testing.assert_allclose([found["training"][key] for key in ("against", "mean")], by_query.mean(axis=0))


def test_a_query_has_its_mean_over_folds():
    assert mean_by_query([{"b": 1.0, "a": 0.5}, {"b": 0.0}]).tolist() == [0.5, 0.5]


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


def test_detectable_differences_are_corrected_over_all_baselines_as_p_is():
    rng = np.random.default_rng(0)
    scores = {
        name: Scores.single(parse_measure("AP"), {str(q): float(value) for q, value in enumerate(rng.random(20))})
        for name in "abcd"
    }
    critical = critical_t(20, comparisons=4, sides=1)
    for test in compare_all(scores, ["a", "b"], ["c", "d"]):
        for c in test.comparisons:
            gains = (scores[c.run].values - scores[c.baseline].values)[:, 0]
            error = gains.std(ddof=1) / np.sqrt(20)
            assert c.detectable == pytest.approx(detectable_difference(error, 20, critical=critical))
            assert c.even_odds == pytest.approx(detectable_difference(error, 20, critical=critical, power=0.5))
