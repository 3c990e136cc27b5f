"""What comes of the study `mrf`: comparisons with Holm's correction over all of them, and curves over all folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.evaluation import Comparison, Scores, compare, paired_test
from greylag.features.spec import Feature
from greylag.index import PositionalIndex
from greylag.ltr.linear import LinearModel
from greylag.ranking import FloatArray
from greylag_papers.metzler_2007.learning import BASELINES, LEARNED, Curve, Fold, Learned

if TYPE_CHECKING:
    from greylag_papers.metzler_2007.study import Settings

FIFTH = 5  # whether features after the fifth overfit is asked, as in Metzler (2007)


@dataclass(frozen=True)
class PooledCurve:
    """The objective against the number of features, over all folds.

    Parameters
    ----------
    training : the mean over folds of the mean on training queries, shape (rounds,).
    test : the mean over all judged test queries, shape (rounds,).
    after_fifth : of the test queries' values with 5 features minus those with the most; the mean, and p of the
        one-tailed paired t-test that the features after the fifth lower it; None where there are no more than 5.
    """

    training: FloatArray
    test: FloatArray
    after_fifth: tuple[float, float] | None


@dataclass(frozen=True)
class Findings:
    """All that the study found.

    Parameters
    ----------
    scores : by system, the first stage first.
    models : by system, one for each fold.
    learned : by fold.
    redundant, limited : as `mrf_learning.Experiment` has them.
    """

    settings: Settings
    index: PositionalIndex
    scores: Mapping[str, Scores]
    folds: tuple[Fold, ...]
    models: Mapping[str, Sequence[LinearModel]]
    learned: tuple[Learned, ...]
    redundant: Mapping[Feature, str]
    limited: int

    @cached_property
    def comparisons(self) -> dict[str, tuple[Comparison, ...]]:
        """By hand-picked model, every learned system against it by every measure (see `compare_all`)."""
        return compare_all(self.scores, [model.name for model in BASELINES], LEARNED)

    @cached_property
    def curves(self) -> dict[str, PooledCurve]:
        """By system, of those that select features."""
        rounds = self.settings.training.max_features
        return {
            system: pool([part.curves[system] for part in self.learned], rounds) for system in self.learned[0].curves
        }

    @property
    def means(self) -> dict[str, dict[str, float]]:
        """Means by system and measure."""
        return {system: scores.by_measure for system, scores in self.scores.items()}

    def as_dict(self) -> dict[str, Any]:
        """Folds, pool, comparisons and curves, as JSON takes them."""
        return {
            "redundant": list(self.redundant.values()),
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
                {"baseline": baseline, **asdict(comparison), "measure": str(comparison.measure)}
                for baseline, found in self.comparisons.items()
                for comparison in found
            ],
            "curves": {
                system: {**asdict(curve), "training": curve.training.tolist(), "test": curve.test.tolist()}
                for system, curve in self.curves.items()
            },
        }


def compare_all(
    scores: Mapping[str, Scores], baselines: Sequence[str], systems: Sequence[str]
) -> dict[str, tuple[Comparison, ...]]:
    """Every system against every baseline: one-tailed paired t-tests that it is better, Holm's correction over all."""
    from statsmodels.stats.multitest import multipletests

    found = {
        baseline: compare(
            {name: scores[name] for name in (baseline, *systems)}, baseline, alternative="greater"
        ).comparisons
        for baseline in baselines
    }
    p = [comparison.p for own in found.values() for comparison in own]
    corrected = iter(multipletests(p, method="holm")[1].tolist())
    return {
        baseline: tuple(replace(comparison, corrected_p=next(corrected)) for comparison in own)
        for baseline, own in found.items()
    }


def pool(curves: Sequence[Curve], rounds: int) -> PooledCurve:
    """One system's curves of all folds; a selection that stopped early keeps its last values up to `rounds`."""
    last = [np.minimum(np.arange(rounds), len(curve.training) - 1) for curve in curves]
    training = np.mean([np.array(curve.training)[own] for curve, own in zip(curves, last, strict=True)], axis=0)
    test = np.concatenate([curve.test[own] for curve, own in zip(curves, last, strict=True)], axis=1)
    after_fifth = None
    if rounds > FIFTH:
        lost = test[FIFTH - 1] - test[-1]
        after_fifth = float(lost.mean()), paired_test(lost, alternative="greater")[1]
    return PooledCurve(training, test.mean(axis=1), after_fifth)
