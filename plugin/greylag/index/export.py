"""Exporting a Lucene index to the files of a PositionalIndex, once, and opening them.

The files are in ``INDEX.greylag/FINGERPRINT/`` beside the index, or in the user's cache folder if that is not writable.
Each array is one file, ``NAME.DTYPE``, without a header. ``meta.json`` records the size and CRC-32 of each file: sizes
are checked whenever an export is opened, checksums by `verify_export`. A damaged export is made again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from greylag.errors import CollectionError
from greylag.folders import make_folder, remove_folder
from greylag.index.arrays import DTYPES, document_sizes, encode_docids, fingerprint, offsets
from greylag.index.transpose import transpose
from greylag.locks import MARK
from greylag.lucene.lucene_index import LuceneIndex

SCHEMA = 2
_META = "meta.json"
_log = logging.getLogger("greylag")


def open_export(source: LuceneIndex) -> tuple[Path, dict[str, Any]]:
    """Open the export of an index, which is made first if it is missing or damaged.

    Returns
    -------
    folder : Path
        The export's folder.
    arrays : dict of str to array or str
        `PositionalIndex`'s arrays, mapped from files, and fingerprint.

    Raises
    ------
    CollectionError
        If the index is damaged or has no positions, or no folder for the export is writable.
    """
    key = source.fingerprint[:16]
    places = _places(source.path)
    for place in places:
        if os.path.lexists(place / key):
            damage = _damage(place / key)
            if not damage:
                return place / key, _open(place / key)
            _log.warning("%s: %s: exporting the positions of %s again", place / key, damage, source.path)
    writable = [place for place in places if _is_writable(place)]
    if not writable:
        raise CollectionError(f"make one of these folders writable: {', '.join(map(str, places))}")
    place = writable[0]
    outdated = [other for other in place.glob("[!.]*") if (other / MARK).is_file() and other.name != key]
    if outdated:
        _log.warning("%s has changed: exporting its positions again", source.path)
    make_folder(place / key, lambda folder: _write(source, folder), done=lambda: _damage(place / key) == "")
    for folder in outdated:
        remove_folder(folder)
    return place / key, _open(place / key)


def verify_export(source: LuceneIndex) -> str:
    """Compare the files of an index's export, if there is one, with their checksums; return what was found.

    Raises
    ------
    CollectionError
        If a file is damaged.
    """
    for place in _places(source.path):
        folder = place / source.fingerprint[:16]
        if os.path.lexists(folder):
            damage = _damage(folder, checksums=True)
            if damage:
                raise CollectionError(f"{folder}: {damage}")
            return f"{folder}: all files have their checksums"
    return "none yet; it is made on first use"


def _places(path: Path) -> list[Path]:
    """The folders in which the exports of an index may be, in order of preference."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    name = f"{path.name}-{hashlib.sha256(str(path.resolve()).encode()).hexdigest()[:8]}"
    beside = path.parent / f"{path.name}.greylag"
    return [beside, Path(cache, "greylag", name)] if os.path.isabs(cache) else [beside]


def _is_writable(folder: Path) -> bool:
    """Whether the folder, or the nearest parent that exists, is a writable folder."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    return os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)


def _damage(folder: Path, *, checksums: bool = False) -> str:
    """What is wrong with an export, or ""."""
    try:
        meta = json.loads((folder / _META).read_text())
        if meta["schema"] != SCHEMA:
            return "another version of greylag wrote it"
        for name, (size, checksum) in meta["files"].items():
            found = (folder / name).stat().st_size
            if found != size:
                return f"{name} is damaged: it has {found} bytes instead of {size}"
            if checksums and _checksum(folder / name) != checksum:
                return f"{name} is damaged: its checksum differs"
    except OSError as error:
        return f"it cannot be read: {error.strerror}: {Path(error.filename or folder).name}"
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"{_META} is damaged"
    return ""


def _open(folder: Path) -> dict[str, Any]:
    meta = json.loads((folder / _META).read_text())
    arrays = {name: _map(folder / f"{name}.{dtype}", dtype) for name, dtype in DTYPES.items()}
    docids = _map(folder / f"docids.{meta['docids']}", meta["docids"])
    return {"docids": docids, **arrays, "fingerprint": meta["fingerprint"]}


def _map(path: Path, dtype: str, mode: str = "r") -> Any:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode=mode)  # type: ignore[call-overload]


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _write(source: LuceneIndex, folder: Path) -> None:
    source.check_integrity()
    docids = encode_docids(source.docids())
    with _writer(folder) as write:
        write("docid_order", np.argsort(docids, kind="stable"))
        _write_postings(source, write)
    (folder / f"docids.{docids.dtype.str[1:]}").write_bytes(docids.tobytes())
    paths = [folder / f"{name}.{dtype}" for name, dtype in DTYPES.items()]
    arrays = {path.stem: _map(path, path.suffix[1:]) for path in paths if path.exists()} | {"docids": docids}
    _check(source, arrays)
    _write_forward(folder, arrays)
    files = {path.name: (path.stat().st_size, _checksum(path)) for path in sorted(folder.iterdir())}
    meta = {"schema": SCHEMA, "docids": docids.dtype.str[1:], "fingerprint": fingerprint(arrays), "files": files}
    (folder / _META).write_text(json.dumps(meta))


@contextmanager
def _writer(folder: Path) -> Iterator[Any]:
    files: dict[str, IO[bytes]] = {}

    def write(name: str, array: Any) -> None:
        if name not in files:
            files[name] = (folder / f"{name}.{DTYPES[name]}").open("wb")
        files[name].write(np.ascontiguousarray(array, dtype=DTYPES[name]).data)

    try:
        yield write
    finally:
        for file in files.values():
            file.close()


def _write_postings(source: LuceneIndex, write: Any) -> None:
    """Append the postings block by block, turning counts into cumulative offsets."""
    from tqdm import tqdm

    totals = {"term_offsets": 0, "postings_offsets": 0, "postings_starts": 0}

    def accumulate(name: str, counts: Any) -> None:
        ends = totals[name] + np.cumsum(counts, dtype=np.int64)
        write(name, ends)
        totals[name] = int(ends[-1]) if len(ends) else totals[name]

    for name in totals:
        write(name, [0])
    for name in ("terms", "postings_docs", "positions"):
        write(name, [])
    with tqdm(total=source.statistics().tokens, desc="exporting positions", unit="token", disable=None) as bar:
        for block in source.postings_blocks():
            write("terms", np.frombuffer(b"".join(block.terms), dtype=np.uint8))
            accumulate("term_offsets", [len(term) for term in block.terms])
            accumulate("postings_offsets", block.df)
            write("postings_docs", block.docs)
            accumulate("postings_starts", block.tfs)
            write("positions", block.positions)
            bar.update(len(block.positions))


def _write_forward(folder: Path, arrays: dict[str, Any]) -> None:
    docs = arrays["postings_docs"]
    forward_offsets = offsets(document_sizes(docs, len(arrays["docids"])))
    (folder / f"forward_offsets.{DTYPES['forward_offsets']}").write_bytes(forward_offsets.tobytes())
    forward = []
    for name in ("forward_terms", "forward_postings"):
        path = folder / f"{name}.{DTYPES[name]}"
        with path.open("wb") as file:
            if size := len(docs) * np.dtype(DTYPES[name]).itemsize:
                # On a full disk, writing to a mapped file without reserved space would kill the process.
                os.posix_fallocate(file.fileno(), 0, size)
        forward.append(_map(path, DTYPES[name], "r+"))
    transpose(arrays["postings_offsets"], docs, forward_offsets, *forward)
    for array in forward:
        if isinstance(array, np.memmap):
            array.flush()


def _check(source: LuceneIndex, arrays: dict[str, Any]) -> None:
    """Compare what was written with the totals that Lucene keeps."""
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
