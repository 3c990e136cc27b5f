"""``greylag experiment``."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.outputs import tell
from greylag.cli.running import Running
from greylag.errors import FormatError, ParameterError
from greylag.experiments import template
from greylag.experiments.runner import run_study
from greylag.experiments.shipped import shipped_file, shipped_files
from greylag.experiments.study import deviations, find_study, load, registered_studies


def experiment(
    running: Running,
    config: Annotated[
        Path | None, typer.Argument(help="Experiment file (YAML), or the name of one that comes with greylag.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Output folder (default runs/NAME).")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with 1 unless the scores are those that the file expects.")
    ] = False,
    init: Annotated[
        str | None,
        typer.Option(
            "--init", metavar="NAME", help="Print an experiment file to start from: of a study, or one of greylag's."
        ),
    ] = None,
    schema: Annotated[
        str | None, typer.Option("--schema", metavar="STUDY", help="Print the JSON Schema of a study's files.")
    ] = None,
) -> None:
    """Run the study that an experiment file describes, from documents and topics to scores and a report.

    For a collection of your own: greylag experiment --init pipeline > mine.yaml, fill it in, and run it.
    """
    if init is not None:
        typer.echo(starting_point(init), nl=False)
        return
    if schema is not None:
        typer.echo(json.dumps(template.schema(schema, find_study(schema).settings), indent=1))
        return
    if config is None:
        raise ParameterError(f"give an experiment file, or --init with one of {', '.join(registered_studies())}")
    config = config if config.exists() or config.name != str(config) else shipped_file(config.name)
    study, settings = load(config)
    if not settings.data_folder.is_dir():
        folder = os.path.normpath(settings.data_folder)
        raise FormatError(
            config, None, f"data: there is no folder {folder}; set GREYLAG_DATA to that of the collections"
        )
    if check and not settings.expected:
        raise FormatError(config, None, "--check needs expected scores in the file")
    finished = run_study(study, settings, out or Path("runs") / settings.name, n_jobs=running.jobs, progress=tell)
    typer.echo(f"\n{finished.summary}", nl=False)
    if check:
        differing = deviations(finished.scores, settings.expected)
        for line in differing:
            typer.echo(line, err=True)
        if differing:
            raise typer.Exit(1)
        typer.echo("all scores are as expected")


def starting_point(name: str) -> str:
    """A commented experiment file of a study, or the file of this name that comes with greylag.

    Raises
    ------
    ParameterError
        If there is neither.
    """
    stem = name.removesuffix(".yaml")
    if name not in registered_studies() and stem in shipped_files():
        return shipped_file(stem).read_text(encoding="utf-8")
    return template.template(name, find_study(name).settings)
