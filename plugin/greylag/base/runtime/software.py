"""The software that results depend on: versions of packages, greylag's code, and the code of entry points."""

from __future__ import annotations

import hashlib
import platform
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path

TREC_EVAL = {"trec_eval": "10.0"}
"""The version of trec_eval with whose figures ours agree."""
OWN = "greylag", "greylag_papers"
"""The packages whose code `code` digests."""
INSTALLED = "site-packages", "dist-packages"
"""The names of folders in which modules do not belong together."""


_VERSION = re.compile(r"^Version: *(\S+)", re.MULTILINE)


def version(package: str) -> str:
    """Return the version of an installed package; `PackageNotFoundError` if there is none."""
    # As importlib.metadata.version, which parses all of the metadata as mail: of 60 packages, a fifth of a second.
    found = distribution(package)
    text = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    return match[1] if (match := _VERSION.search(text)) else found.version


@cache  # of the code that a process has loaded, even if the files change
def code(*packages: str) -> str:
    """Compute a digest of the source of packages, by default greylag and greylag_papers."""
    digest = hashlib.sha256()
    for package in packages or OWN:
        spec = find_spec(package)
        lone = [Path(spec.origin)] if spec and spec.origin and spec.has_location else []
        folders = spec.submodule_search_locations if spec else None
        files = [path for folder in folders or () for path in Path(folder).rglob("*.py")]
        for path in lone if folders is None else sorted(files):
            digest.update(path.read_bytes())
    return digest.hexdigest()


@cache
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
