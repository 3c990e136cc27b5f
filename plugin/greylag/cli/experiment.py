"""``greylag experiment``."""

from __future__ import annotations

import logging
import os
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from greylag.base import FormatError, ParameterError, check_choice, visible
from greylag.cli.options import Shared
from greylag.cli.terminal import write_line
from greylag.studies import STUDY_FORMS, deviations, load, run_study, shipped_file

_log = logging.getLogger("greylag")


def _experiment_file(path: Path | None) -> Path | None:
    """Find the file of this path, or that of this name that comes with greylag."""
    return path if path is None or path.is_file() or path.name != str(path) else shipped_file(path.name)


def experiment(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Argument(
            callback=_experiment_file,
            help="Experiment file (YAML), or the name of one that comes with greylag, such as demo.",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Output folder (default runs/NAME).")] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Exit with code 1 if the scores are not those that the file expects.")
    ] = False,
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="|".join(STUDY_FORMS),
            help="Print the scores and tests alone, in a form as for greylag evaluate.",
        ),
    ] = None,
    init: Annotated[
        str | None,
        typer.Option(
            "--init",
            metavar="NAME",
            help="Print an experiment file to start from: pipeline, or one that comes with greylag.",
        ),
    ] = None,
) -> None:
    """Run the study that an experiment file describes, from documents and topics to scores and a report.

    Try `greylag experiment demo`, a whole pipeline on a small collection that comes with greylag.

    For your own collection: greylag experiment --init pipeline > mine.yaml, fill it in, and run it.
    """
    shared: Shared = context.obj
    if init is not None and config is not None:
        raise ParameterError("a file and --init: give a file, or --init alone")
    if config is None and (check or out is not None):
        raise ParameterError("--check or --out without a file: give a file, or --init alone")
    if init is not None:
        template = Path(str(files("greylag.studies") / "templates" / f"{init}.yaml"))
        write_line((template if template.is_file() else shipped_file(init)).read_text(encoding="utf-8"))
        return
    if config is None:
        raise ParameterError("give an experiment file, such as demo, or --init pipeline for one to fill in")
    study, settings = load(config)
    if form is not None:
        check_choice("--format", form, STUDY_FORMS)
        if not study.evaluates:
            raise ParameterError(f"--format: the study {settings.study} has no evaluation, and its tables one form")
    if not settings.data_folder.is_dir():
        folder = os.path.normpath(settings.data_folder)
        raise FormatError(
            config, None, f"data: there is no folder {folder}; set GREYLAG_DATA to that of the collections"
        )
    if check and not settings.expected:
        raise FormatError(config, None, "--check needs expected scores in the file")
    # Before a form, which may go into a file, no lines of progress.
    progress = write_line if form is None else _log.info
    target = out or Path("runs") / settings.name
    finished = run_study(study, settings, target, n_jobs=shared.jobs, progress=progress, metadata=shared.described)
    write_line(f"\n{finished.summary}" if form is None else finished.forms[form])
    if check:
        differing = deviations(finished.scores, settings.expected)
        for line in differing:
            typer.echo(visible(line), err=True)
        if differing:
            raise typer.Exit(1)
        progress("all scores are as expected")
