"""The operator ``**``, and features given by Python code."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity import MMR
from greylag.errors import ParameterError
from greylag.features.evidence import Score
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import FeatureUnion, PythonFeature
from greylag.features.spec import FeatureSpec
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking

INDEX = PositionalIndex.from_texts({"a": "new york city", "b": "york", "c": "city of dreams"})
RANKING = Ranking("q", "york city", ("b", "c", "a"), [3.0, 2.0, 1.0])
BM25 = FeatureSpec("FI", "term", "BM25")


def lengths(ranking: Ranking) -> list[int]:
    return [len(INDEX.query_terms(docid)) for docid in ranking.docids]


def test_the_operator_puts_features_side_by_side() -> None:
    stage = MMR(INDEX)
    union = Score() ** BM25**lengths
    assert isinstance(union, FeatureUnion)
    assert list(map(str, union)) == ["score", "FI/term/BM25", "python:lengths"]
    assert list(map(str, stage ** Score())) == ["python:MMR", "score"]
    assert union ** parse_feature("score@z") == FeatureUnion([*union, parse_feature("score@z")])
    with pytest.raises(TypeError, match="unsupported operand"):
        Score() ** 2
    with pytest.raises(ParameterError, match="'<lambda>' cannot name a feature"):
        Score() ** (lambda ranking: ranking.scores)


def test_a_union_is_extracted_as_any_features() -> None:
    values = FeatureExtractor(INDEX, Score() ** BM25**lengths)(RANKING)
    assert values[:, 0].tolist() == [3.0, 2.0, 1.0]
    assert values[:, 1:2].tolist() == FeatureExtractor(INDEX, (BM25,))(RANKING).tolist()
    assert values[:, 2].tolist() == lengths(RANKING)


def test_a_stage_gives_its_scores_and_what_it_leaves_out_has_the_least() -> None:
    def best_two(ranking: Ranking) -> Ranking:
        return ranking.rescore([1.0, 5.0, 3.0]).head(2)

    extractor = FeatureExtractor(INDEX, (PythonFeature("best-two", best_two),))
    assert extractor(RANKING)[:, 0].tolist() == [3.0, 5.0, 3.0]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ([1.0], r"shape \(1,\)"),
        ([1.0, np.inf, 2.0], "finite number, or NaN"),
        (["x", "y", "z"], "a list: it must give numbers or a Ranking"),
        (None, "shape"),
    ],
)
def test_functions_that_do_not_give_a_number_for_each_document(result: object, reason: str) -> None:
    extractor = FeatureExtractor(INDEX, (PythonFeature("odd", lambda ranking: result),))  # type: ignore[arg-type,return-value]
    with pytest.raises(ParameterError, match=f"feature python:odd gave .*{reason}"):
        extractor(RANKING)


def test_a_missing_function_is_named() -> None:
    with pytest.raises(ParameterError, match=r"feature python:bert .* model\.supply\(\{'bert': function\}\)"):
        FeatureExtractor(INDEX, (PythonFeature("bert"),))(RANKING)
    assert PythonFeature("bert") == PythonFeature("bert", lengths)


def test_no_value_at_all_is_0() -> None:
    extractor = FeatureExtractor(INDEX, (PythonFeature("none", lambda ranking: [np.nan] * 3),))
    assert extractor(RANKING)[:, 0].tolist() == [0.0, 0.0, 0.0]
