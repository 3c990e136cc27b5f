"""What ``greylag doctor`` reports: one check a line, each with what to do where it fails."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from greylag.errors import GreylagError
from greylag.lucene.jvm import INSTALL_JAVA, INSTALL_PYSERINI, anserini_jar, calls_java, find_java, java_class
from greylag.lucene.lucene_index import BUILD, LuceneIndex


@dataclass(frozen=True)
class Check:
    """The outcome of one check: its name, whether it passed, what was found, and what to do ("" where it passed)."""

    name: str
    ok: bool
    detail: str
    remedy: str


def diagnose(index: str | Path | None = None) -> tuple[Check, ...]:
    """Check Java, Pyserini and the JVM, and an index where one is given.

    Each check is made only if those before it passed, but for Java's and Pyserini's, which stand on their own.
    """
    checks = [
        Check("versions", True, _versions(), ""),
        _check("Java", _java, INSTALL_JAVA),
        _check("Pyserini", _pyserini, INSTALL_PYSERINI),
    ]
    later: list[tuple[str, Callable[[], str], str]] = [("JVM", _jvm, INSTALL_PYSERINI)]
    if index is not None:
        later += [
            ("index", lambda: _index(index), BUILD),
            ("positions", lambda: _positions(index), BUILD),
        ]
    return (*checks, *_until_failure(all(check.ok for check in checks), later))


def _until_failure(ok: bool, checks: list[tuple[str, Callable[[], str], str]]) -> Iterator[Check]:
    for name, probe, remedy in checks:
        if ok:
            check = _check(name, probe, remedy)
            ok = check.ok
            yield check


def _check(name: str, probe: Callable[[], str], remedy: str) -> Check:
    try:
        return Check(name, True, probe(), "")
    except GreylagError as error:
        return Check(name, False, str(error).removesuffix(f": {remedy}"), remedy)


def _versions() -> str:
    packages = [f"{name} {_version(name)}" for name in ("greylag", "numpy", "scipy", "numba")]
    return ", ".join([f"Python {platform.python_version()}", *packages])


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _java() -> str:
    java = find_java()
    return f"{java.version} in {java.home}, from {java.source}"


def _pyserini() -> str:
    return f"{_version('pyserini')} with {anserini_jar().name}, pyjnius {_version('pyjnius')}"


@calls_java
def _jvm() -> str:
    heap = java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20
    java = java_class("java.lang.System").getProperty("java.version")
    lucene = java_class("org.apache.lucene.util.Version").LATEST.toString()
    return f"runs Java {java} with {heap} MB at most, Lucene {lucene}"


def _index(path: str | Path) -> str:
    index = LuceneIndex(path)
    documents, tokens, terms, _ = index.statistics()
    return f"{path}: {documents} documents, {tokens} tokens, {terms} terms, fingerprint {index.fingerprint()[:16]}"


def _positions(path: str | Path) -> str:
    LuceneIndex(path).check_exportable()
    return "stored, and no document is deleted"
