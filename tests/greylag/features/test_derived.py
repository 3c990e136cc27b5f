"""Normalisation over the documents of a query."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import zscore
from sklearn.preprocessing import minmax_scale

from greylag.errors import ParameterError
from greylag.features.evidence import Score
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import NORMALISATIONS, Normalised, PythonFeature, derive, supply
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking


def normalise(values: np.ndarray, method: str) -> np.ndarray:
    return derive(parse_feature(f"score@{method}"), values)


VALUES = st.lists(st.integers(-50, 50).map(float), min_size=2, max_size=12)
INDEX = PositionalIndex.from_texts({f"d{i}": "cat " * i + "dog" for i in range(1, 6)})


@settings(deadline=None)
@given(VALUES)
def test_other_implementations_agree(values: list[float]) -> None:
    x = np.array(values)
    lower = [sum(other < own for other in values) + 0.5 * (values.count(own) - 1) for own in values]
    assert normalise(x, "rank").tolist() == pytest.approx([count / (len(x) - 1) for count in lower])
    assert normalise(x, "minmax") == pytest.approx(minmax_scale(x))
    assert normalise(x, "z") == pytest.approx(np.zeros(len(x)) if np.ptp(x) == 0 else zscore(x))


@settings(deadline=None)
@given(VALUES, st.floats(0.1, 10), st.floats(-100, 100))
def test_order_is_kept_and_scale_and_origin_do_not_matter(values: list[float], scale: float, origin: float) -> None:
    x = np.array(values)
    for method in NORMALISATIONS:
        found = normalise(x, method)
        assert all((x[i] < x[j]) == (found[i] < found[j]) for i, j in product(range(len(x)), repeat=2))
        assert normalise(scale * x + origin, method) == pytest.approx(found, abs=1e-9)


@pytest.mark.parametrize(("method", "constant"), [("minmax", 0.0), ("z", 0.0), ("rank", 0.5)])
def test_equal_values(method: str, constant: float) -> None:
    assert normalise(np.full(3, 0.1), method).tolist() == [constant] * 3
    assert normalise(np.full(1, 0.1), method).tolist() == [constant]
    assert normalise(np.empty(0), method).tolist() == []


def test_documents_without_a_value_have_no_part_and_get_the_least() -> None:
    ranking = Ranking("q", "cat", ("d1", "gone", "d2", "d3"), np.zeros(4))
    alone = Ranking("q", "cat", ("d1", "d2", "d3"), np.zeros(3))
    for method in NORMALISATIONS:
        extractor = FeatureExtractor(INDEX, (parse_feature(f"FI/term/BM25@{method}"),))
        values, own = extractor(ranking)[:, 0], extractor(alone)[:, 0]
        assert values[[0, 2, 3]].tolist() == own.tolist()
        assert values[1] == own.min()


def test_what_is_normalised_in_several_ways_is_computed_once() -> None:
    calls: list[str] = []

    def record(ranking: Ranking) -> list[float]:
        calls.append(ranking.qid)
        return list(range(len(ranking)))

    base = PythonFeature("record", record)
    extractor = FeatureExtractor(INDEX, (Normalised(base, "z"), base, Normalised(base, "rank")))
    values = extractor(Ranking("q", "cat", ("d1", "d2"), np.zeros(2)))
    assert calls == ["q"]
    assert values.tolist() == [[-1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]


def test_functions_are_supplied_by_name() -> None:
    bert, plain = supply(
        (parse_feature("python:bert@z"), parse_feature("python:bert")), {"bert": lambda r: range(len(r))}
    )
    assert (str(bert), str(plain)) == ("python:bert@z", "python:bert")
    two = Ranking("q", "cat", ("d1", "d2"), np.zeros(2))
    assert FeatureExtractor(INDEX, (bert, plain))(two).tolist() == [[-1.0, 0.0], [1.0, 1.0]]
    with pytest.raises(ParameterError, match="no feature python:bart; the names of functions needed: bert"):
        supply((bert,), {"bart": len})  # type: ignore[dict-item]


def test_bad_normalisations() -> None:
    with pytest.raises(ParameterError, match="unknown normalisation 'l2' in feature score@l2: use minmax, z, rank"):
        Normalised(Score(), "l2")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="feature score@z@rank is normalised twice"):
        parse_feature("score@z@rank")
