"""Feature specifications: spelling, validation and the candidate pool."""

from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.features.evidence import Prior
from greylag.features.feature import Normalised
from greylag.features.spec import UNLIMITED, FeatureSpec, Window, candidate_pool
from greylag.features.spelling import parse_feature, parse_features


@pytest.mark.parametrize("spec", [str(spec) for spec in candidate_pool()])
def test_spelling_round_trips(spec: str) -> None:
    assert str(FeatureSpec.parse(spec)) == spec


def test_the_pool() -> None:
    pool = candidate_pool()
    assert len(pool) == len(set(pool)) == 2 + 2 * 2 * 13
    assert sum(spec.window.width == UNLIMITED for spec in pool) == 4


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SD/ordered", "not of the form"),
        ("XX/term/LM", "unknown dependence model 'XX'"),
        ("SD/pairs/LM-O-1", "unknown clique set 'pairs'"),
        ("SD/ordered/TF-O-1", "unknown weighting"),
        ("SD/ordered/LM-O-0", "unknown weighting"),
        ("SD/ordered/LM", "needs a window"),
        ("FI/term/LM-O-1", "takes no window"),
        ("FI/ordered/LM-O-1", "under FI"),
        ("SD/expansion/LM", "use FI"),
        ("FI/expansion/LM-O-1", "takes no window"),
        ("FI/term/LM,FI/term/LM", "given twice"),
    ],
)
def test_invalid_spellings(text: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        parse_features(text)


def test_windows_round_trip() -> None:
    for text in ("O-4", "U-unlimited", "U-12"):
        assert str(Window.parse(text)) == text
    for text in ("", "O-0", "X-1", "O-04", "U-4-4"):
        assert Window.parse(text) is None


def test_named_pools() -> None:
    assert {name: len(candidate_pool(name)) for name in ("sd", "fd", "full")} == {"sd": 28, "fd": 28, "full": 54}
    with pytest.raises(ParameterError, match="unknown pool 'fi': use sd, fd, full"):
        candidate_pool("fi")  # type: ignore[arg-type]


@pytest.mark.parametrize("width", ["1000000", "99999999999999999999", "9" * 5000, "\u0661", "01", "-1"])
def test_widths_are_bounded(width: str) -> None:
    assert Window.parse(f"O-{width}") is None
    with pytest.raises(ParameterError, match="up to 999999 tokens"):
        FeatureSpec.parse(f"SD/ordered/LM-O-{width}")
    assert FeatureSpec.parse("SD/ordered/LM-O-999999").window.width == 999_999


@pytest.mark.parametrize(
    "text",
    [
        "score",
        "reciprocal-rank@rank",
        "run:runs/dense.run@z",
        "prior:pagerank.tsv:log:1e-06@minmax",
        "prior:a@z:raw",
        "stage:manifold(alpha=0.8,graph=knn)@z",
        "python:bert@rank",
        "SD/ordered/LM-O-4@z",
    ],
)
def test_features_of_all_kinds_round_trip(text: str) -> None:
    assert str(parse_feature(text)) == text
    assert parse_features(f"{text}, FI/term/LM") == (parse_feature(text), FeatureSpec("FI", "term", "LM"))


@pytest.mark.parametrize(
    "text", ["scores", "score:1", "@z", "run:", "python:", "python:a b", "runs:x", "score@", "x@z"]
)
def test_what_is_no_feature(text: str) -> None:
    with pytest.raises(ParameterError):
        parse_feature(text)


def test_a_prior_whose_file_ends_like_a_normalisation_keeps_its_meaning() -> None:
    assert parse_feature(str(Prior("a@z"))) == Prior("a@z")
    assert parse_feature("prior:a@z") == Normalised(Prior("a"), "z")


def test_files_of_features() -> None:
    features = parse_features("score,run:a.run@z,prior:b.tsv,stage:mrf(model=c.json,transfer=true),stage:mmr")
    assert [file for feature in features for file in feature.files()] == ["a.run", "b.tsv", "c.json"]
    placed = [feature.place_files("x/{}".format) for feature in features]
    assert ",".join(map(str, placed)) == (
        "score,run:x/a.run@z,prior:x/b.tsv,stage:mrf(model=x/c.json,transfer=true),stage:mmr"
    )
