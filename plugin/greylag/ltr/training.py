"""From rankings and judgements to a LinearModel, and cross-validation over queries."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from greylag import __version__
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import parse_feature
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import RankingData, distinct_features
from greylag.ltr.greedy import Learner, Selection
from greylag.ltr.linear import LinearModel
from greylag.ranking import Ranking

_log = logging.getLogger("greylag")


def training_data(
    rankings: Sequence[Ranking], qrels: Mapping[str, Mapping[str, int]], extractor: FeatureExtractor
) -> RankingData:
    """The rankings' features and grades, for the queries that have a relevant document, with a progress bar."""
    from tqdm import tqdm

    shown = tqdm(rankings, desc="features", unit="query", disable=None)
    data = RankingData.from_rankings(shown, qrels, [str(spec) for spec in extractor.specs], extractor)
    limited = sum(extractor.limits(ranking.query) for ranking in rankings)
    if limited:
        largest = extractor.parameters.max_clique
        _log.info("FD's cliques have %d terms at most; queries with more terms: %d", largest, limited)
    return data


def train(
    data: RankingData,
    extractor: FeatureExtractor,
    learner: Learner,
    *,
    n_jobs: int = 1,
    provenance: Mapping[str, Any] | None = None,
) -> LinearModel:
    """The model that `learner` makes of the data's features, trivial and duplicate ones set aside."""
    candidates, set_aside = useful_features(data)
    selection = learner.fit(candidates, n_jobs=n_jobs)
    more = {"set_aside": set_aside, **(provenance or {})}
    return selected_model(selection, candidates, learner, extractor.parameters, extractor.index, more)


def useful_features(data: RankingData) -> tuple[RankingData, list[str]]:
    """The data without features that are trivial or duplicates by value, and why each of these goes.

    Raises
    ------
    ParameterError
        Where no feature is left.
    """
    kept, dropped = distinct_features(data)
    if not kept:
        raise ParameterError("every feature is constant within every training query: there is nothing to select")
    return data.select_features(kept), list(dropped.values())


def selected_model(
    selection: Selection,
    data: RankingData,
    learner: Learner,
    parameters: FeatureParameters,
    index: PositionalIndex,
    provenance: Mapping[str, Any],
) -> LinearModel:
    """The model of what `learner` selected from `data`, whose features were computed with `parameters`."""
    options = {name: value for name, value in asdict(learner).items() if name != "objective"}
    return LinearModel(
        features=tuple(parse_feature(data.names[column]) for column in selection.columns),
        weights=selection.weights,
        parameters=parameters,
        objective=str(learner.objective),
        training_scores=selection.training_scores,
        provenance={
            "greylag": __version__,
            "learner": type(learner).__name__,
            **options,
            "queries": list(data.qids),
            "candidates": len(data.names),
            **provenance,
        },
    ).for_collection(index)


def split_folds(qids: Sequence[str], n_folds: int, seed: int) -> list[list[str]]:
    """`n_folds` parts of the queries, drawn at random, that differ in size by one at most; each in the given order.

    Raises
    ------
    ParameterError
        Where there are fewer queries than folds.
    """
    if not 2 <= n_folds <= len(qids):
        raise ParameterError(f"{len(qids)} queries cannot be split into {n_folds} folds")
    fold_of = np.random.default_rng(seed).permutation(len(qids)) % n_folds
    return [[qid for qid, own in zip(qids, fold_of, strict=True) if own == fold] for fold in range(n_folds)]
