"""``greylag doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.base import ParameterError
from greylag.cli.terminal import write_line

_JAVA = {"Java", "Pyserini"}  # what only work on Lucene indexes needs


def doctor(
    context: typer.Context,
    index: Annotated[
        list[Path] | None,
        typer.Option("--index", help="Index to check, too. Repeat it for the shards of one collection."),
    ] = None,
) -> None:
    """Check Java, Pyserini and an index, and say how to mend what is missing.

    The last line says whether greylag is ready, or what is missing. The exit code is 1 if a check fails, or if --index
    is given and Java or Pyserini is missing; without an index, neither is needed.
    """
    from greylag.index import diagnose, folders

    for path in index or []:
        if not path.is_dir():
            raise ParameterError(f"--index {path}: there is no such folder")
    if index:
        folders(index)  # raises if one is given twice
    checks = diagnose(index or None)
    failed = [check.name for check in checks if not check.ok]
    for check in checks:
        verdict = "ok" if check.ok else "missing" if check.name in _JAVA else "fails"
        write_line(f"{verdict:8}{check.name}: {check.detail}{check.remedy and f'; {check.remedy}'}")
    if not failed:
        write_line("greylag is ready")
    elif index or not set(failed) <= _JAVA:
        write_line(f"greylag is not ready: see {' and '.join(failed)} above")
        raise typer.Exit(1)
    else:
        without = "fuse, evaluate, experiment demo, and Python on texts and embeddings"
        write_line(f"greylag is ready for all that needs no index ({without}); an index needs {' and '.join(failed)}")
