"""``greylag doctor``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.terminal import tell
from greylag.errors import ParameterError


def doctor(
    context: typer.Context,
    index: Annotated[
        list[Path] | None,
        typer.Option("--index", help="Index to check, too. Given several times: the shards of one collection."),
    ] = None,
    compiling: Annotated[
        bool, typer.Option("--compile", help="Compile what ranking uses, instead; half a minute or more.")
    ] = False,
) -> None:
    """Check Java, Pyserini and an index, and say what to do about what is missing.

    The last line says whether greylag is ready. The exit code is 1 if something is missing or damaged; a note is about
    Pyserini's own searchers, which greylag does not need.

    Compiled loops are made by the first command that needs them, which takes seconds more than the next. With
    --compile, they are made at once, and kept for all processes: for an image of a service, for example.
    """
    if compiling:
        from greylag.cli.compiling import steps

        for name, seconds in steps():
            tell(f"{seconds:6.1f} s  {name}")
        return
    from greylag.index import PositionalIndex
    from greylag.lucene.doctor import diagnose

    for path in index or []:
        if not path.is_dir():
            raise ParameterError(f"--index {path}: there is no such folder")
    probes = [("export", lambda: PositionalIndex.verify_export(index), "delete it; it is made again")] if index else []
    checks = diagnose(index or None, *probes)
    for check in checks:
        verdict, remedy = ("note" if check.ok else "missing", f"; {check.remedy}") if check.remedy else ("ok", "")
        tell(f"{verdict:8}{check.name}: {check.detail}{remedy}")
    if missing := [check.name for check in checks if not check.ok]:
        tell(f"greylag is not ready: {' and '.join(missing)} missing or damaged, see above")
        raise typer.Exit(1)
    tell("greylag is ready")
