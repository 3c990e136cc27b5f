"""Preselection of features by MMR."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ltr.data import RankingData
from greylag.ltr.preselect import MMRPreselection, binarise
from greylag.selection import MMRFeatureSelection, information_gain
from tests.greylag.ltr.randomdata import random_data


def data_of(columns: dict[str, list[float]], grades: list[int], sizes: list[int]) -> RankingData:
    return RankingData(
        specs=tuple(columns),
        qids=tuple(f"q{i}" for i in range(len(sizes))),
        offsets=np.cumsum([0, *sizes]),
        docids=tuple(f"d{i}" for i in range(sum(sizes))),
        features=np.array(list(columns.values()), dtype=float).T,
        grades=np.array(grades),
        relevant_grades=tuple(np.array([1]) for _ in sizes),
    )


@pytest.mark.parametrize("levels", [None, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_feature_holds_in_the_first_tenth_by_itself(seed: int, levels: int | None) -> None:
    data = random_data(seed, queries=8, documents=45, levels=levels)
    holds = binarise(data)
    for q in range(len(data.qids)):
        rows = range(data.offsets[q], data.offsets[q + 1])
        tenth = math.ceil(len(rows) / 10)
        for feature in range(3):
            values = sorted((data.features[row, feature] for row in rows), reverse=True)
            for row in rows:
                expected = len(rows) > tenth and data.features[row, feature] > values[tenth]
                assert holds[row, feature] == expected
            assert holds[list(rows), feature].sum() <= tenth


def test_the_rule_on_an_example() -> None:
    falling, tied = list(range(20, 0, -1)), [9, 9, 9, *[0] * 17]
    data = data_of({"falling": [*falling, 5], "tied": [*tied, 5], "flat": [1.0] * 21}, [1] * 21, [20, 1])
    np.testing.assert_array_equal(binarise(data).sum(axis=0), [2, 0, 0])
    np.testing.assert_array_equal(np.flatnonzero(binarise(data)[:, 0]), [0, 1])


def test_queries_scales_do_not_matter() -> None:
    data = random_data(3, queries=6, documents=30)
    scale = np.repeat(np.arange(1.0, 7.0), np.diff(data.offsets))[:, np.newaxis]
    moved = replace(data, features=7 * scale**2 * data.features - scale)
    np.testing.assert_array_equal(binarise(moved), binarise(data))


@pytest.mark.parametrize("weight", [0.3, 0.5, 1.0])
def test_what_is_kept_is_mmrs_choice_in_the_pools_order(weight: float) -> None:
    data = random_data(2, queries=20, documents=40, features=12)
    narrowed = MMRPreselection(5, relevance_weight=weight).select(data)
    selector = MMRFeatureSelection(5, relevance_weight=weight).fit(binarise(data), data.grades > 0)
    assert narrowed.names == tuple(data.names[column] for column in sorted(selector.selected_))
    np.testing.assert_array_equal(narrowed.features, data.features[:, np.sort(selector.selected_)])
    assert narrowed.qids == data.qids


def planted() -> RankingData:
    """Relevant documents of two kinds: three features find the one kind, a weaker one the other, two nothing."""
    rng = np.random.default_rng(0)
    n, sizes = 40, [40] * 30
    kind = np.tile([*[1] * 3, *[2] * 1, *[0] * (n - 4)], len(sizes))
    noise = rng.random((6, len(kind)))
    first, second = (kind == 1) * 2.0, (kind == 2) * 2.0
    columns = [noise[0], first + noise[1], first + noise[2], first + noise[3], second + noise[4], noise[5]]
    names = ("noise1", "first1", "first2", "first3", "second", "noise2")
    return data_of(dict(zip(names, map(list, columns), strict=True)), (kind > 0).astype(int).tolist(), sizes)


def test_redundant_features_give_way_to_another_kind() -> None:
    data = planted()
    gain = dict(zip(data.names, information_gain(binarise(data), data.grades > 0), strict=True))
    assert min(gain["first1"], gain["first2"], gain["first3"]) > gain["second"] > max(gain["noise1"], gain["noise2"])
    assert set(MMRPreselection(3, relevance_weight=1.0).select(data).names) == {"first1", "first2", "first3"}
    assert "second" in MMRPreselection(3, relevance_weight=0.5).select(data).names


def test_trivial_and_duplicate_features_are_no_candidates() -> None:
    data = planted()
    twin = np.column_stack([data.features, 3 * data.features[:, 1] + 2, np.ones(len(data.docids))])
    doubled = replace(data, specs=(*data.specs, "twin", "flat"), features=twin)
    assert MMRPreselection(6).select(doubled).names == data.names
    assert MMRPreselection(3).select(doubled).names == MMRPreselection(3).select(data).names


def test_where_nothing_tells_features_apart_all_are_kept() -> None:
    data = planted()
    assert MMRPreselection(6).select(data).names == data.names
    assert MMRPreselection(60).select(data).names == data.names
    for grade in (0, 1):
        alike = replace(data, grades=np.full_like(data.grades, grade))
        assert MMRPreselection(2).select(alike).names == data.names


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("mmr:16", MMRPreselection(16)),
        ("mmr:8:0.7", MMRPreselection(8, relevance_weight=0.7)),
        ("mmr:1:1", MMRPreselection(1, relevance_weight=1.0)),
    ],
)
def test_spelling(text: str, value: MMRPreselection) -> None:
    assert MMRPreselection.parse(f" {text} ") == value
    assert str(value) == text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("mmr", "'mmr' is not of the form mmr:16 or mmr:16:0.7"),
        ("ig:16", "'ig:16' is not of the form"),
        ("mmr:-1", "not of the form"),
        ("mmr:16:x", "not of the form"),
        ("mmr:0", "at least 1 feature, not 0"),
        ("mmr:16:1.5", r"in \[0, 1\], not 1.5"),
    ],
)
def test_bad_spellings(text: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        MMRPreselection.parse(text)
