"""The committee of greedy selections."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.ltr import GreedyCommittee, GreedySelection, Objective, RankingData, split_folds
from greylag.ltr.data import linear_scores
from tests.greylag.ltr.randomdata import random_data


def within(data: RankingData, scores: np.ndarray) -> list[np.ndarray]:
    """The scores of each query less their mean."""
    parts = np.split(scores, data.offsets[1:-1])
    return [part - part.mean() for part in parts]


@pytest.mark.parametrize("measure", ["AP", "nDCG@10"])
@pytest.mark.parametrize("seed", range(4))
def test_scores_are_the_sum_of_the_members_standard_scores(seed: int, measure: str) -> None:
    data = random_data(seed, queries=9, documents=25, features=6)
    found = GreedyCommittee(measure, max_features=3, folds=4, seed=seed).fit(data)
    expected = [np.zeros(end - first) for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True)]
    for fold in split_folds(data.qids, 4, seed):
        own = data.select_queries([qid for qid in data.qids if qid not in fold])
        member = GreedySelection(measure, max_features=3).fit(own)
        trained = own.features[:, list(member.columns)] @ np.array(member.weights)
        deviation = np.concatenate(within(own, trained)).std()
        ranked = within(data, data.features[:, list(member.columns)] @ np.array(member.weights) / deviation)
        expected = [total + part for total, part in zip(expected, ranked, strict=True)]
    scores = linear_scores(data, found.columns, np.array(found.weights))
    for part, total in zip(within(data, scores), expected, strict=True):
        np.testing.assert_allclose(part, total, atol=1e-9)
    assert found.training_scores == (pytest.approx(Objective.parse(measure).evaluate(data, scores).mean()),)


def test_a_prior_counts_as_much_as_all_members() -> None:
    data = random_data(7, queries=9, documents=25, features=6)
    free, trusting = (GreedyCommittee("AP", max_features=2, folds=4, prior=prior).fit(data) for prior in ("", "f3"))
    plain, told = (dict(zip(found.columns, found.weights, strict=True)) for found in (free, trusting))
    deviation = np.concatenate(within(data, data.features[:, 3])).std()
    assert told.keys() == plain.keys() | {3}
    for column, weight in told.items():
        assert weight == pytest.approx(plain.get(column, 0.0) + (4 / deviation if column == 3 else 0.0))
    with pytest.raises(ParameterError, match="the data has no feature f9"):
        GreedyCommittee("AP", prior="f9").fit(data)


def test_features_are_in_the_order_of_their_effect() -> None:
    data = random_data(2, queries=12, documents=30, features=8)
    found = GreedyCommittee("AP", max_features=4, folds=3).fit(data)
    effects = [
        abs(weight) * np.concatenate(within(data, data.features[:, column])).std()
        for column, weight in zip(found.columns, found.weights, strict=True)
    ]
    assert effects == sorted(effects, reverse=True)


def test_a_member_that_ranks_by_a_constant_has_no_part() -> None:
    """Its training queries say nothing, so that its weights have no scale."""
    data = random_data(2, queries=2, documents=12, features=1)
    features = data.features.copy()
    features[: data.offsets[1]] = 1.0  # the member trained on this query alone has one value
    flat = RankingData(data.specs, data.qids, data.offsets, data.docids, features, data.grades, data.relevant_grades)
    found = GreedyCommittee("AP", folds=2).fit(flat)
    assert np.isfinite(found.weights).all()


def test_bad_committees() -> None:
    with pytest.raises(ParameterError, match="folds is 1; it must be at least 2"):
        GreedyCommittee("AP", folds=1)
    with pytest.raises(ParameterError, match="max_features is 0; it must be at least 1"):
        GreedyCommittee("AP", max_features=0)
    with pytest.raises(ParameterError, match="3 queries cannot be split into 5 folds"):
        GreedyCommittee("AP").fit(random_data(1, queries=3))
