"""The main study: first stage, MRF features, a greedily selected linear model, MMR; cross-validated and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from greylag.diversity.mmr import MMR
from greylag.errors import FormatError
from greylag.evaluation import Scores, compare, evaluate, evaluate_by_subtopic, table, to_dict
from greylag.experiments import config
from greylag.experiments.collection import CollectionSettings, OpenCollection, open_collection
from greylag.experiments.study import Context, Outcome, Study, load
from greylag.experiments.tables import means, merge_scores
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import named_pool
from greylag.features.weighting import FeatureParameters
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.linear import LinearModel, MRFRanker
from greylag.ltr.objectives import Objective
from greylag.ltr.training import split_folds, train, training_data
from greylag.ranking import Ranking, Run, run_step
from greylag.trec import read_subtopic_qrels


class Features(config.Settings):
    """The pool that selection chooses from, and the features' parameters."""

    pool: Literal["sd", "fd", "full"] = "full"
    mu: float = 1000.0
    k1: float = 0.9
    b: float = 0.4
    idf: Literal["lucene", "robertson"] = "lucene"
    profile: Literal["indri", "galago"] = "indri"
    max_clique: int = 3


class Training(config.Settings):
    """Cross-validated training of the linear model."""

    objective: str = "AP"
    max_features: config.Positive = 5
    epsilon: float = 0.0
    retrain: bool = False
    folds: Annotated[int, Field(ge=2)] = 5
    seed: int = 0


class Diversify(config.Settings):
    """MMR after the model, and measures on judgements by subtopic."""

    relevance_weight: float = 0.7
    depth: config.Positive = 100
    k: config.Positive = 20
    subtopic_qrels: str
    measures: tuple[str, ...] = ("alpha-nDCG@10", "S-recall@10")


class Settings(CollectionSettings):
    """A whole pipeline.

    Parameters
    ----------
    features : Features
    training : Training
    diversify : Diversify, default none
    measures : tuple of str, default AP, P@10, nDCG@10
        What runs are scored by.
    """

    features: Features = Features()
    training: Training = Training()
    diversify: Diversify | None = None
    measures: tuple[str, ...] = ("AP", "P@10", "nDCG@10")


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Rank by each step, and score each step against the one before."""
    stage = settings.first_stage
    runs = {
        model: opened.first
        if model == stage.model
        else stage.source(opened.lucene, model).run(opened.topics, n_jobs=context.n_jobs, tag=model)
        for model in ("bm25", "ql")
    }
    runs["mrf"], models = cross_validate(settings, opened, context)
    if (option := settings.diversify) is not None:
        mmr = MMR(opened.index, relevance_weight=option.relevance_weight, depth=option.depth, k=option.k)
        runs["mmr"] = mmr.run(runs["mrf"], n_jobs=context.n_jobs, tag="mmr")
        context.progress(
            f"diversify: MMR, relevance weight {option.relevance_weight}, {option.k} of the top {option.depth}"
        )
    scores = score(settings, opened, runs)
    return Outcome(
        scores=merge_scores(map(means, scores.values())),
        results={kind: to_dict(part) for kind, part in scores.items()},
        tables=[*map(table, scores.values()), "Each step against the one before:\n", *steps(settings, scores)],
        runs=runs,
        models={f"fold-{number}": model for number, model in enumerate(models, 1)},
        provenance={"fingerprint": opened.index.fingerprint},
    )


def score(settings: Settings, opened: OpenCollection, runs: Mapping[str, Run]) -> dict[str, dict[str, Scores]]:
    """Scores by kind (relevance, diversity) and system."""
    scores = {"relevance": {name: evaluate(run, opened.qrels, settings.measures) for name, run in runs.items()}}
    if (option := settings.diversify) is not None:
        subtopics = read_subtopic_qrels(settings.path(option.subtopic_qrels), lenient=settings.lenient)
        scores["diversity"] = {
            name: evaluate_by_subtopic(run, subtopics, option.measures) for name, run in runs.items()
        }
    return scores


def steps(settings: Settings, scores: Mapping[str, Mapping[str, Scores]]) -> Iterator[str]:
    """Each step of the pipeline compared with the step before."""
    for before, after in pairwise([settings.first_stage.model, "mrf", *(["mmr"] if settings.diversify else [])]):
        for part in scores.values():
            pair = {before: part[before], after: part[after]}
            yield table(pair, compare(pair, before))


def cross_validate(settings: Settings, opened: OpenCollection, context: Context) -> tuple[Run, tuple[LinearModel, ...]]:
    """Each query reranked by a model that was trained on the queries of the other folds."""
    features, training, index, first = settings.features, settings.training, opened.index, opened.first
    parameters = FeatureParameters(**features.model_dump(exclude={"pool"}))
    extractor = FeatureExtractor(index, named_pool(features.pool), parameters)
    data = training_data(first.rankings, opened.qrels, extractor)
    objective = Objective.parse(training.objective)
    learner = GreedySelection(objective, training.max_features, training.epsilon, training.retrain)
    reranked: dict[str, Ranking] = {}
    models = []
    for number, test in enumerate(split_folds(list(first), training.folds, training.seed), 1):
        own = data.select_queries([qid for qid in data.qids if qid not in test])
        provenance = {"experiment": settings.name, "fold": number, "folds": training.folds, "seed": training.seed}
        model = train(own, extractor, learner, n_jobs=context.n_jobs, provenance=provenance)
        chosen = ", ".join(str(spec) for spec in model.features)
        trained = f"{objective} {model.training_scores[-1]:.4f} on {len(own.qids)} training queries"
        context.progress(f"fold {number}: {trained} with {chosen}")
        ranker = MRFRanker(model, index)
        reranked.update(run_step(ranker, [first[qid] for qid in test], n_jobs=context.n_jobs, tag="mrf"))
        models.append(model)
    return Run(tuple(reranked[qid] for qid in first), "mrf"), tuple(models)


def read_pipeline(path: Path) -> Settings:
    """The settings of a main experiment file, for studies that build on its pipeline.

    Raises
    ------
    FormatError
        If the file is of another study.
    """
    _, settings = load(path)
    if not isinstance(settings, Settings):
        raise FormatError(path, None, f"study {settings.study!r}: use an experiment file of the study 'pipeline'")
    return settings


STUDY = Study(Settings, open_collection, run, report=False)
