"""The software that results depend on: versions of packages, and greylag's code."""

from __future__ import annotations

import hashlib
import platform
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

TREC_EVAL = {"trec_eval": "10.0"}
"""The version whose figures the measures are that trec_eval has."""


@cache
def code() -> str:
    """Compute a digest of the source of greylag and greylag_papers."""
    digest = hashlib.sha256()
    for package in ("greylag", "greylag_papers"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()


@cache  # reading them takes a quarter of a second
def versions() -> dict[str, str]:
    """Return the versions of Python, greylag and each installed package that greylag requires."""
    numbers = {"Python": platform.python_version(), "greylag": version("greylag")}
    for requirement in sorted(requires("greylag") or ()):
        name = re.split(r"[^\w.-]", requirement)[0]
        try:
            numbers[name] = version(name)
        except PackageNotFoundError:  # an optional package
            continue
    return numbers


@cache
def numerical() -> dict[str, str]:
    """Return the software that all workers of a map need alike, since results depend on it to the last bit."""
    packages = ("greylag", "joblib", "numba", "numpy", "scipy")
    return {**{name: version(name) for name in packages}, "the source code": code()[:12]}
