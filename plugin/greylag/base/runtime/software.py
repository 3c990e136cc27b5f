"""The software that results depend on: versions of packages, greylag's code, and the code of entry points."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path

TREC_EVAL = {"trec_eval": "10.0"}
"""The version of trec_eval with whose figures ours agree."""
OWN = "greylag", "greylag_papers"
"""The packages whose code `code` digests."""
INSTALLED = "site-packages", "dist-packages"
"""The names of folders in which modules do not belong together."""
CODE = ".py", *EXTENSION_SUFFIXES


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


def entry_files(kind: str, name: str) -> list[str]:
    """List the code of a registered name, of a kind of `GROUPS`; see `code_files`."""
    from greylag.base.core.registry import load_entry, registered  # workers need only `numerical`

    entry = registered(kind).get(name)
    if entry is None or entry.module.partition(".")[0] in OWN:  # which need not be imported to know this
        return []
    return code_files(entry.module, load_entry(kind, name).__module__)


def code_files(*modules: str) -> list[str]:
    """List the code that results of imported modules depend on, but for greylag's own, whether imported yet or not."""
    files_of_code = set[str]()
    for top in {module.partition(".")[0] for module in modules} - {*OWN}:
        module = sys.modules.get(top)
        path: str | None = next(iter(getattr(module, "__path__", ())), None) or getattr(module, "__file__", None)
        if path is None:  # built in, or typed in
            continue
        is_package, folder = hasattr(module, "__path__"), os.path.dirname(os.path.abspath(path))
        for part in getattr(module, "__path__", ()):
            files_of_code.update(_code_below(part, whole=True))
        if os.path.basename(folder) in INSTALLED:
            files_of_code.update([] if is_package else [path])
            continue
        # A lone module may import any file of its folder, late, too; beside a package lie tests and scripts, and only
        # those count that are imported.
        files_of_code.update([] if is_package else _code_below(folder, whole=False))
        files = (getattr(other, "__file__", None) or "" for other in [*sys.modules.values()])
        files_of_code.update(
            file for file in files if file.startswith(folder + os.sep) and {*INSTALLED}.isdisjoint(file.split(os.sep))
        )
    return sorted(files_of_code)


def _code_below(folder: str, *, whole: bool) -> Iterator[str]:
    """Yield the code in a folder and in those below it that may be packages; unless `whole`, only where code is."""
    for place, folders, names in os.walk(folder):
        files = [os.path.join(place, name) for name in names if name.endswith(CODE)]
        yield from files
        # Not all of a home folder with its data and environments.
        folders[:] = [name for name in folders if name.isidentifier()] if files or whole else []


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
