"""Folders of arrays: ``.npy`` files that are written once, checked when they are opened, and mapped into memory.

``meta.json`` has the size, the times and the CRC-32 of each file. Opening a folder compares sizes and times, and the
checksums of the smallest files, `CHECKED_BYTES` together, and of each file whose times differ, because it was written
to or copied; `verify_arrays` (``greylag doctor``) compares all. A damaged folder is made again. Damage that only a
checksum shows cannot make a program read outside the arrays, since bounds are checked where they are read.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from greylag.base import (
    MARK_FILE,
    CollectionError,
    ParameterError,
    file_stamp,
    file_stamps,
    make_folder,
    remove_folder,
    sweep,
    sync,
    write_text,
)
from greylag.index.tables import fingerprint as collection_fingerprint

SCHEMA = 5
_META = "meta.json"
Stamps = Mapping[str, list[int]]  # of files by name
CHECKED_BYTES = 1 << 26
"""The size up to which a folder's smallest files are compared with their checksums at every opening, 1 ms per MB."""
_BLOCK_BYTES = 1 << 20
_HEADER = 128  # bytes at the beginning of an .npy file with an array of one dimension
_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class ArraySource:
    """The source of a folder of arrays, and how they are made from it."""

    name: str  # for messages
    making: str  # for messages: "exporting positions"
    places: Sequence[Path]  # where the folder may be, by preference; earlier states of the source in them are removed
    fingerprint: str  # of the state of the source; the name of the folder is its beginning
    dtypes: Mapping[str, str]  # of the arrays by name
    write: Callable[[Writer], None]
    files: Sequence[Path]  # folders with the files of the source
    check: Callable[[], None]  # raises CollectionError if these are damaged; called if they changed since the export
    identity: Callable[[Mapping[str, Any]], str] = collection_fingerprint  # of the collection, from the arrays
    note: Callable[[], str] = str  # what is kept with the arrays

    @property
    def folders(self) -> list[Path]:
        """The folder of the arrays in each of the places."""
        return [place / self.fingerprint[:16] for place in self.places]

    def stamps(self) -> Stamps:
        """Return the present sizes and times of the files of the source, by relative path."""
        return {name: list(stamp) for folder in self.files for name, stamp in file_stamps(folder)}

    def stamps_in(self, folder: Path) -> Stamps:
        """Return the present sizes and times of the arrays in a folder, by name."""
        return {name: list(file_stamp(_array_file(folder, name))) for name in self.dtypes}


@dataclass(frozen=True)
class Manifest:
    """The content of ``meta.json``: the states of a source and of the arrays that were made from it."""

    index: str  # the fingerprint of the state of the source
    fingerprint: str  # of the collection
    checksums: Mapping[str, int]  # of the arrays
    stamps: Stamps  # of the arrays
    files: Stamps  # of the source
    note: str

    @classmethod
    def parse(cls, sealed: bytes) -> Manifest:
        """Parse what `seal` made; ValueError if it is something else."""
        content, _, checksum = sealed.partition(b"\n")
        is_whole = checksum == b"%d\n" % zlib.crc32(content)
        fields: dict[str, Any] = json.loads(content) if is_whole else {}
        if fields.pop("schema", None) != SCHEMA:
            other = is_whole or content.startswith(b'{"schema": ')
            raise ValueError("another version of greylag wrote it" if other else f"{_META} is damaged")
        manifest = cls(**fields)
        texts, stamps = (manifest.index, manifest.fingerprint, manifest.note), (manifest.stamps, manifest.files)
        numbers = (number for of_files in stamps for stamp in of_files.values() for number in stamp)
        if not all(isinstance(text, str) and text.isprintable() for text in texts) or {*map(type, numbers)} - {int}:
            raise ValueError(f"{_META} is damaged")
        return manifest

    def seal(self) -> str:
        """Format the manifest as JSON with a checksum."""
        content = json.dumps({"schema": SCHEMA, **vars(self)}, sort_keys=True)
        return f"{content}\n{zlib.crc32(content.encode())}\n"


@dataclass(frozen=True)
class Found:
    """An undamaged folder of a source's arrays."""

    folder: Path
    manifest: Manifest  # as it is now
    recorded: Manifest  # as it was when the folder was made or last opened

    def seal(self) -> None:
        """Record the present times, with which the next opening compares."""
        if self.manifest != self.recorded:
            with suppress(ParameterError):  # in a read-only folder, the checksums are compared every time
                write_text(self.folder / _META, self.manifest.seal())


def open_arrays(source: ArraySource) -> dict[str, Any]:
    """Open the arrays of a source by name, its note, the fingerprint of the collection, and the folder."""
    opened = find(source) or make(source)
    folder, manifest = opened.folder, opened.manifest
    # As plain arrays, which compiled functions take faster than NumPy's class of mapped ones.
    arrays = {name: np.asarray(_map_array(_array_file(folder, name), dtype)) for name, dtype in source.dtypes.items()}
    tidy(opened)
    return {**arrays, "note": manifest.note, "fingerprint": manifest.fingerprint, "folder": folder}


def find(source: ArraySource) -> Found | None:
    """Find an undamaged folder of a source's arrays; None if they are to be made, with a warning if they were."""
    messages = []
    for folder in filter(os.path.lexists, source.folders):
        try:
            return _inspect(folder, source)
        except _DamageError as damage:
            messages.append(str(damage))
    for message in messages:
        _log.warning("%s: %s of %s again", message, source.making, source.name)
    return None


def make(source: ArraySource) -> Found:
    """Make a folder of a source's arrays, unless another process makes it first."""
    writable = [folder for folder in source.folders if _is_writable(folder.parent)]
    if not writable:
        raise CollectionError(f"make one of these folders writable: {', '.join(map(str, source.places))}")
    folder = writable[0]
    if _outdated(folder):
        _log.warning("%s changed: %s again", source.name, source.making)
    # Atomic: another process sees the whole folder or none, and takes a sound one that is there first.
    make_folder(folder, lambda part: _write_arrays(source, part), done=lambda: _is_sound(folder, source))
    return _inspect(folder, source)


def tidy(opened: Found) -> None:
    """Record that a folder was found undamaged, and remove outdated ones and killed processes' leftovers beside it."""
    opened.seal()
    sweep(opened.folder.parent)
    for other in _outdated(opened.folder):
        with suppress(OSError, ParameterError):
            remove_folder(other)


def is_made(source: ArraySource) -> bool:
    """Return whether there is a folder of a source's arrays."""
    return any(map(os.path.lexists, source.folders))


def verify_arrays(source: ArraySource) -> str:
    """Compare the files of a source's arrays, if there are any, with their checksums; return a line about it."""
    for folder in filter(os.path.lexists, source.folders):
        _inspect(folder, source, checksums=True).seal()
        return f"{folder}: all files have their checksums"
    return f"{source.places[0]}: none yet, it is made on first use"


def named(path: Path) -> Path:
    """Return the path of a folder, ending in its name, which ``.`` and ``..`` do not."""
    return Path(os.path.abspath(path)) if path.name in ("", "..") else path


def places(name: str, beside: Path, identity: str) -> list[Path]:
    """Return two paths for folders of arrays: ``NAME`` in the folder `beside`, or else in the user's cache folder."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    cached = f"{name.removesuffix('.greylag')}-{hashlib.sha256(identity.encode()).hexdigest()[:8]}"
    return [beside / name, Path(cache, "greylag", cached)] if os.path.isabs(cache) else [beside / name]


class Writer:
    """Writes arrays to the files of a folder, block by block, and sums what is written."""

    def __init__(self, folder: Path, dtypes: Mapping[str, str]) -> None:
        self.folder, self.dtypes = folder, dtypes
        self._checksums = dict.fromkeys(dtypes, 0)  # of the files without their headers
        for name in dtypes:
            _array_file(folder, name).write_bytes(bytes(_HEADER))

    def append(self, name: str, array: Any) -> None:
        """Append an array to a file."""
        content = np.ascontiguousarray(array, dtype=self.dtypes[name]).view(np.uint8).data
        with _array_file(self.folder, name).open("ab") as file:
            file.write(content)
        self._checksums[name] = zlib.crc32(content, self._checksums[name])

    def read(self, name: str) -> Any:
        """Read the array that was appended, mapped from its file."""
        return _map_array(_array_file(self.folder, name), self.dtypes[name])

    @contextmanager
    def mapped(self, name: str, size: int) -> Iterator[Any]:
        """Make an array of a given size, mapped from its file for writing."""
        with _array_file(self.folder, name).open("wb") as file:
            left = _HEADER + size * np.dtype(self.dtypes[name]).itemsize
            while left:  # no holes: if the disk is full, writing through a mapping would kill the process
                left -= file.write(bytes(min(left, _BLOCK_BYTES)))
        array = _map_array(_array_file(self.folder, name), self.dtypes[name], "r+")
        yield array
        self._checksums[name] = zlib.crc32(array.view(np.uint8).data)
        if isinstance(array, np.memmap):
            array.flush()

    def finish(self) -> dict[str, int]:
        """Write the headers, read the files back from the disk, and return their checksums."""
        for name, checksum in self._checksums.items():
            path = _array_file(self.folder, name)
            shape = (len(self.read(name)),)
            with path.open("r+b") as file:  # with a header other programs can read it; here, types and sizes are known
                description = {"descr": np.dtype(self.dtypes[name]).str, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, description)
            # Out of the page cache, or the check would read back what is in memory.
            sync(path, drop=True)
            if _checksum(path, _HEADER) != checksum:
                raise CollectionError(f"{path} is not read back as it was written: check the disk")
        return {name: _checksum(_array_file(self.folder, name)) for name in self.dtypes}


class _DamageError(CollectionError):
    """An export is damaged."""


def _array_file(folder: Path, name: str) -> Path:
    return folder / f"{name}.npy"


def _is_writable(folder: Path) -> bool:
    """Return whether the folder, or the nearest parent that exists, is a writable folder."""
    there = next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))
    return os.path.isdir(there) and os.access(there, os.W_OK | os.X_OK)


def _outdated(folder: Path) -> list[Path]:
    """Return the exports beside this one that are of earlier states of the index, or left over from them."""
    # Only folders with greylag's mark, or empty ones: a user's files beside them stay.
    others = [other for other in folder.parent.glob("[!.]*") if other != folder and other.is_dir()]
    return [other for other in others if (other / MARK_FILE).is_file() or not any(other.iterdir())]


def _inspect(folder: Path, source: ArraySource, *, checksums: bool = False) -> Found:
    """Read what an export has, and check that it is undamaged; with `checksums`, unchanged files are summed, too."""
    try:
        recorded = Manifest.parse((folder / _META).read_bytes())
        if recorded.index != source.fingerprint:
            raise _DamageError(f"{folder}: it belongs to another index")
        stamps = source.stamps_in(folder)
        # Sizes first, which cost nothing; compiled loops trust them.
        for name, (_, size, *_) in stamps.items():
            if size != (expected := recorded.stamps[name][1]):
                raise _DamageError(f"{folder}: {name}.npy is damaged: it has {size} bytes instead of {expected}")
        left = CHECKED_BYTES
        for name, stamp in sorted(stamps.items(), key=lambda pair: pair[1][1]):
            left -= stamp[1]
            suspect = checksums or left >= 0 or stamp != recorded.stamps[name]
            if suspect and _checksum(_array_file(folder, name)) != recorded.checksums[name]:
                raise _DamageError(f"{folder}: {name}.npy is damaged: its checksum differs")
    except OSError as error:
        name = Path(error.filename or folder).name
        raise _DamageError(f"{folder}: it cannot be read: {error.strerror}: {name}") from None
    except ValueError as error:
        raise _DamageError(f"{folder}: {error}") from None
    except (LookupError, TypeError, AttributeError):  # not what this version writes, though its checksum is right
        raise _DamageError(f"{folder}: {_META} is damaged") from None
    present = replace(recorded, stamps=stamps, files=source.stamps())
    # The source changed or was copied since: its own checksums decide whether it is whole.
    if present.files != recorded.files:
        source.check()
    return Found(folder, present, recorded)


def _is_sound(folder: Path, source: ArraySource) -> bool:
    try:
        _inspect(folder, source)
    except _DamageError:
        return False
    return True


def _map_array(path: Path, dtype: str, mode: str = "r") -> Any:
    if path.stat().st_size <= _HEADER:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode=mode, offset=_HEADER)  # type: ignore[call-overload]


def _checksum(path: Path, start: int = 0) -> int:
    checksum = 0
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(_BLOCK_BYTES):
            checksum = zlib.crc32(block, checksum)
    return checksum


def _write_arrays(source: ArraySource, folder: Path) -> None:
    files = source.stamps()  # before the export, so that later changes are noticed
    source.check()
    writer = Writer(folder, source.dtypes)
    source.write(writer)
    manifest = Manifest(
        index=source.fingerprint,
        checksums=writer.finish(),
        fingerprint=source.identity({name: writer.read(name) for name in source.dtypes}),
        stamps=source.stamps_in(folder),
        files=files,
        note=source.note(),
    )
    (folder / _META).write_text(manifest.seal())
