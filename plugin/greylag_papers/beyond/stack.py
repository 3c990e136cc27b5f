"""The stack against its parts: first stages, RM3, selected MRF features, manifold ranking after each, and fusion.

All systems rerank the same candidates, a union of first stages, in nested cross-validation: parameters, features,
weights and their number are chosen on the training queries of each fold. `greylag_papers.beyond.stack_systems` defines
the systems.
"""

from __future__ import annotations

import re
import time
import tracemalloc
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Literal

from pydantic import Field

from greylag.evaluation import evaluate, to_dict
from greylag.experiments import config
from greylag.experiments.collection import CollectionSettings, OpenCollection, open_collection
from greylag.experiments.report import Section
from greylag.experiments.study import Context, Outcome, Study
from greylag.experiments.tables import Table, means, means_table, merge_scores
from greylag.features.spec import Pool
from greylag.features.spelling import parse_feature
from greylag.fusion import GivenRun, Union
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import split_folds
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.stack import GRID, StackCandidates, StackRecipe
from greylag.lucene.lucene_index import SearchModel
from greylag.ranking import Query, Run
from greylag.runtime.parallel import parallel_map
from greylag.trec import Qrels, read_aspects, read_run, read_subtopic_qrels
from greylag_papers.beyond.stack_diversity import Diversifiers, Diversify
from greylag_papers.beyond.stack_systems import TREES, Collected, Fold, learn
from greylag_papers.beyond.stack_tables import (
    choice_table,
    diversity_table,
    feature_table,
    names,
    part_table,
    system_tables,
)

TIMED = 20  # queries
_TESTS = """\
The first rows are first stages and their union, which all other systems rerank. The stack is the mean of tuned RM3 and
of a committee of greedy selections over all features; coordinate ascent and LambdaMART learn from the same ones. Fusion
is of BM25, RM3, MRF-FS with and without expansion, and manifold ranking after each. p is that of the two-sided paired
t-test over queries, with Holm's correction over the table."""
_PARTS = """\
A part is a group of features. It is added to RM3 alone, and taken away from the stack; both are learned anew in every
fold. Without expansion, there is no manifold ranking after RM3 either, and BM25 takes the place of RM3."""
_CANDIDATES = """\
The share of relevant documents that first stages find among their top documents: reranking cannot find others. All have
the same number of documents; a union is cut off after fusing the ranks (RRF)."""
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
    """As in `StackRecipe`."""
    pool: Pool = "sd"
    """As in `StackRecipe`."""
    features: tuple[Annotated[str, config.readable_by(parse_feature)], ...] = ()
    """More candidates of the stack, such as priors and runs; files are below the data folder."""
    grid: Mapping[Tunable, Annotated[tuple[int | float, ...], Field(min_length=1)]] = {}
    """The values to try for k1, b, mu, fb_docs, fb_terms and original_weight; by default, those of
    `greylag.ltr.stack.GRID`.
    """
    depth: config.Positive = 200
    """As in `StackRecipe`."""
    max_features: config.Positive = 5
    """As in `StackRecipe`."""
    alphas: Values = (0.3, 0.6, 0.9)
    """The values of alpha that training queries choose from, for manifold ranking after a system."""
    restarts: config.Positive = 1
    """Of coordinate ascent."""
    folds: config.Folds = 5
    """The number of folds of cross-validation over topics."""
    inner_folds: config.Folds = 5
    """As in `StackRecipe`."""
    seed: config.Seed = 1
    """As in `StackRecipe`."""


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
        own = self.training
        placed = [parse_feature(text).place_files(lambda file: str(self.path(file))) for text in own.features]
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
    qrels = {qid: grades for qid, grades in collection.qrels.items() if any(grade > 0 for grade in grades.values())}
    judged = tuple(ranking for ranking in opened.candidates.rankings if ranking.qid in qrels and len(ranking))
    candidates = StackCandidates(settings.recipe, judged, qrels, collection.index, context.n_jobs)
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
    sections = [
        Section("Systems", _TESTS, system_tables(scores)),
        Section("Parts", _PARTS, [part_table(scores), feature_table(folds), choice_table(folds)]),
        Section("Candidates", _CANDIDATES, [recall_table(settings, opened, qrels)]),
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
        tables=[*tables, *([] if TREES in scores else [_ABSENT])],
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
    tested = {system: {qid: own[qid] for qid in test} for system, own in fold.rankings.items()}
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
