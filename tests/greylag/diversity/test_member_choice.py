"""The choice of a member for each query: its features, its training, and the stage."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from greylag.diversity import CSSVM, ChosenMember, MemberChooser, member_features, train_chooser
from greylag.diversity.member_choice import FEATURES
from greylag.errors import ModelError, ParameterError
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from tests.greylag.diversity import samples

N = 15
INDEX = samples.index(1, N)


def data(seed: int, n: int, M: int, weights: list[float], noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Random features, and losses that depend on them linearly."""
    rng = np.random.default_rng(seed)
    features = rng.random((n, M, len(FEATURES)))
    return features, features @ np.array(weights) + rng.random((n, 1)) + noise * rng.standard_normal((n, M))


def slow_features(ranking: Ranking, members: list[Ranking], index: PositionalIndex, k: int) -> list[list[float]]:
    vectors = dict(zip(ranking.docids, index.tfidf(index.documents(ranking.docids)).toarray(), strict=True))
    low, high = min(ranking.scores), max(ranking.scores)
    score = {d: (s - low) / (high - low) for d, s in zip(ranking.docids, ranking.scores, strict=True)}
    query = np.zeros(index.n_terms)
    for term in index.query_terms(ranking.query):
        query[term] += index.idf[term]
    query /= np.linalg.norm(query)
    words = sum(map(np.abs, vectors.values())) > 0
    rows = []
    for member in members:
        own = member.docids[:k]
        others = [other.docids[:k] for other in members if other is not member]
        rows.append(
            [
                np.mean([score[d] for d in own]),
                np.mean([len(set(own) & set(other)) / k for other in others]),
                1 - np.mean([vectors[a] @ vectors[b] for a, b in combinations(own, 2)]),
                (sum(vectors[d] for d in own) > 0).sum() / words.sum(),
                np.mean([vectors[d] @ query for d in own]),
            ]
        )
    return rows


@pytest.mark.parametrize("seed", range(4))
def test_features_are_what_their_documentation_says(seed: int) -> None:
    ranking = samples.ranking(seed, N)
    members = [samples.ranking(seed + 10 + m, N) for m in range(3)]
    found = member_features(ranking, members, INDEX, 4)
    assert found == pytest.approx(np.array(slow_features(ranking, members, INDEX, 4)), abs=1e-12)
    assert (found >= 0).all()
    assert (found <= 1 + 1e-12).all()


def test_features_of_odd_rankings_are_finite() -> None:
    for docids in ((), ("d1",), ("nowhere", "elsewhere")):
        ranking = Ranking("q", "unheard", docids, np.zeros(len(docids)))
        assert np.isfinite(member_features(ranking, [ranking, ranking], INDEX, 5)).all()


def test_learns_what_losses_depend_on() -> None:
    weights = [0.8, -0.5, 0.0, 0.3, 0.0]
    features, losses = data(0, 60, 4, weights, 0.05)
    chooser = train_chooser(features, losses, k=5, queries=["a"])
    assert chooser.weights == pytest.approx(weights, abs=0.1)
    unseen, truth = data(1, 200, 4, weights, 0.05)
    chosen = np.mean([truth[q, chooser.choose(unseen[q])] for q in range(200)])
    assert chosen < 0.2 * truth.mean(axis=1).mean() + 0.8 * truth.min(axis=1).mean()
    assert chooser.provenance["queries"] == ["a"]


def test_falls_back_on_the_best_member_on_average() -> None:
    """Features that say nothing get the largest penalty, and the choice does not depend on them."""
    rng = np.random.default_rng(3)
    losses = rng.random((40, 3)) * 0.1 + np.array([0.5, 0.2, 0.4])
    chooser = train_chooser(rng.random((40, 3, len(FEATURES))), losses, k=5)
    assert np.isinf(chooser.penalty)
    assert chooser.mean_losses == pytest.approx(losses.mean(axis=0))
    assert {chooser.choose(rng.random((3, len(FEATURES)))) for _ in range(20)} == {1}


def test_the_penalty_is_chosen_on_queries_left_out() -> None:
    """The recorded loss is that of choosers that were trained without the query."""
    features, losses = data(5, 12, 3, [0.5, 0, 0, -0.5, 0], 0.3)
    chooser = train_chooser(features, losses, k=5)
    left_out = []
    for query in range(12):
        others = [q for q in range(12) if q != query]
        X = features - features.mean(axis=1, keepdims=True)
        means = losses[others].mean(axis=0)
        y = losses[others] - losses[others].mean(axis=1, keepdims=True) - (means - means.mean())
        Z = X[others].reshape(-1, 5)
        scale = np.sqrt((Z**2).mean(axis=0))
        # Ridge regression as ordinary least squares with five more rows.
        rows = np.vstack([Z / scale, np.sqrt(chooser.penalty) * np.eye(5)])
        weights = np.linalg.lstsq(rows, np.concatenate([y.ravel(), np.zeros(5)]), rcond=None)[0] / scale
        left_out.append(losses[query, np.argmin(means + X[query] @ weights)])
    assert np.isfinite(chooser.penalty)
    assert chooser.provenance["left_out_loss"] == pytest.approx(np.mean(left_out))


def test_the_stage_ranks_as_the_chosen_member() -> None:
    ensemble = CSSVM(samples.ENSEMBLE, INDEX, depth=10, k=4)
    picked = set()
    for weights in ((-5.0, 0, 0, 0, 0), (0, 0, 5.0, 0, 0), (0, 0, 0, 0, 0)):
        chooser = MemberChooser((0.3, 0.2, 0.25), tuple(map(float, weights)), 4, 1.0)
        stage = ChosenMember(ensemble, chooser)
        for seed in range(6):
            ranking = samples.ranking(seed, N)
            members = ensemble.member_rankings(ranking)
            number = chooser.choose(member_features(ranking.head(10), members, INDEX, 4))
            assert stage(ranking) == members[number]
            picked.add(number)
    assert picked == {0, 1, 2}


def test_more_picks_than_documents() -> None:
    chooser = MemberChooser((0.3, 0.2, 0.25), (1.0, 1.0, 1.0, 1.0, 1.0), 40, 1.0)
    ranking = samples.ranking(1, N)
    for depth in (3, 40):
        ensemble = CSSVM(samples.ENSEMBLE, INDEX, depth=depth, k=2)
        assert ChosenMember(ensemble, chooser)(ranking) in ensemble.member_rankings(ranking)


def test_files_round_trip(tmp_path: Path) -> None:
    features, losses = data(0, 10, 3, [1, 0, 0, 0, 0], 0.1)
    for chooser in (
        train_chooser(features, losses, k=5, fingerprint="abc", queries=["1"]),
        MemberChooser((0.1, 0.2), (0.0,) * 5, 3, np.inf),
    ):
        chooser.save(tmp_path / "chooser.json")
        assert MemberChooser.load(tmp_path / "chooser.json") == chooser


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": {"relevance": 1.0}}, "the weights must be those of relevance, agreement"),
        ({"mean_losses": []}, "needs members"),
        ({"k": 0}, "at least 1"),
        ({"penalty": 0}, "above 0"),
        ({"penalty": float("nan")}, "above 0"),
        ({"mean_losses": [float("nan")]}, "finite"),
        ({"schema": 9}, "schema 9"),
        ({"kind": "greylag linear model"}, "not a greylag member chooser"),
    ],
)
def test_faulty_files(tmp_path: Path, change: dict[str, object], message: str) -> None:
    MemberChooser((0.1, 0.2), (0.0,) * 5, 3, 1.0).save(tmp_path / "x.json")
    content = json.loads((tmp_path / "x.json").read_text()) | change
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(ModelError, match=message):
        MemberChooser.load(tmp_path / "x.json")


def test_refuses_what_does_not_fit() -> None:
    features, losses = data(0, 4, 3, [1, 0, 0, 0, 0], 0.1)
    for wrong in (losses[:1], losses[:, :2], losses[0]):
        with pytest.raises(ParameterError, match="at least two queries"):
            train_chooser(features[: len(wrong)], wrong, k=5)
    with pytest.raises(ParameterError, match="finite"):
        train_chooser(features, np.where(losses == losses[0, 0], np.nan, losses), k=5)
    chooser = train_chooser(features, losses, k=5)
    with pytest.raises(ParameterError, match="for 3 members"):
        chooser.predict(features[0][:2])
    ensemble = CSSVM(samples.ENSEMBLE, INDEX)
    with pytest.raises(ModelError, match="the chooser is for 2 members, but the ensemble has 3"):
        ChosenMember(ensemble, replace(chooser, mean_losses=(0.1, 0.2)))
    with pytest.raises(ModelError, match="trained on another collection"):
        ChosenMember(ensemble, replace(chooser, fingerprint="else"))
