"""What several systems score together where the best one is picked for each query.

Of models that are meant to differ, the question is how good the best of their M predictions is (pick-best, an oracle:
what a user gets who looks at all of them), how good the second best, and how often each model is the one that wins.

References
----------
Guzman-Rivera, Batra and Kohli, Multiple choice learning: learning to produce multiple structured outputs, NIPS 2012.
Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV 2016.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.evaluation.measures import Scores
from greylag.evaluation.significance import DECIMALS, check_comparable
from greylag.ranking import FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PickBest:
    """The scores of M systems on n queries, by their rank on each query.

    Parameters
    ----------
    ordered : shape (n, M); a row has a query's scores, best first.
    wins : shape (M,), in sum 1: the share of queries on which each system is the best; of equally good systems each has
        an equal part of the query.
    """

    ordered: FloatArray
    wins: FloatArray

    def at(self, rank: int) -> float:
        """The mean over the queries of the `rank`-th best score; rank 1 is pick-best.

        Raises
        ------
        ParameterError
            A rank that is not from 1 to M.
        """
        if not 1 <= rank <= self.ordered.shape[1]:
            raise ParameterError(f"rank has to be from 1 to {self.ordered.shape[1]}, not {rank}")
        return float(self.ordered[:, rank - 1].mean())


def pick_best(values: FloatArray, *, larger: bool) -> PickBest:
    """Order the systems' scores on each query.

    Parameters
    ----------
    values : shape (M, n), finite; M systems' scores on n queries, M and n >= 1.
    larger : whether a larger score is a better one; False for losses. For wins, scores that agree when rounded to 12
        decimals are equal.

    Raises
    ------
    ParameterError
        Values of another shape, or not finite.
    """
    if values.ndim != 2 or not values.size or not np.isfinite(values).all():
        raise ParameterError(
            "scores have to be of shape (systems, queries), with one or more of each, and finite: these have the shape "
            f"{values.shape} and {int((~np.isfinite(values)).sum())} that are not finite"
        )
    sign = -1.0 if larger else 1.0
    losses = np.round(sign * values, DECIMALS)
    best = losses == losses.min(axis=0)
    return PickBest(sign * np.sort(sign * values.T, axis=1), (best / best.sum(axis=0)).mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class RunChoice:
    """What there is to gain from choosing among M runs, query by query.

    Parameters
    ----------
    scores : "best of M", "rank 2 of M", ..., "rank M of M": on each query and by each measure, the best of the runs'
        scores, the second best, and so on; "mean of M": their mean. All as if they were runs.
    wins : each run's share of wins by each measure, shape (measures,).
    """

    scores: Mapping[str, Scores]
    wins: Mapping[str, FloatArray]


def pick_best_runs(scores: Mapping[str, Scores]) -> RunChoice:
    """`pick_best` of runs by each of their measures, in its own direction.

    Parameters
    ----------
    scores : by the runs' names, at least two.

    Raises
    ------
    ParameterError
        A single run; scores of different queries or measures.
    """
    check_comparable(scores)
    if len(scores) == 1:
        raise ParameterError(f"pick-best chooses among runs, and there is only {next(iter(scores))}; give two or more")
    first, M = next(iter(scores.values())), len(scores)
    values = np.stack([run.values for run in scores.values()])
    found = [
        pick_best(values[:, :, column], larger=not measure.family.lower_is_better)
        for column, measure in enumerate(first.measures)
    ]
    missing = tuple(qid for qid in first.qids if all(qid in run.missing for run in scores.values()))
    ranked = np.stack([one.ordered for one in found], axis=2)
    parts = {f"rank {rank} of {M}" if rank > 1 else f"best of {M}": ranked[:, rank - 1] for rank in range(1, M + 1)}
    parts[f"mean of {M}"] = values.mean(axis=0)
    return RunChoice(
        {name: Scores(first.measures, first.qids, part, missing, ()) for name, part in parts.items()},
        dict(zip(scores, np.stack([one.wins for one in found], axis=1), strict=True)),
    )
