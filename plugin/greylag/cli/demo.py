"""``greylag demo``."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.options import Jobs
from greylag.experiments.runner import run_study
from greylag.experiments.study import load


def demo(
    out: Annotated[Path, typer.Option("--out", help="Output folder.")] = Path("runs/demo"), jobs: Jobs = -1
) -> None:
    """Run a whole pipeline on a small collection that comes with greylag."""
    with as_file(files("greylag") / "demo") as folder:
        finished = run_study(*load(folder / "demo.yaml"), out, n_jobs=jobs, progress=typer.echo)
    typer.echo(f"\n{finished.summary}")
    typer.echo(f"Open {(out / 'report.html').resolve().as_uri()} in a browser to see what each query gained, and why.")
    typer.echo(f"All runs, models and scores are in {out}; models/fold-1.json there is a learned model.")
    typer.echo("Next, on your own collection: greylag index, search, tune, train, evaluate; or all from one file:")
    typer.echo("greylag experiment --init pipeline > mine.yaml")
