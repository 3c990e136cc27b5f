"""Folders of arrays: written once, checked when they are opened, and mapped from their files.

Each array is one file, ``NAME.DTYPE``, without a header. ``meta.json`` records the size, CRC-32 and time of change of
each file. Opening a folder compares sizes, times, and the checksums of the arrays of documents and terms, which
are small. If a time differs, because a file was written to or copied, its checksum is compared, too. A damaged folder
is made again. Damage that only the checksum of a large array would show cannot make a program read outside the
arrays, since bounds are checked where they are read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from greylag.errors import CollectionError, ParameterError
from greylag.index.arrays import fingerprint
from greylag.runtime.files import write_text
from greylag.runtime.folders import MARK, make_folder, remove_folder, sweep, sync

SCHEMA = 4
_META = "meta.json"
_LARGE = ("postings_docs.", "block_places.", "positions.", "forward.")
_ANOTHER_VERSION = "another version of greylag wrote it"
_log = logging.getLogger("greylag")

_Stamps = dict[str, list[int]]


@dataclass(frozen=True)
class ArraySource:
    """What the arrays of a folder are made from.

    Parameters
    ----------
    name, making : str
        For messages: what the source is, and what is done, such as "exporting positions".
    places : sequence of Path
        The folders in which the folder may be, in order of preference. Each is for this source alone: other folders of
        greylag in it are of earlier states and are removed.
    fingerprint : str
        Identifies the state of the source. It begins with the name of the folder.
    dtypes : mapping of str to str
        The types of the arrays by name.
    write : callable
        Writes the arrays.
    files : sequence of Path
        Folders with the files of the source.
    check : callable
        Called if these files are not those that the arrays were made from. It raises `CollectionError` if they are
        damaged.
    """

    name: str
    making: str
    places: Sequence[Path]
    fingerprint: str
    dtypes: Mapping[str, str]
    write: Callable[[Writer], None]
    files: Sequence[Path]
    check: Callable[[], None]


def open_arrays(source: ArraySource) -> dict[str, Any]:
    """The arrays of a source, mapped from files, which are made first if they are missing or damaged.

    Returns
    -------
    dict of str to array, str or Path
        The arrays by name, the fingerprint of the collection, and the folder.

    Raises
    ------
    CollectionError
        If the source is damaged, or no folder for the arrays is writable.
    """
    damaged = []
    for folder in _folders(source):
        if os.path.lexists(folder):
            try:
                meta = _inspect(folder, source)
                _tidy(folder)
                return _open(folder, source, meta)
            except _DamageError as damage:
                damaged.append(damage)
    for found in damaged:
        _log.warning("%s: %s of %s again", found, source.making, source.name)
    writable = [folder for folder in _folders(source) if _is_writable(folder.parent)]
    if not writable:
        raise CollectionError(f"make one of these folders writable: {', '.join(map(str, source.places))}")
    folder = writable[0]
    if _outdated(folder):
        _log.warning("%s changed: %s again", source.name, source.making)
    make_folder(folder, lambda part: _write(source, part), done=lambda: _is_sound(folder, source))
    _tidy(folder)
    return _open(folder, source, _inspect(folder, source))


def verify_arrays(source: ArraySource) -> str:
    """Compare the files of a source's arrays, if there are any, with their checksums; return what was found.

    Raises
    ------
    CollectionError
        If a file is damaged.
    """
    for folder in _folders(source):
        if os.path.lexists(folder):
            _inspect(folder, source, checksums=True)
            return f"{folder}: all files have their checksums"
    return f"{source.places[0]}: none yet, it is made on first use"


def named(path: Path) -> Path:
    """The path of a folder, ending in its name, which ``.`` and ``..`` do not."""
    return Path(os.path.abspath(path)) if path.name in ("", "..") else path


def places(name: str, beside: Path, identity: str) -> list[Path]:
    """Two places for folders of arrays: ``NAME`` in the folder `beside`, or else in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    cached = f"{name.removesuffix('.greylag')}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    return [beside / name, Path(cache, "greylag", cached)] if os.path.isabs(cache) else [beside / name]


def _folders(source: ArraySource) -> list[Path]:
    return [place / source.fingerprint[:16] for place in source.places]


class _DamageError(CollectionError):
    """An export is damaged."""


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


def _inspect(folder: Path, source: ArraySource, *, checksums: bool = False) -> dict[str, Any]:
    """The metadata of an undamaged export.

    Parameters
    ----------
    folder : Path
        The export.
    source : ArraySource
        What it was made from, which is checked if its files have changed since.
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
    lucene = _stamps(source.files)
    if lucene != meta["lucene"]:
        source.check()
    if (stamps, lucene) != (meta["stamps"], meta["lucene"]):
        with suppress(ParameterError):  # in a read-only folder, the checksums are compared every time
            write_text(folder / _META, _seal({**meta, "stamps": stamps, "lucene": lucene}))
    return meta


def _is_sound(folder: Path, source: ArraySource) -> bool:
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


def _stamps(folders: Sequence[Path]) -> _Stamps:
    files = [path for folder in folders for path in sorted(folder.iterdir())]
    return {path.name: _stamp(path) for path in files if path.is_file()}


def _stamp(path: Path) -> list[int]:
    """The size of a file, and when it last changed (which, unlike the time of modification, cannot be set)."""
    status = path.stat()
    return [status.st_size, status.st_ctime_ns]


def _open(folder: Path, source: ArraySource, meta: dict[str, Any]) -> dict[str, Any]:
    # As plain arrays, which compiled functions take faster than NumPy's class of mapped ones.
    arrays = {name: np.asarray(_map(folder, name, dtype)) for name, dtype in source.dtypes.items()}
    return {**arrays, "fingerprint": meta["fingerprint"], "folder": folder}


def _map(folder: Path, name: str, dtype: str, mode: str = "r") -> Any:
    path = folder / f"{name}.{dtype}"
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode=mode)  # type: ignore[call-overload]


def _reserve(file: IO[bytes], size: int) -> None:
    """Give an empty file `size` bytes on the disk: if it is full, writing through a mapping would kill the process."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
    else:
        for first in range(0, size, 1 << 20):
            file.write(bytes(min(1 << 20, size - first)))
        file.flush()


def _checksum(path: Path) -> int:
    checksum = 0
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum


class Writer:
    """Writes arrays to the files of a folder, and sums what is written."""

    def __init__(self, folder: Path, dtypes: Mapping[str, str]) -> None:
        self.folder, self.dtypes = folder, dtypes
        self.checksums = dict.fromkeys((f"{name}.{dtype}" for name, dtype in dtypes.items()), 0)
        for name in self.checksums:
            (folder / name).touch()

    def append(self, name: str, array: Any) -> None:
        """Append an array to a file."""
        file = f"{name}.{self.dtypes[name]}"
        content = np.ascontiguousarray(array, dtype=self.dtypes[name]).view(np.uint8).data
        with (self.folder / file).open("ab") as opened:
            opened.write(content)
        self.checksums[file] = zlib.crc32(content, self.checksums[file])

    def read(self, name: str) -> Any:
        """The array that was appended, mapped from its file."""
        return _map(self.folder, name, self.dtypes[name])

    @contextmanager
    def mapped(self, name: str, size: int) -> Iterator[Any]:
        """A new array of a given size, mapped from its file for writing."""
        file = f"{name}.{self.dtypes[name]}"
        with (self.folder / file).open("wb") as opened:
            if size:
                _reserve(opened, size * np.dtype(self.dtypes[name]).itemsize)
        array = _map(self.folder, name, self.dtypes[name], "r+")
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


def _write(source: ArraySource, folder: Path) -> None:
    files = _stamps(source.files)
    source.check()
    writer = Writer(folder, source.dtypes)
    source.write(writer)
    writer.verify()
    meta = {
        "index": source.fingerprint,
        "fingerprint": fingerprint({name: writer.read(name) for name in source.dtypes}),
        "checksums": writer.checksums,
        "stamps": {name: _stamp(folder / name) for name in writer.checksums},
        "lucene": files,
    }
    (folder / _META).write_text(_seal(meta))
