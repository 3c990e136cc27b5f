"""The inputs of ``greylag train``: an index, runs alone, a feature file, or judgements by subtopic."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from greylag.base import FormatError, ParameterError, Run, naming
from greylag.cli.options import Shared
from greylag.cli.search import search_first
from greylag.cli.terminal import write_line
from greylag.features import Column, Feature
from greylag.index import LuceneIndex, PositionalIndex
from greylag.learning import (
    Learner,
    MMRPreselection,
    Objective,
    RankingData,
    judged_topics,
    listed_grades,
    listed_run,
    read_letor,
    warn_of_order,
)
from greylag.rankers import span
from greylag.recipes import (
    MAX_TOPICS,
    ColumnRecipe,
    IndexFreeRecipe,
    LambdaMART,
    Recipe,
    sample_topics,
    with_relevant,
    with_runs,
)

Inputs = tuple[Run, Mapping[str, Mapping[str, Any]], PositionalIndex | None, Recipe[Any]]
"""The first stage, judgements, index and recipe, as `greylag.train` takes them."""
_log = logging.getLogger("greylag")


def from_index(
    shared: Shared,
    index: list[Path],
    topics: Path | None,
    qrels: Path,
    run: Path | None,
    recipe: Recipe,
    *,
    union: bool,
    every: bool,
) -> Inputs:
    """Read the run, or search the index: for topics to learn from, or for `every` topic."""
    if topics is None:
        raise ParameterError("give --topics: models with an --index need the queries' texts")
    first = None if run is None else shared.run(run, topics)
    judged = shared.qrels(qrels, first, topics)
    with LuceneIndex(index) as lucene:
        positions = PositionalIndex.from_lucene(lucene)
        if first is None:
            texts = shared.topics(topics)
            relevant = judged_topics(texts, judged, recipe.measure.rel)
            # Drawn before the search, as `train` would draw them after it: others are not searched in vain.
            drawn = sample_topics(relevant, MAX_TOPICS)
            if not every or len(drawn) < len(relevant):
                left_out = texts.keys() - set(drawn)  # not the topics that are missing
                judged = {qid: grades for qid, grades in judged.items() if qid not in left_out}
                texts = {qid: texts[qid] for qid in drawn}
            first = search_first(lucene, texts, shared.jobs, union=union)
    return first, judged, positions, recipe


def from_runs(
    shared: Shared,
    topics: Path | None,
    qrels: Path,
    run: Path | None,
    features: Sequence[Feature],
    learner: Learner | LambdaMART,
    preselection: MMRPreselection | None,
) -> Inputs:
    """Read the run, and learn from its scores and the features."""
    recipe = IndexFreeRecipe(with_runs(features), learner, preselection=preselection)
    if run is None:
        raise ParameterError("give a --run to rerank: without --index, nothing can be searched")
    if not features:
        raise ParameterError(
            f"without --index, {run} has no features but its own scores: give other runs of its topics by "
            "--features run:FILE, or the --index"
        )
    _log.info("without --index: windows, expansion, translation and all other features of texts are left out")
    first = shared.run(run, topics)
    return first, shared.qrels(qrels, first, topics), None, recipe


def from_letor(
    path: Path,
    validation: Path | None,
    features: Sequence[Feature],
    learner: Learner | LambdaMART,
    preselection: MMRPreselection | None,
) -> Inputs:
    """Read a feature file, and learn from its columns."""
    data, held_out = read_letor(path, absent=0.0), None
    warn_of_order(path, data)
    columns = chosen_columns(path, data, features)
    if validation is not None:
        held_out = read_letor(validation, absent=0.0)
        warn_of_order(validation, held_out)
        if both := set(held_out.qids) & set(data.qids):
            raise FormatError(validation, None, f"{len(both)} of its topics, such as {min(both)!r}, are in {path}, too")
        with naming(validation):
            held_out = with_relevant(held_out, Objective.parse(learner.objective).rel, str(validation))
    with naming(validation or path):
        recipe = ColumnRecipe.of(data, learner, columns=columns, validation=held_out, preselection=preselection)
    return listed_run(data, path.name.split(".")[0] or "letor"), listed_grades(data), None, recipe


def from_subtopics(
    shared: Shared,
    name: str,
    index: list[Path] | None,
    topics: Path | None,
    qrels: Path | None,
    run: Path | None,
    features: Sequence[Feature],
    recipe: Recipe[Any],
) -> Inputs:
    """Read the run whose top documents are picked from, and judgements by subtopic."""
    if index is None or qrels is None:
        raise ParameterError(f"--model {name} needs --index and --qrels")
    if run is None:
        raise ParameterError(f"--model {name} needs a --run, whose top documents it learns to pick from")
    if topics is None and (asking := [feature for feature in features if feature.reads_query]):
        raise ParameterError(f"give --topics: the feature {asking[0]} needs the queries' texts")
    positions = PositionalIndex.from_lucene(index)
    return shared.run(run, topics), shared.subtopic_qrels(qrels), positions, recipe


def recipe_of_folds(
    folder: Path, features: Sequence[Feature], learner: Learner | LambdaMART, preselection: MMRPreselection | None
) -> Callable[..., ColumnRecipe]:
    """Make the function that `train_on_letor` takes."""

    def recipe(data: RankingData, *, validation: RankingData | None) -> ColumnRecipe:
        if validation is not None:
            validation = with_relevant(validation, Objective.parse(learner.objective).rel, "vali.txt")
        columns = chosen_columns(folder, data, features)
        return ColumnRecipe.of(data, learner, columns=columns, validation=validation, preselection=preselection)

    return recipe


def chosen_columns(path: Path, data: RankingData, features: Sequence[Feature]) -> list[str]:
    """Return the names of the requested columns, by name or number."""
    # A file whose features are numbered from 0 has a column of this name.
    numbered = enumerate(data.names, 0 if data.names[:1] == ("0",) else 1)
    named = {**{str(number): name for number, name in numbered}, **{name: name for name in data.names}}
    for feature in features:
        if not isinstance(feature, Column):
            raise ParameterError(
                f"--features {feature} is no column of a feature file: name columns by number, or as column:NAME"
            )
        if feature.name not in named:
            raise FormatError(path, None, f"has no column {feature.name}; its columns are {span(data.names)}")
    return [named[str(feature).removeprefix("column:")] for feature in features]


def propose_measure(qrels: Mapping[str, Mapping[str, Any]]) -> None:
    """Suggest a measure that suits the judgements better than AP."""
    relevant = [[grade for grade in judged.values() if grade > 0] for judged in qrels.values()]
    if any(grade > 1 for grades in relevant for grade in grades):
        write_line("AP is maximised, which treats all grades above 0 alike; --measure nDCG@10 distinguishes them")
    elif sum(map(len, relevant)) <= 2 * sum(map(bool, relevant)):
        write_line("AP is maximised; with one or two relevant documents per topic, --measure RR or nDCG@10 is usual")
