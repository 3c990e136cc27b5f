"""What the TREC readers and writers share: decompression, encodings, rows, faults and repairs, atomic writing."""

from __future__ import annotations

import codecs
import gzip
import io
import logging
import os
import uuid
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Self

from greylag.errors import FormatError, ParameterError

GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

_log = logging.getLogger("greylag")


class Faults:
    """The repairable faults of one file: the first is raised or, in lenient reading, each is counted and logged.

    Used as a context manager around the reading, so that the warnings, one for each remedy, come when it is over.

    Parameters
    ----------
    path : the file.
    lenient : repair instead of raising; None for a file that is never read leniently.
    """

    def __init__(self, path: str | Path, lenient: bool | None) -> None:
        self.path, self.lenient = path, lenient
        self._first: dict[str, tuple[int | None, str]] = {}
        self._count: dict[str, int] = {}

    def repair(self, line: int | None, reason: str, remedy: str, count: int = 1) -> None:
        """Note `count` faults, the first of them in `line`, that the caller now repairs.

        Parameters
        ----------
        line : the line, from 1, or None.
        reason : what is wrong, with the value.
        remedy : what lenient reading does about it, as "keeps the first"; faults of one remedy are counted together.

        Raises
        ------
        FormatError
            In strict reading, always.
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
            what = f"{reason}; lenient reading {remedy} ({self._count[remedy]} in all)"
            _log.warning("%s", FormatError(self.path, line, what))


def read_text(path: str | Path, faults: Faults) -> bytes:
    """A file's content as UTF-8 with bare line feeds, decompressed where its first bytes say that it is gzipped.

    Raises
    ------
    FormatError
        The file cannot be read, is a damaged gzip file, has a NUL byte or nothing but white space; in strict reading
        also a byte-order mark, text that is not UTF-8, and CR LF line ends.
    """
    try:
        content = Path(path).read_bytes()
        if content.startswith(GZIP_MAGIC):
            content = gzip.decompress(content)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(path, None, f"is a damaged gzip file ({error}); fetch or write it anew") from None
    except OSError as error:
        raise FormatError(path, None, f"cannot be read: {error.strerror}; check the path") from None
    content = _as_utf8(content, faults)
    if (ends := content.count(b"\r\n")) > 0:
        first = content.count(b"\n", 0, content.index(b"\r\n")) + 1
        faults.repair(first, "the line ends in CR LF", "reads LF", ends)
        content = content.replace(b"\r\n", b"\n")
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise FormatError(path, line, "there is a NUL byte, so this is no text or was damaged; write it anew")
    if not content.strip():
        raise FormatError(path, None, "is empty; check how it was made")
    return content


def _as_utf8(content: bytes, faults: Faults) -> bytes:
    mark = next((mark for mark in BYTE_ORDER_MARKS if content.startswith(mark)), b"")
    if mark:
        faults.repair(1, "the file starts with a byte-order mark", "leaves the mark out")
        content = content.removeprefix(mark)
    codec = BYTE_ORDER_MARKS.get(mark, "utf-8")
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        faults.repair(line, f"byte 0x{content[error.start]:02x} is not {codec.upper()}", "takes the file for Latin-1")
        text = content.decode("latin-1")
    return text.encode()


def read_rows(path: str | Path, columns: str, faults: Faults) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of a table whose columns are separated by white space (ASCII's alone, as in trec_eval).

    Parameters
    ----------
    columns : the columns' names, separated by spaces.

    Yields
    ------
    The line's number, from 1, and its columns.

    Raises
    ------
    FormatError
        As `read_text`; a line with another number of columns (left out in lenient reading), or no line that has it.
    """
    width, good = len(columns.split()), 0
    for number, line in enumerate(io.BytesIO(read_text(path, faults)), 1):
        row = line.split()
        if len(row) == width:
            good += 1
            yield number, row
        else:
            faults.repair(number, f"{len(row)} columns where {width} belong: {columns}", "leaves the line out")
    if not good:
        raise FormatError(path, None, f"no line has the {width} columns {columns}; is this the right file?")


def check_names(what: str, names: Iterable[str]) -> None:
    """Raise `ParameterError` where a name is empty, or has white space or a NUL, and so would be read as another."""
    for name in names:
        if name.encode().replace(b"\0", b" ").split() != [name.encode()]:
            reason = "is empty or has white space or a NUL, which a TREC file cannot hold; rename it"
            raise ParameterError(f"{what} {name!r} {reason}")


def write_text(path: str | Path, text: str) -> None:
    """Write a text file as `open_atomically` does."""
    with open_atomically(path) as file:
        file.write(text)


@contextmanager
def open_atomically(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file that is written whole or not at all: a temporary one beside it, renamed when the block ends well.

    Text is UTF-8 with bare line feeds. A name in .gz is gzipped, the same content to the same bytes. A device or a pipe
    is written to directly.

    Raises
    ------
    ParameterError
        The file cannot be written.
    """
    direct = Path(path).exists() and not Path(path).is_file()
    target = Path(path) if direct else Path(path).resolve()
    part = target if direct else target.with_name(f".{target.name}.{uuid.uuid4().hex}")
    try:
        with ExitStack() as stack:
            file: Any = stack.enter_context(part.open("wb"))
            if str(path).endswith(".gz"):
                file = stack.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
            yield file if binary else stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline="\n"))
        if not direct:
            os.replace(part, target)
    except OSError as error:
        reason = f"{error.strerror}; give a file in a folder that exists"
        raise ParameterError(f"{path} cannot be written: {reason}") from None
    finally:
        if not direct:
            part.unlink(missing_ok=True)
