"""The study of newsgroups, on small generated messages against one ranking at a time."""

import json
from itertools import product

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from greylag.rankers import affinity_graph, graph_degrees, query_vector, spread_scores
from greylag.studies.runner import run_study
from greylag_papers.zhou_2003.by_example import connecting, draw_queries
from greylag_papers.zhou_2003.newsgroups import STUDY, Settings, vectors
from tests.greylag_papers.zhou_2003.oracles import roc_area


def test_vectors_are_tfidf_of_frequent_stems_without_stop_words():
    texts = ["Dogs however bark", "a dog barks", "the cats bark whereas", "cat", "however", "zebra"]
    X = vectors(texts, 1).toarray()
    used = np.flatnonzero(X.any(axis=0))
    dog, bark, cat = 1 * np.log(3), np.log(2), np.log(3)
    rows = {(bark, dog): X[0], (bark, cat): X[2], (cat,): X[3]}
    assert len(used) == 3
    for weights, row in rows.items():
        unit = np.array(weights) / np.linalg.norm(weights)
        np.testing.assert_allclose(np.sort(row[used][row[used] > 0]), np.sort(unit))
    np.testing.assert_array_equal(X[0], X[1])
    assert not X[4:].any()


def test_scores_are_those_of_one_ranking_at_a_time(tmp_path):
    rng = np.random.default_rng(0)
    shared, lines = [f"w{i}" for i in range(30)], []
    for group, number in product("abc", range(12)):
        own = [f"{group}{i}" for i in range(8)]
        text = "From: x\nSubject: y\n\n" + " ".join(rng.choice(shared + 2 * own, size=20))
        lines.append(json.dumps({"id": f"{group}/{number}", "group": group, "text": text}))
    (tmp_path / "news.jsonl").write_text("\n".join(lines))
    documents = {"path": "news.jsonl", "label": "group", "skip_headers": True}
    settings = Settings(name="x", data_folder=tmp_path, documents=documents, rare=1, queries=4, alpha=0.9, neighbours=3)
    finished = run_study(STUDY, settings, tmp_path / "out")
    found = json.loads((tmp_path / "out" / "results.json").read_text())["by newsgroup and query"]
    texts = [json.loads(line)["text"].split("\n\n")[1] for line in lines]
    X = vectors(texts, 1).toarray()
    groups = np.repeat([0, 1, 2], 12)
    rng = np.random.default_rng(settings.seed)
    queries = np.array([draw_queries(rng, groups, group, 4) for group in range(3)])
    for i, j in product(range(3), range(4)):
        others = np.setdiff1d(np.arange(36), queries[i, j])
        scores = {"inner product": X @ X[queries[i, j]]}
        for graph in settings.graphs:
            if graph == "connecting":
                W = connecting(cdist(X, X)) * (X @ X.T)
            else:
                W = affinity_graph(X, graph=graph, neighbours=3, affinity="inner_product")
            scores[f"manifold, {graph}"] = f = spread_scores(W, query_vector(36, queries[i, j]), alpha=0.9)
            scores[f"degree-corrected, {graph}"] = f / np.sqrt(graph_degrees(W))
        for name, values in scores.items():
            area = roc_area(values[others].round(12), groups[others] == i)
            assert found[name][i][j] == pytest.approx(area, abs=0.01)
    assert finished.scores["manifold, knn"]["a"] == pytest.approx(np.mean(found["manifold, knn"][0]))
