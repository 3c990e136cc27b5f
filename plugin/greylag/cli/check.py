"""``greylag check``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.options import Shared, Topics
from greylag.cli.terminal import write_line
from greylag.errors import GreylagError, ParameterError
from greylag.evaluation.submission import DEPTH, check_submission


def check(
    context: typer.Context,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs.")],
    topics: Topics,
    index: Annotated[
        list[Path] | None,
        typer.Option("--index", help="Index of the collection, to report documents that it lacks."),
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Maximum number of documents per topic.")] = DEPTH,
) -> None:
    """Check whether runs follow the rules of a submission to TREC.

    All runs are checked, with a line for each rule. The exit code is 2 if TREC would refuse one. Nothing is repaired.
    """
    shared: Shared = context.obj
    asked, known = shared.topics(topics), None
    if index is not None:
        from greylag.index.lucene import LuceneIndex

        known = LuceneIndex(index).known_docids
    refused = []
    for path in runs:
        try:
            findings = check_submission(path, asked, known=known, depth=depth)
        except GreylagError as error:  # such as an empty file; the runs after it are checked, too
            write_line(f"{'refused':8}file: {error}")
            broken = ["file"]
        else:
            write_line("\n".join(map(str, findings)))
            broken = [finding.rule for finding in findings if finding.broken]
        write_line(f"{path}: {'refused for ' + ', '.join(broken) if broken else 'follows the rules'}")
        refused += [str(path)] if broken else []
    if refused:
        raise ParameterError(
            f"{len(refused)} of {len(runs)} runs would be refused, for the reasons above: {', '.join(refused)}"
        )
