"""Exporting a Lucene index to a PositionalIndex's files, once, and opening them.

The files lie beside the index in ``INDEX.greylag/FINGERPRINT/``, or below the user's cache folder where that cannot be
written. Each array is one file, ``NAME.DTYPE``, without a header; ``meta.json`` comes last. Everything is written to a
temporary folder that is renamed at the end, so an export is there whole or not at all, whoever else is at it.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from greylag.errors import CollectionError
from greylag.index.arrays import DTYPES, document_sizes, encode_docids, fingerprint, offsets
from greylag.index.transpose import transpose
from greylag.lucene.lucene_index import LuceneIndex

SCHEMA = 1
_log = logging.getLogger("greylag")


def open_export(source: LuceneIndex) -> tuple[Path, dict[str, Any]]:
    """The folder of an index's export, and `PositionalIndex`'s arrays and fingerprint, mapped from its files.

    Raises
    ------
    CollectionError
        If the index has no positions, or the export cannot be written or is incomplete.
    """
    key = source.fingerprint[:16]
    places = [source.path.parent / f"{source.path.name}.greylag", _cache_folder(source.path)]
    for place in places:
        if (place / key / "meta.json").exists():
            return place / key, _open(place / key)
    writable = [place for place in places if _writable(place)]
    if not writable:
        raise CollectionError(f"neither {places[0]} nor {places[1]} can be written: make one of them writable")
    place = writable[0]
    if any(place.glob("*/meta.json")):
        _log.warning("%s has changed: exporting its positions again", source.path)
    _export(source, place, key)
    return place / key, _open(place / key)


def _cache_folder(path: Path) -> Path:
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "greylag" / f"{path.name}-{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _open(folder: Path) -> dict[str, Any]:
    meta = json.loads((folder / "meta.json").read_text())
    if meta["schema"] != SCHEMA:
        raise CollectionError(f"{folder} was written by another version of greylag: delete it, and it is made again")
    arrays = {name: _map(folder / f"{name}.{dtype}", dtype) for name, dtype in DTYPES.items()}
    docids = _map(folder / f"docids.{meta['docids']}", meta["docids"])
    return {"docids": docids, **arrays, "fingerprint": meta["fingerprint"]}


def _map(path: Path, dtype: str, mode: str = "r") -> Any:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode=mode)  # type: ignore[call-overload]


def _export(source: LuceneIndex, place: Path, key: str) -> None:
    temporary = Path(tempfile.mkdtemp(prefix=".export-", dir=place))
    try:
        _write(source, temporary)
        (temporary / "meta.json.part").rename(temporary / "meta.json")
        outdated = [folder for folder in place.iterdir() if not folder.name.startswith(".") and folder.name != key]
        try:
            temporary.rename(place / key)
        except OSError:  # another process was first: its export is the same
            if not (place / key / "meta.json").exists():
                raise
        for folder in outdated:
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write(source: LuceneIndex, folder: Path) -> None:
    docids = encode_docids(source.docids())
    order = np.argsort(docids, kind="stable").astype(np.int32)
    with _writer(folder) as write:
        write("docid_order", order)
        _write_postings(source, write)
    docids.tofile(folder / f"docids.{docids.dtype.str[1:]}")
    arrays = {
        name: _map(path, DTYPES[name]) for path in folder.iterdir() if (name := path.name.split(".")[0]) in DTYPES
    }
    arrays |= {"docids": docids}
    _check(source, arrays)
    _write_forward(folder, arrays)
    meta = {"schema": SCHEMA, "docids": docids.dtype.str[1:], "fingerprint": fingerprint(arrays)}
    (folder / "meta.json.part").write_text(json.dumps(meta))


@contextmanager
def _writer(folder: Path) -> Iterator[Any]:
    files: dict[str, IO[bytes]] = {}

    def write(name: str, array: Any) -> None:
        if name not in files:
            files[name] = (folder / f"{name}.{DTYPES[name]}").open("wb")
        np.ascontiguousarray(array, dtype=DTYPES[name]).tofile(files[name])

    try:
        yield write
    finally:
        for file in files.values():
            file.close()


def _write_postings(source: LuceneIndex, write: Any) -> None:
    """Append the index's postings block by block, turning counts into running offsets."""
    from tqdm import tqdm

    totals = {"term_offsets": 0, "postings_offsets": 0, "postings_starts": 0}

    def running(name: str, counts: Any) -> None:
        ends = totals[name] + np.cumsum(counts, dtype=np.int64)
        write(name, ends)
        totals[name] = int(ends[-1]) if len(ends) else totals[name]

    for name in totals:
        write(name, [0])
    write("terms", [])
    write("postings_docs", [])
    write("positions", [])
    with tqdm(total=source.statistics().tokens, desc="exporting positions", unit="token", disable=None) as bar:
        for block in source.postings_blocks():
            write("terms", np.frombuffer(b"".join(block.terms), dtype=np.uint8))
            running("term_offsets", [len(term) for term in block.terms])
            running("postings_offsets", block.df)
            write("postings_docs", block.docs)
            running("postings_starts", block.tfs)
            write("positions", block.positions)
            bar.update(len(block.positions))


def _write_forward(folder: Path, arrays: dict[str, Any]) -> None:
    docs = arrays["postings_docs"]
    forward_offsets = offsets(document_sizes(docs, len(arrays["docids"])))
    forward_offsets.tofile(folder / f"forward_offsets.{DTYPES['forward_offsets']}")
    paths = [folder / f"{name}.{DTYPES[name]}" for name in ("forward_terms", "forward_postings")]
    for path, size in zip(paths, (4, 8), strict=True):
        with path.open("wb") as file:
            file.truncate(size * len(docs))
    terms, postings = (_map(path, path.suffix[1:], "r+") for path in paths)
    transpose(arrays["postings_offsets"], docs, forward_offsets, terms, postings)
    for array in (terms, postings):
        if isinstance(array, np.memmap):
            array.flush()


def _check(source: LuceneIndex, arrays: dict[str, Any]) -> None:
    """Hold what was written against the totals that Lucene keeps itself."""
    statistics = source.statistics()
    exported = {
        "documents": len(arrays["docids"]),
        "terms": len(arrays["term_offsets"]) - 1,
        "postings": len(arrays["postings_docs"]),
        "tokens": len(arrays["positions"]),
    }
    for name, count in exported.items():
        if count != getattr(statistics, name):
            raise CollectionError(
                f"{source.path}: exported {count} {name}, but Lucene counts {getattr(statistics, name)}: "
                "rebuild the index with positions (greylag index, or Anserini's -storePositions -optimize)"
            )
