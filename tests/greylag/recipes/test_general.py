"""The general model: its scores by the definition, odd queries, and its files."""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest

from greylag.base import ModelError, Ranking
from greylag.features import FeatureExtractor, parse_features
from greylag.features.feature import Normalised
from greylag.features.written import WrittenForm
from greylag.index import build_index
from greylag.index.positional import PositionalIndex
from greylag.rankers import LengthSlopes, ModelRanker, RankingModel
from greylag.recipes import GeneralRanker, general_model
from greylag.recipes.general import general_model_for
from tests.greylag.diversity import samples

INDEX = samples.index(4, 30)
CRANFIELD = Path(os.environ.get("GREYLAG_DATA", "../shared/data")) / "cranfield" / "docs.jsonl.gz"


def ranked(query, n=30):
    return Ranking("q", query, tuple(f"d{i}" for i in range(n)), np.linspace(9.0, 1.0, n))


def z(values):
    spread = np.std(values)
    return (np.array(values) - np.mean(values)) / spread if spread > 1e-12 else np.zeros(len(values))


@pytest.mark.parametrize("texts", [True, False])
def test_features_are_normalised_within_the_query_and_weights_are_shares(texts):
    model = general_model(texts=texts)
    assert all(isinstance(feature, Normalised) and feature.method == "z" for feature in model.features)
    assert np.abs(model.weights).sum() == pytest.approx(1.0, abs=1e-3)
    assert any(isinstance(feature.base, WrittenForm) for feature in model.features) == texts
    assert model.fingerprint == ""
    assert len(model.provenance["collections"]) >= 18
    assert model.provenance["indexes"].keys() == model.provenance["collections"].keys()


def test_a_score_is_the_weighted_sum_of_z_scores():
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
    model = general_model().at_length(INDEX.average_length)
    names = [str(feature) for feature in model.features]
    place = names.index("FI/term/early@z")
    parts = GeneralRanker(INDEX)._ranker._extractor(ranking)
    assert parts[:, place] == pytest.approx(z(early))
    assert parts[:, names.index("score@z")] == pytest.approx(z(ranking.scores.tolist()))
    scores = dict(zip(ranking.docids, parts @ model.weights, strict=True))
    reranked = GeneralRanker(INDEX)(ranking)
    assert reranked.scores.tolist() == pytest.approx([scores[docid] for docid in reranked.docids])


@pytest.mark.parametrize("query", [" ", "the of and", "w1x", "unheard", " ".join(["w1x w2x unheard"] * 200)])
@pytest.mark.parametrize("n", [0, 1, 30])
def test_odd_queries_and_few_candidates_keep_all_documents(query, n):
    ranking = ranked(query, n)
    reranked = GeneralRanker(INDEX)(ranking)
    assert sorted(reranked.docids) == sorted(ranking.docids)
    assert np.isfinite(reranked.scores).all()
    if query in (" ", "the of and"):  # only the first stage's scores tell documents apart, and those of like documents
        model = general_model_for(INDEX)
        weights = {str(feature): weight for feature, weight in zip(model.features, model.weights, strict=True)}
        names = "score@z", "neighbours@z"
        values = FeatureExtractor(INDEX, parse_features(",".join(names)))(ranking)
        assert reranked.docids == ranking.rescore(values @ [weights[name] for name in names]).docids


def test_a_constant_first_stage_has_no_part_and_its_scale_does_not_count():
    ranking = ranked("w1x w2x")
    constant = Ranking("q", ranking.query, ranking.docids, np.full(30, 7.0))
    assert GeneralRanker(INDEX)(constant).scores.tolist() == pytest.approx(
        GeneralRanker(INDEX)(Ranking("q", ranking.query, ranking.docids, np.zeros(30))).scores.tolist()
    )
    shifted = Ranking("q", ranking.query, ranking.docids, 100 + 3 * ranking.scores)
    assert GeneralRanker(INDEX)(shifted).docids == GeneralRanker(INDEX)(ranking).docids


def test_an_empty_document_has_finite_scores_and_comes_last():
    texts = {"a": "heat transfer", "empty": "", "b": "cold slabs", "c": "heat"}
    ranking = Ranking("q", "heat", ("a", "b", "empty", "c"), np.array([2.0, 1.0, 1.0, 0.5]))
    reranked = GeneralRanker(PositionalIndex.from_texts(texts))(ranking)
    assert np.isfinite(reranked.scores).all()
    assert {"b", "empty"} == set(reranked.docids[2:])


def test_equal_documents_keep_the_incoming_order():
    texts = {f"d{i}": "heat transfer in slabs" for i in range(5)}
    ranking = Ranking("q", "heat", ("d3", "d1", "d4", "d0", "d2"), np.ones(5))
    assert GeneralRanker(PositionalIndex.from_texts(texts))(ranking).docids == ranking.docids


FEATURES = parse_features("score@z,FI/term/early@z,document:length@z")


def test_weights_follow_the_length_of_documents_between_two_lengths():
    model = RankingModel(FEATURES, (0.5, 0.3, -0.2), by_length=LengthSlopes((0.1, -0.1, 0.0), 10, 1000))
    for length, steps in ((1, -1), (10, -1), (100, 0), (1000, 1), (5000, 1), (10**2.5, 0.5)):
        weights = np.array([0.5, 0.3, -0.2]) + steps * np.log(10) * np.array([0.1, -0.1, 0.0])
        fixed = model.at_length(length)
        np.testing.assert_allclose(fixed.weights, weights / np.abs(weights).sum(), atol=6e-5)
        assert fixed.at_length(3) == fixed
    assert "10         100        1000  terms in the mean document" in model.summary()
    assert ModelRanker(model, INDEX).model == model.at_length(INDEX.average_length)


def test_a_line_of_collections_with_other_lengths_goes_between_their_weights():
    """The penalty of the slope as a row of its own, in another solver."""
    random = np.random.default_rng(3)
    learned, lengths = list(random.normal(size=(5, 4))), [3.0, 9.0, 26.0, 70.0, 400.0]
    places = [np.log(min(max(length, 7), 100) / np.sqrt(700)) for length in lengths]
    rows = np.array([*([1.0, place] for place in places), [0.0, 1.0]])
    expected = np.linalg.lstsq(rows, np.vstack([*learned, np.zeros(4)]))[0]
    np.testing.assert_allclose(LengthSlopes.line(learned, lengths), expected)


def test_models_by_length_survive_their_files(tmp_path):
    model = general_model()
    model.save(tmp_path / "model.json")
    assert RankingModel.load(tmp_path / "model.json") == model
    content = json.loads(model.as_json())
    for part in ("by_length", "parameters"):
        (tmp_path / "later.json").write_text(json.dumps({**content, part: {**content[part], "later": 1}}))
        with pytest.raises(ModelError, match="entry 'later' is unknown to this version"):
            RankingModel.load(tmp_path / "later.json")


def test_related_collections_are_left_out_together():
    provenance = general_model().provenance
    assert set(provenance["related"]) == {name for name in provenance["weights"] if name.startswith("xquad")}
    without = general_model(without="xquad_de")
    assert without == general_model(without="xquad_zh")
    others = [name for name in provenance["weights"] if not name.startswith("xquad")]
    line = LengthSlopes.line(
        [np.array(provenance["weights"][name]) for name in others],
        [provenance["indexes"][name]["average_length"] for name in others],
    )
    np.testing.assert_allclose(without.weights, line[0] / np.abs(line[0]).sum(), atol=6e-5)


def test_an_index_without_texts_is_ranked_by_the_model_without_them(monkeypatch):
    with_texts = GeneralRanker(INDEX)(ranked("w1x w2x"))
    monkeypatch.setattr(PositionalIndex, "words", None)
    without = GeneralRanker(samples.index(4, 30))
    assert without._ranker.model == general_model(texts=False).at_length(INDEX.average_length)
    assert without(ranked("w1x w2x")).scores.tolist() != with_texts.scores.tolist()


def test_a_collection_that_was_learned_from_is_ranked_by_weights_of_the_others(monkeypatch, caplog):
    caplog.set_level("INFO")
    of_all, of_others = general_model(texts=True), general_model(without="cranfield")
    known = of_all.provenance["indexes"]["cranfield"]
    assert of_all.weights != of_others.weights
    index = samples.index(4, 30)
    for documents, fingerprint, expected in (
        (31, index.fingerprint, of_all),
        (30, known["fingerprint"], of_all),
        (30, index.fingerprint, of_others),
    ):
        monkeypatch.setitem(known, "documents", documents)
        monkeypatch.setitem(known, "fingerprint", fingerprint)
        assert not caplog.records
        assert GeneralRanker(index)._ranker.model == expected.at_length(index.average_length)
    assert "was learned from cranfield and others" in caplog.text


@pytest.mark.skipif(not CRANFIELD.exists(), reason="needs the collection")
def test_the_fingerprint_of_a_collection_is_that_of_its_index(tmp_path):
    build_index(CRANFIELD, tmp_path / "index")
    index = PositionalIndex.from_lucene(tmp_path / "index")
    assert general_model_for(index) == general_model(without="cranfield").at_length(index.average_length)
    assert general_model().provenance["indexes"]["cranfield"]["average_length"] == round(index.average_length, 2)


@pytest.mark.parametrize(
    ("texts", "weights", "scores"),
    [
        (True, "64fd969edc3c6f4f", [0.6345292134, -0.591573198, 0.7030408804, -0.7459968958]),
        (False, "f05f376024fa283f", [0.6207510137, -0.5045972659, 0.5807421766, -0.6968959244]),
    ],
)
def test_weights_and_values_are_those_that_the_study_measured(texts, weights, scores):
    """Whoever changes a feature or a weight has to run the study `general` again, and to write its figures."""
    model = general_model(texts=texts)
    rows = zip(model.weights, model.by_length.slopes, model.features, strict=True)
    spelt = " ".join(f"{weight}{slope:+}*{feature}" for weight, slope, feature in rows)
    index = PositionalIndex.from_texts(
        {"a": "heat transfer in slabs", "b": "the slab is cold", "c": "a transfer of heat", "d": "preheated slabs"}
    )
    ranking = Ranking("q", "heating transfer slab", ("a", "b", "c", "d"), np.array([3.0, 2.5, 1.0, 0.5]))
    ranked = ModelRanker(model, index, transfer=True).scores(ranking)
    assert hashlib.sha256(spelt.encode()).hexdigest()[:16] == weights
    assert ranked.tolist() == pytest.approx(scores, abs=1e-9)
