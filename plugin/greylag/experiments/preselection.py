"""What narrowing the pool before greedy selection costs in effectiveness, and saves in training time.

The main study's cross-validation, once with the whole pool and once with each preselection, on the same folds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import Field

from greylag.evaluation import Scores, Significance, compare, evaluate, table, to_dict
from greylag.experiments import config
from greylag.experiments.collection import open_collection
from greylag.experiments.pipeline import Features, FirstStage, Training
from greylag.experiments.report import (
    Section,
    Table,
    as_text,
    check_dependencies,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import named_pool
from greylag.features.weighting import FeatureParameters
from greylag.files import write_text
from greylag.index.positional import PositionalIndex
from greylag.ltr.cross_validation import CrossValidation, cross_validate
from greylag.ltr.data import RankingData
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.training import training_data
from greylag.ranking import run_step
from greylag.trec import read_qrels, read_topics

WHOLE = "whole pool"
_EFFECTIVENESS = """\
Each query is ranked by a model that was trained on the queries of the other folds. mmr:N keeps N features of the pool
by MMR with the relevance weight 0.5, mmr:N:W with W; with 1 these are the N of highest information gain.

p is of the paired t-test over queries, two-sided, with Holm's correction over the table. On CACM, Cranfield and Vaswani
the rule by which features hold was chosen with all judgements at hand, so that differences there may look too good."""
_TIME = """\
From features and grades to models. The time for computing the pool's features for the training queries is not in the
table, since preselection needs all of them too and saves none of it. Ranking takes only the features of the model."""


class Settings(config.Experiment):
    """A collection, a pool, and how it is narrowed.

    Parameters
    ----------
    collection, topics, qrels, first_stage, features, training, measures : as in the main study.
    preselect : each as `MMRPreselection.parse` reads it.
    """

    collection: config.Collection
    topics: str
    qrels: str
    first_stage: FirstStage = FirstStage()
    features: Features = Features()
    training: Training = Training()
    preselect: Annotated[tuple[str, ...], Field(min_length=1)] = ("mmr:8", "mmr:16", "mmr:32", "mmr:16:1")
    measures: tuple[str, ...] = ("AP",)


def seconds(trial: CrossValidation) -> float:
    """The time of preselection and training together, over all folds."""
    return sum(trial.selecting) + sum(trial.training)


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json``, ``times.json`` and ``report.html`` to `out`.

    Times, and the report, which shows them, are different every time.
    """
    check_dependencies()
    preselections = [MMRPreselection.parse(text) for text in settings.preselect]
    topics, qrels = read_topics(settings.path(settings.topics)), read_qrels(settings.path(settings.qrels))
    lucene = open_collection(settings.path(settings.collection.docs), settings.collection.type, out / "index", say)
    index, stage = PositionalIndex.from_lucene(lucene), settings.first_stage
    source = stage.source(lucene)
    first = run_step(source, topics, n_jobs=n_jobs, tag=stage.model)
    parameters = FeatureParameters(**settings.features.model_dump(exclude={"pool"}))
    extractor = FeatureExtractor(index, named_pool(settings.features.pool), parameters)
    data = training_data(first.rankings, qrels, extractor)
    warm_up(data)
    trials, training = {}, settings.training
    for preselection in (None, *preselections):
        name = WHOLE if preselection is None else str(preselection)
        trials[name] = cross_validate(
            first, qrels, extractor, training.learner, preselection=preselection, folds=training.folds,
            seed=training.seed, n_jobs=n_jobs, data=data,
        )  # fmt: skip
        say(f"{name}: {training.folds} models in {seconds(trials[name]):.1f} s")
    runs = {stage.model: first, **{name: trial.run for name, trial in trials.items()}}
    scores = {name: evaluate(ranked, qrels, settings.measures) for name, ranked in runs.items()}
    return write(settings, trials, scores, index.fingerprint, out)


def warm_up(data: RankingData) -> None:
    """Load what is compiled or imported on first use, which is no part of training."""
    narrowed = MMRPreselection(1).select(data.select_features(range(2)))
    GreedySelection("AP", max_features=1).fit(narrowed)


def write(
    settings: Settings, trials: Mapping[str, CrossValidation], scores: Mapping[str, Scores], fingerprint: str, out: Path
) -> Result:
    """Write the study's files, and summarise it."""
    significance = compare({name: scores[name] for name in trials}, WHOLE)
    chosen = {name: [list(map(str, model.features)) for model in trial.models] for name, trial in trials.items()}
    times = {
        name: {"narrowing": sum(trial.selecting), "training": sum(trial.training)} for name, trial in trials.items()
    }
    more = {"fingerprint": fingerprint, "queries": len(next(iter(scores.values())).qids)}
    results = {**provenance(settings, **more), "features": chosen, **to_dict(scores, significance)}
    write_results(out, results)
    write_text(out / "times.json", json.dumps(times, indent=1) + "\n")
    sections = [
        Section("Effectiveness", _EFFECTIVENESS, [score_table(scores, significance)]),
        Section("Training time", _TIME, [time_table(trials)]),
        Section("Features", "The features of each fold's model.", [feature_table(chosen)]),
    ]
    write_report(out / "report.html", f"Preselection: {settings.name}", sections, provenance(settings, **more))
    means = {name: found.by_measure for name, found in scores.items()}
    summary = f"{table({name: scores[name] for name in trials}, significance)}\n{as_text(time_table(trials))}"
    return Result(means, f"{summary}\nThe report is {out / 'report.html'}\n")


def score_table(scores: Mapping[str, Scores], significance: Significance) -> Table:
    """Means of the first stage and of each trial, and each trial's differences from the whole pool's."""
    rows = []
    for name, found in scores.items():
        row: list[str | float | None] = [name]
        for measure, mean in zip(found.measures, found.means.tolist(), strict=True):
            comparison = significance.find(name, measure)
            row += [mean, *((comparison.difference, comparison.corrected_p) if comparison else (None, None))]
        rows.append(row)
    measures = next(iter(scores.values())).measures
    header = ["", *(column for measure in measures for column in (str(measure), "difference", "p"))]
    return Table("Means over queries, and differences from the whole pool", header, rows)


def time_table(trials: Mapping[str, CrossValidation]) -> Table:
    """Seconds of all folds together, and how many times faster each trial is than the whole pool."""
    whole = seconds(trials[WHOLE])
    rows = [
        (name, sum(trial.selecting), sum(trial.training), seconds(trial), whole / seconds(trial))
        for name, trial in trials.items()
    ]
    header = ("", "narrowing, s", "training, s", "both, s", "times faster")
    return Table("Seconds for the models of all folds, features at hand", header, rows, decimals=2)


def feature_table(chosen: Mapping[str, list[list[str]]]) -> Table:
    """Which features each fold's model has, in the order of selection."""
    rows: list[tuple[str | float, ...]] = [
        (name, fold, ", ".join(features)) for name, models in chosen.items() for fold, features in enumerate(models, 1)
    ]
    return Table("In the order of selection", ("", "fold", "features"), rows)
