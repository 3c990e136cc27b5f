"""The checks of ``greylag doctor``, each with a remedy if it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from greylag.base import GreylagError
from greylag.index.languages import ENGLISH, NAMES
from greylag.index.lucene.jvm import (
    INSTALL_JAVA,
    INSTALL_PYSERINI,
    anserini_jar,
    calls_java,
    find_java,
    java_class,
)
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.lucene.open_index import POSITIONS_REMEDY, TEXTS_REMEDY

_Paths = str | Path | Sequence[str | Path]


class Check(NamedTuple):
    """The outcome of one check, with a line about it."""

    name: str
    ok: bool
    detail: str
    remedy: str  # "" if the check passed


def diagnose(index: _Paths | None = None) -> tuple[Check, ...]:
    """Check Java, Pyserini, the JVM and, optionally, an index or the shards of a collection."""
    checks = [_probe("Java", _java, INSTALL_JAVA), _probe("Pyserini", lambda: str(anserini_jar()), INSTALL_PYSERINI)]
    later: list[tuple[str, Callable[[], str], str]] = [("JVM", _jvm, INSTALL_PYSERINI)]
    if index is not None:
        later.append(("index", partial(_check_index, index), POSITIONS_REMEDY))
        later.append(("export", partial(_check_export, index), "delete it; it is made again"))
    for probe in later:
        if all(check.ok for check in checks):  # without Java, all others would fail for the same reason
            checks.append(_probe(*probe))
    return tuple(checks)


def _probe(name: str, probe: Callable[[], str], remedy: str) -> Check:
    """Run a probe, which fails by raising a `GreylagError`; the line does not repeat the remedy."""
    try:
        return Check(name, True, probe(), "")
    except GreylagError as error:
        return Check(name, False, str(error).removesuffix(f": {remedy}"), remedy)


def _java() -> str:
    java = find_java()
    return f"{java.version} in {java.home}, found by {java.source}"


@calls_java
def _jvm() -> str:
    heap = java_class("java.lang.Runtime").getRuntime().maxMemory() // 2**20
    java = java_class("java.lang.System").getProperty("java.version")
    lucene = java_class("org.apache.lucene.util.Version").LATEST.toString()
    return f"Java {java} with a heap of at most {heap} MB, Lucene {lucene}"


def _check_index(path: _Paths) -> str:
    with LuceneIndex(path) as index:
        # Totals first: they fail at once where the index cannot be opened.
        documents, tokens, terms, _ = index.statistics()
        for shard in index.shards:
            shard.check_exportable()
            shard.check_integrity()
        stored = all(shard.stores_texts for shard in index.shards)
        texts = "texts are stored" if stored else f"texts are not, which leaves out written:*; {TEXTS_REMEDY}"
        counts = f"{documents} documents, {tokens} tokens, {terms} terms"
        return f"{index.name}: {counts}, all checksums right; {_describe_language(index)}; {texts}"


def _describe_language(index: LuceneIndex) -> str:
    if not index.is_assumed_english:
        return f"language {index.language}, as recorded"
    likely = index.likely_language()
    looks = f"the texts look {NAMES[likely]}" if likely else "no texts show it"
    how = "" if likely == ENGLISH else " (else use greylag index --language, or LuceneIndex(path, language=))"
    return f"language not recorded, and searched in English; {looks}{how}"


def _check_export(path: _Paths) -> str:
    from greylag.index.positional import PositionalIndex  # imports Numba

    return PositionalIndex.verify_export(path)
