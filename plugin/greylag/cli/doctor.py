"""``greylag doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def doctor(
    index: Annotated[
        list[Path] | None,
        typer.Option("--index", help="Index to check, too. Given several times: the shards of one collection."),
    ] = None,
) -> None:
    """Check Java, Pyserini and an index, and say what to do about what is missing."""
    from greylag.index import PositionalIndex
    from greylag.lucene import diagnose

    probes = [("export", lambda: PositionalIndex.verify_export(index), "delete it; it is made again")] if index else []
    checks = diagnose(index or None, *probes)
    for check in checks:
        verdict, remedy = ("ok", "") if check.ok else ("missing", f"; {check.remedy}")
        typer.echo(f"{verdict:8}{check.name}: {check.detail}{remedy}")
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
