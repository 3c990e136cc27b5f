"""The cost in effectiveness, and the saving in training time, of narrowing the pool before greedy selection.

The cross-validation of the main study, once with the whole pool and once with each preselection, on the same folds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from greylag.errors import ParameterError
from greylag.evaluation import compare, evaluate
from greylag.learning import GreedySelection, MMRPreselection, RankingData
from greylag.recipes import MRFRecipe, cross_validate
from greylag.recipes.recipe import CrossValidation, PreparedFeatures
from greylag.recipes.spelling import parse_model
from greylag.reports import table, to_dict
from greylag.reports.charts import result
from greylag.reports.report import Section
from greylag.studies import config
from greylag.studies.collection import CollectionSettings, OpenCollection, open_collection
from greylag.studies.pipeline import Training
from greylag.studies.study import Context, Outcome, Study
from greylag.studies.tables import Table, comparison_table, means, means_table
from greylag_papers.texts import read_texts

WHOLE = "whole pool"
_TEXTS = read_texts(__file__)


def read_mrf(text: str, objective: str = "AP") -> MRFRecipe:
    """The recipe of a model of features."""
    recipe = parse_model(text, objective).recipe
    if not isinstance(recipe, MRFRecipe):
        raise ParameterError(f"{text!r:.60} has no features to preselect: use mrf, without tune")
    return recipe


class Settings(CollectionSettings):
    """A collection, a model of features, and how its pool is narrowed."""

    model: Annotated[str, config.readable_by(read_mrf)] = "mrf"
    """The model, as for greylag train --model: mrf, with options as in mrf(max_features=3)."""
    training: Training = Training()
    preselect: Annotated[tuple[Annotated[str, config.readable_by(MMRPreselection.parse)], ...], Field(min_length=1)] = (
        "mmr(n_features=8)",
        "mmr(n_features=16)",
        "mmr(n_features=32)",
        "mmr(n_features=16,relevance_weight=1)",
    )
    """Preselections, as for greylag train --preselect."""
    measures: tuple[config.MeasureName, ...] = ("AP",)
    """Measures of relevance."""


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Train with each preselection, and compare scores and times with those of the whole pool."""
    training, first = settings.training, opened.first
    tried = (None, *map(MMRPreselection.parse, settings.preselect))
    trials: dict[str, CrossValidation] = {}
    whole = read_mrf(settings.model, training.objective)
    data = whole.prepare(first, opened.qrels, opened.index, n_jobs=context.n_jobs).data
    warm_up(data)
    for preselection in tried:
        name = WHOLE if preselection is None else str(preselection)
        recipe = replace(whole, preselection=preselection)
        trials[name] = cross_validate(
            recipe,
            first,
            opened.qrels,
            opened.index,
            folds=training.folds,
            seed=training.seed,
            n_jobs=context.n_jobs,
            prepared=PreparedFeatures(recipe, data),
        )
        context.progress(f"{name}: {training.folds} models in {sum(trials[name].seconds):.1f} s")
    runs = {first.tag: first, **{name: trial.run for name, trial in trials.items()}}
    scores = {name: evaluate(ranked, opened.qrels, settings.measures) for name, ranked in runs.items()}
    significance = compare({name: scores[name] for name in trials}, WHOLE)
    chosen = {name: [list(map(str, model.features)) for model in trial.models] for name, trial in trials.items()}
    totals = means_table("Means over queries", means(scores))
    differences = comparison_table(f"Differences from the {WHOLE}", significance)
    times = {name: sum(trial.seconds) for name, trial in trials.items()}
    return Outcome(
        scores=means(scores),
        results={"features": chosen, **to_dict(scores, significance)},
        tables=[table({name: scores[name] for name in trials}, significance), time_table(times)],
        title=f"Preselection: {settings.name}",
        sections=[
            result([(scores, significance)], tables=[totals]),
            Section("Effectiveness", _TEXTS["preselection: effectiveness"], [differences]),
            Section("Training time", _TEXTS["preselection: time"], [time_table(times)]),
            Section("Features", "The features of each fold's model.", [feature_table(chosen)]),
        ],
        seconds=times,
        provenance={"fingerprint": opened.index.fingerprint},
    )


def warm_up(data: RankingData) -> None:
    """Load everything that is compiled or imported on first use, so that it is not timed as training."""
    narrowed = MMRPreselection(1).select(data.select_features(range(2)))
    GreedySelection("AP", max_features=1).fit(narrowed)


def time_table(times: Mapping[str, float]) -> Table:
    """Seconds of preselection and training over all folds, and the speedup over the whole pool."""
    rows = [(name, spent, times[WHOLE] / spent) for name, spent in times.items()]
    caption = "Seconds for the models of all folds, from computed features"
    return Table(caption, ("", "seconds", "speedup"), rows, decimals=2)


def feature_table(chosen: Mapping[str, list[list[str]]]) -> Table:
    """The features of each fold's model, in the order of selection."""
    rows: list[tuple[str | float, ...]] = [
        (name, fold, ", ".join(features)) for name, models in chosen.items() for fold, features in enumerate(models, 1)
    ]
    return Table("In the order of selection", ("", "fold", "features"), rows)


STUDY = Study(Settings, open_collection, run)
