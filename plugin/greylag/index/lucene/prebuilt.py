"""Prebuilt indexes by Pyserini's names; topics and judgements by name are in `greylag.passages.adapters`.

Only modules of Pyserini are imported that do not need torch.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from greylag.base import CollectionError, DependencyError, GreylagError
from greylag.index.lucene.jvm import INSTALL_PYSERINI, start_jvm

_SUFFIXES = {".tsv", ".txt", ".gz", ".xml", ".json", ".jsonl", ".qrels"}


def prebuilt_index(path: str | Path, *, positions: bool = False) -> Path:
    """Return the folder `path`, or download Pyserini's prebuilt index of this name and return its folder."""
    # With `positions`, an index that is known to have none is a `CollectionError`, before it is downloaded.
    if not may_be_name(path):
        return Path(path)

    def fetch() -> str | None:
        util = pyserini_module("util")
        if str(path) not in util.TF_INDEX_INFO:
            return None
        catalogue = util.TF_INDEX_INFO
        # It has no field for positions, but Anserini's notes say that NAME-full has them, and NAME and NAME-slim have
        # not. An index may be known by several names.
        names = [other.removesuffix("-slim") for other, about in catalogue.items() if about == catalogue[str(path)]]
        full = next((f"{other}-full" for other in names if f"{other}-full" in catalogue), None)
        if positions and full:
            raise CollectionError(f"Pyserini's index {path} has no positions, which this command needs: give {full}")
        return str(util.download_prebuilt_index(str(path), verbose=False))

    return Path(fetched(fetch, f"index {path}") or path)


def may_be_name(path: str | Path) -> bool:
    """Return whether `path` may be a name of Pyserini: no such file, and neither a folder nor a known suffix in it."""
    file = Path(path)
    # A path with a folder, or a known suffix, is a mistyped file and no name: nothing is looked up for it.
    return file.name == str(path) and file.suffix not in _SUFFIXES and not file.exists()


def pyserini_module(name: str) -> Any:
    """Import a module of Pyserini on the JVM of `start_jvm`, and not on one of Pyserini's choice."""
    start_jvm()
    try:
        return import_module(f"pyserini.{name}")
    except ImportError as error:
        # Installed without its requirements, as README has it, Pyserini may lack a package for its names alone.
        lacks = error.name and not error.name.startswith("pyserini")
        remedy = f"pip install {error.name}" if lacks else INSTALL_PYSERINI
        raise DependencyError(f"pyserini.{name} is not usable here ({error}): {remedy}") from error


def fetched(fetch: Callable[[], Any], what: str, unknown: str | None = None) -> Any:
    """Fetch something by Pyserini, such as the "index msmarco-v1-passage"; its messages go to standard error."""
    # `fetch` imports Pyserini itself, since newer versions need a network even for that. The result is None if
    # Pyserini's error has the text `unknown`, by which it reports that it has nothing of this name.
    try:
        # Progress and warnings would be mixed into a command's output.
        with contextlib.redirect_stdout(sys.stderr):
            return fetch()
    except DependencyError as error:
        # First of all a name is mistyped, for which no installation is to blame.
        raise CollectionError(f"there is no such file, nor can Pyserini's {what} be looked up: {error}") from error
    except GreylagError:
        raise
    except Exception as error:  # of Java, of the network, or of the archive
        if unknown is not None and unknown in str(error):
            return None
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CollectionError(
            f"there is no such file, and Pyserini's {what} cannot be downloaded ({reason}): is there a network?"
        ) from error
