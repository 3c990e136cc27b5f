"""Findings of the study: comparisons with Holm's correction over all of them, and curves over all folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.evaluation import Scores, Significance, compare, holm, paired_test
from greylag.experiments import means
from greylag.ltr import LinearModel
from greylag_papers.metzler_2007.learning import (
    BASELINES,
    FIVE,
    LEARNED,
    RETRAINED,
    SELECTED,
    Curve,
    Experiment,
    Fold,
    Learned,
)


@dataclass(frozen=True)
class PooledCurve:
    """The objective against the number of features, over all folds."""

    training: NDArray[np.float64]  # shape (rounds,): means over training queries, averaged over folds
    test: NDArray[np.float64]  # shape (rounds,): means over all judged test queries
    # the mean over test queries with 5 features minus the mean with the most features, and p of the one-tailed paired
    # t-test that further features lower it. None if there are at most 5 features
    after_fifth: tuple[float, float] | None


@dataclass(frozen=True)
class Retraining:
    """What retraining after each round changes (the paper's Table 4)."""

    # training, test: the mean without retraining, the mean with retraining, and p of the two-sided paired t-test over
    # queries. A training query has its mean over the folds that train on it
    training: tuple[float, float, float]
    test: tuple[float, float, float]
    same: tuple[bool, ...]  # for each fold, whether the same features were selected


@dataclass(frozen=True)
class Findings:
    """Everything that the study found."""

    experiment: Experiment
    scores: Mapping[str, Scores]  # the first stage comes first
    folds: tuple[Fold, ...]
    models: Mapping[str, Sequence[LinearModel]]
    learned: tuple[Learned, ...]  # by fold

    @cached_property
    def means(self) -> dict[str, dict[str, float]]:
        """Means by system and measure."""
        return means(self.scores)

    @cached_property
    def comparisons(self) -> tuple[Significance, ...]:
        """For each hand-picked model, the comparisons of the learned systems with it by every measure."""
        return compare_all(self.scores, [model.name for model in BASELINES], LEARNED)

    @cached_property
    def retraining(self) -> Retraining:
        """The comparison of selection with and without retraining."""
        pair = SELECTED, RETRAINED
        by_query = [mean_by_query([part.training[system] for part in self.learned]) for system in pair]
        features = [[set(model.features) for model in self.models[system]] for system in pair]
        return Retraining(
            _paired(*by_query),
            _paired(*(self.scores[system].values[:, 0] for system in pair)),
            tuple(plain == other for plain, other in zip(*features, strict=True)),
        )

    @cached_property
    def curves(self) -> dict[str, PooledCurve]:
        """The curves of the systems that select features."""
        rounds = self.experiment.settings.training.max_features
        return {
            system: pool([part.curves[system] for part in self.learned], rounds) for system in self.learned[0].curves
        }

    def as_dict(self) -> dict[str, Any]:
        """Folds, pool, comparisons and curves, ready for JSON."""
        return {
            "redundant": list(self.experiment.redundant.values()),
            "folds": [
                {
                    "training": list(fold.training),
                    "test": list(fold.test),
                    "set_aside": list(part.set_aside),
                    "held_out": {system: curve.held_out for system, curve in part.curves.items()},
                }
                for fold, part in zip(self.folds, self.learned, strict=True)
            ],
            "comparisons": [
                {"baseline": test.baseline, **asdict(comparison), "measure": str(comparison.measure)}
                for test in self.comparisons
                for comparison in test.comparisons
            ],
            "retraining": asdict(self.retraining),
            "curves": {
                system: {**asdict(curve), "training": curve.training.tolist(), "test": curve.test.tolist()}
                for system, curve in self.curves.items()
            },
        }


def compare_all(
    scores: Mapping[str, Scores], baselines: Sequence[str], systems: Sequence[str]
) -> tuple[Significance, ...]:
    """One-tailed paired t-tests that systems are better than baselines, with Holm's correction over all of them."""
    tests = [
        compare({name: scores[name] for name in (baseline, *systems)}, baseline, alternative="greater")
        for baseline in baselines
    ]
    corrected = iter(holm([c.p for test in tests for c in test.comparisons]).tolist())
    return tuple(
        replace(test, comparisons=tuple(replace(c, corrected_p=next(corrected)) for c in test.comparisons))
        for test in tests
    )


def mean_by_query(folds: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """The mean of each query over the folds that have it, in the order of qids."""
    qids = sorted({qid for fold in folds for qid in fold})
    return np.array([np.mean([fold[qid] for fold in folds if qid in fold]) for qid in qids])


def _paired(without: NDArray[np.float64], retrained: NDArray[np.float64]) -> tuple[float, float, float]:
    return float(without.mean()), float(retrained.mean()), paired_test(retrained - without)[1]


def pool(curves: Sequence[Curve], rounds: int) -> PooledCurve:
    """Pool the curves of one system over folds; a selection that stopped early keeps its last values."""
    last = [np.minimum(np.arange(rounds), len(curve.training) - 1) for curve in curves]
    training = np.mean([np.array(curve.training)[own] for curve, own in zip(curves, last, strict=True)], axis=0)
    test = np.concatenate([curve.test[own] for curve, own in zip(curves, last, strict=True)], axis=1)
    after_fifth = None
    if rounds > FIVE:
        lost = test[FIVE - 1] - test[-1]
        after_fifth = float(lost.mean()), paired_test(lost, alternative="greater")[1]
    return PooledCurve(training, test.mean(axis=1), after_fifth)
