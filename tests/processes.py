"""Processes that tests start and wait for, and commands without a process."""

import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from greylag.cli import main

SECONDS = 600
"""A process that has not ended by then never will."""
IMPATIENT = (
    "import greylag.base.runtime.cache as log; log.MIN_KEPT_SECONDS = 0.0; from greylag.__main__ import main; main()"
)
"""Runs a command that keeps its work from the first item on."""


def run(command, *, check=False, **options):
    """Run a command, with its output as text."""
    words = command if isinstance(command, str) else [*map(str, command)]
    return subprocess.run(words, **{"capture_output": True, "text": True, "timeout": SECONDS, **options}, check=check)


def python(*words, check=False, **options):
    """Run this interpreter."""
    return run([sys.executable, *words], check=check, **options)


def installed(folder, **more):
    """The environment in which the packages of a folder are installed."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), *filter(None, sys.path)]), **more}


def run_here(*words):
    """What a command of greylag prints that runs, and ends well, in this process: it starts in no time."""
    out, errors = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["greylag", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code, f"greylag {' '.join(map(str, words))}: {errors.getvalue()}"
    return out.getvalue()
