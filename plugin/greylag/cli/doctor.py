"""``greylag doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.lucene.doctor import diagnose


def doctor(index: Annotated[Path | None, typer.Option("--index", help="Index to check, too.")] = None) -> None:
    """Check Java, Pyserini and an index, and say what to do about what is missing."""
    checks = diagnose(index)
    for check in checks:
        verdict, remedy = ("ok", "") if check.ok else ("missing", f"; {check.remedy}")
        typer.echo(f"{verdict:8}{check.name}: {check.detail}{remedy}")
    if not all(check.ok for check in checks):
        raise typer.Exit(1)
