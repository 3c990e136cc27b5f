"""Learners in scikit-learn's manner."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from greylag.base import FloatArray, ParameterError, shown
from greylag.learning.data import RankingData, weighted_sum
from greylag.learning.learner import Learner
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.listwise import ListwiseRegression

_MISSING = {"None", "nan", "<NA>", "NaT"}


class RankEstimator(BaseEstimator):  # type: ignore[misc]
    """Fits a learner to arrays, as scikit-learn's estimators: for `clone`, `GridSearchCV` and pipelines.

    Queries are given by `qid`, one for each row, by `group`, the sizes of runs of rows, or by a column ``qid`` of a
    data frame X, which every splitter of scikit-learn keeps. With arrays, `GridSearchCV` passes `qid` under
    ``sklearn.set_config(enable_metadata_routing=True)`` to an estimator that asks for it:
    ``.set_fit_request(qid=True).set_score_request(qid=True)``.

    Parameters
    ----------
    learner : Learner, optional
        Such as ``GreedySelection("AP")``, ``CoordinateAscent("nDCG@10")`` or the default,
        ``ListwiseRegression("nDCG@10")``. Its fields are parameters, too: ``learner__penalty``, ``learner__objective``.

    Attributes
    ----------
    coef_ : array, shape (f,)
        The weights.
    selection_ : Selection
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> RankEstimator().fit([[0.1], [0.9], [0.4], [0.2]], [0, 1, 1, 0], group=[2, 2]).predict([[2.0]]) > 0
    array([ True])
    """

    def __init__(self, learner: Learner | None = None) -> None:
        self.learner = learner

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name, also those of the learner."""
        names: list[str] = [field.name for field in fields(self.learner)] if deep and is_dataclass(self.learner) else []
        return {"learner": self.learner, **{f"learner__{name}": getattr(self.learner, name) for name in names}}

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name, also those of the learner."""
        learner_params = {name.removeprefix("learner__"): params.pop(name) for name in [*params] if "__" in name}
        super().set_params(**params)
        if learner_params:
            self.learner = replace(cast(Any, self._learner), **learner_params)
        return self

    def fit(self, X: ArrayLike, y: ArrayLike, group: ArrayLike | None = None, qid: ArrayLike | None = None) -> Self:
        """Learn weights from features X, shape (n, f), and grades y, shape (n,), which are whole numbers."""
        self.selection_ = self._learner.fit(self._data(X, y, group, qid, reset=True))
        self.coef_ = np.zeros(self.n_features_in_)
        self.coef_[list(self.selection_.columns)] = self.selection_.weights
        return self

    def predict(self, X: ArrayLike) -> FloatArray:
        """Score documents, shape (n,), by their features, shape (n, f); higher is better."""
        check_is_fitted(self)
        return weighted_sum(validate_data(self, _split(X)[0], dtype=np.float64, reset=False), self.coef_)

    def score(self, X: ArrayLike, y: ArrayLike, group: ArrayLike | None = None, qid: ArrayLike | None = None) -> float:
        """Return the mean of the learner's objective over queries."""
        check_is_fitted(self)
        data = self._data(X, y, group, qid, reset=False)
        return float(Objective.parse(self._learner.objective).evaluate(data, self.selection_.predict(data)).mean())

    @property
    def _learner(self) -> Learner:
        learner = ListwiseRegression("nDCG@10") if self.learner is None else self.learner
        if not hasattr(learner, "fit"):
            raise ParameterError(f"learner is {shown(learner)}: give one such as ListwiseRegression('nDCG@10')")
        return learner

    def _data(self, X: Any, y: Any, group: Any, qid: Any, *, reset: bool) -> RankingData:
        """Check the arrays as scikit-learn does, and put the rows of each query together."""
        X, own = _split(X)
        if sum(given is not None for given in (own, group, qid)) > 1:
            raise ParameterError("queries are given twice: keep one of qid=, group= and the column qid of X")
        values, grades = validate_data(self, X, y, dtype=np.float64, y_numeric=True, reset=reset)
        if group is not None:
            return RankingData.from_arrays(values, grades, group)
        qids = np.asarray(own if qid is None else qid)
        if qids.shape != grades.shape:
            raise ParameterError(
                f"{len(grades)} rows need their queries: qid=, one for each row, group=, or a column qid of X"
            )
        # NumPy makes the string "nan" of it in a list of strings.
        if qids.dtype.kind not in "biu" and (lacking := _MISSING & {*map(str, qids.tolist())}):
            raise ParameterError(f"qid has missing values ({min(lacking)}): give each row its query")
        queries, sizes = np.unique(qids, return_inverse=True, return_counts=True)[1:]
        order = np.argsort(queries, kind="stable")
        return RankingData.from_arrays(values[order], grades[order], sizes)


def _split(X: Any) -> tuple[Any, Any]:
    """Separate the column ``qid`` of a data frame from the features."""
    columns = list(getattr(X, "columns", ()))
    return (X[[name for name in columns if name != "qid"]], X["qid"]) if "qid" in columns else (X, None)
