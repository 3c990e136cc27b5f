"""The stack against its parts: first stages, RM3, selected MRF features, manifold ranking after each, and fusion.

All systems rerank the same candidates, a union of first stages, in nested cross-validation: parameters, features,
weights and their number are chosen on the training queries of each fold. `greylag_papers.beyond.stack_systems` defines
the systems.
"""

from __future__ import annotations

import re
import time
import tracemalloc
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from greylag import Query, Run, Union
from greylag.evaluation import Scores, compare, evaluate, split_folds, to_dict
from greylag.experiments import config
from greylag.experiments.charts import result, verdicts
from greylag.experiments.collection import CollectionSettings, OpenCollection, open_collection
from greylag.experiments.report import Section
from greylag.experiments.study import Context, Outcome, Study
from greylag.experiments.tables import Table, comparison_table, means, means_table, merge_scores
from greylag.features.spec import Pool
from greylag.features.spelling import parse_feature
from greylag.fusion import GivenRun
from greylag.index import PositionalIndex
from greylag.ltr import MRFRanker, StackRecipe
from greylag.ltr.stack import GRID, StackCandidates
from greylag.lucene.lucene_index import SearchModel
from greylag.runtime import parallel_map
from greylag.trec import Qrels, at_level, read_aspects, read_run, read_subtopic_qrels
from greylag_papers.beyond.stack_systems import (
    BM25,
    DIVERSIFIED,
    RM3,
    STACK,
    TREES,
    WITH,
    WITHOUT,
    Collected,
    Diversifiers,
    Diversify,
    Fold,
    learn,
)
from greylag_papers.texts import read_texts


def names(fold: Fold) -> list[str]:
    """The stack's features, with the tuned stages by name."""
    texts = [
        str(feature).replace(fold.tuned.rm3, "rm3").replace(fold.tuned.bm25, "bm25") for feature in fold.model.features
    ]
    return [re.sub("^stage:", "", text) for text in texts]


def system_tables(scores: Mapping[str, Scores]) -> list[Table]:
    """The scores of all systems, and tests of all that are learned or fused against the stack."""
    parts = [system for system in scores if system.startswith((WITHOUT, WITH, DIVERSIFIED))]
    main = {system: values for system, values in scores.items() if system not in parts}
    objective = main[STACK].measures[0]
    tests = compare({system: _objective(values) for system, values in main.items()}, STACK)
    return [
        means_table(f"All systems over {len(main[STACK].qids)} queries", means(main)),
        comparison_table(f"{objective} of others less that of the stack", tests),
    ]


def part_table(scores: Mapping[str, Scores]) -> Table:
    """What each part adds to tuned RM3, and what the stack loses without it, by the objective."""
    values = {system: _objective(both) for system, both in scores.items()}
    mean = {system: float(of_system.means[0]) for system, of_system in values.items()}
    parts = [system.removeprefix(WITH) for system in values if system.startswith(WITH)]

    def changes(base: str, prefix: str) -> list[tuple[float, str, float | None, float]]:
        systems = [f"{prefix}{part}" for part in parts]
        tests = compare({system: values[system] for system in (base, *systems)}, base).comparisons
        return [(mean[c.run], f"{c.difference:+.4f}", c.detectable, c.corrected_p) for c in tests]

    rows = [
        (part, *added, *left)
        for part, added, left in zip(parts, changes(RM3, WITH), changes(STACK, WITHOUT), strict=True)
    ]
    objective, base, stack = values[STACK].measures[0], mean[RM3], mean[STACK]
    caption = f"{objective} of learning from RM3 ({base:.4f}) and one part, and of the stack ({stack:.4f}) without it"
    figures = ("change", "detectable", "corrected p")
    return Table(caption, ("part", "RM3 and it", *figures, "without it", *figures), rows)


def choice_table(folds: Sequence[Fold]) -> Table:
    """What each fold chose on its training queries."""
    found: dict[str, list[float]] = {
        name: [getattr(fold.tuned.parameters, name) for fold in folds]
        for name in ("k1", "b", "mu", "fb_docs", "fb_terms")
    }
    found["original_weight"] = [fold.tuned.original_weight for fold in folds]
    found |= {name: [fold.chosen[name] for fold in folds] for name in folds[0].chosen}
    found["features of the stack"] = [len(fold.model.features) for fold in folds]
    rows = [(name, *(f"{value:g}" for value in values)) for name, values in found.items()]
    return Table("Chosen on training queries", ("", *(f"fold {number}" for number in range(1, len(folds) + 1))), rows)


def feature_table(folds: Sequence[Fold]) -> Table:
    """How many folds chose each feature of the stack."""
    counts = Counter(name for fold in folds for name in names(fold))
    return Table(f"Features of the stack in {len(folds)} folds", ("feature", "folds"), counts.most_common())


def diversity_table(scores: Mapping[str, Scores], diverse: Mapping[str, Scores]) -> Table:
    """Relevance beside diversity: what a diversifier gains in one and costs in the other."""
    relevance = {system: scores[system] for system in diverse}
    return means_table("Relevance and diversity", merge_scores([means(relevance), means(diverse)]))


def _objective(scores: Scores) -> Scores:
    return replace(scores, measures=scores.measures[:1], values=scores.values[:, :1])


TIMED = 20  # queries
_TEXTS = read_texts(__file__)
_DIVERSITY = "Diversifiers reorder the top of the stack's ranking. Their weights are chosen on training queries."
_TIMES = "As measured in this run. All other results are the same in every run."
_ABSENT = "LightGBM is not installed, so that there is no LambdaMART: pip install 'greylag[lambdamart]'\n"
CANDIDATES = "candidates"
NAMES: Mapping[SearchModel, str] = {"bm25": "BM25", "ql": "QL", "bm25+rm3": "BM25+RM3"}
UNIONS = (("BM25", "QL"), ("BM25", "BM25+RM3"), ("BM25", "QL", "BM25+RM3"))
RECALL = ("R@100", "R@200", "R@1000")
Tunable = Literal["k1", "b", "mu", "fb_docs", "fb_terms", "original_weight"]
Values = Annotated[tuple[float, ...], Field(min_length=1)]


class Training(config.Settings):
    """How systems are learned."""

    objective: config.ObjectiveName = "AP"
    """The measure to maximise, such as AP or nDCG@10."""
    pool: Pool = "sd"
    """The MRF features among the candidates."""
    features: tuple[Annotated[str, config.readable_by(parse_feature)], ...] = ()
    """More candidates of the stack, such as priors and runs; files are below the data folder."""
    grid: Mapping[Tunable, Annotated[tuple[int | float, ...], Field(min_length=1)]] = {}
    """The values to try for k1, b, mu, fb_docs, fb_terms and original_weight; by default, those of
    `greylag.ltr.stack.GRID`.
    """
    depth: config.Positive = 200
    """The number of documents of each query that training uses; all are ranked."""
    max_features: config.Positive = 5
    """The largest number of features."""
    alphas: Values = (0.3, 0.6, 0.9)
    """The values of alpha that training queries choose from, for manifold ranking after a system."""
    restarts: config.Positive = 1
    """Of coordinate ascent."""
    folds: config.Folds = 5
    """The number of folds of cross-validation over topics."""
    inner_folds: config.Folds = 5
    """The folds within the training topics, by which the number of features is chosen."""
    seed: config.Seed = 1
    """Seed of the splits into folds."""


class Settings(CollectionSettings):
    """A collection, its first stages, and how systems are learned."""

    models: Annotated[tuple[Literal["bm25", "ql", "bm25+rm3"], ...], Field(min_length=1)] = ("bm25", "bm25+rm3")
    """The first stages whose union is reranked."""
    runs: tuple[str, ...] = ()
    """Given runs that are in the union, too; paths below the data folder."""
    training: Training = Training()
    diversify: Diversify | None = None
    measures: tuple[config.MeasureName, ...] = ("P@10", "nDCG@10")
    """Measures that runs are scored by, in addition to the objective."""

    @property
    def recipe(self) -> StackRecipe:
        """The recipe of the stack."""
        option = self.training
        placed = [parse_feature(text).place_files(lambda file: str(self.path(file))) for text in option.features]
        return StackRecipe(
            option.objective, pool=option.pool, more=tuple(placed), depth=option.depth,
            grid=dict([*GRID.items(), *option.grid.items()]), max_features=option.max_features,
            inner_folds=option.inner_folds, seed=option.seed,
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
        name: stage.source(opened.lucene, model).run(opened.topics, n_jobs=context.n_jobs, tag=model)
        for model, name in NAMES.items()
    }
    first |= {name: read_run(settings.path(name), opened.topics) for name in settings.runs}
    used = [first[name] for name in (*(NAMES[model] for model in settings.models), *settings.runs)]
    return Opened(opened, first, unite(used, opened, stage.hits, CANDIDATES))


def unite(runs: Sequence[Run], collection: OpenCollection, k: int, tag: str) -> Run:
    """The top k documents of a union."""
    return Union(tuple(map(GivenRun, runs)), k=k).run(collection.topics, tag=tag)


def recall_table(settings: Settings, opened: Opened, qrels: Qrels) -> Table:
    """The recall of each first stage, of unions, and of the candidates."""
    runs = dict(opened.first)
    runs |= {
        f"union of {', '.join(parts)}": unite(
            [opened.first[name] for name in parts], opened.collection, settings.first_stage.hits, "union"
        )
        for parts in UNIONS
    }
    runs[CANDIDATES] = opened.candidates
    return means_table("Recall", means({name: evaluate(run, qrels, RECALL) for name, run in runs.items()}))


def run(settings: Settings, opened: Opened, context: Context) -> Outcome:
    """Learn all systems in every fold, and score and compare the rankings of the test queries."""
    collection, training = opened.collection, settings.training
    at = at_level(collection.qrels, settings.recipe.measure.rel)
    qrels = {qid: collection.qrels[qid] for qid, grades in at.items() if any(grade > 0 for grade in grades.values())}
    judged = tuple(ranking for ranking in opened.candidates.rankings if ranking.qid in qrels and len(ranking))
    candidates = StackCandidates(settings.recipe, judged, at, collection.index, context.n_jobs)
    shared = Collected(candidates, training.alphas, training.restarts)
    diversifiers = make_diversifiers(settings, collection.index)
    tests = split_folds([ranking.qid for ranking in judged], training.folds, training.seed)
    work = partial(learn_fold, diversifiers=diversifiers)
    folds = []
    with context.timed("learning"):
        for fold in parallel_map(work, tests, shared, what="folds", n_jobs=context.n_jobs, coarse=True):
            folds.append(fold)
            context.progress(f"fold {len(folds)}: {', '.join(names(fold))}")
    runs = {**opened.first, CANDIDATES: opened.candidates}
    runs |= {system: gather(folds, tests, system) for system in folds[0].rankings}
    scores = {
        system: evaluate(ranked, qrels, [training.objective, *settings.measures]) for system, ranked in runs.items()
    }
    diverse = {} if diversifiers is None else diversifiers.scores(runs)
    times = time_query(opened, folds[0])
    compared = [(scores, compare({system: scores[system], STACK: scores[STACK]}, system)) for system in (BM25, RM3)]
    sections = [
        result(compared),
        Section("Systems", _TEXTS["stack: tests"], system_tables(scores)),
        Section("Parts", _TEXTS["stack: parts"], [part_table(scores), feature_table(folds), choice_table(folds)]),
        Section("Candidates", _TEXTS["stack: candidates"], [recall_table(settings, opened, qrels)]),
        *([Section("Diversity", _DIVERSITY, [diversity_table(scores, diverse)])] if diverse else []),
        Section("Time and memory", _TIMES, [times]),
    ]
    tables = [part for section in sections for part in section.parts if isinstance(part, Table)]
    return Outcome(
        scores=merge_scores([means(scores), means(diverse)]),
        results={
            **to_dict(scores), "features": [names(fold) for fold in folds],
            "chosen": [fold.chosen for fold in folds],
        },
        tables=[*tables, *([] if TREES in scores else [_ABSENT]), "".join(f"{one}\n" for one in verdicts(compared))],
        title=f"The stack and its parts: {settings.name}",
        sections=sections,
        runs={file_name(system): Run(ranked.rankings, file_name(system)) for system, ranked in runs.items()},
        models={f"stack/fold-{number}": fold.model for number, fold in enumerate(folds, 1)},
        seconds=context.seconds,
        provenance={"fingerprint": collection.index.fingerprint},
    )  # fmt: skip


def learn_fold(test: Sequence[str], shared: Collected, *, diversifiers: Diversifiers | None) -> Fold:
    """What is learned without the queries `test`, and their rankings."""
    training = [ranking.qid for ranking in shared.candidates.rankings if ranking.qid not in test]
    fold = learn(shared, training)
    if diversifiers is not None:
        diversifiers.add(fold, training)
    tested = {system: {qid: by_query[qid] for qid in test} for system, by_query in fold.rankings.items()}
    return replace(fold, rankings=tested)


def make_diversifiers(settings: Settings, index: PositionalIndex) -> Diversifiers | None:
    """The diversifiers with the judgements and aspects that the settings name, if they name some."""
    if (option := settings.diversify) is None:
        return None
    subtopics = read_subtopic_qrels(settings.path(option.subtopic_qrels), lenient=settings.lenient)
    aspects = {} if option.aspects is None else read_aspects(settings.path(option.aspects))
    return Diversifiers(option, subtopics, aspects, index, settings.training.seed)


def gather(folds: Sequence[Fold], tests: Sequence[Sequence[str]], system: str) -> Run:
    """The test rankings of a system."""
    rankings = [fold.rankings[system][qid] for fold, test in zip(folds, tests, strict=True) for qid in test]
    return Run(tuple(rankings), system)


def time_query(opened: Opened, fold: Fold) -> Table:
    """Milliseconds and memory a query of BM25 and of the stack after all first stages."""
    topics = [Query(*topic) for topic in list(opened.collection.topics.items())[:TIMED]]
    stage, search = MRFRanker(fold.model, opened.collection.index), opened.collection.lucene.bm25()
    first = [opened.candidates[topic.qid] for topic in topics if topic.qid in opened.candidates]
    stage(first[0])
    begun = time.thread_time()
    for topic in topics:
        search(topic)
    searched = time.thread_time()
    for ranking in first:
        stage(ranking)
    stacked = time.thread_time()
    tracemalloc.start()
    search(topics[0])
    searching = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.reset_peak()
    stage(max(first, key=len))
    stacking = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    rows = [
        ("BM25, top 1000", 1e3 * (searched - begun) / len(topics), searching),
        (f"the stack, of {len(fold.model.features)} features, after the first stages",
         1e3 * (stacked - searched) / len(first), stacking),
    ]  # fmt: skip
    caption = (
        f"A query, mean over {len(topics)}: time of one core, and memory of Python at its peak, without that of the JVM"
    )
    return Table(caption, ("", "milliseconds", "MiB"), rows, decimals=1)


def file_name(system: str) -> str:
    """A system's name in file names, which is also the tag of its run."""
    return re.sub("[^a-z0-9]+", "-", system.lower())


STUDY = Study(Settings, open_candidates, run)
