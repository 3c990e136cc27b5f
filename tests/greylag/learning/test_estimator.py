"""Learners as scikit-learn's estimators, under its own checks, clone and grid search."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.utils.estimator_checks import check_estimator

from greylag.base import ParameterError
from greylag.learning import (
    CoordinateAscent,
    GreedySelection,
    ListwiseRegression,
    Objective,
    RankEstimator,
    RankingData,
)
from tests.refusals import refuses

RNG = np.random.default_rng(2)
SIZES = RNG.integers(3, 9, size=30)
QID = np.repeat(RNG.permutation(1000)[:30], SIZES)
Y = RNG.choice(3, p=[0.6, 0.3, 0.1], size=len(QID))
X = RNG.normal(size=(len(QID), 4)) + np.outer(Y, [1.0, 0.5, 0, 0])
DATA = RankingData.from_arrays(X, Y, SIZES)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(qid=QID)
LEARNERS = [
    ListwiseRegression("nDCG@10", penalty=3.0),
    GreedySelection("AP", max_features=2),
    CoordinateAscent("ERR@5", restarts=1),
]


class OneQuery(RankEstimator):
    """Takes all rows as one query, since scikit-learn's checks give none; grades are y rounded."""

    def _data(self, X, y, group, qid, *, reset):
        if y is None:
            return super()._data(X, y, group, qid, reset=reset)
        rows = np.asarray(y, dtype=float)
        if rows.ndim == 1 and np.isfinite(rows).all():
            y = np.round(np.abs(rows)) + np.arange(len(rows)) % 2
        return super()._data(X, y, group, np.zeros(len(rows)), reset=reset)


def test_scikit_learns_checks():
    """All but for what is ranking's: rows need their queries, and grades are whole numbers (see `OneQuery`)."""
    for learner in (None, *LEARNERS):
        check_estimator(OneQuery(learner), on_fail="raise")


@pytest.mark.parametrize("learner", LEARNERS)
def test_fits_as_the_learner_does(learner):
    """By group, by qid in any order of queries, and by a column of a frame."""
    expected = learner.fit(DATA)
    order = np.concatenate([np.flatnonzero(qid == QID) for qid in RNG.permutation(np.unique(QID))])
    fits = [
        RankEstimator(learner).fit(X, Y, group=SIZES),
        RankEstimator(learner).fit(X, Y, qid=QID),
        RankEstimator(learner).fit(X[order], Y[order], qid=QID[order].astype(str)),
        RankEstimator(learner).fit(FRAME, Y),
    ]
    for fitted in fits:
        np.testing.assert_allclose(fitted.coef_, expected.over(DATA), rtol=1e-9)
        values = FRAME if fitted is fits[-1] else X
        np.testing.assert_allclose(fitted.predict(values), expected.predict(X), rtol=1e-9)
        score = Objective.parse(learner.objective).evaluate(DATA, expected.predict(X)).mean()
        assert fitted.score(values, Y, qid=None if values is FRAME else QID) == pytest.approx(score)
    assert fits[-1].feature_names_in_.tolist() == list("abcd")


def test_parameters_are_those_of_the_learner_too():
    one = RankEstimator(LEARNERS[0])
    assert one.get_params()["learner__penalty"] == 3.0
    assert one.get_params(deep=False) == {"learner": LEARNERS[0]}
    other = clone(one).set_params(learner__penalty=5.0, learner__objective="AP")
    assert (other.learner, one.learner) == (ListwiseRegression("AP", penalty=5.0), LEARNERS[0])
    assert RankEstimator().set_params(learner__penalty=2.0).learner == ListwiseRegression("nDCG@10", penalty=2.0)


@pytest.mark.parametrize("frames", [True, False])
def test_grid_search_holds_out_whole_queries(frames):
    """By a column of a frame, or by routed metadata; scores and choice are those of a loop."""
    penalties, cut = [1e-3, 3.0, 3e5], GroupKFold(3)
    search = GridSearchCV(RankEstimator(LEARNERS[0]), {"learner__penalty": penalties}, cv=cut)
    if frames:
        search.fit(FRAME, Y, groups=QID)
    else:
        with sklearn.config_context(enable_metadata_routing=True):
            search.estimator.set_fit_request(qid=True).set_score_request(qid=True)
            search.fit(X, Y, qid=QID, groups=QID)
    for penalty, mean in zip(penalties, search.cv_results_["mean_test_score"], strict=True):
        scores = []
        for learned, tested in cut.split(X, Y, QID):
            known = RankEstimator(ListwiseRegression("nDCG@10", penalty=penalty)).fit(
                X[learned], Y[learned], qid=QID[learned]
            )
            scores.append(known.score(X[tested], Y[tested], qid=QID[tested]))
        assert mean == pytest.approx(np.mean(scores))
    assert search.best_params_["learner__penalty"] == penalties[int(np.argmax(search.cv_results_["mean_test_score"]))]


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: RankEstimator("listwise").fit(X, Y, qid=QID), "'listwise'"),
        (lambda: RankEstimator().fit(X, Y), "qid=|group="),
        (lambda: RankEstimator().fit(X, Y, qid=QID[1:]), "qid="),
        (lambda: RankEstimator().fit(X, Y, group=SIZES[1:]), "add up to"),
        (lambda: RankEstimator().fit(X, Y + 0.5, qid=QID), "whole numbers"),
        (lambda: RankEstimator().fit(X, 0 * Y, qid=QID), "nothing to learn"),
        (lambda: RankEstimator().fit(X, Y, group=SIZES, qid=QID), "twice"),
        (lambda: RankEstimator().fit(FRAME, Y, group=SIZES), "twice"),
        (lambda: RankEstimator().fit(FRAME, Y, qid=QID), "twice"),
        (lambda: RankEstimator().fit(FRAME, Y).score(FRAME, Y, group=SIZES), "twice"),
        (lambda: RankEstimator().fit(X, Y, qid=np.where(QID[0] == QID, np.nan, QID)), "missing|nan"),
        (lambda: RankEstimator().fit(X, Y, qid=[None, *QID[1:].tolist()]), "missing|None"),
        (lambda: RankEstimator().fit(X, Y, qid=[np.nan, *QID[1:].astype(str)]), "missing|nan"),
        (lambda: RankEstimator().fit(X, Y, qid=pd.array([pd.NA, *QID[1:]], dtype="Int64")), "missing"),
        (lambda: RankEstimator().fit(X, [*map(str, Y)], qid=QID), "whole numbers|<U1"),
        (lambda: RankingData.from_arrays(X, [*map(str, Y)], SIZES), "whole numbers|<U1"),
        (lambda: RankingData.from_arrays(X, np.where(Y > 1, np.inf, Y), SIZES), "whole numbers"),
        (lambda: RankEstimator().fit(X, Y, qid=QID).score(X, Y), "qid="),
    ],
)
def test_refusals(call, parts):
    refuses(call, ParameterError, parts, separator="|")
