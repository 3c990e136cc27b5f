"""Stages: by a linear model, also of runs to fuse, by RM3, by any estimator;
the query left out of its results, and documents by their best passages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from greylag.base import (
    FloatArray,
    ModelError,
    ParameterError,
    Ranking,
    Stage,
    check_counts,
    check_fractions,
    guided,
    report_missing,
    shown,
)
from greylag.evaluation import PooledRankings
from greylag.features import FeatureExtractor, FeatureParameters, FeatureSpec, FusedRuns
from greylag.index import PositionalIndex, check_index
from greylag.learning import check_collection, weighted_sum
from greylag.rankers.model import RankingModel

RM3_PARTS = FeatureSpec("FI", "term", "BM25"), FeatureSpec("FI", "expansion", "BM25")
_DEFAULTS = FeatureParameters()


@guided
@dataclass(frozen=True)
class ModelRanker(Stage):
    """Ranks documents by a linear model, computing only the features of the model. Ties keep the incoming order.

    Queries are shortened as those that the model was trained on (`RankingModel.query_form`); rankings keep their text.

    A document outside the index scores as the worst known document in every feature; the others keep their order.

    Parameters
    ----------
    model : RankingModel, or the str or Path of its file
    index : PositionalIndex, optional
        None if no feature of the model needs it, as those of runs do not.
    transfer : bool, default False
        Whether to allow a model that was trained on another collection. Features use the statistics of `index`.
    """

    needs = frozenset({"index"})
    readers: ClassVar = {"model": RankingModel.load}

    model: RankingModel
    index: PositionalIndex | None = None
    _: KW_ONLY
    transfer: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.model, str | Path):
            object.__setattr__(self, "model", RankingModel.load(self.model))
        if self.model.runs:
            raise ModelError(f"the model fuses the runs {', '.join(self.model.runs)}: use FusionRanker, or --model")
        if self.index is not None:
            check_index("ModelRanker", self.index)
            object.__setattr__(self, "model", self.model.at_length(self.index.average_length))
            check_collection(self.model.fingerprint, self.index, transfer=self.transfer)
        for column in self.model.columns:
            column.bind(self.index)  # refuses a column without values before anything is ranked
        _ = self._extractor  # refuses features that need an index

    @cached_property
    def _extractor(self) -> FeatureExtractor:
        return FeatureExtractor(self.index, self.model.features, self.model.parameters)

    @property
    def reads_query(self) -> bool:  # type: ignore[override]
        """Whether a feature does."""
        return any(feature.reads_query for feature in self.model.features)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents by the model."""
        return ranking.rescore(self.scores(ranking))

    def scores(self, ranking: Ranking) -> FloatArray:
        """Score documents in the order of the ranking, shape (n,)."""
        values = self._extractor(self.model.query_form.apply(ranking), self.model.weights)
        return weighted_sum(values, np.array(self.model.weights))


@dataclass(frozen=True)
class FusionRanker:
    """Fuses rankings of a query by a model of runs: a method for `greylag.fuse_runs` and `greylag.PooledSources`.

    All documents that a run has are ranked; a run that lacks one adds nothing to its score. Ties go to the document
    that appears in an earlier ranking, then to the one that is ranked higher there.

    Parameters
    ----------
    model : RankingModel
        With `RankingModel.runs`, such as `greylag.learn_fusion` gives.
    """

    model: RankingModel

    def __post_init__(self) -> None:
        if not self.model.runs:
            raise ModelError("the model reranks a run and fuses none: use ModelRanker")

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs, in the order of the rankings to fuse."""
        return self.model.runs

    def __call__(self, rankings: Sequence[Ranking], /) -> Ranking:
        """Fuse rankings, one of each run in the order of the model's runs, empty where a run has no documents."""
        names = self.model.runs
        if len(rankings) != len(names):
            raise ParameterError(f"the model fuses {', '.join(names)}: pass {len(names)} rankings in this order")
        pooled = PooledRankings(rankings)
        columns = [
            feature.of_pooled(pooled, names) for feature in self.model.features if isinstance(feature, FusedRuns)
        ]
        return pooled.rank(weighted_sum(np.column_stack(columns), np.array(self.model.weights)))


@dataclass(frozen=True)
class LeaveOutSelf(Stage):
    """Removes the document whose identifier is that of the query; all others keep their order and scores.

    For collections whose queries are documents of their own, such as ArguAna: BEIR's evaluation ignores the query among
    its own results, and Pyserini removes it by ``--remove-query``.
    """

    reads_query = False

    def __call__(self, ranking: Ranking) -> Ranking:
        """Remove the query's own document."""
        return ranking.select(np.array([docid != ranking.qid for docid in ranking.docids], dtype=bool))


@dataclass(frozen=True)
class MaxPassage(Stage):
    """Ranks documents by their best passages, as Pyserini's ``--max-passage``.

    The document of a passage is its identifier up to the first `delimiter`, such as "d1" of "d1#3". Its first passage
    gives rank and score; later stages know documents, and no passages.

    Parameters
    ----------
    delimiter : str, default "#"
        What separates a document's identifier from the passage's. An identifier without it is a document's.
    hits : int >= 1, optional
        The number of documents to keep; by default all. Pyserini's ``--max-passage-hits`` is 100 by default.
    """

    reads_query = False

    delimiter: str = "#"
    hits: int | None = None

    def __post_init__(self) -> None:
        if not self.delimiter:
            raise ParameterError("delimiter is empty: give the characters before a passage's number, such as '#'")
        if self.hits is not None:
            check_counts(hits=self.hits)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents of one query."""
        first: dict[str, float] = {}
        for docid, score in zip(ranking.docids, ranking.scores.tolist(), strict=True):
            if not (document := docid.partition(self.delimiter)[0]):
                raise ParameterError(f"query {ranking.qid}: nothing is before {self.delimiter!r} in {docid!r}")
            first.setdefault(document, score)
        documents = Ranking(ranking.qid, ranking.query, tuple(first), np.array([*first.values()]))
        return documents if self.hits is None else documents.head(self.hits)


@dataclass(frozen=True)
class RM3Stage(Stage):
    """Rerank by the query expanded with a relevance model; ties keep the incoming order.

    score(D) = sum over t of (w P(t|Q) + (1 - w) P(t|R)) BM25(t, D), with w the weight of the original query, P(t|Q) the
    share of t among the query's terms, and P(t|R) the relevance model of `greylag.features.cliques.relevance_models`.
    `greylag.index.RM3Search` says how greylag's three kinds of RM3 differ.

    Parameters
    ----------
    index : PositionalIndex
    original_weight : float in [0, 1], default 0.5
        w; 1 is BM25.
    k1, b, fb_docs, fb_terms, mu
        As in `FeatureParameters`; `mu` is that of the relevance model.

    References
    ----------
    Abdul-Jaleel et al., UMass at TREC 2004: novelty and HARD, TREC 2004.
    """

    needs = frozenset({"index"})

    index: PositionalIndex
    _: KW_ONLY
    original_weight: float = 0.5
    k1: float = _DEFAULTS.k1
    b: float = _DEFAULTS.b
    fb_docs: int = _DEFAULTS.fb_docs
    fb_terms: int = _DEFAULTS.fb_terms
    mu: float = _DEFAULTS.mu

    def __post_init__(self) -> None:
        check_fractions(original_weight=self.original_weight)
        _ = self._extractor  # checks the other parameters

    @cached_property
    def _extractor(self) -> FeatureExtractor:
        parameters = FeatureParameters(k1=self.k1, b=self.b, fb_docs=self.fb_docs, fb_terms=self.fb_terms, mu=self.mu)
        # The expansion, which is most of the work, has no weight beside an original query of weight 1.
        features = RM3_PARTS if self.original_weight < 1 else RM3_PARTS[:1]
        return FeatureExtractor(self.index, features, parameters)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents of one query."""
        by_query, *by_feedback = self._extractor(ranking).T
        # The feature sums over the terms of the query, and P(t|Q) are their shares.
        scores = self.original_weight * by_query / max(1, len(self.index.query_terms(ranking.query)))
        for feedback in by_feedback:
            scores = scores + (1 - self.original_weight) * feedback
        return ranking.rescore(scores)


@guided
@dataclass(frozen=True)
class EstimatorRanker(Stage):
    """Ranks documents by the predictions of an estimator. Ties keep the incoming order.

    A classifier ranks by `decision_function` if it has two classes and this function, else by the expected label, the
    sum over labels c of c P(c | document) from `predict_proba`; all others by `predict`. A document outside the index
    is given the lowest prediction of the query's other documents, or 0 if there are none. `ModelError` if the estimator
    is not fitted, does not give one finite score for each document, or has labels that are not numbers.

    Parameters
    ----------
    estimator : object with `predict`
        Fitted on the extractor's features, in the same order, such as `X`, `y` and `groups` of a `RankingData`.
    extractor : FeatureExtractor
    """

    estimator: Any
    extractor: FeatureExtractor

    def __post_init__(self) -> None:
        if not isinstance(self.extractor, FeatureExtractor):
            raise ParameterError(
                f"the extractor is {shown(self.extractor)}: write EstimatorRanker(estimator, "
                "FeatureExtractor(index, features))"
            )
        scoring_method(self.estimator)

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents by the predictions."""
        # An estimator may give any value to made-up features, so that it is asked about known documents only.
        known = self.extractor.knows(ranking.docids)
        scores = np.zeros(len(ranking))
        if known.any():
            scores[known] = self._predict(ranking.select(known))
            scores[~known] = scores[known].min()
        lost = [docid for docid, is_known in zip(ranking.docids, known, strict=True) if not is_known]
        report_missing("they get the lowest prediction", ranking.qid, lost, len(ranking))
        return ranking.rescore(scores)

    def _predict(self, ranking: Ranking) -> FloatArray:
        method, labels = scoring_method(self.estimator)
        call = f"{type(self.estimator).__name__}.{method}"
        try:
            predicted = np.asarray(getattr(self.estimator, method)(self.extractor(ranking)), dtype=np.float64)
        except (TypeError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise ModelError(f"{call} refuses the features of query {ranking.qid}: {reason}") from error
        scores = predicted
        # With an objective of one's own, LightGBM's predict_proba gives a score for each document
        if labels is not None and predicted.shape[1:] == labels.shape:
            # Of several labels per document, each has a probability of its own, and their sum means nothing.
            if not np.allclose(predicted.sum(axis=1), 1, atol=1e-3):
                raise ModelError(f"{call} gives probabilities that do not sum to 1: fit it to one grade per document")
            scores = weighted_sum(predicted, labels)
        if scores.shape != (len(ranking),) or not np.isfinite(scores).all():
            raise ModelError(
                f"{call} gave an array of shape {predicted.shape} with {np.count_nonzero(np.isfinite(predicted))} "
                f"finite numbers: it must give one for each of the {len(ranking)} documents of query {ranking.qid}"
            )
        return scores


def scoring_method(estimator: Any) -> tuple[str, FloatArray | None]:
    """Return the method of an estimator that scores, and a classifier's labels if it gives their probabilities."""
    name, kind = type(estimator).__name__, getattr(estimator, "_estimator_type", None)
    if isinstance(estimator, type) or not hasattr(estimator, "predict"):
        raise ModelError(f"{shown(estimator)} predicts nothing: give one such as LinearRegression().fit(X, grades)")
    if hasattr(estimator, "__sklearn_tags__"):
        from sklearn.exceptions import NotFittedError
        from sklearn.utils.validation import check_is_fitted

        try:
            check_is_fitted(estimator)
            kind = estimator.__sklearn_tags__().estimator_type
        except NotFittedError:  # an AttributeError, too
            raise ModelError(f"{name} is not fitted: call its fit(features, grades)") from None
        except (AttributeError, TypeError):  # with mixins of scikit-learn, but without its BaseEstimator or `fit`
            pass
    # LightGBM's and XGBoost's rankers are of no type that scikit-learn has.
    if kind not in ("classifier", "regressor", "ranker", None):
        raise ModelError(f"{name} is of the type {kind}, which learns no grades: give a regressor or a classifier")
    if kind != "classifier" and not hasattr(estimator, "predict_proba"):
        return "predict", None
    classes = getattr(estimator, "classes_", ())
    if isinstance(classes, list) or np.ndim(classes) != 1 or len(classes) < 2:
        raise ModelError(f"{name} has the classes {shown(classes)}: fit it to at least two grades, one per document")
    labels = np.asarray(classes)
    if labels.dtype.kind not in "biuf":  # which of them is the better one, text does not say
        raise ModelError(
            f"{name} has the classes {', '.join(map(str, labels[:5]))}: fit it to grades, which are numbers"
        )
    if len(labels) == 2 and hasattr(estimator, "decision_function"):
        return "decision_function", None
    if not hasattr(estimator, "predict_proba"):
        raise ModelError(f"{name}.predict gives classes, which do not rank: give a classifier with predict_proba")
    return "predict_proba", labels.astype(np.float64)
