"""The stack against its parts: first stages, RM3, selected MRF features, manifold ranking after each, and fusion.

All systems rerank the same candidates, a union of first stages, in nested cross-validation: parameters, features,
weights and their number are chosen on the training queries of each fold. `greylag.experiments.stack_systems` defines
the systems.
"""

from __future__ import annotations

import re
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from pydantic import Field

from greylag.diversity.aspects import read_aspects
from greylag.diversity.mmr import MMR
from greylag.diversity.pm2 import PM2
from greylag.diversity.stage import DiversityStage
from greylag.diversity.xquad import XQuAD
from greylag.evaluation import Scores, compare, evaluate, evaluate_by_subtopic, to_dict
from greylag.experiments import config
from greylag.experiments.collection import CollectionSettings, OpenCollection, open_collection
from greylag.experiments.report import Section
from greylag.experiments.stack_systems import (
    AFTER,
    ASCENT,
    EXPANDED,
    FUSED,
    RM3,
    SINGLE,
    STACK,
    TREES,
    Collected,
    Fold,
    learn,
)  # fmt: skip
from greylag.experiments.study import Context, Outcome, Study
from greylag.experiments.tables import Table, comparison_table, means, means_table, merge_scores
from greylag.features.spec import Pool, parse_feature, place_files
from greylag.fusion import GivenRun, Union
from greylag.ltr.cross_validation import split_folds
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.stack import GRID, StackRecipe
from greylag.ranking import Query, Ranking, Run
from greylag.trec import read_run, read_subtopic_qrels

TIMED = 20  # queries
_TESTS = "p is that of the two-sided paired t-test over queries, with Holm's correction over the table."
_ABSENT = "LightGBM is not installed, so that there is no LambdaMART: pip install 'greylag[lambdamart]'\n"
Tunable = Literal["k1", "b", "fb_docs", "fb_terms", "original_weight"]
Values = Annotated[tuple[float, ...], Field(min_length=1)]


class Training(config.Settings):
    """How systems are learned.

    Parameters
    ----------
    objective, pool, depth, max_features, inner_folds, seed
        As in `StackRecipe`.
    features : tuple of str, default ()
        More candidates of the stack, such as priors and runs; files are below the data folder.
    grid : mapping
        The values to try for k1, b, fb_docs, fb_terms and original_weight; by default, those of
        `greylag.ltr.stack.GRID`.
    alphas : tuple of float, default (0.3, 0.6, 0.9)
        The values of alpha that training queries choose from, for manifold ranking after a system.
    restarts : int >= 1, default 1
        Of coordinate ascent.
    folds : int >= 2, default 5
    """

    objective: config.ObjectiveName = "AP"
    pool: Pool = "sd"
    features: tuple[Annotated[str, config.readable_by(parse_feature)], ...] = ()
    grid: Mapping[Tunable, Annotated[tuple[int | float, ...], Field(min_length=1)]] = {}
    depth: config.Positive = 200
    max_features: config.Positive = 10
    alphas: Values = (0.3, 0.6, 0.9)
    restarts: config.Positive = 1
    folds: config.Folds = 5
    inner_folds: config.Folds = 3
    seed: config.Seed = 1


class Diversify(config.Settings):
    """Diversity after the stack, with the weight of relevance chosen on training queries.

    Parameters
    ----------
    subtopic_qrels : str
        Path of the judgements.
    aspects : str or None, default None
        Path of given aspects, for xQuAD and PM-2.
    weights : tuple of float, default (0.1, 0.3, 0.5, 0.7, 0.9)
        The weights of relevance (of one aspect for PM-2) to choose from.
    measure : str, default "alpha-nDCG@10"
        What the weight is chosen by.
    depth, k : int >= 1, default 100 and 20
        As in `DiversityStage`.
    """

    subtopic_qrels: str
    aspects: str | None = None
    weights: Values = (0.1, 0.3, 0.5, 0.7, 0.9)
    measure: config.MeasureName = "alpha-nDCG@10"
    depth: config.Positive = 100
    k: config.Positive = 20


class Settings(CollectionSettings):
    """A collection, its first stages, and how systems are learned.

    Parameters
    ----------
    runs : tuple of str, default ()
        Given runs that are first stages, too; paths below the data folder.
    training : Training
    diversify : Diversify or None, default None
    measures : tuple of str, default ("P@10", "nDCG@10")
        Measures that runs are scored by, in addition to the objective.
    """

    runs: tuple[str, ...] = ()
    training: Training = Training()
    diversify: Diversify | None = None
    measures: tuple[config.MeasureName, ...] = ("P@10", "nDCG@10")

    @property
    def recipe(self) -> StackRecipe:
        """The recipe of the stack."""
        own = self.training
        placed = [place_files(parse_feature(text), lambda file: str(self.path(file))) for text in own.features]
        return StackRecipe(
            own.objective, pool=own.pool, more=tuple(placed), depth=own.depth,
            grid=dict([*GRID.items(), *own.grid.items()]), max_features=own.max_features,
            inner_folds=own.inner_folds, seed=own.seed,
        )  # fmt: skip


@dataclass(frozen=True)
class Opened:
    """The collection, the runs of the first stages, and their union."""

    collection: OpenCollection
    first: Mapping[str, Run]
    candidates: Run


def open_candidates(settings: Settings, context: Context) -> Opened:
    """Open the collection, and search it by every first stage."""
    opened = open_collection(settings, context)
    stage = settings.first_stage
    first = {
        model: stage.source(opened.lucene, model).run(opened.topics, n_jobs=context.n_jobs, tag=model)
        for model in ("bm25", "ql")
    }
    first |= {name: read_run(settings.path(name), opened.topics) for name in settings.runs}
    union = Union(tuple(map(GivenRun, first.values())), k=stage.hits)
    return Opened(opened, first, union.run(opened.topics, tag="candidates"))


def run(settings: Settings, opened: Opened, context: Context) -> Outcome:
    """Learn all systems in every fold, and score and compare the rankings of the test queries."""
    collection, training = opened.collection, settings.training
    qrels = {qid: grades for qid, grades in collection.qrels.items() if any(grade > 0 for grade in grades.values())}
    judged = tuple(ranking for ranking in opened.candidates.rankings if ranking.qid in qrels and len(ranking))
    shared = Collected(
        settings.recipe, judged, qrels, collection.index, training.alphas, training.restarts, context.n_jobs
    )
    tests = split_folds([ranking.qid for ranking in judged], training.folds, training.seed)
    folds = []
    for number, test in enumerate(tests, 1):
        with context.timed(f"learning, fold {number}"):
            fold = learn(shared, [ranking.qid for ranking in judged if ranking.qid not in test])
            if settings.diversify is not None:
                diversify(settings, settings.diversify, shared, fold, test)
            folds.append(fold)
        context.progress(f"fold {number}: {', '.join(names(fold))}")
    runs = {"BM25": opened.first["bm25"], "QL": opened.first["ql"], "candidates": opened.candidates}
    runs |= {system: gather(folds, tests, system) for system in folds[0].rankings}
    scores = {
        system: evaluate(ranked, qrels, [training.objective, *settings.measures]) for system, ranked in runs.items()
    }
    diverse = subtopic_scores(settings, runs)
    tables = make_tables(scores, folds, diverse)
    times = time_query(opened, folds[0], context)
    return Outcome(
        scores=merge_scores([means(scores), means(diverse)]),
        results={**to_dict(scores), "chosen": [names(fold) for fold in folds], "alphas": [f.alphas for f in folds]},
        tables=[*tables, times, *([] if TREES in scores else [_ABSENT])],
        title=f"The stack and its parts: {settings.name}",
        sections=[
            Section("Systems", _TESTS, tables),
            Section(
                "Time and memory", "As measured in this run. All other results are the same in every run.", [times]
            ),
        ],
        runs={file_name(system): Run(ranked.rankings, file_name(system)) for system, ranked in runs.items()},
        models={f"stack/fold-{number}": fold.model for number, fold in enumerate(folds, 1)},
        seconds=context.seconds,
        provenance={"fingerprint": collection.index.fingerprint},
    )


def gather(folds: Sequence[Fold], tests: Sequence[Sequence[str]], system: str) -> Run:
    """The test rankings of a system."""
    rankings = [fold.rankings[system][qid] for fold, test in zip(folds, tests, strict=True) for qid in test]
    return Run(tuple(rankings), system)


def diversify(settings: Settings, option: Diversify, shared: Collected, fold: Fold, test: Sequence[str]) -> None:
    """Add MMR, and from given aspects xQuAD and PM-2, after the stack."""
    subtopics = read_subtopic_qrels(settings.path(option.subtopic_qrels), lenient=settings.lenient)
    trained = {qid: judged for qid, judged in subtopics.items() if qid in fold.rankings[STACK] and qid not in test}
    first, index, depth, k = list(fold.rankings[STACK].values()), shared.index, option.depth, option.k
    stages: dict[str, list[DiversityStage]] = {
        "MMR": [MMR(index, relevance_weight=weight, depth=depth, k=k) for weight in option.weights]
    }
    if option.aspects is not None:
        aspects = read_aspects(settings.path(option.aspects))
        stages["xQuAD"] = [
            XQuAD(index, aspects, relevance_weight=weight, depth=depth, k=k) for weight in option.weights
        ]
        stages["PM-2"] = [PM2(index, aspects, aspect_weight=weight, depth=depth, k=k) for weight in option.weights]
    for name, tried in stages.items():
        runs = [stage.run(first, n_jobs=shared.n_jobs, tag=name) for stage in tried]
        values = [float(evaluate_by_subtopic(run, trained, [option.measure]).means[0]) for run in runs]
        best = values.index(max(values))
        fold.rankings[f"{STACK}, then {name}"] = dict(runs[best])
        fold.alphas[f"weight of {name}"] = option.weights[best]


def subtopic_scores(settings: Settings, runs: Mapping[str, Run]) -> dict[str, Scores]:
    """The scores by subtopic of the first stage, the stack, and what follows it."""
    if (option := settings.diversify) is None:
        return {}
    subtopics = read_subtopic_qrels(settings.path(option.subtopic_qrels), lenient=settings.lenient)
    systems = ["BM25", STACK, *(system for system in runs if system.startswith(f"{STACK}, then "))]
    return {system: evaluate_by_subtopic(runs[system], subtopics, [option.measure]) for system in systems}


def names(fold: Fold) -> list[str]:
    """The stack's features, with the tuned stages by name."""
    texts = [
        str(feature).replace(fold.tuned.rm3, "rm3").replace(fold.tuned.bm25, "bm25") for feature in fold.model.features
    ]
    return [re.sub("^stage:", "", text) for text in texts]


def make_tables(scores: Mapping[str, Scores], folds: Sequence[Fold], diverse: Mapping[str, Scores]) -> list[Table]:
    """Scores, tests against the stack, ablations, and how often features are chosen."""
    parts = [system for system in scores if system.startswith(("stack without ", "RM3 with "))]
    main = {system: own for system, own in scores.items() if system not in parts}
    counts = Counter(name for fold in folds for name in names(fold))
    objective = next(iter(scores.values())).measures[0]
    only = {system: replace(own, measures=own.measures[:1], values=own.values[:, :1]) for system, own in scores.items()}
    single = [RM3, EXPANDED, *(f"{AFTER}{system}" for system in SINGLE), *FUSED.values(), ASCENT, TREES]
    compared = {STACK: only[STACK], **{system: only[system] for system in single if system in only}}
    tables = [
        means_table(f"All systems over {len(scores[STACK].qids)} queries", means(main)),
        comparison_table(f"{objective} of others less that of the stack", compare(compared, STACK)),
        means_table("What each part adds to RM3, and takes away from the stack", means({s: scores[s] for s in parts})),
        Table(f"Features of the stack in {len(folds)} folds", ("feature", "folds"), counts.most_common()),
    ]
    return [*tables, *([means_table("Diversity", means(diverse))] if diverse else [])]


def time_query(opened: Opened, fold: Fold, context: Context) -> Table:
    """Milliseconds and memory a query of BM25 and of the stack after it."""
    topics = list(opened.collection.topics.items())[:TIMED]
    stage, search = MRFRanker(fold.model, opened.collection.index), opened.collection.lucene.bm25()
    first: list[Ranking] = [search(Query(*topic)) for topic in topics]
    stage(first[0])
    with context.timed("BM25"):
        for topic in topics:
            search(Query(*topic))
    with context.timed("stack after BM25"):
        for ranking in first:
            stage(ranking)
    tracemalloc.start()
    stage(max(first, key=len))
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    rows = [(step, 1e3 * context.seconds[step] / len(topics)) for step in ("BM25", "stack after BM25")]
    caption = f"A query, mean over {len(topics)}, one thread; the stack takes {peak:.1f} MB at its peak"
    return Table(caption, ("", "milliseconds"), rows, decimals=1)


def file_name(system: str) -> str:
    """A system's name in file names, which is also the tag of its run."""
    return re.sub("[^a-z0-9]+", "-", system.lower())


STUDY = Study(Settings, open_candidates, run)
