"""The inputs of ``greylag rerank``: the stages that rank, and the rankings that they start from.

Models, and the search for candidates, are imported where they are needed: a stage such as MMR takes half the time then.
"""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.base import SEEN, FormatError, ModelError, ParameterError, Ranking, Run, Stage, registered
from greylag.cli.options import Shared
from greylag.cli.vector_inputs import warn_of_queries
from greylag.evaluation import JoinedRuns, Part, RunFile, is_feature_file
from greylag.features import StageStep, find_stage, required_parameters
from greylag.index import ArrayVectors, LuceneIndex, PositionalIndex

if TYPE_CHECKING:
    from greylag.cli.model_inputs import Model
    from greylag.rankers import RankingModel
FirstStage = tuple[Run | RunFile | JoinedRuns, list[str]]
"""The rankings to start from, and the tags of the runs that they were made of."""
_log = logging.getLogger("greylag")


def stages_of(
    model: Model | None,
    steps: Sequence[StageStep],
    index: PositionalIndex | None,
    vectors: ArrayVectors | None,
    replaced: Mapping[str, str],
    *,
    transfer: bool,
) -> list[tuple[str, Stage]]:
    """Make the stage of a model that reranks and those of the steps, with files in place of those that it names."""
    if (replaced or transfer) and model is None:
        raise ParameterError(
            "--file and --transfer go with --model, of features or diversity; a stage takes transfer=true"
        )
    made = [(step.name, step.make(index, vectors=vectors)) for step in steps]
    if model is None:
        return made
    # By name, so that a linear model does not load the diversifiers, which need SciPy.
    kind: Any = find_stage(model.stage_name)
    if index is None and "index" in required_parameters(kind):
        raise ParameterError("--model needs --index")
    learners = {entry.attr: name for name, entry in registered("learner").items()}  # of which a run's tag has the name
    name = learners.get(model.learner, model.stage_name)
    return [(name, kind(model.with_files(replaced), index, transfer=transfer)), *made]


def over_columns(model: Any, path: Path, *, missing_as_zero: bool = False) -> tuple[RankingModel, Run]:
    """Give a model of a feature file's columns the values of another file; return that file's documents, too."""
    from greylag.learning import listed_run, read_letor, warn_of_order

    if model is None or not model.columns:
        raise ParameterError("--letor needs a model of the columns of such a file: train one by greylag train --letor")
    if missing_as_zero and model.absent is None:
        raise ParameterError("--missing-as-zero: the model has no trees, which alone know missing values")
    data = read_letor(path, absent=0.0 if missing_as_zero else model.absent)
    warn_of_order(path, data)
    asks = model.absent and not missing_as_zero and is_feature_file(path)  # only lines of text leave values out
    if asks and (missing := int(np.isnan(data.features).sum())):
        _log.warning(
            f"{path}: {missing:,} of {data.features.size:,} values are nan or left out, and count as missing, as "
            "XGBoost reads such files; if its trees were trained on arrays with 0 for what is left out, write the "
            "zeros, or give --missing-as-zero"
        )
    try:
        return model.with_columns(data), listed_run(data, path.name.split(".")[0] or "letor")
    except ModelError as error:
        raise FormatError(path, None, str(error)) from None


def read_files(texts: Iterable[str]) -> dict[str, str]:
    """Read the files of ``NAME=FILE`` by name."""
    files: dict[str, str] = {}
    for name, _, file in (text.partition("=") for text in texts):
        if not name or not file:
            raise ParameterError(f"--file {name} is not of the form NAME=FILE")
        if name in files:
            raise ParameterError(f"--file {name} is given twice: {files[name]} and {file}")
        files[name] = file
    return files


def first_rankings(
    shared: Shared,
    runs: Sequence[tuple[str | None, Path]],
    index: Sequence[Path],
    topics: Path | None,
    part: Part,
    *,
    fused: Sequence[str],
    union: bool | None,
    queries: Container[str] | None = None,
    hits: int = 1000,
) -> FirstStage:
    """Open the run, or those that a model fuses; without one, search for candidates unless `union` is None."""
    opened = [shared.open_run(path, topics) for _, path in runs]
    before = [run.tag for run in opened]
    if fused:
        return JoinedRuns(tuple(fused_runs(fused, runs, opened))), before
    if len(runs) > 1:
        raise ParameterError(
            f"{len(runs)} runs cannot be reranked at once: several --run are for a model of greylag fuse"
        )
    if runs:
        warn_of_queries(opened[0], queries)
        return opened[0], before
    if topics is None or union is None:
        raise ParameterError("give a --run; only the general model, and one trained without a run, can do without")
    from greylag.cli.search import search_first

    texts = shared.topics(topics)
    warn_of_queries(texts, queries)
    asked = dict(part.among(texts.items(), texts))
    searched = search_first(LuceneIndex(index), asked, shared.jobs, union=union, k=hits)
    # All topics, so that the part is the same one of these rankings; those of other parts are never ranked.
    others = (Ranking(qid, text, (), np.empty(0)) for qid, text in texts.items())
    rankings = tuple(searched.get(ranking.qid, ranking) for ranking in others)
    return Run(rankings, searched.tag), [searched.tag]


def fused_runs(
    names: Sequence[str], files: Sequence[tuple[str | None, Path]], runs: Sequence[Run | RunFile]
) -> list[Run | RunFile]:
    """Order the runs as the model's, by label, tag or name of file; the others keep their order."""
    # A warning names the run that is taken for another if its name differs.
    if len(runs) != len(names):
        raise ParameterError(f"the model fuses {len(names)} runs, {', '.join(names)}: give --run for each")
    paths = [path for _, path in files]
    # Names first, as the order on the command line may differ from the model's.
    left, placed = dict(zip(paths, runs, strict=True)), dict[str, Path]()
    for (label, path), run in zip(files, runs, strict=True):
        # The mark tells of topics, and is no part of the name that the model knows.
        name = next((name for name in (label, run.tag.removesuffix(SEEN), path.name) if name in names), None)
        if name is not None:
            if name in placed:
                raise ParameterError(f"{placed[name]} and {path} are both {name}: give each run of the model once")
            placed[name] = path
    others = [path for path in paths if path not in placed.values()]
    unknown = dict(zip([name for name in names if name not in placed], others, strict=True))
    if unknown:
        taken = ", ".join(f"{path} as {name}" for name, path in unknown.items())
        _log.warning(f"the runs are not named as in the model, so their order counts: {taken}")
    return [left[(placed | unknown)[name]] for name in names]
