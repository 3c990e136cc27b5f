"""``greylag diversify``."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from greylag.base import ParameterError
from greylag.cli.options import INDEX, VECTORS, Shared
from greylag.cli.terminal import write_line
from greylag.evaluation import read_aspects
from greylag.features import STAGE_FILES, StageStep
from greylag.index import PositionalIndex, open_vectors
from greylag.recipes import LEARNED_FEATURES, NONE, DiversifierChoice, choose_diversifier, is_learned

_log = logging.getLogger("greylag")


def diversify(
    context: typer.Context,
    run: Annotated[Path, typer.Argument(metavar="RUN", help="TREC run to diversify.")],
    subtopics: Annotated[
        Path, typer.Option("--subtopics", help="Judgements by subtopic or nugget: columns, JSON lines, or irds:NAME.")
    ],
    index: Annotated[list[Path] | None, INDEX] = None,
    vectors: Annotated[Path | None, VECTORS] = None,
    aspects: Annotated[
        Path | None, typer.Option("--aspects", help="Aspects of the queries, for xquad and pm2: texts or scores.")
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(
            "--method",
            help="Stage to try, such as mmr or xquad(scale=max); can be repeated. By default, all diversifiers that "
            "the other options allow.",
        ),
        STAGE_FILES,
    ] = None,
    measure: Annotated[str, typer.Option("-m", "--measure", help="Measure to choose by.")] = "alpha-nDCG@10",
    folds: Annotated[int, typer.Option("--folds", min=2, help="Number of folds of the cross-validation.")] = 5,
) -> None:
    """Compare and tune diversifiers.

    The weight of each method is tuned in cross-validation over topics, and its held-out rankings are compared with the
    run itself. The last line is a command that applies the best method to all topics.
    """
    shared: Shared = context.obj
    if index is None and vectors is None and aspects is None:
        raise ParameterError("give --index, --vectors, or --aspects with scores")
    steps = [StageStep.parse(text) for text in methods or ()]
    lacking = [step for step in steps if "aspects" in step.stage.needs and "aspects" not in dict(step.options)]
    if aspects is None and lacking:
        raise ParameterError(f"--method {lacking[0]} needs --aspects")
    choice = choose_diversifier(
        shared.run(run),
        shared.subtopic_qrels(subtopics),
        index=None if index is None else PositionalIndex.from_lucene(index),
        vectors=None if vectors is None else open_vectors(vectors),
        aspects=None if aspects is None else read_aspects(aspects),
        methods=methods,
        measure=measure,
        folds=folds,
        n_jobs=shared.jobs,
    )
    times = ", ".join(f"{name} {1000 * seconds:.2g}" for name, seconds in choice.seconds.items())
    _log.info("milliseconds per query: %s", times)  # not in the output, which is the same in every run
    write_line(str(choice))
    for line in commands(choice, run, subtopics, index or (), vectors, aspects):
        write_line(line)


def commands(
    choice: DiversifierChoice,
    run: Path,
    subtopics: Path,
    index: Sequence[Path],
    vectors: Path | None,
    aspects: Path | None,
) -> list[str]:
    """Return the commands that apply the best method; none if that is to do nothing."""
    if choice.best == NONE:
        return []
    step, words, before = choice.stages[choice.best], ["greylag", "rerank", "--run", str(run)], list[str]()
    folders = [word for path in index for word in ("--index", str(path))]
    if is_learned(step):
        model, features = f"{step.name}.json", ",".join(LEARNED_FEATURES)
        train = ["greylag", "train", "--model", step.stage.learned_by, *folders, "--run", str(run)]
        before.append(shlex.join([*train, "--qrels", str(subtopics), "--features", features, "--out", model]))
        step = step.adding(model=model)
    elif "aspects" in step.stage.needs:
        step = step.adding(aspects=str(aspects))
    words += ["--vectors", str(vectors)] if "vectors" in step.stage.needs and vectors is not None else folders
    words += ["--stage", str(step), "--out", f"{run.name.partition('.')[0]}-{step.name}.run"]
    return [*before, shlex.join(words)]
