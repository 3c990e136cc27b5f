"""The main study: first stage, MRF features, a greedily selected linear model, diversity; cross-validated and scored.

Each step is scored against the one before. Runs, models and results go to one folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from greylag.diversity.mmr import MMR
from greylag.evaluation import Scores, compare, evaluate, evaluate_by_subtopic, table, to_dict
from greylag.experiments import config
from greylag.experiments.collection import open_collection
from greylag.experiments.report import write_results
from greylag.experiments.study import Result, Say
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import named_pool
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr import cross_validation
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.linear import LinearModel
from greylag.lucene.lucene_index import BM25, LuceneIndex, QueryLikelihood
from greylag.ranking import Run, run_step
from greylag.trec import Qrels, read_qrels, read_subtopic_qrels, read_topics, write_run


class FirstStage(config.Settings):
    """Which of the first stage's rankings is reranked, and how both are made."""

    model: Literal["bm25", "ql"] = "bm25"
    hits: config.Positive = 1000
    k1: float = 0.9
    b: float = 0.4
    mu: float = 1000.0

    def source(self, lucene: LuceneIndex) -> BM25 | QueryLikelihood:
        """The search that gives the rankings to rerank."""
        return lucene.bm25(self.hits, self.k1, self.b) if self.model == "bm25" else lucene.ql(self.hits, self.mu)


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

    @property
    def learner(self) -> GreedySelection:
        """The learner of each fold's model."""
        return GreedySelection(
            self.objective, max_features=self.max_features, epsilon=self.epsilon, retrain=self.retrain
        )


class Diversify(config.Settings):
    """MMR after the model, and measures on judgements by subtopic."""

    relevance_weight: float = 0.7
    depth: config.Positive = 100
    k: config.Positive = 20
    subtopic_qrels: str
    measures: tuple[str, ...] = ("alpha-nDCG@10", "S-recall@10")


class Settings(config.Experiment):
    """A whole pipeline: collection, topics, judgements, stages and measures."""

    collection: config.Collection
    topics: str
    qrels: str
    lenient: bool = False
    first_stage: FirstStage = FirstStage()
    features: Features = Features()
    training: Training = Training()
    diversify: Diversify | None = None
    measures: tuple[str, ...] = ("AP", "P@10", "nDCG@10")


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the pipeline; write ``SYSTEM.run``, ``models/fold-I.json`` and ``results.json`` to `out`."""
    topics = read_topics(settings.path(settings.topics), lenient=settings.lenient)
    qrels = read_qrels(settings.path(settings.qrels), lenient=settings.lenient)
    lucene = open_collection(settings.path(settings.collection.docs), settings.collection.type, out / "index", say)
    index = PositionalIndex.from_lucene(lucene)
    stage = settings.first_stage
    runs = {
        "bm25": run_step(lucene.bm25(stage.hits, stage.k1, stage.b), topics, n_jobs=n_jobs, tag="bm25"),
        "ql": run_step(lucene.ql(stage.hits, stage.mu), topics, n_jobs=n_jobs, tag="ql"),
    }
    say(f"search: {len(topics)} topics with BM25 and with query likelihood, {stage.hits} documents each")
    runs["mrf"], models = cross_validate(settings, index, runs[stage.model], qrels, n_jobs=n_jobs, say=say)
    scores = {"relevance": {name: evaluate(ranked, qrels, settings.measures) for name, ranked in runs.items()}}
    if settings.diversify is not None:
        option = settings.diversify
        step = MMR(index, option.relevance_weight, option.depth, option.k)
        runs["mmr"] = run_step(step, runs["mrf"], n_jobs=n_jobs, tag="mmr")
        say(f"diversify: MMR, relevance weight {option.relevance_weight}, {option.k} of the first {option.depth}")
        subtopics = read_subtopic_qrels(settings.path(option.subtopic_qrels), lenient=settings.lenient)
        scores["relevance"]["mmr"] = evaluate(runs["mmr"], qrels, settings.measures)
        scores["diversity"] = {
            name: evaluate_by_subtopic(ranked, subtopics, option.measures) for name, ranked in runs.items()
        }
    _write(settings, index, runs, models, scores, out)
    steps = [stage.model, "mrf", *(["mmr"] if settings.diversify else [])]
    summary = [*(table(part) for part in scores.values()), "Each step against the one before:"]
    for before, after in pairwise(steps):
        for part in scores.values():
            pair = {before: part[before], after: part[after]}
            summary.append(table(pair, compare(pair, before)))
    return Result(_means(scores), "\n".join(summary))


def cross_validate(
    settings: Settings, index: PositionalIndex, first: Run, qrels: Qrels, *, n_jobs: int, say: Say
) -> tuple[Run, tuple[LinearModel, ...]]:
    """Rerank each query by a model that was trained on the queries of the other folds."""
    features, training = settings.features, settings.training
    parameters = FeatureParameters(**features.model_dump(exclude={"pool"}))
    found = cross_validation.cross_validate(
        first,
        qrels,
        FeatureExtractor(index, named_pool(features.pool), parameters),
        training.learner,
        folds=training.folds,
        seed=training.seed,
        n_jobs=n_jobs,
        tag="mrf",
        provenance={"experiment": settings.name},
        progress=say,
    )
    return found.run, found.models


def _means(scores: Mapping[str, Mapping[str, Scores]]) -> dict[str, dict[str, float]]:
    """Means by system and measure, over all kinds of scores."""
    means: dict[str, dict[str, float]] = {}
    for part in scores.values():
        for system, found in part.items():
            names = [str(measure) for measure in found.measures]
            means.setdefault(system, {}).update(zip(names, found.means.tolist(), strict=True))
    return means


def _write(
    settings: Settings,
    index: PositionalIndex,
    runs: Mapping[str, Run],
    models: tuple[LinearModel, ...],
    scores: Mapping[str, Mapping[str, Scores]],
    out: Path,
) -> None:
    (out / "models").mkdir(parents=True, exist_ok=True)
    for name, ranked in runs.items():
        write_run(ranked, out / f"{name}.run")
    for number, model in enumerate(models, 1):
        model.save(out / "models" / f"fold-{number}.json")
    results: dict[str, Any] = {
        "settings": settings.model_dump(mode="json"),
        "fingerprint": index.fingerprint,
        **{kind: to_dict(part) for kind, part in scores.items()},
    }
    write_results(out, results)
