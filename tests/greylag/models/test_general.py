"""The general model: its scores by the definition, odd queries, and its files."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from greylag.features.feature import Normalised
from greylag.features.written import WrittenForm
from greylag.index.positional import PositionalIndex
from greylag.models import GeneralRanker, ModelRanker, general_model
from greylag.ranking import FloatArray, Ranking
from tests.greylag.diversity import samples

INDEX = samples.index(4, 30)


def ranked(query: str, n: int = 30) -> Ranking:
    return Ranking("q", query, tuple(f"d{i}" for i in range(n)), np.linspace(9.0, 1.0, n))


def z(values: list[float]) -> FloatArray:
    spread = np.std(values)
    return (np.array(values) - np.mean(values)) / spread if spread > 1e-12 else np.zeros(len(values))


@pytest.mark.parametrize("texts", [True, False])
def test_features_are_normalised_within_the_query_and_weights_are_shares(texts: bool) -> None:
    model = general_model(texts=texts)
    assert all(isinstance(feature, Normalised) and feature.method == "z" for feature in model.features)
    assert np.abs(model.weights).sum() == pytest.approx(1.0, abs=1e-3)
    assert any(isinstance(feature.base, WrittenForm) for feature in model.features) == texts
    assert model.fingerprint == ""
    assert len(model.provenance["collections"]) >= 7


def test_a_score_is_the_weighted_sum_of_z_scores() -> None:
    """Of two terms in documents of one field, with the formulas written out."""
    contents, _ = samples.texts(4, 30)
    words = {docid: text.split() for docid, text in contents.items()}
    ranking, query = ranked("w1x w2x"), ["w1x", "w2x"]
    df = {term: sum(term in own for own in words.values()) for term in query}
    idf = {term: np.log(1 + (30 - df[term] + 0.5) / (df[term] + 0.5)) for term in query}
    early = [
        sum(idf[term] / (1 + words[docid].index(term) / 10) for term in query if term in words[docid])
        for docid in ranking.docids
    ]
    model = general_model()
    names = [str(feature) for feature in model.features]
    place = names.index("FI/term/early@z")
    parts = GeneralRanker(INDEX)._ranker._extractor(ranking)
    assert parts[:, place] == pytest.approx(z(early))
    assert parts[:, names.index("score@z")] == pytest.approx(z(ranking.scores.tolist()))
    scores = dict(zip(ranking.docids, parts @ model.weights, strict=True))
    reranked = GeneralRanker(INDEX)(ranking)
    assert reranked.scores.tolist() == pytest.approx([scores[docid] for docid in reranked.docids])


@pytest.mark.parametrize("query", ["", "the of and", "w1x", "unheard", " ".join(["w1x w2x unheard"] * 200)])
@pytest.mark.parametrize("n", [0, 1, 30])
def test_odd_queries_and_few_candidates_keep_all_documents(query: str, n: int) -> None:
    ranking = ranked(query, n)
    reranked = GeneralRanker(INDEX)(ranking)
    assert sorted(reranked.docids) == sorted(ranking.docids)
    assert np.isfinite(reranked.scores).all()
    if query in ("", "the of and"):  # only the first stage's score tells documents apart
        assert reranked.docids == ranking.docids


def test_a_constant_first_stage_has_no_part_and_its_scale_does_not_count() -> None:
    ranking = ranked("w1x w2x")
    constant = Ranking("q", ranking.query, ranking.docids, np.full(30, 7.0))
    assert GeneralRanker(INDEX)(constant).scores.tolist() == pytest.approx(
        GeneralRanker(INDEX)(Ranking("q", ranking.query, ranking.docids, np.zeros(30))).scores.tolist()
    )
    shifted = Ranking("q", ranking.query, ranking.docids, 100 + 3 * ranking.scores)
    assert GeneralRanker(INDEX)(shifted).docids == GeneralRanker(INDEX)(ranking).docids


def test_an_index_without_texts_is_ranked_by_the_model_without_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with_texts = GeneralRanker(INDEX)(ranked("w1x w2x"))
    monkeypatch.setattr(PositionalIndex, "words", None)
    without = GeneralRanker(samples.index(4, 30))
    assert without._ranker.model == general_model(texts=False)
    assert without(ranked("w1x w2x")).scores.tolist() != with_texts.scores.tolist()


@pytest.mark.parametrize(
    ("texts", "weights", "scores"),
    [
        (True, "a79e33cd98b38f90", [1.2022572756, -0.7707846985, 0.5783313789, -1.0098039559]),
        (False, "f5fb03ee8db93ac3", [1.2142064036, -0.7103807798, 0.4778069991, -0.9816326228]),
    ],
)
def test_weights_and_values_are_those_that_the_study_measured(texts: bool, weights: str, scores: list[float]) -> None:
    """Whoever changes a feature or a weight has to run the study `general` again, and to write its figures."""
    model = general_model(texts=texts)
    spelt = " ".join(f"{weight}*{feature}" for weight, feature in zip(model.weights, model.features, strict=True))
    index = PositionalIndex.from_texts(
        {"a": "heat transfer in slabs", "b": "the slab is cold", "c": "a transfer of heat", "d": "preheated slabs"}
    )
    ranking = Ranking("q", "heating transfer slab", ("a", "b", "c", "d"), np.array([3.0, 2.5, 1.0, 0.5]))
    ranked = ModelRanker(model, index, transfer=True).scores(ranking)
    assert hashlib.sha256(spelt.encode()).hexdigest()[:16] == weights
    assert ranked.tolist() == pytest.approx(scores, abs=1e-9)
