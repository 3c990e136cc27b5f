"""``greylag doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.terminal import write_line
from greylag.errors import ParameterError


def doctor(
    context: typer.Context,
    index: Annotated[
        list[Path] | None,
        typer.Option("--index", help="Index to check, too. Repeat it for the shards of one collection."),
    ] = None,
) -> None:
    """Check Java, Pyserini and an index, and say how to mend what is missing.

    The last line says whether greylag is ready, or what is missing. The exit code is 1 if a check fails, or if --index
    is given and Java or Pyserini is missing; without an index, neither is needed. Notes are about Pyserini's own
    searchers, which greylag does not need.
    """
    from greylag.index import PositionalIndex
    from greylag.index.lucene.doctor import JAVA_CHECKS, diagnose
    from greylag.index.lucene.open_index import folders

    for path in index or []:
        if not path.is_dir():
            raise ParameterError(f"--index {path}: there is no such folder")
    if index:
        folders(index)  # raises if one is given twice
    probes = [("export", lambda: PositionalIndex.verify_export(index), "delete it; it is made again")] if index else []
    checks = diagnose(index or None, *probes)
    failed = [check.name for check in checks if not check.ok]
    for check in checks:
        failure = "missing" if check.name in JAVA_CHECKS else "fails"
        verdict = failure if not check.ok else "note" if check.remedy else "ok"
        write_line(f"{verdict:8}{check.name}: {check.detail}{check.remedy and f'; {check.remedy}'}")
    if not failed:
        write_line("greylag is ready")
    elif index or not set(failed) <= {*JAVA_CHECKS}:
        write_line(f"greylag is not ready: see {' and '.join(failed)} above")
        raise typer.Exit(1)
    else:
        without = "fuse, evaluate, experiment demo, and Python on texts and embeddings"
        write_line(f"greylag is ready for all that needs no index ({without}); an index needs {' and '.join(failed)}")
