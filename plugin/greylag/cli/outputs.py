"""Refusing to write to a file that is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from greylag.errors import ParameterError


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
