"""Baselines with tuned parameters, also in cross-validation: what a learned model has to beat."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import partial
from typing import Any

from greylag import __version__
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.baselines import Baseline
from greylag.ltr.counted import CountedRankings
from greylag.ltr.cross_validation import CrossValidation, rerank_by_fold, split_folds
from greylag.ltr.data import Qrels
from greylag.ltr.linear import LinearModel
from greylag.ltr.objectives import Objective
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.stack import GRID as STACK_GRID
from greylag.ltr.tuning import Grid, parameter_grid, tune_on_data
from greylag.ranking import Ranking, Run
from greylag.runtime.parallel import parallel_map
from greylag.runtime.progress import FEATURES, LEARNING, RANKING, Steps

_DEFAULTS = FeatureParameters()

GRID: Mapping[str, Sequence[Any]] = {name: STACK_GRID[name] for name in ("mu", "k1", "b", "fb_docs", "fb_terms")}
"""The values to try for each parameter."""
_LIMITS = ("b", 0.0), ("b", 1.0), ("k1", 0.0)


@dataclass(frozen=True)
class BaselineTuning:
    """How a baseline is tuned: the values of a grid that are best on training queries, and weights if it learns any.

    Parameters
    ----------
    baseline : Baseline
        Such as `greylag.ltr.baselines.BM25`.
    objective : Objective or str, default "AP"
        The measure to maximise.
    grid : mapping of str to sequence, default `GRID`
        The values to try for each of the parameters ``baseline.tuned``; others are ignored.
    base : FeatureParameters, default ``FeatureParameters()``
        The parameters that are not tuned.
    before : tuple of Baseline, default ()
        Baselines that are tuned before, one after the other. Each takes the parameters of the one before, so that
        ``BaselineTuning(baselines.RM3, before=(baselines.BM25,))`` is RM3 with the k1 and b of tuned BM25.

    Raises
    ------
    ParameterError
        If the grid lacks a tuned parameter, or a value is outside its domain.

    Examples
    --------
    >>> tuning = BaselineTuning(baselines.BM25, objective="nDCG@10")
    >>> tuning.fit(bm25_run, qrels, index).save("bm25.json")  # doctest: +SKIP
    >>> held_out = tuning.cross_validate(bm25_run, qrels, index, folds=5).run  # doctest: +SKIP
    """

    baseline: Baseline
    _: KW_ONLY
    objective: Objective | str = "AP"
    grid: Grid = field(default_factory=lambda: GRID)
    base: FeatureParameters = _DEFAULTS
    before: tuple[Baseline, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        for step in self._steps:
            parameter_grid(self.grid, step.tuned, self.base)

    @property
    def _steps(self) -> tuple[Baseline, ...]:
        return (*self.before, self.baseline)

    def fit(
        self, rankings: Run | Iterable[Ranking], qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> LinearModel:
        """The model that is best on these queries.

        Parameters
        ----------
        rankings : Run or iterable of Ranking
            The first stage, which the model reranks.
        qrels : mapping of qid to docid to grade
            Only queries with a relevant document are used.
        index : PositionalIndex
        n_jobs : int, optional
            Number of workers, each trying other parameters; the model does not depend on it.

        Returns
        -------
        LinearModel
            The first of the best models. Its provenance has the training score.

        Raises
        ------
        ParameterError
            If no query has a relevant document.
        """
        used = tuple(rankings.rankings if isinstance(rankings, Run) else rankings)
        return self._fit(self._counted(used, qrels, index), [one.qid for one in used], index, n_jobs)

    def cross_validate(
        self,
        rankings: Run | Iterable[Ranking],
        qrels: Qrels,
        index: PositionalIndex,
        *,
        folds: int = 5,
        seed: int = 0,
        n_jobs: int | None = None,
        tag: str = "tuned",
        progress: Callable[[str], None] | None = None,
    ) -> CrossValidation:
        """Rerank each query with parameters that were tuned on the other folds.

        Parameters
        ----------
        rankings, qrels, index, n_jobs
            As in `fit`.
        folds, seed, tag, progress
            As in `greylag.cross_validate`, whose folds are the same for the same queries and seed.

        Raises
        ------
        ParameterError
            If there are fewer queries than folds, or no query of a fold's training part has a relevant document.
        """
        first = rankings if isinstance(rankings, Run) else Run(tuple(rankings))
        parts = split_folds(list(first), folds, seed)
        counted = self._counted(first.rankings, qrels, index)
        work = partial(self._fit_fold, first=tuple(first), counted=counted, index=index, n_jobs=n_jobs)
        items = [({"fold": number, "folds": folds, "seed": seed}, test) for number, test in enumerate(parts, 1)]
        models, seconds = [], []
        with Steps(folds=FEATURES + LEARNING * (folds - 1), ranking=RANKING) as steps:
            steps.begin("folds")
            for model, spent in parallel_map(work, items, what="folds", n_jobs=n_jobs, coarse=True):
                models.append(model)
                seconds.append(spent)
                if progress is not None:
                    progress(f"fold {len(models)}: {self.summary(model)}")
            steps.begin("ranking")
            run = rerank_by_fold([MRFRanker(model, index) for model in models], parts, first, n_jobs=n_jobs, tag=tag)
        return CrossValidation(run, tuple(models), tuple(map(tuple, parts)), (0.0,) * folds, tuple(seconds))

    def summary(self, model: LinearModel) -> str:
        """The training score of a model and the parameters that were chosen, in a line."""
        chosen = [f"{name} {getattr(model.parameters, name):g}" for step in self._steps for name in step.tuned]
        return (
            f"{model.objective} {model.provenance['training_score']:.4f} on training queries with {', '.join(chosen)}"
        )

    def at_ends(self, model: LinearModel) -> list[str]:
        """The parameters whose chosen value is at an end of the grid, beyond which there may be a better one."""
        values = {name: self.grid[name] for step in self._steps for name in step.tuned}
        chosen = {name: getattr(model.parameters, name) for name in values}
        return [
            name
            for name, own in values.items()
            if len(own) > 1 and chosen[name] in (min(own), max(own)) and (name, chosen[name]) not in _LIMITS
        ]

    def _counted(self, rankings: tuple[Ranking, ...], qrels: Qrels, index: PositionalIndex) -> list[CountedRankings]:
        """For each step, its rankings, whose windows are counted once for all folds."""
        return [CountedRankings(rankings, qrels, index, step.features) for step in self._steps]

    def _fit_fold(
        self,
        fold: tuple[Mapping[str, int], Sequence[str]],
        *,
        first: Sequence[str],
        counted: Sequence[CountedRankings],
        index: PositionalIndex,
        n_jobs: int | None,
    ) -> tuple[LinearModel, float]:
        """The model of all queries but a fold's own, and the seconds that it took."""
        split, test = fold
        start = time.perf_counter()
        model = self._fit(counted, [qid for qid in first if qid not in test], index, n_jobs, split)
        return model, time.perf_counter() - start

    def _fit(
        self,
        counted: Sequence[CountedRankings],
        qids: Sequence[str],
        index: PositionalIndex,
        n_jobs: int | None,
        provenance: Mapping[str, Any] | None = None,
    ) -> LinearModel:
        objective, parameters = Objective.parse(self.objective), self.base
        for step, rankings in Steps.each([*zip(self._steps, counted, strict=True)], "baselines"):
            settings = parameter_grid(self.grid, step.tuned, parameters)
            best = tune_on_data(step, settings, rankings.data, qids, objective, n_jobs=n_jobs)
            parameters = best.parameters
        judged = {ranking.qid for ranking in counted[-1].rankings}
        made = {
            "greylag": __version__,
            "baseline": self.baseline.name,
            "tuned": [name for step in self._steps for name in step.tuned],
            "trained": self.baseline.trained,
            "training_score": best.training_score,
            **(provenance or {}),
            "queries": [qid for qid in qids if qid in judged],
        }
        return LinearModel(
            self.baseline.features, best.weights, parameters, objective=str(objective), provenance=made
        ).for_collection(index)
