"""What Pyserini has under a name: prebuilt indexes here, topics and judgements in `greylag.interop`.

Only the parts of Pyserini are imported that need neither torch nor a network.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from greylag.errors import CollectionError, DependencyError
from greylag.lucene.jvm import INSTALL_PYSERINI, start_jvm

_SUFFIXES = {".tsv", ".txt", ".gz", ".xml", ".json", ".jsonl", ".qrels"}


def prebuilt_index(path: str | Path) -> Path:
    """The folder of an index: `path` itself, or that of Pyserini's prebuilt index of this name, which it downloads.

    Raises
    ------
    CollectionError
        If Pyserini has such an index but cannot download it.
    DependencyError
        If `path` may be such a name but Pyserini is not usable.
    """
    if not may_be_name(path):
        return Path(path)
    name, util = str(path), pyserini_module("util")
    if name not in util.TF_INDEX_INFO:
        return Path(path)
    return Path(fetched(lambda: util.download_prebuilt_index(name, verbose=False), f"index {name}"))


def may_be_name(path: str | Path) -> bool:
    """Whether `path` may be a name of Pyserini: there is no such file, and it is without folder or known suffix."""
    own = Path(path)
    return own.name == str(path) and own.suffix not in _SUFFIXES and not own.exists()


def pyserini_module(name: str) -> Any:
    """A module of Pyserini, on the JVM that `start_jvm` starts, and not on one of its own choice.

    Raises
    ------
    DependencyError
        If it cannot be imported.
    """
    start_jvm()
    try:
        return import_module(f"pyserini.{name}")
    except ImportError as error:
        raise DependencyError(f"pyserini.{name} is not usable here ({error}): {INSTALL_PYSERINI}") from error


def fetched(fetch: Callable[[], Any], what: str) -> Any:
    """What Pyserini fetches; its messages go to standard error.

    Raises
    ------
    CollectionError
        If anything goes wrong, in one line.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return fetch()
    except Exception as error:  # of Java, of the network, or of the archive
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CollectionError(f"Pyserini's {what} cannot be downloaded ({reason}): is there a network?") from error
