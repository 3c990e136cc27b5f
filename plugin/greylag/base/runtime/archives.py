"""NumPy's archives (``.npz``), read as data: a file of another kind, or a damaged one, is an error of one line."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import IO, Any

import numpy as np

from greylag.base.errors import FormatError

MAX_ARCHIVE_BYTES, MAX_EXPANSION = 1 << 30, 100
"""Above this size in bytes, an archive may unpack to this multiple of it; vectors do not shrink as much."""
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
    try:
        with open(path, "rb") as file:
            size, members = Path(path).stat().st_size, zipfile.ZipFile(file).infolist()
            if (total := sum(member.file_size for member in members)) > max(MAX_ARCHIVE_BYTES, MAX_EXPANSION * size):
                raise FormatError(path, None, f"unpacks to {total:,} bytes: save it without compression")
            arrays = unpack(file, list(kinds))
    except FormatError:
        raise
    except MemoryError:
        raise FormatError(path, None, "is damaged, or does not fit in memory: split it") from None
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror or error}; check the path") from None
    except Exception as error:  # zipfile, zlib, lzma, struct and Python's parser have no exception in common
        reason = f"no NumPy archive with {' and '.join(kinds)}, or damaged: write or download it again"
        raise FormatError(path, None, f"{reason} ({error or type(error).__name__})") from None
    for (name, (letters, dimensions)), array in zip(kinds.items(), arrays, strict=True):
        if array.dtype.kind not in letters or array.ndim != dimensions:
            raise FormatError(path, None, f"{name} has the shape {array.shape} and type {array.dtype}: save others")
    return arrays


def unpack(file: IO[bytes], names: Sequence[str] = ()) -> list[Any]:
    """Read the arrays with some names, or all in their order, of an archive; any exception may say that it is none."""
    arrays = []
    with _PARSING, zipfile.ZipFile(file) as archive:
        for member in [f"{name}.npy" for name in names] or archive.namelist():
            with archive.open(member) as content:
                arrays.append(np.lib.format.read_array(content, allow_pickle=False))
                # The end is read, too, as zipfile compares the checksum there; after a damaged header, it is too soon.
                if content.read(1):
                    raise ValueError(f"{member} has bytes after its array")
    return arrays
