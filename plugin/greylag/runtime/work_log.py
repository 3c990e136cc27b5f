"""What is done of unfinished work, in a file beside its output, so that an interrupted command goes on from there.

The file begins with a line that names what the work depends on; with another such line, it is not used. Records follow,
each with a checksum: what a killed process wrote in part, or what is damaged, is computed again.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from greylag.runtime.folders import why
from greylag.runtime.locks import acquire, is_named
from greylag.runtime.parallel import keeping

PATIENCE = 1.0
"""Seconds of work that are not worth keeping."""
SUFFIX = ".greylag-work"
_MAGIC = b"greylag work 1 "
_HEADER = struct.Struct("<16sQ16sI")  # digest of the key, length of the content, digest of both, CRC of these three
_log = logging.getLogger("greylag")

interruptions: list[str] = []
"""What interrupted work has kept, a line each, for the command line."""


def beside(output: Path) -> Path:
    """The place of the log of the work on an output file."""
    target = Path(os.path.realpath(output))
    return target.with_name(f".{target.name}{SUFFIX}")


@contextmanager
def resuming(path: Path, depends: Callable[[], str]) -> Iterator[None]:
    """Keep what the maps in the block have done in a file, and use what is kept there.

    The file is made after `PATIENCE` seconds and removed at the end of the block. It stays if the block fails. If
    another process uses it, or it cannot be written, nothing is kept.

    Parameters
    ----------
    path : Path
        The file.
    depends : callable
        Gives a digest of all that the results of the block depend on.
    """
    log = WorkLog(path, depends)
    try:
        with keeping(log):
            yield
    except KeyboardInterrupt:
        interruptions.append(log.summary())
        raise
    else:
        log.remove()
    finally:
        log.close()


class WorkLog:
    """Contents by key, in a file that one process at a time appends to. See `resuming`."""

    def __init__(self, path: Path, depends: Callable[[], str]) -> None:
        self.path, self._depends = path, depends
        self._began = time.monotonic()
        self._file: IO[bytes] | None = None
        self._own = False
        self._usable = True
        self._places: dict[bytes, tuple[int, int]] = {}
        self._counts: Counter[str] = Counter()
        if os.path.lexists(path):
            self._open()

    def load(self, key: str) -> bytes | None:
        """The content of a key, or None if it is not kept or is damaged."""
        place = self._places.get(_digest(key.encode()))
        if place is None or self._file is None:
            return None
        try:
            self._file.seek(place[0])
            header, content = self._file.read(_HEADER.size), self._file.read(place[1])
        except OSError:
            header, content = b"", b""
        if len(content) < place[1] or _digest(key.encode(), content) != _HEADER.unpack(header)[2]:
            _log.warning("%s is damaged: a part of it is computed again", self.path)
            return None
        self._count(key)
        return content

    def save(self, key: str, content: bytes) -> None:
        """Append a content."""
        if not self._usable or (self._file is None and time.monotonic() - self._began < PATIENCE):
            return
        try:
            self._append(key.encode(), content)
            self._count(key)
        except OSError as error:
            self._usable = False
            _log.warning("%s cannot be written: %s; what is done is not kept from here", self.path, why(error))

    def summary(self) -> str:
        """What is kept, in one line."""
        if not self._places or self._file is None:
            return "nothing is kept, as there was less than a second's work"
        counts = ", ".join(f"{what} ({count})" for what, count in self._counts.items()) or "what was done before"
        return f"kept in {self.path}: {counts}; the same command goes on from there"

    def remove(self) -> None:
        """Remove the file, if it is this process's."""
        if self._file is not None and self._own:
            with suppress(OSError):
                self.path.unlink()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            with suppress(OSError):  # what the disk refused is not kept
                self._file.close()
            self._file = None

    def _count(self, key: str) -> None:
        path, _, what = key.rpartition(":")[0].partition(":")
        if path.count("/") == 1:  # not what is inside a fold
            self._counts[what] += 1

    def _append(self, key: bytes, content: bytes) -> None:
        if self._file is None:
            self._open()
        if self._file is None:
            return
        if not self._own:
            self._begin(self._file)
        at = self._file.seek(0, os.SEEK_END)
        fields = _digest(key), len(content), _digest(key, content)
        header = _HEADER.pack(*fields, 0)
        _write(self._file, _HEADER.pack(*fields, zlib.crc32(header)) + content)
        self._places[fields[0]] = at, len(content)

    def _open(self) -> None:
        """Open and lock the file, and find what it holds; leave it alone if it is another process's."""
        try:
            file = os.fdopen(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b", buffering=0)
        except OSError as error:
            self._usable = False
            _log.debug("%s cannot be opened: %s", self.path, error)
            return
        if not acquire(file.fileno(), wait=False) or not is_named(file.fileno(), self.path):
            file.close()
            self._usable = False
            return
        first = file.readline(len(_MAGIC) + 65)
        if first and not first.startswith(_MAGIC):
            file.close()
            self._usable = False
            _log.warning("%s is not greylag's: what is done is not kept", self.path)
            return
        self._file = file
        if first == self._first():
            self._own = True
            self._find(file)

    def _begin(self, file: IO[bytes]) -> None:
        """Start anew, as the file is new or of other work."""
        file.seek(0)
        file.truncate()
        _write(file, self._first())
        self._own = True

    def _find(self, file: IO[bytes]) -> None:
        """Find all records, up to the first that is not whole."""
        size, at = os.fstat(file.fileno()).st_size, file.tell()
        while at + _HEADER.size <= size:
            file.seek(at)
            key, length, digest, check = _HEADER.unpack(file.read(_HEADER.size))
            end = at + _HEADER.size + length
            if check != zlib.crc32(_HEADER.pack(key, length, digest, 0)) or end > size:
                break
            self._places[key] = at, length
            at = end
        file.truncate(at)

    def _first(self) -> bytes:
        return _MAGIC + hashlib.sha256(self._depends().encode()).hexdigest().encode() + b"\n"


def _write(file: IO[bytes], content: bytes) -> None:
    """Write all of the content, unbuffered: a buffer that a full disk does not take would fail again at every read."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]


def _digest(key: bytes, content: bytes = b"") -> bytes:
    digest = hashlib.blake2b(len(key).to_bytes(8, "little") + key, digest_size=16)
    digest.update(content)
    return digest.digest()
