"""Processes that tests start and wait for, and commands without a process."""

import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO

import pytest

from greylag.cli import main

SECONDS = 600
"""A process that has not ended by then never will."""


def run(command, *, check=False, **options):
    """Run a command, with its output as text."""
    words = command if isinstance(command, str) else [*map(str, command)]
    return subprocess.run(words, **{"capture_output": True, "text": True, "timeout": SECONDS, **options}, check=check)


def python(*words, check=False, **options):
    """Run this interpreter."""
    return run([sys.executable, *words], check=check, **options)


def run_here(*words):
    """What a command of greylag prints that runs, and ends well, in this process: it starts in no time."""
    out, errors = StringIO(), StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(errors):
        patch.setattr(sys, "argv", ["greylag", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
    assert not stop.value.code, f"greylag {' '.join(map(str, words))}: {errors.getvalue()}"
    return out.getvalue()
