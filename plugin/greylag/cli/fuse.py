"""``greylag fuse``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.options import OutputRun, Shared, Tag
from greylag.fusion import fuse_runs
from greylag.ltr.letor import read_scores
from greylag.ranking import Run
from greylag.trec import write_run


def fuse(
    context: typer.Context,
    run: Annotated[list[Path], typer.Option("--run", help="TREC run; give the option once for each run.")],
    out: OutputRun,
    method: Annotated[
        Literal["rrf", "combsum", "combmnz"],
        typer.Option("--method", help="Reciprocal ranks, 1 / (60 + rank), or sums of scores."),
    ] = "rrf",
    hits: Annotated[
        int | None, typer.Option("--hits", help="Number of documents per query; all by default.", min=1)
    ] = None,
    scored: Annotated[
        Path | None,
        typer.Option(
            "--scores-of", metavar="FILE", help="The file of `greylag features` whose documents --run has scores of."
        ),
    ] = None,
    tag: Tag = None,
) -> None:
    """Fuse runs without learning: all documents that one of them has, such as the candidates for reranking.

    With --scores-of, each --run has the scores that another program, such as LightGBM or RankLib, gave to the documents
    of that file, in its order: one a line, or RankLib's QID INDEX SCORE. A single --run keeps its scores.
    """
    shared: Shared = context.obj
    if scored is None:
        runs = [shared.run(path) for path in run]
    else:
        runs = [read_scores(path, scored, lenient=shared.lenient) for path in run]
    alone = scored is not None and len(runs) == 1
    if alone:
        fused = Run(tuple(each.head(hits or len(each)) for each in runs[0].rankings), tag or runs[0].tag)
    else:
        fused = fuse_runs(runs, method, k=hits, tag=tag)
    tags = [each.tag for each in runs]
    step = {"name": fused.tag, **({} if alone else {"method": method}), "interpolates": tags}
    write_run(fused, out, metadata=shared.metadata(step, before=zip(tags, run, strict=True)))
