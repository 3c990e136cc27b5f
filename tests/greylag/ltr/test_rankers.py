"""Reranking stages."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from greylag.errors import ModelError, ParameterError
from greylag.features import relevance_model
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.extraction import training_data
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import RM3, EstimatorRanker, MRFRanker
from greylag.ranking import FloatArray, Query, Ranking
from tests.greylag.diversity import samples
from tests.greylag.ltr.phrases import collection, rankings, trained

RNG = np.random.default_rng(4)
WORDS = ["cat", "dog", "pig", "cow"]
INDEX = PositionalIndex.from_texts({f"d{i}": " ".join(RNG.choice(WORDS, size=9)) for i in range(40)})
EXTRACTOR = FeatureExtractor(INDEX, parse_features("FI/term/BM25,SD/unordered/LM-U-4"))
RANKINGS = [
    Ranking(f"q{i}", " ".join(RNG.choice(WORDS, size=2)), tuple(f"d{i}" for i in range(40)), np.zeros(40))
    for i in range(6)
]
QRELS = {f"q{i}": {f"d{d}": int(RNG.integers(3)) for d in range(40)} for i in range(6)}


@pytest.mark.parametrize("estimator", [LinearRegression(), DecisionTreeRegressor(max_depth=4, random_state=0)])
def test_ranks_by_the_predictions(estimator: LinearRegression) -> None:
    data = training_data(RANKINGS, QRELS, EXTRACTOR)
    stage = EstimatorRanker(estimator.fit(data.features, data.grades), EXTRACTOR)
    for ranking in RANKINGS:
        predicted = dict(zip(ranking.docids, estimator.predict(EXTRACTOR(ranking)), strict=True))
        result = stage(ranking)
        assert [predicted[docid] for docid in result.docids] == result.scores.tolist()
        assert sorted(result.docids) == sorted(ranking.docids)


def test_a_linear_estimator_is_a_linear_model() -> None:
    data = training_data(RANKINGS, QRELS, EXTRACTOR)
    estimator = LinearRegression(fit_intercept=False).fit(data.features, data.grades)
    model = LinearModel(EXTRACTOR.specs, tuple(estimator.coef_.tolist()))
    for ranking in RANKINGS:
        assert EstimatorRanker(estimator, EXTRACTOR)(ranking).docids == MRFRanker(model, INDEX)(ranking).docids


class Fixed:
    """Predicts the given values."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def predict(self, X: FloatArray) -> list[float]:
        return list(self.values)


def test_composes_and_keeps_the_order_of_ties() -> None:
    pipeline = (lambda query: Ranking(query.qid, query.text, ("d3", "d1", "d2"), np.zeros(3))) >> EstimatorRanker(
        Fixed(1, 2, 1), EXTRACTOR
    )
    assert pipeline(Query("q", "cat")).docids == ("d1", "d3", "d2")
    assert len(EstimatorRanker(Fixed(), EXTRACTOR)(Ranking("q", "cat", (), np.zeros(0)))) == 0


def test_a_warning_names_documents_that_the_index_lacks(caplog: pytest.LogCaptureFixture) -> None:
    ranked = EstimatorRanker(Fixed(1, 2), EXTRACTOR).run([Ranking("q", "cat", ("d1", "gone", "d2"), np.zeros(3))])
    assert (ranked["q"].docids, ranked["q"].scores.tolist()) == (("d2", "d1", "gone"), [2.0, 1.0, 1.0])
    (message,) = caplog.messages
    assert "gone" in message
    assert "d1" not in message


@pytest.mark.parametrize(("values", "shape"), [((1.0,), r"\(1,\) with 1"), ((1.0, float("nan")), r"\(2,\) with 1")])
def test_invalid_predictions(values: tuple[float, ...], shape: str) -> None:
    with pytest.raises(
        ModelError, match=rf"Fixed.predict gave an array of shape {shape} finite .* 2 documents of query q7"
    ):
        EstimatorRanker(Fixed(*values), EXTRACTOR)(Ranking("q7", "cat", ("d1", "d2"), np.zeros(2)))


def test_scores_are_the_sums_of_the_model_and_ties_keep_their_order() -> None:
    index = collection()
    specs = parse_features("FI/term/LM,SD/unordered/BM25-U-4")
    model = LinearModel(specs, (0.75, -2.0), FeatureParameters(mu=20.0))
    ranking = Ranking("q", "cat dog", tuple(f"d{i}" for i in range(40)), np.zeros(40))
    features = FeatureExtractor(index, specs, model.parameters)(ranking)
    result = MRFRanker(model, index)(ranking)
    expected = dict(zip(ranking.docids, features @ [0.75, -2.0], strict=True))
    assert result.scores == pytest.approx([expected[docid] for docid in result.docids])
    tied = MRFRanker(LinearModel(specs, (0.0, 0.0)), index)(ranking)
    assert tied.docids == ranking.docids


def test_a_model_of_another_collection_needs_transfer() -> None:
    model = trained(collection())
    other = collection(seed=2)
    with pytest.raises(ModelError, match="trained on another collection"):
        MRFRanker(model, other)
    assert len(MRFRanker(model, other, transfer=True)(rankings(other)[0][0])) == 40


SAMPLE = samples.index(1, 15)
RANKED = samples.ranking(2, 15)


def test_scores_are_those_of_the_expanded_query() -> None:
    parameters = FeatureParameters(k1=1.4, b=0.3, fb_docs=3, fb_terms=4, mu=50.0)
    stage = RM3(SAMPLE, original_weight=0.3, k1=1.4, b=0.3, fb_docs=3, fb_terms=4, mu=50.0)
    terms, probabilities = relevance_model(SAMPLE, RANKED, parameters)
    model = dict.fromkeys(SAMPLE.query_terms(RANKED.query).tolist(), 0.0)
    for term in SAMPLE.query_terms(RANKED.query).tolist():
        model[term] += 0.3 / len(SAMPLE.query_terms(RANKED.query))
    for term, probability in zip(terms.tolist(), probabilities.tolist(), strict=True):
        model[term] = model.get(term, 0.0) + 0.7 * probability
    scores = np.zeros(len(RANKED))
    for term, weight in model.items():
        if term >= 0:
            one = Ranking("q", SAMPLE.term(term), RANKED.docids, RANKED.scores)
            scores += weight * FeatureExtractor(SAMPLE, parse_features("FI/term/BM25"), parameters)(one)[:, 0]
    ranked = stage(RANKED)
    found = dict(zip(ranked.docids, ranked.scores.tolist(), strict=True))
    assert [found[docid] for docid in RANKED.docids] == pytest.approx(scores.tolist())


def test_the_query_alone_is_bm25() -> None:
    bm25 = FeatureExtractor(SAMPLE, parse_features("FI/term/BM25"))(RANKED)[:, 0]
    assert RM3(SAMPLE, original_weight=1.0)(RANKED).docids == RANKED.rescore(bm25).docids
    assert RM3(SAMPLE, original_weight=0.0)(RANKED).docids != RANKED.rescore(bm25).docids


def test_bad_options() -> None:
    with pytest.raises(ParameterError, match=r"original_weight must be in \[0, 1\], not 2"):
        RM3(SAMPLE, original_weight=2)
    with pytest.raises(ParameterError, match="fb_docs"):
        RM3(SAMPLE, fb_docs=0)
