"""``greylag tune``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.first_stage import first_stage
from greylag.cli.held_out import HeldOut, train_recipe
from greylag.cli.options import Index, Reading, Topics
from greylag.cli.running import Resumable
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.ltr import baselines
from greylag.ltr.baselines import GRID, Baseline, BaselineRecipe
from greylag.ltr.training import training_line

MODELS: dict[str, tuple[Baseline, ...]] = {
    "bm25": (baselines.BM25,),
    "ql": (baselines.LM,),
    "sdm": (baselines.SDM,),
    "rm3": (baselines.BM25, baselines.RM3),
}
_WHOLE = ("fb_docs", "fb_terms")


def tune(
    index: Index,
    topics: Topics,
    qrels: Annotated[Path, typer.Option("--qrels", help="Relevance judgements to tune on.")],
    out: Annotated[Path, typer.Option("--out", help="Model to write (JSON), for `greylag rerank`.")],
    held_out: HeldOut,
    reading: Reading,
    running: Resumable,
    run: Annotated[Path | None, typer.Option("--run", help="TREC run to rerank; by default BM25.")] = None,
    model: Annotated[
        Literal["bm25", "ql", "sdm", "rm3"],
        typer.Option(
            "--model",
            help="BM25; query likelihood; sequential dependence; BM25 with expansion (of tuned BM25).",
        ),
    ] = "bm25",
    measure: Annotated[str, typer.Option("--measure", help="Measure to maximise: map, nDCG@10, ...")] = "map",
    grid: Annotated[
        list[str] | None,
        typer.Option("--grid", help="Values to try of mu, k1, b, fb_docs or fb_terms: k1=0.6,0.9,1.2. Repeatable."),
    ] = None,
) -> None:
    """Tune a baseline on judged topics, and write it as a model.

    It reranks a run by the values of a grid that are best on the topics. The scores on these topics say nothing about
    other topics. With --folds, each topic is also ranked by the values that are best on the other folds. The folds are
    those of greylag train, so that both rankings can be compared.
    """
    held_out.check([out, topics, qrels, run, *index])
    *before, baseline = MODELS[model]
    values = {**GRID, **parse_grid(grid or [], [name for step in MODELS[model] for name in step.tuned])}
    recipe = BaselineRecipe(baseline, objective=measure, grid=values, before=tuple(before))
    rankings = first_stage(run, index, topics, reading, running.jobs)
    judgements, positions = reading.qrels(qrels, rankings), PositionalIndex.from_lucene(index)
    tuned = train_recipe(recipe, rankings, judgements, positions, held_out, f"tuned-{model}", running.jobs)
    tuned.save(out)
    typer.echo(training_line(tuned))
    for name in recipe.at_ends(tuned):
        typer.echo(
            f"{name} is at an end of its values, {min(values[name])} to {max(values[name])}: try more with --grid"
        )


def parse_grid(texts: list[str], known: list[str]) -> dict[str, tuple[float, ...]]:
    """The grid's values by parameter.

    Raises
    ------
    ParameterError
        If a text is not of the form ``k1=0.6,0.9``, names a parameter that is not tuned, or names one twice.
    """
    grid: dict[str, tuple[float, ...]] = {}
    for text in texts:
        name, _, listed = text.partition("=")
        if name not in known or name in grid:
            problem = "is given twice" if name in grid else f"is not tuned: use one of {', '.join(known)}"
            raise ParameterError(f"--grid {text!r:.60}: {name!r:.60} {problem}")
        try:
            grid[name] = tuple(int(value) if name in _WHOLE else float(value) for value in listed.split(","))
        except ValueError as error:
            raise ParameterError(f"--grid {text!r:.60} is not of the form k1=0.6,0.9,1.2: {error}") from None
    return grid
