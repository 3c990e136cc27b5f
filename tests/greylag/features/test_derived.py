"""Products of features: their spelling, their values, and what they are made from."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.derived import Normalised, Product, plain_features, supply
from greylag.features.evidence import RunScore, Score
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import PythonFeature
from greylag.features.spelling import parse_feature, parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking

INDEX = PositionalIndex.from_texts({f"d{i}": "cat " * (i % 3) + "dog " * (i % 4) + "pig" for i in range(9)})
RANKING = Ranking("q", "cat dog", tuple(f"d{i}" for i in (3, 5, 2, 7, 1, 8)), np.arange(6.0, 0, -1))
TERM, PAIR = "FI/term/BM25", "SD/ordered/LM-O-2"


def test_spellings_are_read_back() -> None:
    for text in (
        f"product:({TERM}*{PAIR})",
        f"product:({TERM}@minmax*{PAIR}@minmax)",
        f"product:({TERM}*{PAIR})@z",
        "product:(run:a b.run@rank*score*stage:mmr(depth=5,k=3)@minmax)",
    ):
        assert str(parse_feature(text)) == text
        assert parse_features(f"score,{text},{PAIR}") == (Score(), parse_feature(text), parse_feature(PAIR))


def test_the_order_of_factors_and_brackets_does_not_matter() -> None:
    a, b, c = (parse_feature(text) for text in (TERM, PAIR, "score"))
    assert Product((a, b, c)) == Product((c, Product((b, a)))) == Product((Product((a, c)), b))
    assert len({Product((a, b)), Product((b, a))}) == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("product:", "not of the form"),
        ("product:score*score", "not of the form"),
        ("product:(score)", "at least two"),
        ("product:(score*product:(score*score))", "as a factor: give its factors"),
        ("product:(score*FI/what/LM)", "unknown clique set"),
        ("product:(*)", "DEPENDENCE/CLIQUES/WEIGHTING"),
    ],
)
def test_other_spellings_are_refused(text: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        parse_feature(text)


def test_ambiguous_factors_are_refused() -> None:
    for factor in (RunScore("a*b"), RunScore("a)b"), Normalised(Product((Score(), RunScore("x"))), "z")):
        with pytest.raises(ParameterError):
            Product((Score(), factor))


@pytest.mark.parametrize("method", ["minmax", "z", "rank"])
def test_values_are_products_of_the_factors(method: str) -> None:
    parameters = FeatureParameters(mu=7.0, k1=1.7)
    texts = [f"{TERM}@{method}", f"{PAIR}@minmax", "score@minmax"]
    alone = FeatureExtractor(INDEX, tuple(map(parse_feature, texts)), parameters)(RANKING)
    made = parse_features(f"product:({'*'.join(texts)}),{texts[0]},product:({texts[0]}*{texts[1]})@rank")
    values = FeatureExtractor(INDEX, made, parameters)(RANKING)
    assert values[:, 0] == pytest.approx(alone[:, 0] * alone[:, 1] * alone[:, 2], abs=1e-15)
    assert values[:, 1].tolist() == alone[:, 0].tolist()
    order = (alone[:, 0] * alone[:, 1]).argsort()
    assert (np.diff(values[order, 2]) >= 0).all()


def test_factors_without_a_value_count_as_their_least_one(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    known = PythonFeature("known", lambda ranking: [np.nan if d == "d5" else float(d[1:]) for d in ranking.docids])
    (values,) = FeatureExtractor(INDEX, (Product((known, Score())),))(RANKING).T
    assert values.tolist() == [3 * 6, 1 * 5, 2 * 4, 7 * 3, 1 * 2, 8 * 1]


def test_unknown_documents_leave_the_values_of_the_others() -> None:
    made = parse_features(f"product:({TERM}@minmax*{PAIR}@minmax)")
    mixed = Ranking("q", "cat dog", ("gone", *RANKING.docids), np.arange(7.0, 0, -1))
    values = FeatureExtractor(INDEX, made)(mixed)[:, 0]
    assert values[1:].tolist() == FeatureExtractor(INDEX, made)(RANKING)[:, 0].tolist()
    assert values[0] == values[1:].min()


def test_what_products_are_made_from(tmp_path: Path) -> None:
    feature = parse_feature(f"product:(run:x.run@z*{TERM})@minmax")
    assert [*map(str, plain_features(feature))] == [TERM, "run:x.run"]
    assert feature.files() == ["x.run"]
    assert str(feature.place_files(lambda file: f"{tmp_path}/{file}")) == (
        f"product:({TERM}*run:{tmp_path}/x.run@z)@minmax"
    )
    product = parse_feature(f"product:({TERM}*{PAIR})")
    assert (product.uses_ranking, product.needs_index) == (False, True)
    assert parse_feature(f"product:({TERM}*score)").uses_ranking
    assert not parse_feature("product:(run:x*score)").needs_index


def test_functions_are_supplied_by_name() -> None:
    features = (*parse_features("python:bert@z,score"), parse_feature("product:(python:bert*score)"))
    bert, score, product = supply(features, {"bert": lambda ranking: range(len(ranking))})
    assert (str(bert), str(score)) == ("python:bert@z", "score")
    two = RANKING.head(2)
    assert FeatureExtractor(INDEX, (bert, product))(two).tolist() == [[-1.0, 0.0], [1.0, 5.0]]
    with pytest.raises(ParameterError, match="no feature python:bart; the names of functions needed: bert"):
        supply(features, {"bart": len})  # type: ignore[dict-item]
