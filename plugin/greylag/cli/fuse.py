"""``greylag fuse``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.options import OutputRun, Shared, Tag
from greylag.fusion import fuse_runs
from greylag.trec import write_run


def fuse(
    context: typer.Context,
    run: Annotated[list[Path], typer.Option("--run", help="TREC run; give the option once for each run.")],
    out: OutputRun,
    method: Annotated[
        Literal["rrf", "combsum", "combmnz"], typer.Option("--method", help="Reciprocal ranks, or sums of scores.")
    ] = "rrf",
    hits: Annotated[
        int | None, typer.Option("--hits", help="Number of documents per query; all by default.", min=1)
    ] = None,
    tag: Tag = None,
) -> None:
    """Fuse runs without learning: all documents that one of them has, such as the candidates for reranking."""
    shared: Shared = context.obj
    runs = [shared.run(path) for path in run]
    fused = fuse_runs(runs, method, k=hits, tag=tag)
    tags = [each.tag for each in runs]
    step = {"name": fused.tag, "method": method, "interpolates": tags}
    write_run(fused, out, metadata=shared.metadata(step, before=zip(tags, run, strict=True)))
