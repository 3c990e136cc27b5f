"""The checks of ``greylag doctor``, each with a remedy if it fails."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from greylag.errors import DependencyError, GreylagError
from greylag.lucene.jvm import INSTALL_JAVA, INSTALL_PYSERINI, anserini_jar, calls_java, find_java, java_class
from greylag.lucene.lucene_index import LuceneIndex
from greylag.lucene.open_index import BUILD

_Paths = str | Path | Sequence[str | Path]
_Probe = tuple[str, Callable[[], str], str]
_PYSERINI_FIRST = """
from pyserini.pyclass import autoclass
autoclass("io.anserini.index.Constants")
print(autoclass("java.lang.System").getProperty("java.version"))
import importlib.util
if importlib.util.find_spec("torch"):
    import pyserini.search.lucene
"""


START_FIRST = "call greylag.start_jvm() before importing it; commands do not import it"
OPENAI_KEY = "set OPENAI_API_KEY=none"


class Check(NamedTuple):
    """The outcome of one check, with a line about it, and what to do if it failed, also if greylag works without it."""

    name: str
    ok: bool
    detail: str
    remedy: str  # "" if the check passed


def diagnose(index: _Paths | None = None, *probes: _Probe) -> tuple[Check, ...]:
    """Check Java, Pyserini, the JVM and, optionally, an index.

    The checks of Java and Pyserini are independent; every later check is made only if all earlier ones passed.

    Parameters
    ----------
    index : str, Path or sequence of these, optional
        The folder of an index to check, or those of the shards of a collection.
    *probes : tuple of str, callable and str
        Further checks: a name, a function that returns a line or raises a `GreylagError`, and a remedy.
    """
    checks = [
        _check("versions", _versions, ""),
        _check("Java", _java, INSTALL_JAVA),
        _check("Pyserini", _pyserini, INSTALL_PYSERINI),
    ]
    later: list[_Probe] = [("JVM", _jvm, INSTALL_PYSERINI), ("import", _import, START_FIRST)]
    if index is not None:
        positions = partial(_all_shards, index, LuceneIndex.check_exportable, "stored, and no deleted documents")
        checksums = "all files have the checksums that Lucene recorded"
        integrity = partial(_all_shards, index, LuceneIndex.check_integrity, checksums)
        of_index = {"index": partial(_index, index), "positions": positions, "integrity": integrity}
        later += [(name, probe, BUILD) for name, probe in of_index.items()]
    for probe in (*later, *probes):
        if all(check.ok for check in checks):
            checks.append(_check(*probe))
    return tuple(checks)


def _check(name: str, probe: Callable[[], str], remedy: str) -> Check:
    """A check, which fails by a `GreylagError`; greylag works without the import of Pyserini."""
    try:
        return Check(name, True, probe(), "")
    except GreylagError as error:
        return Check(name, name == "import", str(error).removesuffix(f": {remedy}"), remedy)


def _versions() -> str:
    packages = (f"{name} {_version(name)}" for name in ("greylag", "numpy", "scipy", "numba"))
    return ", ".join([f"Python {platform.python_version()}", *packages])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _java() -> str:
    java = find_java()
    return f"{java.version} in {java.home}, found by {java.source}"


def _pyserini() -> str:
    return f"{_version('pyserini')} with {anserini_jar().name}, pyjnius {_version('pyjnius')}"


@calls_java
def _jvm() -> str:
    heap = java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20
    java = java_class("java.lang.System").getProperty("java.version")
    lucene = java_class("org.apache.lucene.util.Version").LATEST.toString()
    return f"Java {java} with a heap of at most {heap} MB, Lucene {lucene}"


def _import() -> str:
    """The Java that Pyserini starts if it is imported first."""
    try:
        ended = subprocess.run(
            [sys.executable, "-c", _PYSERINI_FIRST], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"not tried ({error})"
    if ended.returncode == 0:
        return f"Pyserini, imported first, starts Java {ended.stdout.split()[-1]}"
    output = ended.stdout + ended.stderr
    if "openai.OpenAIError" in output:
        raise DependencyError(f"Pyserini's searchers ask for a key of OpenAI: {OPENAI_KEY}")
    lines = [line for line in output.splitlines() if "Exception: " in line or "Error: " in line]
    why = lines[-1].strip() if lines else f"exit code {ended.returncode}"
    raise DependencyError(f"Pyserini, imported first, fails ({why}): {START_FIRST}")


def _index(path: _Paths) -> str:
    with LuceneIndex(path) as index:
        documents, tokens, terms, _ = index.statistics()
    return f"{index.name}: {documents} documents, {tokens} tokens, {terms} terms, fingerprint {index.fingerprint[:16]}"


def _all_shards(path: _Paths, check: Callable[[LuceneIndex], None], passed: str) -> str:
    with LuceneIndex(path) as index:
        for shard in index.shards:
            check(shard)
    return passed
