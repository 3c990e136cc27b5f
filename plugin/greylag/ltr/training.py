"""From rankings and judgements to a LinearModel, and cross-validation over queries."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from greylag import __version__
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.ltr.dataset import RankingData, distinct_features
from greylag.ltr.greedy import GreedySelection
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
        _log.info("%d queries have more than %d terms: FD's cliques are limited to %d terms", limited, largest, largest)
    return data


def train(
    data: RankingData,
    extractor: FeatureExtractor,
    learner: GreedySelection,
    *,
    n_jobs: int = 1,
    provenance: Mapping[str, Any] | None = None,
) -> LinearModel:
    """The model that `learner` selects from the data's features, trivial and duplicate ones set aside."""
    kept, dropped = distinct_features(data)
    for reason in dropped.values():
        _log.debug("set aside: %s", reason)
    if not kept:
        raise ParameterError("every feature is constant within every training query: there is nothing to select")
    selection = learner.fit(data.select_features(kept), n_jobs=n_jobs)
    index = extractor.index
    return LinearModel(
        features=tuple(FeatureSpec.parse(data.names[kept[column]]) for column in selection.columns),
        weights=selection.weights,
        parameters=extractor.parameters,
        objective=str(learner.objective),
        training_scores=selection.training_scores,
        collection={"documents": index.n_documents, "tokens": index.n_tokens, "average_length": index.average_length},
        fingerprint=index.fingerprint,
        provenance={
            "greylag": __version__,
            "queries": list(data.qids),
            "pool": len(data.names),
            "candidates": len(kept),
            "max_features": learner.max_features,
            "epsilon": learner.epsilon,
            "retrain": learner.retrain,
            **(provenance or {}),
        },
    )


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
