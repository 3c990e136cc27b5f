"""Type checkers accept a user's code and reject a user's mistakes."""

import json
import os
import re
import sys
from pathlib import Path

import pytest

import greylag
from tests.processes import python

pytestmark = pytest.mark.long
HERE = Path(__file__).parent
PLUGIN = Path(greylag.__file__).parents[1]
CACHE = HERE.parents[1] / ".mypy_cache" / "typing"
FILES = [str(HERE / name) for name in ("good.py", "bad.py")]


def run(*words):
    """What a module prints that is run from a folder without any configuration."""
    return python("-m", *words, cwd=HERE, env={**os.environ, "MYPYPATH": str(PLUGIN)}).stdout


def marked(group):
    """The errors of bad.py's comments, ``bad.py:LINE KIND``: mypy's (group 1), or pyright's, often two (group 2)."""
    lines = enumerate((HERE / "bad.py").read_text().splitlines(), 1)
    marks = ((number, re.search(r"  # ([a-z-]+) (report\w+(?: report\w+)*)$", line)) for number, line in lines)
    return {f"bad.py:{number} {kind}" for number, mark in marks if mark for kind in mark[group].split()}


def errors(found, file, line, kind):
    return {f"{Path(error[file]).name}:{error['line'] + line} {error[kind]}" for error in found}


def test_mypy():
    options = ["--strict", "--follow-imports=silent", "--config-file=", f"--cache-dir={CACHE}", "--output=json"]
    found = [json.loads(line) for line in run("mypy", *options, *FILES).splitlines()]
    assert errors([error for error in found if error["severity"] == "error"], "file", 0, "code") == marked(1)


def test_pyright(tmp_path):
    settings = {"include": FILES, "extraPaths": [str(PLUGIN)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    options = ["--outputjson", "--pythonpath", sys.executable, "--project", tmp_path]
    found = json.loads(run("basedpyright", *options))["generalDiagnostics"]
    wrong = [error | error["range"]["start"] for error in found if error["severity"] == "error"]
    assert errors(wrong, "file", 1, "rule") == marked(2)
