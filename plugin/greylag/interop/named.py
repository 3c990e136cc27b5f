"""Collections by name: Pyserini's prebuilt indexes and topics, and data sets of ir_datasets, as on the command line."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from greylag.errors import CollectionError
from greylag.interop import names
from greylag.interop.ir_datasets import topics_from_ir_datasets
from greylag.interop.pyserini import topics_from_pyserini
from greylag.lucene import start_jvm


def prebuilt_index(path: str | Path) -> Path:
    """The folder of an index: `path` itself, or that of Pyserini's prebuilt index of this name, which it downloads.

    Raises
    ------
    CollectionError
        If Pyserini has such an index but cannot download it.
    DependencyError
        If `path` may be such a name but Pyserini is not usable.
    """
    name = str(path)
    if not _may_be_name(path):
        return Path(path)
    start_jvm()  # before Pyserini does, with the Java that it finds
    util = names.imported("pyserini.util", "pyserini")
    if name not in util.TF_INDEX_INFO:
        return Path(path)
    return Path(_fetched(lambda: util.download_prebuilt_index(name, verbose=False), f"index {name}"))


def named_topics(path: str | Path, *, field: str = "title") -> dict[str, str] | None:
    """Query texts by qid, of ``irds:NAME`` or of Pyserini's topics of this name; None if `path` is no such name.

    Parameters
    ----------
    path : str or Path
    field : str, default "title"
        The field to search for. Topics of ir_datasets that have no title are searched by their text.

    Raises
    ------
    CollectionError
        If there are such topics but they cannot be downloaded, or ir_datasets has none.
    ParameterError
        If topics lack the field.
    DependencyError
        If a package is missing.
    """
    name = str(path)
    if name.startswith("irds:"):
        return topics_from_ir_datasets(name, field=None if field == "title" else field)
    if not _may_be_name(path):
        return None
    start_jvm()
    search = names.imported("pyserini.search", "pyserini")
    if name not in sys.modules["pyserini.search._base"].topics_mapping:
        return None
    return topics_from_pyserini(_fetched(lambda: search.get_topics(name), f"topics {name}"), field=field)


def _may_be_name(path: str | Path) -> bool:
    return (
        Path(path).name == str(path)
        and Path(path).suffix not in {".tsv", ".txt", ".gz", ".xml"}
        and not Path(path).exists()
    )


def _fetched(fetch: Callable[[], Any], what: str) -> Any:
    """What Pyserini fetches; its messages go to standard error, and what goes wrong is one line."""
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return fetch()
    except Exception as error:  # of Java, of the network, or of the archive
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CollectionError(f"Pyserini's {what} cannot be downloaded ({reason}): is there a network?") from error
