"""What every learner of linear rankers must do."""

from dataclasses import replace

import numpy as np
import pytest

from greylag.base import ParameterError
from greylag.base.core.registry import registered
from greylag.learning import CoordinateAscent, GreedySelection, ListwiseRegression, Objective
from greylag.recipes import Automatic
from greylag.recipes.spelling import find_learner
from greylag.testing import check_learner
from tests.greylag.learning.samples import random_data
from tests.refusals import refuses

LEARNERS = {
    "greedy": lambda objective: GreedySelection(objective, max_features=3),
    "greedy, retrained": lambda objective: GreedySelection(objective, max_features=3, retrain=True),
    "coordinate ascent": lambda objective: CoordinateAscent(objective, restarts=2),
    "listwise": ListwiseRegression,
    "automatic": lambda objective: Automatic(objective, folds=2),
}
MEASURES = ["AP", "nDCG@10", "RR", "P@5", "ERR@20"]


@pytest.fixture(params=LEARNERS)
def make(request):
    return LEARNERS[request.param]


def test_every_registered_learner_has_a_row():
    tested = {type(make("AP")) for make in LEARNERS.values()}
    # LambdaMART grows trees, and no weights of columns; its own tests compare it with LightGBM.
    assert {name for name in registered("learner") if find_learner(name) not in tested} == {"lambdamart"}


def sample(seed=3):
    return random_data(seed, queries=12, documents=30, features=5)


@pytest.mark.parametrize("measure", MEASURES)
def test_keeps_the_contract(make, measure):
    check_learner(make(measure), sample())


def test_is_invariant_to_feature_scales(make):
    data = sample()
    scaled = replace(data, features=data.features * 2.0 ** np.array([0, 9, -9, 3, 1]))
    one, other = make("AP").fit(data), make("AP").fit(scaled)
    assert other.columns == one.columns
    assert other.training_scores[0] == one.training_scores[0]


def test_is_invariant_to_scores_added_to_a_whole_query(make):
    data = sample()
    levels = np.repeat(np.arange(len(data.qids)) * 8.0, np.diff(data.offsets))[:, None]
    one, other = make("AP").fit(data), make("AP").fit(replace(data, features=data.features + levels))
    assert other.columns == one.columns
    assert other.training_scores == pytest.approx(one.training_scores, abs=1e-9)


def test_is_invariant_to_duplicated_queries(make):
    if isinstance(make("AP"), ListwiseRegression | Automatic):
        pytest.skip("what queries are left out, or how much a penalty counts, depends on their number")
    data = sample()
    twice = data.select_queries([*data.qids, *data.qids])
    one, other = make("AP").fit(data), make("AP").fit(twice)
    assert other.columns == one.columns
    assert other.training_scores == pytest.approx(one.training_scores, abs=1e-9)


def test_takes_any_spelling_of_the_objective(make):
    assert make("nDCG@10") == make("ndcg_cut_10") == make(Objective("nDCG", 10))
    assert make("nDCG@10").objective == Objective("nDCG", 10)
    refuses(lambda: make("mean"), ParameterError, "measure 'mean'")
