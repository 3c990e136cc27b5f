"""Type checkers accept a user's code and reject a user's mistakes."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

import greylag
from tests.processes import python

pytestmark = pytest.mark.long
HERE = Path(__file__).parent
PLUGIN = Path(greylag.__file__).parents[1]
CACHE = HERE.parents[1] / ".mypy_cache" / "typing"
FILES = [str(HERE / name) for name in ("good.py", "bad.py")]


def run(*words: str | Path) -> str:
    """What a module prints that is run from a folder without any configuration."""
    environment = {**os.environ, "MYPYPATH": str(PLUGIN)}
    return python("-m", *words, cwd=HERE, env=environment).stdout


def marked(group: int) -> set[str]:
    """The errors that bad.py's comments announce: ``bad.py:LINE KIND``, mypy's (group 1) or pyright's (group 2)."""
    lines = enumerate((HERE / "bad.py").read_text().splitlines(), 1)
    marks = ((number, re.search(r"  # ([a-z-]+) (report\w+)$", line)) for number, line in lines)
    return {f"bad.py:{number} {mark[group]}" for number, mark in marks if mark}


def errors(found: list[dict[str, Any]], file: str, line: int, kind: str) -> set[str]:
    return {f"{Path(error[file]).name}:{error['line'] + line} {error[kind]}" for error in found}


def test_mypy() -> None:
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={CACHE}", "--output=json"]
    found = [json.loads(line) for line in run("mypy", *options, *FILES).splitlines()]
    assert errors([error for error in found if error["severity"] == "error"], "file", 0, "code") == marked(1)


def test_pyright(tmp_path: Path) -> None:
    settings = {"include": FILES, "extraPaths": [str(PLUGIN)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    options = ["--outputjson", "--pythonpath", sys.executable, "--project", tmp_path]
    found = json.loads(run("basedpyright", *options))["generalDiagnostics"]
    wrong = [error | error["range"]["start"] for error in found if error["severity"] == "error"]
    assert errors(wrong, "file", 1, "rule") == marked(2)
