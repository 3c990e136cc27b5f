"""The checks of ``greylag doctor``, each with a remedy if it fails."""

from __future__ import annotations

import importlib.util
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from greylag.errors import CollectionError, DependencyError, GreylagError
from greylag.index.languages import ENGLISH, NAMES, likely_language
from greylag.index.lucene.jvm import INSTALL_JAVA, INSTALL_PYSERINI, anserini_jar, calls_java, find_java, java_class
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.lucene.open_index import POSITIONS_REMEDY, TEXTS_REMEDY
from greylag.index.lucene.prebuilt import OPENAI_KEY
from greylag.runtime.software import TREC_EVAL

_Paths = str | Path | Sequence[str | Path]
_Probe = tuple[str, Callable[[], str], str]
_PYSERINI_FIRST = """
from pyserini.pyclass import autoclass
autoclass("io.anserini.index.Constants")
print(autoclass("java.lang.System").getProperty("java.version"))
"""
_SEARCHERS = "import greylag.index.lucene; greylag.index.lucene.start_jvm(); import pyserini.search.lucene"

PYSERINI_USE = "only Pyserini's own searchers and prebuilt data need it"
START_FIRST = "call greylag.index.lucene.start_jvm() before importing it; commands do not import it"
NAME_LANGUAGE = "if it is not, index by greylag index --language, or give LuceneIndex(path, language=) in Python"
OPTIONAL_CHECKS = ("import", "searchers", "language", "texts")
"""The checks that greylag does not depend on."""
JAVA_CHECKS = ("Java", "Pyserini")
"""The checks that only work on Lucene indexes depends on."""


class Check(NamedTuple):
    """The outcome of one check, with a line about it."""

    name: str
    ok: bool
    detail: str
    remedy: str  # what to do, or what does not work until it is done; "" if the check passed


def diagnose(index: _Paths | None = None, *probes: _Probe) -> tuple[Check, ...]:
    """Check Java, Pyserini, the JVM and, optionally, an index or the shards of a collection."""
    # The checks of Java and Pyserini are independent; every later check is made only if all earlier ones passed.
    # `probes` are further ones: a name, a function that returns a line or raises a `GreylagError`, and a remedy.
    checks = [
        _check("versions", _versions, ""),
        _check("Java", _java, INSTALL_JAVA),
        _check("Pyserini", _pyserini, INSTALL_PYSERINI),
    ]
    later: list[_Probe] = [("JVM", _jvm, INSTALL_PYSERINI), ("import", _import, START_FIRST)]
    if importlib.util.find_spec("torch"):
        later.append(("searchers", _searchers, PYSERINI_USE))
    if index is not None:
        positions = partial(_all_shards, index, LuceneIndex.check_exportable, "stored, and no deleted documents")
        checksums = "all files have the checksums that Lucene recorded"
        integrity = partial(_all_shards, index, LuceneIndex.check_integrity, checksums)
        of_index = {"index": partial(_index, index), "positions": positions, "integrity": integrity}
        later += [(name, probe, POSITIONS_REMEDY) for name, probe in of_index.items()]
        later.append(("language", partial(_language, index), NAME_LANGUAGE))
        later.append(
            ("texts", partial(_all_shards, index, _check_texts, "stored, so written:* is known"), TEXTS_REMEDY)
        )
    for probe in (*later, *probes):
        if all(check.ok for check in checks):
            checks.append(_check(*probe))
    return tuple(checks)


def _check(name: str, probe: Callable[[], str], remedy: str) -> Check:
    """Run a probe, which fails by raising a `GreylagError`; the line does not repeat the remedy."""
    try:
        return Check(name, True, probe(), "")
    except GreylagError as error:
        return Check(name, name in OPTIONAL_CHECKS, str(error).removesuffix(f": {remedy}"), remedy)


def _versions() -> str:
    packages = (f"{name} {_version(name)}" for name in ("greylag", "numpy", "scipy", "numba"))
    return ", ".join(
        [f"Python {platform.python_version()}", *packages, f"measures of trec_eval {TREC_EVAL['trec_eval']}"]
    )


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
    """Import Pyserini first, and report the Java that it starts."""
    code, output = _ended(_PYSERINI_FIRST)
    if code == 0:
        return f"Pyserini, imported first, starts Java {output.split()[-1]}"
    raise DependencyError(f"Pyserini, imported first, fails ({_why(output)}): {START_FIRST}")


def _searchers() -> str:
    """Import Pyserini's searchers, for which newer versions want a key of OpenAI."""
    code, output = _ended(_SEARCHERS)
    if code == 0:
        return "pyserini.search.lucene can be imported after greylag.index.lucene.start_jvm()"
    if "openai.OpenAIError" not in output:
        raise DependencyError(f"pyserini.search.lucene fails ({_why(output)})")
    modules = re.findall(r'File ".*?[/\\](pyserini[/\\][^"]+?)(?:[/\\]__init__)?\.py"', output)
    importing = re.sub(r"[/\\]", ".", modules[-1]) if modules else "pyserini"
    raise DependencyError(f"pyserini.search.lucene imports {importing}, which asks for a key of OpenAI: {OPENAI_KEY}")


def _ended(program: str) -> tuple[int, str]:
    """Run a Python program; return its exit code and output."""
    try:
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, f"Error: {error}"
    return ended.returncode, ended.stdout + ended.stderr


def _why(output: str) -> str:
    """Find the last error in the output of a program."""
    lines = [line for line in output.splitlines() if "Exception: " in line or "Error: " in line]
    return lines[-1].strip() if lines else "without a message"


def _index(path: _Paths) -> str:
    with LuceneIndex(path) as index:
        documents, tokens, terms, _ = index.statistics()
    return f"{index.name}: {documents} documents, {tokens} tokens, {terms} terms"


def _language(path: _Paths) -> str:
    with LuceneIndex(path) as index:
        if not index.is_assumed_english:
            return f"{index.language}, as recorded in the index"
        likely = likely_language(index.sample_texts())
    if likely == ENGLISH:
        return "not recorded in the index; the texts look English, and are searched so"
    looks = f"the texts look {NAMES[likely]}" if likely else "no texts show it"
    raise CollectionError(f"not recorded in the index, which is searched in English; {looks}")


def _check_texts(index: LuceneIndex) -> None:
    if not index.stores_texts:
        raise CollectionError("not stored, so the written form of words (written:*) is left out")


def _all_shards(path: _Paths, check: Callable[[LuceneIndex], None], passed: str) -> str:
    with LuceneIndex(path) as index:
        for shard in index.shards:
            check(shard)
    return passed
