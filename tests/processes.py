"""Processes that tests start and wait for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

SECONDS = 600
"""A process that has not ended by then never will."""


def run(command: Sequence[object] | str, *, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command, with its output as text."""
    words = command if isinstance(command, str) else [*map(str, command)]
    return subprocess.run(words, **{"capture_output": True, "text": True, "timeout": SECONDS, **options}, check=check)


def python(*words: object, check: bool = False, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run this interpreter."""
    return run([sys.executable, *words], check=check, **options)
