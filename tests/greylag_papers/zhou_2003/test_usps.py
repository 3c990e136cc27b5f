"""The study of digits, on small generated images against one ranking at a time."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.errors import FormatError
from greylag.experiments.runner import run_study
from greylag.experiments.study import Context, deviations, load
from greylag.manifold import affinity_graph, choose_parameters, manifold_ranking, normalised_rank, query_vector
from greylag_papers.zhou_2003.usps import STUDY, Settings, choose, draw_trials, read_images
from tests.greylag_papers.zhou_2003.oracles import roc_area

CONFIG = Path(greylag.__file__).parents[2] / "configs" / "usps.manifold.yaml"


@pytest.fixture
def settings(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([1, 2, 7], 14))
    X = np.clip(rng.random((len(y), 256)) * 0.9 + 0.1 * (np.arange(256) % 7 == y[:, np.newaxis] % 7), 0, 1)
    np.savez(tmp_path / "digits.npz", X=X.astype(np.float32), y=y)
    options = {"images": "digits.npz", "digits": (1, 2), "queries": 3, "trials": 2, "sigma": 4.0, "widths": (3.0,)}
    return Settings(name="x", data_folder=tmp_path, **options)


def test_scores_are_those_of_one_ranking_at_a_time(settings, tmp_path):
    context = Context(tmp_path)
    X, digits = read_images(settings, context)
    assert X.shape == (28, 256)
    assert X.min() < -0.9
    outcome = STUDY.run(settings, (X, digits), context)
    found = outcome.results["by digit, trial and number of queries"]
    queries = draw_trials(digits, settings)
    for (i, digit), trial, n in product(enumerate((1, 2)), range(2), (1, 2, 3)):
        own = queries[i, trial, :n]
        assert len(set(own)) == n
        assert (digits[own] == digit).all()
        others = np.setdiff1d(np.arange(len(X)), own)
        f = manifold_ranking(X, own, graph="full", sigma=4.0)
        nearest = np.array([-min(np.linalg.norm(x - X[query]) for query in own) for x in X])
        for name, scores in (("manifold", f), ("distance", nearest)):
            area = roc_area(scores[others], digits[others] == digit)
            assert found[name][i][trial][n - 1] == pytest.approx(area, abs=1e-12)
    assert 0.5 < np.mean(found["distance"]) < 0.99
    assert outcome.scores["manifold"]["digit 2"] == pytest.approx(np.mean(found["manifold"][1]))
    by_number, by_width, by_step, *_ = outcome.tables
    assert [row[0] for row in by_step.rows] == [*(f"f({t})" for t in settings.steps), "f*"]
    assert by_step.rows[-1][1] == pytest.approx(np.mean(found["manifold"][0], axis=0)[0])
    assert by_number.rows[0][:2] == ("manifold, 1 query", pytest.approx(np.mean(found["manifold"][0], axis=0)[0]))
    assert [row[0] for row in by_width.rows] == ["sigma 3", "sigma 4", "distance"]


def test_parameters_are_chosen_by_leave_one_query_out(settings, tmp_path):
    context = Context(tmp_path)
    X, digits = read_images(settings, context)
    queries = draw_trials(digits, settings)
    chosen = choose(X, digits, queries, settings, context)
    for i, trial in product(range(2), range(2)):
        own = queries[i, trial]
        expected = choose_parameters(
            X, own, sigmas=(3.0, 4.0), alphas=settings.alphas, exponents=settings.exponents, graph="full"
        )
        assert tuple(chosen.parameters[i, trial]) == expected[:3]
        W = affinity_graph(X, graph="full", sigma=expected.sigma)
        f = normalised_rank(W, query_vector(len(X), own), alpha=expected.alpha, exponent=expected.exponent)
        others = np.setdiff1d(np.arange(len(X)), own)
        area = roc_area(f[others], digits[others] == digits[own[0]])
        assert chosen.areas[i, trial] == pytest.approx(area, abs=1e-12)


def test_report(settings, tmp_path):
    run_study(STUDY, settings, tmp_path / "out")
    report = (tmp_path / "out" / "report.html").read_text()
    assert report.count("<svg") == 3
    assert "grey values, which range from -1 to 1" in report


def test_unusable_images(settings, tmp_path):
    context = Context(tmp_path)
    with pytest.raises(FormatError, match="no such file; set GREYLAG_DATA"):
        read_images(settings.model_copy(update={"images": "none.npz"}), context)
    np.savez(tmp_path / "other.npz", Z=np.ones(3))
    with pytest.raises(FormatError, match=r"not an \.npz file with X and y"):
        read_images(settings.model_copy(update={"images": "other.npz"}), context)


@pytest.mark.slow
def test_expected_scores(data, tmp_path, monkeypatch):
    monkeypatch.setenv("GREYLAG_DATA", str(data("usps").parent))
    study, settings = load(CONFIG)
    assert settings.expected
    assert deviations(run_study(study, settings, tmp_path).scores, settings.expected) == []
