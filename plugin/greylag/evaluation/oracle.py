"""Pick-best evaluation: the scores of M systems if the best one could be chosen for each query.

Pick-best is an oracle, an upper bound on what a user gains by looking at all M predictions. It is reported with the
score of the second best system and so on, and with the proportion of queries that each system wins.

References
----------
Guzman-Rivera, Batra and Kohli, Multiple choice learning: learning to produce multiple structured outputs, NIPS 2012.
Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from greylag.core.tables import Printed, Table
from greylag.errors import ParameterError
from greylag.evaluation.scores import Scores
from greylag.evaluation.significance import DECIMALS, check_comparable
from greylag.ranking import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PickBest:
    """The scores of M systems on n queries, sorted for each query."""

    ordered: FloatArray  # the scores of each query, best first, shape (n, M)
    wins: FloatArray  # the proportion of queries on which each system is best; ties share a query; shape (M,)

    def at(self, rank: int) -> float:
        """Return the mean over queries of the `rank`-th best score; rank 1 is pick-best."""
        if not 1 <= rank <= self.ordered.shape[1]:
            raise ParameterError(f"rank must be between 1 and {self.ordered.shape[1]}, not {rank}")
        return float(self.ordered[:, rank - 1].mean())


def pick_best(values: FloatArray, *, larger: bool) -> PickBest:
    """Sort the scores of M systems on each of n queries, and count the wins of each system.

    Parameters
    ----------
    values : array, shape (M, n)
        Finite scores; M and n are at least 1.
    larger : bool
        Whether larger scores are better; False for losses. Scores that agree to 12 decimals tie for a win.
    """
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise ParameterError(
            "scores must be finite and of shape (systems, queries), with at least one of each; these have shape "
            f"{values.shape} with {int((~np.isfinite(values)).sum())} values that are not finite"
        )
    sign = -1.0 if larger else 1.0
    losses = np.round(sign * values, DECIMALS)
    best = losses == losses.min(axis=0)
    return PickBest(sign * np.sort(sign * values.T, axis=1), (best / best.sum(axis=0)).mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunChoice(Printed):
    """The potential gain from choosing among M runs for each query."""

    # Hypothetical runs: "best of M", "rank 2 of M", ..., "rank M of M" take the best score on each query by each
    # measure, the second best, and so on; "mean of M" takes the mean.
    scores: Mapping[str, Scores]
    wins: Mapping[str, FloatArray]  # by name of run, its proportion of wins by each measure, shape (measures,)

    def _table(self) -> Table:
        best = next(iter(self.scores.values()))
        rows = [(name, *scores.means.tolist()) for name, scores in self.scores.items()]
        return Table(f"choice among {len(self.wins)} runs", ("", *map(str, best.measures)), rows)


def pick_best_runs(scores: Mapping[str, Scores]) -> RunChoice:
    """Apply `pick_best` to the runs by each measure, in the direction of the measure.

    Parameters
    ----------
    scores : mapping
        Scores by name of run, for at least two runs.
    """
    check_comparable(scores)
    if len(scores) == 1:
        raise ParameterError(f"pick-best needs at least two runs to choose from; there is only {next(iter(scores))}")
    first, M = next(iter(scores.values())), len(scores)
    values = np.stack([run.values for run in scores.values()])
    picked = [
        pick_best(values[:, :, column], larger=not measure.family.lower_is_better)
        for column, measure in enumerate(first.measures)
    ]
    missing = tuple(qid for qid in first.qids if all(qid in run.missing for run in scores.values()))
    ranked = np.stack([best.ordered for best in picked], axis=2)
    values_of = {f"rank {rank} of {M}" if rank > 1 else f"best of {M}": ranked[:, rank - 1] for rank in range(1, M + 1)}
    values_of[f"mean of {M}"] = values.mean(axis=0)
    if taken := values_of.keys() & scores.keys():
        raise ParameterError(f"a run is named {min(taken)!r}, like a summary of the {M} runs: rename it")
    return RunChoice(
        {name: Scores(first.measures, first.qids, rows, missing, ()) for name, rows in values_of.items()},
        dict(zip(scores, np.stack([best.wins for best in picked], axis=1), strict=True)),
    )
