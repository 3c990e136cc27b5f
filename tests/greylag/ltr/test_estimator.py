"""Other people's learners as stages."""

from __future__ import annotations

import numpy as np
import pytest
from greylag.ltr.estimator import EstimatorRanker
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeRegressor

from greylag.errors import ModelError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import parse_features
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import RankingData
from greylag.ltr.linear import LinearModel, MRFRanker
from greylag.ranking import FloatArray, Query, Ranking

RNG = np.random.default_rng(4)
WORDS = ["cat", "dog", "pig", "cow"]
INDEX = PositionalIndex.from_texts({f"d{i}": " ".join(RNG.choice(WORDS, size=9)) for i in range(40)})
EXTRACT = FeatureExtractor(INDEX, parse_features("FI/term/BM25,SD/unordered/LM-U-4"))
RANKINGS = [
    Ranking(f"q{i}", " ".join(RNG.choice(WORDS, size=2)), tuple(f"d{i}" for i in range(40)), np.zeros(40))
    for i in range(6)
]
QRELS = {f"q{i}": {f"d{d}": int(RNG.integers(3)) for d in range(40)} for i in range(6)}


@pytest.mark.parametrize("estimator", [LinearRegression(), DecisionTreeRegressor(max_depth=4, random_state=0)])
def test_ranks_by_the_predictions(estimator: LinearRegression) -> None:
    data = RankingData.from_rankings(RANKINGS, QRELS, ["a", "b"], EXTRACT)
    stage = EstimatorRanker(estimator.fit(data.features, data.grades), EXTRACT)
    for ranking in RANKINGS:
        predicted = dict(zip(ranking.docids, estimator.predict(EXTRACT(ranking)), strict=True))
        result = stage(ranking)
        assert [predicted[docid] for docid in result.docids] == result.scores.tolist()
        assert sorted(result.docids) == sorted(ranking.docids)


def test_a_linear_estimator_is_a_linear_model() -> None:
    data = RankingData.from_rankings(RANKINGS, QRELS, ["a", "b"], EXTRACT)
    estimator = LinearRegression(fit_intercept=False).fit(data.features, data.grades)
    model = LinearModel(EXTRACT.specs, tuple(estimator.coef_.tolist()))
    for ranking in RANKINGS:
        assert EstimatorRanker(estimator, EXTRACT)(ranking).docids == MRFRanker(model, INDEX)(ranking).docids


class Fixed:
    """Predicts what it is given."""

    def __init__(self, *values: float) -> None:
        self.values = values

    def predict(self, X: FloatArray) -> list[float]:
        return list(self.values)


def test_joins_other_stages_and_keeps_the_order_of_ties() -> None:
    pipeline = (lambda query: Ranking(query.qid, query.text, ("d3", "d1", "d2"), np.zeros(3))) >> EstimatorRanker(
        Fixed(1, 2, 1), EXTRACT
    )
    assert pipeline(Query("q", "cat")).docids == ("d1", "d3", "d2")
    assert len(EstimatorRanker(Fixed(), EXTRACT)(Ranking("q", "cat", (), np.zeros(0)))) == 0


@pytest.mark.parametrize(("values", "shape"), [((1.0,), r"\(1,\) with 1"), ((1.0, float("nan")), r"\(2,\) with 1")])
def test_bad_predictions(values: tuple[float, ...], shape: str) -> None:
    with pytest.raises(
        ModelError, match=rf"Fixed.predict gave an array of shape {shape} finite .* 2 documents of query q7"
    ):
        EstimatorRanker(Fixed(*values), EXTRACT)(Ranking("q7", "cat", ("d1", "d2"), np.zeros(2)))
