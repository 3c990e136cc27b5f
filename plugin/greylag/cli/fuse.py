"""``greylag fuse``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.options import Lenient, OutputRun, Tag
from greylag.fusion import fuse_runs
from greylag.trec import read_run, write_run


def fuse(
    run: Annotated[list[Path], typer.Option("--run", help="TREC run; give the option once for each run.")],
    out: OutputRun,
    method: Annotated[
        Literal["rrf", "combsum", "combmnz"], typer.Option("--method", help="Reciprocal ranks, or sums of scores.")
    ] = "rrf",
    hits: Annotated[
        int | None, typer.Option("--hits", help="Number of documents per query; all by default.", min=1)
    ] = None,
    lenient: Lenient = False,
    tag: Tag = None,
) -> None:
    """Fuse runs without learning: all documents that one of them has, such as the candidates for reranking."""
    runs = [read_run(path, lenient=lenient) for path in run]
    write_run(fuse_runs(runs, method, k=hits, tag=tag), out)
