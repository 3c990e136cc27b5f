"""``greylag pool``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.base import write_text
from greylag.cli.options import Runs, Shared, Teams, TheNames
from greylag.cli.terminal import write_line
from greylag.evaluation import RunParts, name_files, pool_runs


def pool(
    context: typer.Context,
    runs: Runs,
    out: Annotated[Path, typer.Option("--out", help="File to write: a line QID DOCID for each document to judge.")],
    depth: Annotated[int, typer.Option("--depth", min=1, help="Documents per topic of each run or team.")] = 100,
    teams: Teams = None,
    qrels: Annotated[
        list[Path] | None,
        typer.Option("--qrels", help="Judgements so far, whose documents are not judged again; can be repeated."),
    ] = None,
    sample: Annotated[
        int | None, typer.Option("--sample", min=1, help="Draw at most this many documents of each topic at random.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the draw.")] = 0,
    names: TheNames = "path",
) -> None:
    """Pool the top documents of runs for people to judge, and show what each run has in the pool.

    With --teams, each team has as many documents as any other: its runs are merged rank by rank.
    """
    shared: Shared = context.obj
    files = name_files(runs, names)
    # Read in parts, as the runs of a whole track are larger than memory; only their tops are kept.
    opened = {name: RunParts(path, lenient=shared.lenient) for name, path in files.items()}
    judged = None if qrels is None else shared.qrels(qrels)
    pooled = pool_runs(opened, depth, teams=teams, judged=judged, sample=sample, seed=seed)
    write_text(out, pooled.lines)
    write_line(str(pooled))
