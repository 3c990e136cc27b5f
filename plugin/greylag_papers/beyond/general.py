"""The general model: weights that are learned on some collections and applied, unchanged, to another one.

Weights are learned on each collection by listwise regression over features with mean 0 and variance 1 within each
query, and averaged, so that every collection counts the same. Each collection in turn is ranked by the average over the
others. The models of `greylag.GeneralRanker` are the averages over all: one of all features, and one without those of
words as they are written, for indexes that do not store texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import Field

from greylag import __version__
from greylag.evaluation import Scores, compare, parse_measure, split_folds, to_dict
from greylag.experiments import config
from greylag.experiments.collection import Collection, CollectionSettings, FirstStage, Queries, open_collection
from greylag.experiments.report import Section
from greylag.experiments.study import Context, Outcome, Study
from greylag.experiments.tables import comparison_table, means_table
from greylag.features import FeatureParameters, parse_features
from greylag.features.feature import Feature
from greylag.features.named_files import FeatureText
from greylag.features.written import WrittenForm
from greylag.learning import ListwiseRegression
from greylag.learning.extraction import CountedRankings
from greylag.linesearch import RankingData
from greylag.linesearch.data import linear_scores, spaced
from greylag.linesearch.objectives import Objective
from greylag.models.baselines import BM25, GRID, SDM, parameter_grid
from greylag.models.model import RankingModel
from greylag.ranking import FloatArray, Run
from greylag_papers.texts import read_texts

GENERAL, POSITIONS = "general", "general-positions"
FIRST, TUNED, RM3, DEPENDENCE = "BM25", "tuned BM25", "RM3", "SDM"
_RM3 = "stage:rm3"
_TEXTS = read_texts(__file__)


class Part(config.Settings):
    """A collection that is learned from."""

    collection: Collection
    topics: config.InputFile
    """Path of the topics."""
    qrels: config.InputFile
    """Path of the relevance judgements."""
    queries: Queries = Queries()


class Settings(config.Experiment):
    """The collections, and the features of the model."""

    collections: Annotated[dict[config.FileName, Part], Field(min_length=2)]
    features: FeatureText
    """The model's features, separated by commas, each normalised by ``@z``."""
    penalty: Annotated[float, Field(gt=0)] = 100.0
    """The penalty of listwise regression."""
    measures: Annotated[tuple[config.ObjectiveName, ...], Field(min_length=1)] = ("nDCG@10", "AP")
    """The first is maximised; all are compared."""
    hits: config.Positive = 100
    """Number of documents per topic, by BM25."""
    most_topics: config.Positive = 500
    """The most topics of a collection, at equal distances in its file."""
    folds: config.Folds = 5
    """The folds in which k1 and b of the baseline are tuned on the collection's own judgements."""
    seed: config.Seed = 0
    """Seed of these folds."""


@dataclass(frozen=True)
class Opened:
    """The rows of a collection: the model's features, then those of the baselines."""

    rows: RankingData
    tuned: RankingData  # BM25 for every k1 and b of the grid, a column each
    fingerprint: str


def open_all(settings: Settings, context: Context) -> dict[str, Opened]:
    """Open, search and extract one collection after another."""
    opened = {}
    for name, part in settings.collections.items():
        with context.timed(name):
            opened[name] = _open(settings, name, part, replace(context, folder=context.folder / name))
    return opened


def _open(settings: Settings, name: str, part: Part, context: Context) -> Opened:
    fields = {**part.model_dump(), "name": name, "first_stage": FirstStage(hits=settings.hits)}
    own = CollectionSettings(**fields, data_folder=settings.data_folder, file_folder=settings.file_folder)
    found = open_collection(own, context)
    relevant = [qid for qid in found.first if any(grade > 0 for grade in found.qrels.get(qid, {}).values())]
    run = Run(tuple(found.first[qid] for qid in spaced(relevant, settings.most_topics)))
    baselines = tuple(dict.fromkeys([*parse_features(_RM3), *SDM.features]))
    features = tuple(dict.fromkeys([*parse_features(settings.features), *baselines, *parse_features("score")]))
    rows = CountedRankings(run.rankings, found.qrels, found.index, features).data(FeatureParameters())
    counted = CountedRankings(run.rankings, found.qrels, found.index, BM25.features)
    grid = [counted.data(parameters) for parameters in parameter_grid(GRID, BM25.tuned, FeatureParameters())]
    names = tuple(f"BM25 {place}" for place in range(len(grid)))
    tuned = replace(grid[0], specs=names, features=np.hstack([data.features for data in grid]))
    return Opened(rows, tuned, found.index.fingerprint)


def models_of(settings: Settings) -> dict[str, tuple[Feature, ...]]:
    """The features of each model."""
    features = parse_features(settings.features)
    return {GENERAL: features, POSITIONS: tuple(one for one in features if not isinstance(one.base, WrittenForm))}


def learn(rows: RankingData, features: Sequence[Feature], settings: Settings) -> FloatArray:
    """The weights of the features by listwise regression on one collection, shape (f,)."""
    columns = [rows.names.index(str(feature)) for feature in features]
    selection = ListwiseRegression(settings.measures[0], penalty=settings.penalty).fit(rows.select_features(columns))
    weights = np.zeros(len(columns))
    weights[list(selection.columns)] = selection.weights
    return weights


def scores_of(opened: Opened, weights: Mapping[str, FloatArray], settings: Settings) -> dict[str, dict[str, Scores]]:
    """For each measure, the scores of the systems on one collection, with each model's weights."""
    rows, models = opened.rows, models_of(settings)

    def linear(features: Sequence[object], values: Sequence[float] | FloatArray) -> FloatArray:
        return linear_scores(rows, [rows.names.index(str(feature)) for feature in features], np.asarray(values))

    systems = {
        FIRST: linear(["score"], [1.0]),
        RM3: linear([_RM3], [1.0]),
        DEPENDENCE: linear(SDM.features, SDM.weights),
        **{name: linear(features, weights[name]) for name, features in models.items()},
    }
    found: dict[str, dict[str, Scores]] = {}
    for name in settings.measures:
        measure, objective = parse_measure(name), Objective.parse(name)
        values = {system: objective.evaluate(rows, scores) for system, scores in systems.items()}
        values[TUNED] = tuned_bm25(opened.tuned, objective, settings)
        found[name] = {
            system: Scores.single(measure, dict(zip(rows.qids, one.tolist(), strict=True)))
            for system, one in values.items()
        }
    return found


def tuned_bm25(data: RankingData, objective: Objective, settings: Settings) -> FloatArray:
    """The objective by BM25 with k1 and b of the other folds, shape (q,)."""
    grid = [objective.evaluate(data, column) for column in data.columns]
    values = np.array(grid)
    places = {qid: place for place, qid in enumerate(data.qids)}
    out = np.empty(len(data.qids))
    for fold in split_folds(data.qids, settings.folds, settings.seed):
        held_out = np.zeros(len(data.qids), dtype=bool)
        held_out[[places[qid] for qid in fold]] = True
        out[held_out] = values[values[:, ~held_out].mean(axis=1).argmax(), held_out]
    return out


def run(settings: Settings, opened: Mapping[str, Opened], context: Context) -> Outcome:
    """Rank each collection by weights of the others, and learn the model from all."""
    models = models_of(settings)
    learned = {
        model: {name: learn(one.rows, features, settings) for name, one in opened.items()}
        for model, features in models.items()
    }
    scores = {}
    for name, one in opened.items():
        of_others = {
            model: np.mean([weights for other, weights in own.items() if other != name], axis=0)
            for model, own in learned.items()
        }
        scores[name] = scores_of(one, of_others, settings)
        context.progress(f"{name}: {len(one.rows.qids)} topics")
    rows: dict[str, dict[str, float]] = {}
    tables = []
    for measure in settings.measures:
        means = {
            name: {system: float(value.means[0]) for system, value in of_one[measure].items()}
            for name, of_one in scores.items()
        }
        tests = {name: compare(of_one[measure], FIRST) for name, of_one in scores.items()}
        rows |= {f"{name}, {measure}": row for name, row in means.items()}
        for name, test in tests.items():
            found = next(c for c in test.comparisons if c.run == GENERAL)
            rows[f"{name}, {measure}, {GENERAL} less {FIRST}"] = {
                "difference": found.difference, "low": found.interval[0], "high": found.interval[1], "p": found.p,
            }  # fmt: skip
        for other in (FIRST, TUNED, RM3, DEPENDENCE, POSITIONS):
            gains = np.array([row[GENERAL] - row[other] for row in means.values()])
            rows[f"all, {measure}, {GENERAL} less {other}"] = {
                "mean": float(gains.mean()), "least": float(gains.min()), "above": float((gains > 0).sum()),
            }  # fmt: skip
        tables += [
            means_table(f"{measure} of each collection by weights of the others", means),
            comparison_table(f"{measure} less that of {FIRST}", *tests.values()),
        ]
    return Outcome(
        scores=rows,
        results={
            "scores": {name: {measure: to_dict(by) for measure, by in own.items()} for name, own in scores.items()},
            "weights": {
                model: {name: weights.tolist() for name, weights in own.items()} for model, own in learned.items()
            },
        },
        tables=tables,
        title="A model for which nothing has to be judged",
        sections=[Section("Leave one collection out", _TEXTS["general: collections"], tables)],
        models={
            name: model(features, np.mean([*learned[name].values()], axis=0), settings, opened)
            for name, features in models.items()
        },
        provenance={"fingerprints": {name: one.fingerprint for name, one in opened.items()}},
    )


def model(
    features: tuple[Feature, ...], weights: FloatArray, settings: Settings, opened: Mapping[str, Opened]
) -> RankingModel:
    """The model of all collections, with weights that add up to 1 in magnitude."""
    shares = (weights / np.abs(weights).sum()).round(4)
    return RankingModel(
        features, tuple(shares.tolist()),
        objective=settings.measures[0],
        provenance={
            "greylag": __version__,
            "learner": f"listwise regression with penalty {settings.penalty:g}, averaged over collections",
            "collections": {name: len(one.rows.qids) for name, one in opened.items()},
            "depth": settings.hits,
        },
    )  # fmt: skip


STUDY = Study(Settings, open_all, run)
