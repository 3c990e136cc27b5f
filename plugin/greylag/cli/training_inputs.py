"""The inputs of ``greylag train`` for a model that ranks: an index, runs alone, or a feature file."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from greylag.cli.options import Shared
from greylag.cli.search import search_first
from greylag.errors import FormatError, ParameterError
from greylag.features.column import Column
from greylag.features.feature import Feature
from greylag.features.spec import Pool
from greylag.index.analysis import QueryForm
from greylag.index.positional import PositionalIndex
from greylag.learning.data import RankingData
from greylag.learning.extraction import judged_topics
from greylag.learning.letor import listed_grades, listed_run, read_features
from greylag.learning.linesearch.objectives import Objective
from greylag.rankers.model import span
from greylag.ranking import Run
from greylag.recipes.index_free import IndexFreeRecipe, with_relevant, with_runs
from greylag.recipes.recipe import Recipe
from greylag.recipes.spelling import RANKERS, SpeltModel, parse_learner, parse_model
from greylag.recipes.training import MAX_TOPICS, sample_topics
from greylag.trec import Qrels

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class Files:
    """The files and folders of a training."""

    index: list[Path] | None
    qrels: Path | None
    out: Path
    topics: Path | None
    run: Path | None
    letor: Path | None
    validation: Path | None
    out_run: Path | None


@dataclass(frozen=True)
class TrainRequest:
    """The model that is asked for."""

    name: str
    text: str  # the name with its options
    objective: Objective
    features: tuple[Feature, ...]
    pool: Pool | None

    @cached_property
    def spelt(self) -> SpeltModel:
        """The recipe of a model that has an index."""
        return parse_model(self.text, self.objective, features=self.features, pool=self.pool)

    def index_free(self, features: tuple[Feature, ...]) -> IndexFreeRecipe:
        """Return the recipe of features that need no index."""
        if self.pool is not None:
            raise ParameterError("--pool needs --index, in which its features are counted")
        learner, preselection = parse_learner(self.text, self.objective)
        return IndexFreeRecipe(features, learner, preselection=preselection)


@dataclass(frozen=True)
class Inputs:
    """The arguments of `greylag.train`."""

    first: Run
    judged: Qrels
    positions: PositionalIndex | None
    recipe: Recipe
    query_form: QueryForm = QueryForm()

    @property
    def depth(self) -> int | None:
        """The number of documents of a topic that are learned from; None if these are all."""
        depth, longest = self.recipe.depth, max(map(len, self.first.rankings), default=0)
        return depth if depth is not None and depth < longest else None


def read_inputs(shared: Shared, files: Files, asked: TrainRequest, folds: int | None) -> Inputs:
    """Read the files into the arguments of `greylag.train`."""
    if files.letor is not None:
        return _from_letor(shared, files.letor, files.validation, asked)
    if files.qrels is None:
        raise ParameterError(
            "--qrels is missing: name the judgements to learn from, or a file of features and grades, --letor"
        )
    if files.index is None:
        return _from_runs(shared, files, files.qrels, asked)
    return _from_index(shared, files, files.index, files.qrels, asked, folds)


def _from_index(
    shared: Shared, files: Files, index: list[Path], qrels: Path, asked: TrainRequest, folds: int | None
) -> Inputs:
    if files.topics is None:
        raise ParameterError(f"give --topics: --model {asked.name} needs the queries' texts")
    spelt = asked.spelt  # before files are read, so that a mistake in the model's options is reported at once
    first = None if files.run is None else shared.run(files.run, files.topics)
    judged, positions = shared.qrels(qrels, first, files.topics), PositionalIndex.from_lucene(index)
    if first is None:  # without folds, only topics that are learned from are ranked
        topics = shared.topics(files.topics)
        relevant = judged_topics(topics, judged, asked.objective.rel)
        drawn = sample_topics(relevant, MAX_TOPICS)
        if not folds or len(drawn) < len(relevant):
            left_out = topics.keys() - set(drawn)  # not the topics that are missing
            judged = {qid: grades for qid, grades in judged.items() if qid not in left_out}
            topics = {qid: topics[qid] for qid in drawn}
        first = search_first(index, topics, shared.jobs, union=RANKERS[asked.name].union)
    return Inputs(first, judged, positions, *spelt)


def _from_runs(shared: Shared, files: Files, qrels: Path, asked: TrainRequest) -> Inputs:
    recipe = asked.index_free(with_runs(asked.features))
    if files.run is None:
        raise ParameterError("give a --run to rerank: without --index, nothing can be searched")
    if not asked.features:
        raise ParameterError(
            f"without --index, {files.run} has no features but its own scores: give other runs of its topics by "
            "--features run:FILE, or the --index"
        )
    _log.info("without --index: windows, expansion, translation and all other features of texts are left out")
    first = shared.run(files.run, files.topics)
    return Inputs(first, shared.qrels(qrels, first, files.topics), None, recipe)


def _from_letor(shared: Shared, path: Path, validation: Path | None, asked: TrainRequest) -> Inputs:
    plain, data = asked.index_free(()), read_features(path)
    columns, held_out = chosen_columns(path, data, asked.features), None
    if validation is not None:
        held_out = read_features(validation)
        if both := set(held_out.qids) & set(data.qids):
            raise FormatError(validation, None, f"{len(both)} of its topics, such as {min(both)!r}, are in {path}, too")
        held_out = checked(validation, with_relevant, held_out, asked.objective.rel, str(validation))
    recipe = checked(
        validation or path, IndexFreeRecipe.of_data, data, plain.learner, columns=columns, validation=held_out,
        preselection=plain.preselection,
    )  # fmt: skip
    return Inputs(listed_run(data, path.name.split(".")[0] or "letor"), listed_grades(data), None, recipe)


def chosen_columns(path: Path, data: RankingData, features: tuple[Feature, ...]) -> list[str]:
    """Return the names of the requested columns, by name or number."""
    numbered = {str(number): name for number, name in enumerate(data.names, 1)}
    named = {name: name for name in data.names}
    for feature in features:
        if not isinstance(feature, Column):
            raise ParameterError(
                f"--features {feature} is no column of a feature file: name columns by number, or as column:NAME"
            )
        if feature.name not in numbered | named:
            raise FormatError(path, None, f"has no column {feature.name}; its columns are {span(data.names)}")
    return [(numbered | named)[str(feature).removeprefix("column:")] for feature in features]


def checked(path: Path, function: Any, *values: Any, **options: Any) -> Any:
    """Call a function of a file's content, whose errors then name the file."""
    try:
        return function(*values, **options)
    except ParameterError as error:
        raise FormatError(path, None, str(error)) from None
