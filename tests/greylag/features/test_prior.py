"""Priors: spelling, files and values."""

from __future__ import annotations

from math import log
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import FormatError, ParameterError
from greylag.features.evidence import Prior
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_feature, parse_features
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking

INDEX = PositionalIndex.from_texts({"a": "cat dog", "b": "cat", "c": "dog dog", "d": "pig"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "prior.tsv"
    path.write_text("c 0.5\nelsewhere 9\na\t2\nd 8e-1\n")
    return path


@pytest.mark.parametrize(
    ("suffix", "expected"),
    [
        ("", [2, 0.5, 0.5, 0.8]),  # b has none and gets the least
        (":raw", [2, 0.5, 0.5, 0.8]),
        (":-3.5", [2, -3.5, 0.5, 0.8]),
        (":log", [log(2), log(0.5), log(0.5), log(0.8)]),
        (":log:1e-2", [log(2), log(0.01), log(0.5), log(0.8)]),
    ],
)
def test_values(file: Path, suffix: str, expected: list[float]) -> None:
    prior = parse_feature(f" prior:{file}{suffix} ")
    assert isinstance(prior, Prior)
    assert parse_feature(str(prior)) == prior
    np.testing.assert_allclose(prior.values(INDEX), expected, rtol=1e-15)


def test_beside_other_features(file: Path) -> None:
    extract = FeatureExtractor(INDEX, parse_features(f"FI/term/LM,prior:{file}:log,FI/term/BM25"))
    alone = FeatureExtractor(INDEX, parse_features("FI/term/LM,FI/term/BM25"))
    ranking = Ranking("q", "cat pig", ("d", "x", "a", "c"), np.zeros(4))
    values = extract(ranking)
    np.testing.assert_allclose(values[:, 1], np.log([0.8, 0.5, 2, 0.5]))  # x, outside the index, gets the least
    np.testing.assert_array_equal(values[:, [0, 2]], alone(ranking))
    assert not extract.limits("cat dog pig cow")


@pytest.mark.parametrize(
    ("text", "suffix", "reason"),
    [
        ("a 1\nb x\n", "", "prior.tsv:2: value 'x' must be a finite number"),
        ("a inf\n", "", "prior.tsv:1: value 'inf'"),
        ("a 1_0\n", "", "prior.tsv:1: value '1_0' must be a finite number"),
        ("a \u0661\n", "", "prior.tsv:1: value '\u0661' must be a finite number"),
        ("a 1\nb 0\n", ":log", "prior.tsv:2: value '0' must be a finite number above 0"),
        ("a 1\na 2\n", "", "prior.tsv:2: duplicate document 'a'"),
        ("a 1 2\n", "", r"prior.tsv:1: 3 columns[^;]*$"),
        ("x 1\n", "", r"none of its documents is in the index \('x' first\)"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, suffix: str, reason: str) -> None:
    (tmp_path / "prior.tsv").write_text(text)
    with pytest.raises(FormatError, match=reason):
        Prior.parse(f"prior:{tmp_path}/prior.tsv{suffix}").values(INDEX)


@pytest.mark.parametrize(
    ("text", "reason"), [("prior:", "not of the form"), ("prior:f:log:0", "above 0"), ("prior:f:log:-1", "above 0")]
)
def test_bad_spellings(text: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        parse_feature(text)
