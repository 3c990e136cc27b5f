"""The studies of manifold ranking, on small made-up data against slow and obvious versions; slow: in full."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.errors import CollectionError, FormatError, ParameterError
from greylag.evaluation import evaluate
from greylag.experiments import manifold_stage, study
from greylag.index.positional import PositionalIndex
from greylag.manifold import manifold_ranking
from greylag.manifold.stage import ManifoldRanker
from greylag.ranking import Ranking, Run
from greylag_papers.zhou_2003 import newsgroups as manifold_newsgroups
from greylag_papers.zhou_2003 import two_moons as manifold_two_moons
from greylag_papers.zhou_2003 import usps as manifold_usps
from greylag_papers.zhou_2003.by_example import draw_queries, roc_areas

CONFIGS = Path(greylag.__file__).parents[2] / "configs"


def silent(_: str) -> None:
    """What a study says in tests."""


def brute_area(scores, relevant):
    """The share of pairs of a relevant point and another one that are in the right order, a tie counting as half."""
    pairs = list(product(scores[relevant], scores[~relevant]))
    return sum((high > low) + (high == low) / 2 for high, low in pairs) / len(pairs)


@pytest.mark.parametrize("seed", range(5))
def test_roc_areas(seed):
    rng = np.random.default_rng(seed)
    classes = rng.permutation([0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2])
    scores = rng.integers(4, size=(12, 3)).astype(float)
    queries = [int(np.flatnonzero(classes == 1)[0]), np.flatnonzero(classes == 0)[:3], np.flatnonzero(classes == 2)[:1]]
    expected = []
    for column, own in zip(scores.T, queries, strict=True):
        others = np.setdiff1d(np.arange(12), own)
        expected.append(brute_area(column[others], classes[others] == classes[np.ravel(own)[0]]))
    np.testing.assert_allclose(roc_areas(scores, classes, queries), expected)


def test_queries_leave_something_to_find():
    classes = np.array([3, 1, 3, 1, 3])
    drawn = draw_queries(np.random.default_rng(0), classes, 3, 2)
    assert len(set(drawn.tolist())) == 2
    assert (classes[drawn] == 3).all()
    with pytest.raises(ParameterError, match="class 1 has 2 points, too few to draw 2 queries"):
        draw_queries(np.random.default_rng(0), classes, 1, 2)


# Two moons


def test_two_moons_is_as_expected_and_the_same_twice(tmp_path):
    module, settings = study.load(CONFIGS / "two_moons.manifold.yaml")
    result = module.run(settings, tmp_path / "a", n_jobs=1, say=silent)
    assert result.deviations(settings.expected) == []
    assert result.scores["f*"] == {"separated": 1.0, "ROC area": 1.0}
    module.run(settings, tmp_path / "b", n_jobs=2, say=silent)
    for name in ("results.json", "report.html"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_separation():
    moons = np.array([0, 0, 1, 1])
    scores = np.array([[3.0, 1, 0, 2], [2, 2, 0, 1], [1, 1, 2, 2], [0, 0, 1, 3]])
    assert manifold_two_moons.separates(scores, moons).tolist() == [1, 0, 1, 0]


# Digits


@pytest.fixture
def images(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.permutation(np.repeat([1, 2, 7], 14))
    X = np.clip(rng.random((len(y), 256)) * 0.9 + 0.1 * (np.arange(256) % 7 == y[:, np.newaxis] % 7), 0, 1)
    np.savez(tmp_path / "digits.npz", X=X.astype(np.float32), y=y)
    options = {"images": "digits.npz", "digits": (1, 2), "queries": 3, "trials": 2, "sigma": 4.0, "widths": (3.0,)}
    return manifold_usps.Settings(name="x", data_folder=tmp_path, **options)


def test_digits_are_ranked_and_scored_as_one_ranking_at_a_time_would_be(images, tmp_path):
    result = manifold_usps.run(images, tmp_path / "out", n_jobs=1, say=silent)
    found = json.loads((tmp_path / "out" / "results.json").read_text())["by digit, trial and number of queries"]
    X, digits = manifold_usps.read_images(images)
    assert X.shape == (28, 256)
    assert X.min() < -0.9
    queries = manifold_usps.draw_trials(digits, images)
    for (i, digit), trial, k in product(enumerate((1, 2)), range(2), (1, 2, 3)):
        own = queries[i, trial, :k]
        assert len(set(own)) == k
        assert (digits[own] == digit).all()
        others = np.setdiff1d(np.arange(len(X)), own)
        f = manifold_ranking(X, own, graph="full", sigma=4.0)
        nearest = np.array([-min(np.linalg.norm(x - X[query]) for query in own) for x in X])
        for name, scores in (("manifold", f), ("distance", nearest)):
            area = brute_area(scores[others], digits[others] == digit)
            assert found[name][i][trial][k - 1] == pytest.approx(area, abs=1e-12)
    assert 0.5 < np.mean(found["distance"]) < 0.99
    assert result.scores["manifold"]["digit 2"] == pytest.approx(np.mean(found["manifold"][1]))
    assert "3 " in result.summary
    report = (tmp_path / "out" / "report.html").read_text()
    assert report.count("<svg") == 2
    assert "grey values, which run from -1 to 1" in report


def test_images_that_are_not_there(images, tmp_path):
    with pytest.raises(FormatError, match="no such images; set GREYLAG_DATA"):
        manifold_usps.read_images(images.model_copy(update={"images": "none.npz"}))
    np.savez(tmp_path / "other.npz", Z=np.ones(3))
    with pytest.raises(FormatError, match=r"not an \.npz file with X and y"):
        manifold_usps.read_images(images.model_copy(update={"images": "other.npz"}))


# Newsgroups


def test_vectors_are_tfidf_of_frequent_stems_without_stop_words():
    texts = ["Dogs however bark", "a dog barks", "the cats bark whereas", "cat", "however", "zebra"]
    X = manifold_newsgroups.vectors(texts, 1).toarray()
    used = np.flatnonzero(X.any(axis=0))
    dog, bark, cat = 1 * np.log(3), np.log(2), np.log(3)
    rows = {(bark, dog): X[0], (bark, cat): X[2], (cat,): X[3]}
    assert len(used) == 3
    for weights, row in rows.items():
        unit = np.array(weights) / np.linalg.norm(weights)
        np.testing.assert_allclose(np.sort(row[used][row[used] > 0]), np.sort(unit))
    np.testing.assert_array_equal(X[0], X[1])
    assert not X[4:].any()


def test_newsgroups(tmp_path):
    rng = np.random.default_rng(0)
    shared, lines = [f"w{i}" for i in range(30)], []
    for group, number in product("abc", range(12)):
        own = [f"{group}{i}" for i in range(8)]
        text = "From: x\nSubject: y\n\n" + " ".join(rng.choice(shared + 2 * own, size=20))
        lines.append(json.dumps({"id": f"{group}/{number}", "group": group, "text": text}))
    (tmp_path / "news.jsonl").write_text("\n".join(lines))
    documents = {"path": "news.jsonl", "label": "group", "skip_headers": True}
    settings = manifold_newsgroups.Settings(
        name="x", data_folder=tmp_path, documents=documents, rare=1, queries=4, alpha=0.9, k=3
    )
    result = manifold_newsgroups.run(settings, tmp_path / "out", n_jobs=1, say=silent)
    found = json.loads((tmp_path / "out" / "results.json").read_text())["by newsgroup and query"]
    texts = [json.loads(line)["text"].split("\n\n")[1] for line in lines]
    X = manifold_newsgroups.vectors(texts, 1).toarray()
    groups = np.repeat([0, 1, 2], 12)
    rng = np.random.default_rng(settings.seed)
    queries = np.array([draw_queries(rng, groups, group, 4) for group in range(3)])
    for i, j in product(range(3), range(4)):
        others = np.setdiff1d(np.arange(36), queries[i, j])
        scores = {"inner product": X @ X[queries[i, j]]}
        for graph in settings.graphs:
            options = {"graph": graph, "k": 3, "affinity": "inner_product", "alpha": 0.9}
            scores[f"manifold, {graph}"] = manifold_ranking(X, queries[i, j], **options)
        for name, values in scores.items():
            area = brute_area(values[others].round(12), groups[others] == i)
            assert found[name][i][j] == pytest.approx(area, abs=0.01)
    assert result.scores["manifold, knn"]["a"] == pytest.approx(np.mean(found["manifold, knn"][0]))
    assert "left out" not in (tmp_path / "out" / "report.html").read_text()


def test_messages_that_are_not_there(tmp_path):
    settings = manifold_newsgroups.Settings(name="x", data_folder=tmp_path, documents={"path": "none.jsonl"})
    with pytest.raises(CollectionError, match="set GREYLAG_DATA"):
        manifold_newsgroups.run(settings, tmp_path, n_jobs=1, say=silent)


# The stage


def test_each_fold_has_the_alpha_that_is_best_on_the_others():
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    index = PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(words, size=15)) for i in range(60)})
    docids = [f"d{i}" for i in range(60)]
    qids = [str(q) for q in range(9)]
    first = Run(
        tuple(
            Ranking(
                qid,
                " ".join(rng.choice(words, 3)),
                tuple(rng.permutation(docids)[:30].tolist()),
                np.arange(30.0, 0, -1),
            )
            for qid in qids
        ),
        "first",
    )
    qrels = {qid: dict.fromkeys(rng.permutation(docids)[:12].tolist(), 1) for qid in [*qids[1:], "missing"]}
    folds, alphas = [qids[:3], qids[3:6], qids[6:]], (0.1, 0.5, 0.9)
    stage = ManifoldRanker(index, depth=20, confidence="query")
    found = manifold_stage.tune(stage, first, qrels, alphas, folds, 1)
    assert found.run.tag == "first-knn-query"
    assert list(found.run) == qids
    ap = {}
    for alpha in alphas:
        ranked = Run(
            tuple(
                ManifoldRanker(index, depth=20, alpha=alpha, confidence="query")(ranking) for ranking in first.values()
            )
        )
        scores = evaluate(ranked, qrels, ["AP"])
        ap[alpha] = dict(zip(scores.qids, scores.values[:, 0], strict=True))
        assert found.curve[alpha] == pytest.approx(scores.means[0])
    for test, chosen in zip(folds, found.alphas, strict=True):
        means = {alpha: np.mean([ap[alpha][qid] for qid in qrels if qid not in test]) for alpha in alphas}
        assert means[chosen] == max(means.values())
        for qid in test:
            assert found.run[qid] == ManifoldRanker(index, depth=20, alpha=chosen, confidence="query")(first[qid])
    assert len(set(found.alphas)) > 1


def test_the_stage_on_the_demonstration_collection(tmp_path):
    (tmp_path / "stage.yaml").write_text(
        f"name: x\nstudy: manifold_stage\npipeline: demo.yaml\ndata: {Path(greylag.__file__).parent / 'demo'}\n"
        "alphas: [0.3, 0.7]\ngraphs: [full]\ndepth: 50\n"
    )
    module, settings = study.load(tmp_path / "stage.yaml")
    result = module.run(settings, tmp_path / "out", n_jobs=1, say=silent)
    assert result.scores["bm25"]["AP"] == pytest.approx(0.8670, abs=5e-5)
    assert result.scores["mrf"]["AP"] == pytest.approx(0.9220, abs=5e-5)
    assert result.scores["bm25-full-scores"]["AP"] > 0.8
    content = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {len(alphas) for alphas in content["alphas"].values()} == {6}
    report = (tmp_path / "out" / "report.html").read_text()
    assert report.count("<svg") == 1
    assert "mrf-full-query" in report


def test_the_stage_needs_a_pipeline(tmp_path):
    (tmp_path / "moons.yaml").write_text("name: x\nstudy: manifold_two_moons\n")
    settings = manifold_stage.Settings(name="x", data_folder=tmp_path, pipeline="moons.yaml")
    with pytest.raises(FormatError, match=r"moons.yaml: is of the study 'manifold_two_moons'"):
        manifold_stage.run(settings, tmp_path / "out", n_jobs=1, say=silent)


# In full


@pytest.mark.slow
@pytest.mark.parametrize("name", ["usps", "rec_newsgroups", "cacm", "cranfield", "vaswani"])
def test_the_expected_scores_come_out(name, data, tmp_path, monkeypatch):
    monkeypatch.setenv("GREYLAG_DATA", str(data(name).parent))
    module, settings = study.load(CONFIGS / f"{name}.manifold.yaml")
    assert settings.expected
    assert module.run(settings, tmp_path, n_jobs=1, say=silent).deviations(settings.expected) == []
