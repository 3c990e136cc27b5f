"""Reading and writing files: decompression, encodings, columns, faults and their repair, atomic writing.

Every file that greylag reads or writes as text passes through this module.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import logging
import math
import os
import stat
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, cast

from greylag.errors import FormatError, ParameterError
from greylag.runtime.locks import TEMPORARY, locked, sweep

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

MAX_STREAM = 1 << 28
"""The largest content of a pipe or terminal, in bytes. A regular file may have any size."""
MAX_EXPANSION = 200
"""The largest ratio of a decompressed file larger than `MAX_SMALL` to its gzip file; text compresses far less."""
MAX_SMALL = 1 << 26
_BLOCK = 1 << 20

_HINTS = {
    errno.ENOENT: "; give a file in an existing folder",
    errno.ENOTDIR: "; give a file in an existing folder",
    errno.ENOSPC: "; free some disk space",
    errno.EDQUOT: "; free some disk space",
}
_NO_FALLOCATE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
_log = logging.getLogger("greylag")


class Faults:
    """The repairable faults of a file: the first one is raised or, in lenient reading, all are counted and logged.

    A context manager around the reading of the file; on exit it logs one warning for each remedy.

    Parameters
    ----------
    path : str or Path
        The file.
    lenient : bool or None
        Whether to repair faults instead of raising. None if the format has no lenient reading.
    """

    def __init__(self, path: str | Path, lenient: bool | None) -> None:
        self.path, self.lenient = path, lenient
        self._first: dict[str, tuple[int | None, str]] = {}
        self._count: dict[str, int] = {}

    def repair(self, line: int | None, reason: str, remedy: str, count: int = 1) -> None:
        """Record faults that the caller is about to repair.

        Parameters
        ----------
        line : int or None
            The line of the first fault, from 1.
        reason : str
            What is wrong, with the value.
        remedy : str
            What lenient reading does about it, such as "keeps the first". Faults with the same remedy are counted
            together.
        count : int, default 1
            The number of faults.

        Raises
        ------
        FormatError
            If reading is strict.
        """
        if not self.lenient:
            hint = "" if self.lenient is None else f"; lenient reading (--lenient) {remedy}"
            raise FormatError(self.path, line, reason + hint)
        self._first.setdefault(remedy, (line, reason))
        self._count[remedy] = self._count.get(remedy, 0) + count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for remedy, (line, reason) in self._first.items():
            what = f"{reason}; lenient reading {remedy} ({self._count[remedy]} in total)"
            _log.warning("%s", FormatError(self.path, line, what))


def read_text(path: str | Path, faults: Faults) -> bytes:
    """The content of a file as UTF-8 with LF line ends, from `read_bytes`.

    Parameters
    ----------
    path : str or Path
        The file.
    faults : Faults
        Records repairable faults.

    Raises
    ------
    FormatError
        If `read_bytes` refuses the file, or it contains a NUL byte or only white space; in strict reading also if it
        has a byte-order mark, is not UTF-8 (lenient: read as Latin-1), or has CR LF line ends.
    """
    content = _clean(read_bytes(path), faults, 0)
    if not content.strip():
        raise FormatError(path, None, "is empty; check how it was written")
    return content


def read_text_blocks(path: str | Path, faults: Faults, size: int) -> Iterator[bytes]:
    """The content of `read_text` in blocks of whole lines, for files that are larger than memory.

    Lenient reading gives one block, since what is to be repaired may depend on the whole file.

    Parameters
    ----------
    path : str or Path
        The file.
    faults : Faults
        Records repairable faults.
    size : int
        About the size of a block, in bytes.

    Raises
    ------
    FormatError
        As in `read_text`, when the block is reached.
    """
    if faults.lenient:
        yield read_text(path, faults)
        return
    before, parts, total, blank = 0, list[bytes](), 0, True
    for part in chain(read_blocks(path), [b""]):
        parts.append(part)
        total, blank = total + len(part), blank and (not part or part.isspace())
        if part and (total < size or blank or b"\n" not in part):
            continue
        if blank:
            raise FormatError(path, None, "is empty; check how it was written")
        end = part.rindex(b"\n") + 1 if part else 0
        parts[-1] = part[:end]
        block = b"".join(parts)
        if block:
            yield _clean(block, faults, before)
        before, parts, total = before + block.count(b"\n"), [part[end:]], len(part) - end


def _clean(content: bytes, faults: Faults, before: int) -> bytes:
    """A part of a file as UTF-8 with LF line ends; `before` is the number of lines before it."""
    content = _as_utf8(content, faults, before)
    if b"\r" in content and (ends := content.count(b"\r\n")) > 0:  # one byte is found in a tenth of the time
        first = before + content.count(b"\n", 0, content.index(b"\r\n")) + 1
        faults.repair(first, "the line ends in CR LF", "reads it as LF", ends)
        content = content.replace(b"\r\n", b"\n")
    if b"\0" in content:
        line = before + content.count(b"\n", 0, content.index(b"\0")) + 1
        raise FormatError(faults.path, line, "contains a NUL byte, so it is not text or is damaged; write it again")
    return content


def read_bytes(path: str | Path) -> bytes:
    """The content of a file, from `read_blocks`; raises `FormatError` also if it does not fit in memory."""
    try:
        return b"".join(read_blocks(path))
    except MemoryError:
        raise FormatError(path, None, "does not fit in memory; split it") from None


def read_blocks(path: str | Path) -> Iterator[bytes]:
    """The content of a file in blocks of 1 MB; gzip is detected by content and decompressed.

    Raises
    ------
    FormatError
        If the file cannot be read, is a device or a damaged gzip file, or is larger than `limited` allows.
    """
    try:
        with Path(path).open("rb") as raw, io.BufferedReader(raw) as file:
            state = os.fstat(raw.fileno())
            size = state.st_size if stat.S_ISREG(state.st_mode) else None
            if stat.S_ISBLK(state.st_mode) or (stat.S_ISCHR(state.st_mode) and not raw.isatty()):
                raise FormatError(path, None, "is a device; give a file or a pipe")
            if file.peek(2).startswith(GZIP_MAGIC):
                content: IO[bytes] = cast(IO[bytes], gzip.GzipFile(fileobj=file))
                yield from limited(path, content, MAX_STREAM if size is None else gzip_limit(size))
            elif size is None:
                yield from limited(path, file, MAX_STREAM)
            else:
                yield from iter(partial(file.read, _BLOCK), b"")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(path, None, f"is a damaged gzip file ({error}); download or write it again") from None
    except FormatError:  # of `limited`
        raise
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise FormatError(path, None, f"cannot be read: {reason}; check the path") from None


def is_file(path: str | Path) -> bool:
    """Whether the path is a regular file, which can be read twice."""
    try:
        return _kind(path) == stat.S_IFREG
    except (OSError, ValueError):  # a path with NUL is a ValueError
        return False


def gzip_limit(size: int) -> int:
    """The largest content of a gzip file of `size` bytes."""
    return max(MAX_SMALL, MAX_EXPANSION * size)


def limited(path: str | Path, file: IO[bytes], limit: int) -> Iterator[bytes]:
    """The blocks of a file; raises `FormatError` at a block of NUL bytes only, or beyond `limit` bytes."""
    total = 0
    while block := file.read(_BLOCK):
        total += len(block)
        if total > limit:
            raise FormatError(path, None, f"has more than {limit >> 20} MB of content; is it the right file?")
        if len(block) == block.count(0) == _BLOCK:
            raise FormatError(path, None, "contains NUL bytes only; is it the right file?")
        yield block


def _as_utf8(content: bytes, faults: Faults, before: int) -> bytes:
    mark = next((mark for mark in BYTE_ORDER_MARKS if content.startswith(mark)), b"") if before == 0 else b""
    if mark:
        faults.repair(1, "the file starts with a byte-order mark", "removes it")
        content = content.removeprefix(mark)
    elif content.isascii():
        return content
    codec = BYTE_ORDER_MARKS.get(mark, "utf-8")
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        line = before + content.count(b"\n", 0, error.start) + 1
        faults.repair(line, f"byte 0x{content[error.start]:02x} is not {codec.upper()}", "reads the file as Latin-1")
        text = content.decode("latin-1")
    return text.encode()


def read_rows(path: str | Path, columns: str, faults: Faults) -> Iterator[tuple[int, list[bytes]]]:
    """Read a table whose columns are separated by ASCII white space, as in trec_eval.

    Parameters
    ----------
    path : str or Path
        The file.
    columns : str
        The names of the columns, separated by spaces.
    faults : Faults
        Records repairable faults.

    Yields
    ------
    tuple of int and list of bytes
        The line number, from 1, and the columns.

    Raises
    ------
    FormatError
        As in `read_text`; if a line has another number of columns (lenient: skipped), or no line has this number.
    """
    width, good = len(columns.split()), 0
    lines = chain.from_iterable(map(io.BytesIO, read_text_blocks(path, faults, _BLOCK)))
    for number, line in enumerate(lines, 1):
        row = line.split()
        if len(row) == width:
            good += 1
            yield number, row
        else:
            faults.repair(number, f"{len(row)} columns instead of {width}: {columns}", "skips the line")
    if not good:
        raise FormatError(path, None, f"no line has the {width} columns {columns}; is this the right file?")


def parse_number(text: bytes) -> float:
    """A decimal number or infinity, as C reads it; NaN for anything else, such as Python's 1_0."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return math.nan if b"_" in text or text.strip() != text else number


def is_name(name: str) -> bool:
    """Whether a TREC file can contain the name: it is not empty, has no ASCII white space or NUL, and is UTF-8."""
    encoded = name.encode(errors="surrogatepass")
    return encoded.replace(b"\0", b" ").split() == [encoded] == [name.encode(errors="replace")]


def check_names(what: str, names: Iterable[str]) -> None:
    """Raise `ParameterError` if a name would not be read back, by `is_name`.

    Parameters
    ----------
    what : str
        What the names are names of, for the message.
    names : iterable of str
        The names.
    """
    for name in names:
        if not is_name(name):
            reason = "is empty or has white space or NUL or is not UTF-8, which a TREC file cannot contain; rename it"
            raise ParameterError(f"{what} {name!r} {reason}")


def write_text(path: str | Path, text: str) -> None:
    """Write a text file with `open_atomically`."""
    with open_atomically(path) as file:
        file.write(text)


@contextmanager
def open_atomically(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file for writing such that it is replaced only when the block succeeds.

    The content is written to a temporary file ``.greylag-*`` in the same folder, flushed to disk, and renamed; those of
    killed processes are removed. Text is UTF-8 with LF line ends. If the name ends in ``.gz`` the file is gzipped,
    reproducibly. Devices and pipes are written to directly.

    Parameters
    ----------
    path : str or Path
        The file. Symbolic links are followed.
    binary : bool, default False
        Whether to open the file for bytes instead of text.

    Raises
    ------
    ParameterError
        If the file cannot be written.
    """
    try:
        target = Path(os.path.realpath(path))
        if _kind(path) not in (None, stat.S_IFREG):
            with _open(target, path, binary) as file:
                yield file
            return
        sweep(target.parent)
        part = target.with_name(f"{TEMPORARY}{uuid.uuid4().hex}")
        with locked(part):
            with _open(part, path, binary) as file:
                yield file
            sync(part)
            os.replace(part, target)
            sync(target.parent)
    except OSError as error:
        raise ParameterError(f"{path} cannot be written: {why(error)}") from None


@contextmanager
def _open(target: Path, name: str | Path, binary: bool) -> Iterator[IO[Any]]:
    """Open `target` for writing, as a file of the given name."""
    with ExitStack() as stack:
        raw: Any = stack.enter_context(target.open("wb"))
        file: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)) if _is_gz(name) else raw
        yield file if binary else stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline="\n"))


def sync(path: Path, *, drop: bool = False) -> None:
    """Flush a file or folder to disk.

    Parameters
    ----------
    path : Path
        The file or folder.
    drop : bool, default False
        Whether to drop the file from the cache in memory, so that it is next read from the disk.
    """
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        if drop and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def reserve(file: IO[bytes], size: int) -> None:
    """Give an empty file `size` bytes, all 0, with space on the disk.

    Without the space, writing to the file through a mapping would kill the process when the disk is full.
    """
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file.fileno(), 0, size)
            return
        except OSError as error:
            if error.errno not in _NO_FALLOCATE:
                raise
    zeros = bytes(_BLOCK)
    for first in range(0, size, _BLOCK):
        file.write(zeros[: size - first])
    file.flush()


def why(error: OSError) -> str:
    """The reason for an operating system error, and what to do about it if that is known."""
    return f"{error.strerror or error}{_HINTS.get(error.errno or 0, '')}"


def _kind(path: str | Path) -> int | None:
    """The type of the file, or None if there is none."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _is_gz(path: str | Path) -> bool:
    return str(path).endswith(".gz")
