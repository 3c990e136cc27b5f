"""The collection of an experiment, indexed once."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from greylag.errors import CollectionError
from greylag.files import write_text
from greylag.lucene.build import build_index
from greylag.lucene.lucene_index import LuceneIndex


def open_collection(docs: Path, form: str | None, folder: Path, say: Callable[[str], None]) -> LuceneIndex:
    """The index of `docs` in `folder`, built where it is missing or the documents have changed since.

    Parameters
    ----------
    docs, form : documents and their collection class, as `build_index` takes them.
    """
    if not docs.exists():
        raise CollectionError(f"{docs}: no such documents; set GREYLAG_DATA to the folder that the collections are in")
    made_from = json.dumps({"docs": docs.name, "type": form, "files": _listing(docs)}) + "\n"
    note = folder.with_name(f"{folder.name}.json")
    if folder.exists() and note.exists() and note.read_text(encoding="utf-8") == made_from:
        say(f"index: {folder}, built before")
        return LuceneIndex(folder)
    shutil.rmtree(folder, ignore_errors=True)
    n = build_index(docs, folder, collection=form)
    write_text(note, made_from)
    say(f"index: {n} documents, in {folder}")
    return LuceneIndex(folder)


def _listing(docs: Path) -> list[tuple[str, int, int]]:
    """Each file below `docs` with its size and time of change."""
    files = sorted(path for path in docs.rglob("*") if path.is_file()) if docs.is_dir() else [docs]
    return [(path.name, path.stat().st_size, path.stat().st_mtime_ns) for path in files]
