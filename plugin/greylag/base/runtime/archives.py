"""NumPy's archives (``.npz``), read as data: a file of another kind, or a damaged one, is an error of one line."""

from __future__ import annotations

import math
import mmap
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np

from greylag.base.errors import FormatError

MAX_ARCHIVE_BYTES, MAX_EXPANSION = 1 << 30, 100
"""Above this size in bytes, an archive may unpack to this multiple of it; vectors do not shrink as much."""
_ENTRY_BYTES, _ALIGNED = 30, 64  # of a member's header in the file; what arrays begin at multiples of
_MAPPED_BYTES, _BLOCK_BYTES = 1 << 26, 1 << 20  # larger arrays are mapped; what is read at once to check them
_PADDING = 0xD935  # the kind of an extra field, as Android's zipalign writes it
# NumPy reads the header of an array by Python's parser. In Python 3.11 that may end in a SystemError about recursion if
# several threads do so at once.
_PARSING = Lock()


def read_arrays(path: str | Path, **kinds: tuple[str, int]) -> list[Any]:
    """Read arrays of a NumPy archive by name.

    `FormatError` if the file is no archive with these arrays, is damaged, or unpacks to more than memory may hold.

    Parameters
    ----------
    path : str or Path
    **kinds : pair of str and int
        For the name of each array, the letters of the types that it may have (`numpy.dtype.kind`), and the number of
        its dimensions.
    """
    with _errors_of(path, kinds), open(path, "rb") as file:
        size, members = Path(path).stat().st_size, zipfile.ZipFile(file).infolist()
        if (total := sum(member.file_size for member in members)) > max(MAX_ARCHIVE_BYTES, MAX_EXPANSION * size):
            raise FormatError(path, None, f"unpacks to {total:,} bytes: save it without compression")
        arrays = unpack(file, list(kinds), mapped=True)
    return [_checked(path, name, array, *kind) for (name, kind), array in zip(kinds.items(), arrays, strict=True)]


def map_array(path: str | Path, letters: str, dimensions: int) -> Any:
    """Map the array of an ``.npy`` file; `FormatError` if it is none of these types (see `read_arrays`)."""
    with _errors_of(path, ["an array"]), _PARSING:
        array = np.lib.format.open_memmap(path, mode="r")
    return _checked(path, "the array", array, letters, dimensions)


def _checked(path: str | Path, name: str, array: Any, letters: str, dimensions: int) -> Any:
    if array.dtype.kind not in letters or array.ndim != dimensions:
        raise FormatError(path, None, f"{name} has the shape {array.shape} and type {array.dtype}: save others")
    return np.asarray(array)


@contextmanager
def _errors_of(path: str | Path, names: Iterable[str]) -> Iterator[None]:
    """Turn whatever reading an archive with these arrays raises into a `FormatError`."""
    try:
        yield
    except FormatError:
        raise
    except MemoryError:
        raise FormatError(path, None, "is damaged, or does not fit in memory: split it") from None
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror or error}; check the path") from None
    except Exception as error:  # zipfile, zlib, lzma, struct and Python's parser have no exception in common
        if "Object arrays" in str(error) or "Python objects" in str(error):  # of what is read, and of what is mapped
            raise FormatError(path, None, "has an array of objects: save ids as texts, numpy.array(ids, str)") from None
        reason = f"no NumPy archive with {' and '.join(names)}, or damaged: write or download it again"
        raise FormatError(path, None, f"{reason} ({error or type(error).__name__})") from None


def write_mappable(file: IO[bytes], arrays: Mapping[str, Any]) -> None:
    """Write a NumPy archive whose arrays `map_arrays` maps: each begins at a multiple of 64 bytes."""
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            member, header = zipfile.ZipInfo(f"{name}.npy"), BytesIO()
            np.lib.format.write_array_header_2_0(header, np.lib.format.header_data_from_array_1_0(array))
            # An entry that no reader knows, behind zipfile's own of 20 bytes, fills what is before the data.
            before = file.tell() + _ENTRY_BYTES + len(member.filename) + 20 + 4 + len(header.getvalue())
            padding = -before % _ALIGNED
            member.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
            with archive.open(member, "w", force_zip64=True) as content:
                content.write(header.getvalue())
                content.write(np.ascontiguousarray(array).data)


def map_arrays(path: str | Path, *needed: str, check: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
    """Map the arrays of an archive that `write_mappable` wrote by name, read-only; `FormatError` if it is none.

    `check` may read all of them, which takes no memory after it.
    """
    with _errors_of(path, needed), _PARSING, open(path, "rb") as file:
        content, members = _mapped(file), zipfile.ZipFile(file).infolist()
        arrays = {member.filename.removesuffix(".npy"): _array_in(content, file, member) for member in members}
        if lacking := [name for name in needed if name not in arrays]:
            raise ValueError(f"no {lacking[0]}")
        check(arrays)
        content.madvise(mmap.MADV_DONTNEED)  # what is used is mapped again
    return arrays


def _mapped(file: IO[bytes]) -> mmap.mmap:
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _array_in(content: mmap.mmap, file: IO[bytes], member: zipfile.ZipInfo) -> Any:
    """Return an array of a mapped archive that is not compressed there."""
    file.seek(member.header_offset)
    begin = member.header_offset + _ENTRY_BYTES + sum(struct.unpack("<26xHH", file.read(_ENTRY_BYTES)))
    file.seek(begin)
    reads = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    shape, by_columns, kind = reads[np.lib.format.read_magic(file)](file)
    size = begin + member.file_size - file.tell()
    if kind.hasobject or size != math.prod(shape) * kind.itemsize:
        raise ValueError(f"{member.filename} has {size} bytes for {shape} of {kind}")
    array = np.frombuffer(content, kind, math.prod(shape), file.tell())
    return array.reshape(shape, order="F" if by_columns else "C")


def unpack(file: IO[bytes], names: Sequence[str] = (), *, mapped: bool = False) -> list[Any]:
    """Read the arrays with some names, or all in their order, of an archive; any exception may say that it is none."""
    arrays = []
    with _PARSING, zipfile.ZipFile(file) as archive:
        for member in [f"{name}.npy" for name in names] or archive.namelist():
            with archive.open(member) as content:
                info = archive.getinfo(member)
                if mapped and info.compress_type == zipfile.ZIP_STORED and info.file_size > _MAPPED_BYTES:
                    arrays.append(_array_in(_mapped(file), file, info))
                    while content.read(_BLOCK_BYTES):
                        pass
                else:
                    arrays.append(np.lib.format.read_array(content, allow_pickle=False))
                # The end is read, too, as zipfile compares the checksum there; after a damaged header, it is too soon.
                if content.read(1):
                    raise ValueError(f"{member} has bytes after its array")
    return arrays
