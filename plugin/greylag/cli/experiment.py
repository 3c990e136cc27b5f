"""``greylag experiment``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.options import Jobs
from greylag.errors import FormatError
from greylag.experiments.runner import run_study
from greylag.experiments.study import deviations, load


def experiment(
    config: Annotated[Path, typer.Argument(help="Experiment file (YAML).")],
    out: Annotated[Path | None, typer.Option("--out", help="Output folder (default runs/NAME).")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 unless the scores are those that the file expects.")
    ] = False,
    jobs: Jobs = -1,
) -> None:
    """Run the study that an experiment file describes, from documents and topics to scores and a report."""
    study, settings = load(config)
    if check and not settings.expected:
        raise FormatError(config, None, "--check needs expected scores in the file")
    finished = run_study(study, settings, out or Path("runs") / settings.name, n_jobs=jobs, progress=typer.echo)
    typer.echo(f"\n{finished.summary}", nl=False)
    if check:
        differing = deviations(finished.scores, settings.expected)
        for line in differing:
            typer.echo(line, err=True)
        if differing:
            raise typer.Exit(1)
        typer.echo("all scores are as expected")
