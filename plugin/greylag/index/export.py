"""Exporting a Lucene index to the files of a shard, once, and opening them.

The files are in ``INDEX.greylag/FINGERPRINT/`` beside the index, or in the user's cache folder if that is not writable.
Each array is one file, ``NAME.DTYPE``, without a header. ``meta.json`` records the size, CRC-32 and time of change of
each file. Opening an export compares sizes, times, and the checksums of the arrays of documents and terms, which
are small. If a time differs, because a file was written to or copied, its checksum is compared, too. A damaged export
is made again. Damage that only the checksum of a large array would show cannot make a program read outside the
arrays, since bounds are checked where they are read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from greylag.errors import CollectionError, ParameterError
from greylag.files import reserve, sync, write_text
from greylag.folders import make_folder, remove_folder
from greylag.index.arrays import DTYPES, fingerprint, join, offsets, ranges
from greylag.index.streams import document_bytes, encode_documents, encode_positions, measure, transpose
from greylag.locks import MARK, sweep
from greylag.lucene.lucene_index import LuceneIndex

SCHEMA = 4
_META = "meta.json"
_LARGE = ("postings_docs.", "block_places.", "positions.", "forward.")
_DOCUMENTS = 1 << 20  # whose docids are put in order at a time
_ANOTHER_VERSION = "another version of greylag wrote it"
_log = logging.getLogger("greylag")

_Stamps = dict[str, list[int]]


def open_export(source: LuceneIndex) -> tuple[Path, dict[str, Any]]:
    """Open the export of an index, which is made first if it is missing or damaged.

    Returns
    -------
    folder : Path
        The export's folder.
    arrays : dict of str to array or str
        `Shard`'s arrays, mapped from files, and fingerprint.

    Raises
    ------
    CollectionError
        If the index is damaged or has no positions, or no folder for the export is writable.
    """
    key = source.fingerprint[:16]
    places = _places(source.path)
    damaged = []
    for folder in (place / key for place in places):
        if os.path.lexists(folder):
            try:
                meta = _inspect(folder, source)
                _tidy(folder)
                return folder, _open(folder, meta)
            except _DamageError as damage:
                damaged.append(damage)
    for found in damaged:
        _log.warning("%s: exporting the positions of %s again", found, source.path)
    writable = [place for place in places if _is_writable(place)]
    if not writable:
        raise CollectionError(f"make one of these folders writable: {', '.join(map(str, places))}")
    folder = writable[0] / key
    if _outdated(folder):
        _log.warning("%s has changed: exporting its positions again", source.path)
    make_folder(folder, lambda part: _write(source, part), done=lambda: _is_sound(folder, source))
    _tidy(folder)
    return folder, _open(folder, _inspect(folder, source))


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
            _inspect(folder, source, checksums=True)
            return f"{folder}: all files have their checksums"
    return "none yet; it is made on first use"


class _DamageError(CollectionError):
    """An export is damaged."""


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


def _outdated(folder: Path) -> list[Path]:
    """The exports beside this one, which are of earlier states of the index, or what is left of them."""
    others = [other for other in folder.parent.glob("[!.]*") if other != folder and other.is_dir()]
    return [other for other in others if (other / MARK).is_file() or not any(other.iterdir())]


def _tidy(folder: Path) -> None:
    """Remove outdated exports and what killed processes left, as far as that is possible."""
    sweep(folder.parent)
    for other in _outdated(folder):
        with suppress(OSError, ParameterError):
            remove_folder(other)


def _inspect(folder: Path, source: LuceneIndex, *, checksums: bool = False) -> dict[str, Any]:
    """The metadata of an undamaged export.

    Parameters
    ----------
    folder : Path
        The export.
    source : LuceneIndex
        Its index; Lucene's checksums of it are compared if its files have changed since the export.
    checksums : bool, default False
        Whether to compare the checksums of all files of the export, instead of those that are small or have changed.

    Raises
    ------
    CollectionError
        If the export or the index is damaged.
    """
    try:
        meta = _unseal((folder / _META).read_bytes())
        if meta["index"] != source.fingerprint:
            raise _DamageError(f"{folder}: it belongs to another index")
        stamps = {name: _stamp(folder / name) for name in meta["stamps"]}
        for name, (size, _) in stamps.items():
            expected = meta["stamps"][name][0]
            if size != expected:
                raise _DamageError(f"{folder}: {name} is damaged: it has {size} bytes instead of {expected}")
        for name, stamp in stamps.items():
            suspect = checksums or not name.startswith(_LARGE) or stamp != meta["stamps"][name]
            if suspect and _checksum(folder / name) != meta["checksums"][name]:
                raise _DamageError(f"{folder}: {name} is damaged: its checksum differs")
    except OSError as error:
        name = Path(error.filename or folder).name
        raise _DamageError(f"{folder}: it cannot be read: {error.strerror}: {name}") from None
    except ValueError as error:
        raise _DamageError(f"{folder}: {error}") from None
    lucene = _stamps(source.path)
    if lucene != meta["lucene"]:
        source.check_integrity()
    if (stamps, lucene) != (meta["stamps"], meta["lucene"]):
        with suppress(ParameterError):  # in a read-only folder, the checksums are compared every time
            write_text(folder / _META, _seal({**meta, "stamps": stamps, "lucene": lucene}))
    return meta


def _is_sound(folder: Path, source: LuceneIndex) -> bool:
    try:
        _inspect(folder, source)
    except _DamageError:
        return False
    return True


def _seal(meta: dict[str, Any]) -> str:
    """Metadata as JSON with a checksum."""
    content = json.dumps({"schema": SCHEMA, **meta}, sort_keys=True)
    return f"{content}\n{zlib.crc32(content.encode())}\n"


def _unseal(sealed: bytes) -> dict[str, Any]:
    """Metadata from `_seal`; ValueError if it is something else."""
    content, _, checksum = sealed.partition(b"\n")
    if checksum != b"%d\n" % zlib.crc32(content):
        old = content.startswith(b'{"schema": ')
        raise ValueError(_ANOTHER_VERSION if old else f"{_META} is damaged")
    meta: dict[str, Any] = json.loads(content)
    if meta["schema"] != SCHEMA:
        raise ValueError(_ANOTHER_VERSION)
    return meta


def _stamps(folder: Path) -> _Stamps:
    return {path.name: _stamp(path) for path in sorted(folder.iterdir()) if path.is_file()}


def _stamp(path: Path) -> list[int]:
    """The size of a file, and when it last changed (which, unlike the time of modification, cannot be set)."""
    status = path.stat()
    return [status.st_size, status.st_ctime_ns]


def _open(folder: Path, meta: dict[str, Any]) -> dict[str, Any]:
    # As plain arrays, which compiled functions take faster than NumPy's class of mapped ones.
    arrays = {name: np.asarray(_map(folder, name, dtype)) for name, dtype in DTYPES.items()}
    return {**arrays, "fingerprint": meta["fingerprint"]}


def _map(folder: Path, name: str, dtype: str, mode: str = "r") -> Any:
    path = folder / f"{name}.{dtype}"
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode=mode)  # type: ignore[call-overload]


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


class _Writer:
    """Writes the arrays of `DTYPES` to the files of an export, and sums what is written."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checksums = dict.fromkeys((f"{name}.{dtype}" for name, dtype in DTYPES.items()), 0)
        for name in self.checksums:
            (folder / name).touch()

    def append(self, name: str, array: Any) -> None:
        """Append an array to a file."""
        file = f"{name}.{DTYPES[name]}"
        content = np.ascontiguousarray(array, dtype=DTYPES[name]).view(np.uint8).data
        with (self.folder / file).open("ab") as opened:
            opened.write(content)
        self.checksums[file] = zlib.crc32(content, self.checksums[file])

    def read(self, name: str) -> Any:
        """The array that was appended, mapped from its file."""
        return _map(self.folder, name, DTYPES[name])

    @contextmanager
    def mapped(self, name: str, size: int) -> Iterator[Any]:
        """A new array of a given size, mapped from its file for writing."""
        file = f"{name}.{DTYPES[name]}"
        with (self.folder / file).open("wb") as opened:
            if size:
                reserve(opened, size * np.dtype(DTYPES[name]).itemsize)
        array = _map(self.folder, name, DTYPES[name], "r+")
        yield array
        self.checksums[file] = zlib.crc32(array.view(np.uint8).data)
        if isinstance(array, np.memmap):
            array.flush()

    def verify(self) -> None:
        """Read the files back from the disk and compare their checksums with those of what was written."""
        for name, checksum in self.checksums.items():
            sync(self.folder / name, drop=True)
            if _checksum(self.folder / name) != checksum:
                raise CollectionError(f"{self.folder / name} is not read back as it was written: check the disk")


def _write(source: LuceneIndex, folder: Path) -> None:
    lucene = _stamps(source.path)
    source.check_integrity()
    writer = _Writer(folder)
    _write_docids(source, writer)
    _write_postings(source, writer)
    _check(source, writer)
    _write_forward(writer)
    writer.verify()
    meta = {
        "index": source.fingerprint,
        "fingerprint": fingerprint({name: writer.read(name) for name in DTYPES}),
        "checksums": writer.checksums,
        "stamps": {name: _stamp(folder / name) for name in writer.checksums},
        "lucene": lucene,
    }
    (folder / _META).write_text(_seal(meta))


def _write_docids(source: LuceneIndex, writer: _Writer) -> None:
    """Write the docids in the order of document numbers, which come in the order of docids."""
    ascending, order = source.sorted_docids()
    text, starts = join(ascending)
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order), dtype=order.dtype)
    writer.append("docid_order", order)
    writer.append("docid_offsets", offsets(np.diff(starts)[ranks]))
    for first in range(0, len(ranks), _DOCUMENTS):
        own = ranks[first : first + _DOCUMENTS]
        writer.append("docids", text[ranges(starts[own], starts[own + 1] - starts[own])])


def _write_postings(source: LuceneIndex, writer: _Writer) -> None:
    """Write the postings block by block, turning counts into cumulative offsets."""
    from tqdm import tqdm

    totals = {"term_offsets": 0, "postings_offsets": 0}
    place, width = 0, document_bytes(len(writer.read("docid_order")))

    def accumulate(name: str, counts: Any) -> None:
        ends = totals[name] + np.cumsum(counts, dtype=np.int64)
        writer.append(name, ends)
        totals[name] = int(ends[-1]) if len(ends) else totals[name]

    for name in totals:
        writer.append(name, [0])
    with tqdm(total=source.statistics().tokens, desc="exporting positions", unit="token", disable=None) as bar:
        for block in source.postings_blocks():
            stream, places = encode_positions(totals["postings_offsets"], place, block.tfs, block.positions)
            place += len(stream)
            writer.append("terms", np.frombuffer(b"".join(block.terms), dtype=np.uint8))
            accumulate("term_offsets", [len(term) for term in block.terms])
            accumulate("postings_offsets", block.df)
            writer.append("collection_frequencies", np.diff(offsets(block.tfs)[offsets(block.df)]))
            writer.append("postings_docs", encode_documents(block.docs, width))
            writer.append("positions", stream)
            writer.append("block_places", places)
            bar.update(len(block.positions))


def _write_forward(writer: _Writer) -> None:
    """Write document lengths and the forward view from the postings."""
    n_documents = len(writer.read("docid_order"))
    docs, positions, postings_offsets = map(writer.read, ("postings_docs", "positions", "postings_offsets"))
    postings = docs, document_bytes(n_documents), positions, postings_offsets
    lengths, sizes = measure(*postings, n_documents)
    forward_offsets = offsets(sizes)
    writer.append("document_lengths", lengths)
    writer.append("forward_offsets", forward_offsets)
    with writer.mapped("forward", int(forward_offsets[-1])) as forward:
        transpose(*postings, forward_offsets, forward)


def _check(source: LuceneIndex, writer: _Writer) -> None:
    """Compare what was written with the totals that Lucene keeps."""
    statistics = source.statistics()
    exported = {
        "documents": len(writer.read("docid_order")),
        "terms": len(writer.read("term_offsets")) - 1,
        "postings": int(writer.read("postings_offsets")[-1]),
        "tokens": int(writer.read("collection_frequencies").sum()),
    }
    for name, count in exported.items():
        if count != getattr(statistics, name):
            raise CollectionError(
                f"{source.path}: exported {count} {name}, but Lucene counts {getattr(statistics, name)}: "
                "rebuild the index with positions (greylag index, or Anserini's -storePositions -optimize)"
            )
