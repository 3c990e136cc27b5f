"""Training: from rankings and judgements to a linear model."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

from greylag import __version__
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature
from greylag.ltr.data import Qrels, RankingData, distinct_features
from greylag.ltr.learner import Learner, Selection
from greylag.ltr.linear import LinearModel
from greylag.ranking import Ranking, Run

_log = logging.getLogger("greylag")


def training_data(
    rankings: Run | Sequence[Ranking], qrels: Qrels, extractor: FeatureExtractor, *, n_jobs: int | None = None
) -> RankingData:
    """Extract training data with a progress bar; see `RankingData.from_rankings`."""
    used = rankings.rankings if isinstance(rankings, Run) else rankings
    data = RankingData.from_rankings(used, qrels, extractor, n_jobs=n_jobs)
    limited = sum(extractor.limits(ranking.query) for ranking in used)
    if limited:
        largest = extractor.parameters.max_clique
        _log.info("cliques of FD are limited to %d terms; queries with more terms: %d", largest, limited)
    return data


def train(
    data: RankingData, learner: Learner, *, n_jobs: int | None = None, provenance: Mapping[str, Any] | None = None
) -> LinearModel:
    """Train a linear model, leaving out trivial and duplicate features.

    Parameters
    ----------
    data : RankingData
        Extracted by a `FeatureExtractor`, for instance by `training_data`.
    learner : Learner
        Such as `GreedySelection` or `CoordinateAscent`.
    n_jobs : int, optional
        Number of workers; the model does not depend on it.
    provenance : mapping, optional
        Entries to add to the model's provenance. Serialisable as JSON.

    Raises
    ------
    ParameterError
        If the data was not extracted by a `FeatureExtractor`, or every feature is trivial.
    """
    candidates, set_aside = useful_features(data)
    selection = learner.fit(candidates, n_jobs=n_jobs)
    return selected_model(selection, candidates, learner, {"set_aside": set_aside, **(provenance or {})})


def useful_features(data: RankingData) -> tuple[RankingData, list[str]]:
    """The data without features that are trivial or duplicates by value, and the reasons for dropping them.

    Raises
    ------
    ParameterError
        If no feature is left.
    """
    kept, dropped = distinct_features(data)
    if not kept:
        raise ParameterError("every feature is constant within every training query: there is nothing to select")
    return data.select_features(kept), list(dropped.values())


def selected_model(
    selection: Selection, data: RankingData, learner: Learner, provenance: Mapping[str, Any]
) -> LinearModel:
    """The model of a learner's selection from `data`.

    Raises
    ------
    ParameterError
        If the data has no origin.
    """
    if data.origin is None:
        raise ParameterError(
            "these features come from a file, so a model could not compute them: train on data from a FeatureExtractor"
        )
    options = {name: value for name, value in asdict(cast(Any, learner)).items() if name != "objective"}
    return LinearModel(
        features=tuple(cast(Feature, data.specs[column]) for column in selection.columns),
        weights=selection.weights,
        parameters=data.origin.parameters,
        objective=str(learner.objective),
        training_scores=selection.entry_scores,
        collection=asdict(data.origin.collection),
        fingerprint=data.origin.fingerprint,
        provenance={
            "greylag": __version__,
            "learner": type(learner).__name__,
            **options,
            "queries": list(data.qids),
            "candidates": len(data.specs),
            **provenance,
        },
    )
