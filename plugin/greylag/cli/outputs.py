"""What commands write: never to a file that they read, and on the terminal above the progress line."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer

from greylag.errors import ParameterError


@contextmanager
def above_progress() -> Iterator[None]:
    """Let what is printed in the block stand above the progress line, if there is one."""
    tqdm = sys.modules.get("tqdm")  # not imported as long as there has been no progress
    with nullcontext() if tqdm is None else tqdm.tqdm.external_write_mode():
        yield


def tell(line: str) -> None:
    """Print a line above the progress line."""
    with above_progress():
        typer.echo(line)


def check_output(out: Path, inputs: Iterable[str | Path]) -> None:
    """Check that an output is not an input, under whatever name, and not inside an input folder.

    Raises
    ------
    ParameterError
        If it is.
    """
    for path in inputs:
        if os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
            raise ParameterError(f"{out} is the input {path}, which it would replace: write to another file")
        if os.path.isdir(path) and Path(os.path.realpath(out)).is_relative_to(os.path.realpath(path)):
            raise ParameterError(f"{out} is inside the input folder {path}: write to another place")


def check_options(values: Mapping[str, Any]) -> None:
    """`check_output` for the option ``out`` of a command, if it has one, and all other paths among its options."""
    out = values.get("out")
    if isinstance(out, Path):
        others = [value for name, value in values.items() if name != "out"]
        lists = [value if isinstance(value, list) else [value] for value in others]
        check_output(out, [path for paths in lists for path in paths if isinstance(path, Path)])
