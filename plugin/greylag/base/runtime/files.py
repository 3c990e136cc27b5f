"""Reading and writing files: decompression, encodings, columns, JSON, faults and their repair, atomic writing.

Every file that greylag reads or writes as text passes through this module.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import hashlib
import io
import json
import logging
import math
import os
import re
import shutil
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import lru_cache, partial
from itertools import chain
from pathlib import Path
from typing import IO, Any, Self, TypeVar, cast

from greylag.base.errors import FormatError, ParameterError
from greylag.base.runtime.folders import claimed, sweep, sync, why

Stamp = tuple[int, int, int, int]

GZIP_MAGIC = b"\x1f\x8b"
OTHER_MAGICS = {b"\xfd7zXZ": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
"""The first bytes of compressed files that are not read, and the program for them."""
BZIP2_BLOCK = b"1AY&SY"  # begins the first block, after b"BZh" and a digit
BYTE_ORDER_MARKS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
NUMERIC_COLUMNS = {"rank", "score", "grade", "value"}
"""The names of columns that have numbers."""
_HEADS = "qid", "query_id", "query-id", "topic", "topic_id", "id", "run"
_MARKED_LINE = re.compile("^\ufeff+", re.MULTILINE)
TOO_LARGE = "does not fit in memory: split it, or give more memory"
_BLOCK_BYTES = 1 << 20
T = TypeVar("T")
_log = logging.getLogger("greylag")


class Faults:
    """A file's repairable faults: the first is raised, or all are logged if `lenient` (None: not offered)."""

    def __init__(self, path: str | Path, lenient: bool | None) -> None:
        self.path, self.lenient = path, lenient
        self._first: dict[str, tuple[int | None, str]] = {}
        self._count: dict[str, int] = {}

    def repair(self, line: int | None, reason: str, remedy: str, count: int = 1) -> None:
        """Record faults that the caller is about to repair, or raise; those with the same remedy are one warning."""
        if not self.lenient:
            hint = "" if self.lenient is None else f"; lenient reading (--lenient) {remedy}"
            raise FormatError(self.path, line, reason + hint)
        self._first.setdefault(remedy, (line, reason))
        self._count[remedy] = self._count.get(remedy, 0) + count

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, MemoryError):
            raise FormatError(self.path, None, TOO_LARGE) from None
        for remedy, (line, reason) in self._first.items():
            what = f"{reason}; lenient reading {remedy} ({self._count[remedy]} in total)"
            _log.warning("%s", FormatError(self.path, line, what))


def fitting(path: str | Path, items: Iterator[T]) -> Iterator[T]:
    """Yield what is read of a file; `FormatError` where it does not fit in memory."""
    try:
        yield from items
    except MemoryError:
        raise FormatError(path, None, TOO_LARGE) from None


def read_text(path: str | Path, faults: Faults) -> bytes:
    """Read a file as UTF-8 with LF line ends; see `read_text_blocks`."""
    return b"".join(read_text_blocks(path, faults))


def read_text_blocks(path: str | Path, faults: Faults, size: int | None = None) -> Iterator[bytes]:
    """Read a file as UTF-8 with LF line ends, in blocks of whole lines and about `size` bytes, by default 1 MB."""
    size = size or _BLOCK_BYTES
    # Lenient reading gives one block, since the encoding is that of the whole file.
    blocks = iter([read_bytes(path)]) if faults.lenient else read_blocks(path)
    before = total = 0
    parts, blank = list[bytes](), True
    for part in chain(blocks, [b""]):
        parts.append(part)
        total, blank = total + len(part), blank and (not part or part.isspace())
        if b"\0" in part and not faults.lenient:
            _clean(b"".join(parts), faults, before)  # which raises: all of a file of zeros would be one line
        if part and (faults.lenient or total < size or blank or b"\n" not in part):
            continue
        if blank:
            raise FormatError(path, None, "is empty; check how it was written")
        # What follows the last end of a line begins the next block.
        end = part.rindex(b"\n") + 1 if part else 0
        parts[-1] = part[:end]
        if block := b"".join(parts):
            yield _clean(block, faults, before)
        before += block.count(b"\n")
        parts, total = [part[end:]], len(part) - end


def _clean(content: bytes, faults: Faults, before: int) -> bytes:
    """Convert a block of a file to UTF-8 with LF line ends; `before` is the number of lines before it."""
    content = _as_utf8(content, faults, before)
    if b"\r" in content:  # one byte is found in a tenth of the time
        content = content.replace(b"\r\n", b"\n")
    if b"\0" in content:
        line = before + content.count(b"\n", 0, content.index(b"\0")) + 1
        raise FormatError(faults.path, line, "contains a NUL byte, so it is not text or is damaged; write it again")
    if before == 0 and not content.strip():
        raise FormatError(faults.path, None, "is empty; check how it was written")
    return content


def _as_utf8(content: bytes, faults: Faults, before: int) -> bytes:
    mark = next((mark for mark in BYTE_ORDER_MARKS if content.startswith(mark)), b"") if before == 0 else b""
    codec = BYTE_ORDER_MARKS.get(mark, "utf-8")
    if codec != "utf-8":
        faults.repair(1, f"the file's byte-order mark says {codec.upper()}, not UTF-8", "converts it")
    content = content.removeprefix(mark)
    if content.isascii() and codec == "utf-8":
        return content
    try:
        text = content.decode(codec)
    except UnicodeDecodeError as error:
        line = before + content.count(b"\n", 0, error.start) + 1
        faults.repair(line, f"byte 0x{content[error.start]:02x} is not {codec.upper()}", "reads the file as Latin-1")
        text = content.decode("latin-1")
    # Where files were joined, or marked twice, the mark would be a part of the first name.
    if marked := _MARKED_LINE.search(text):
        line = before + text.count("\n", 0, marked.start()) + 1
        faults.repair(line, "begins with a byte-order mark, as where files were joined", "removes it")
        text = _MARKED_LINE.sub("", text)
    return text.encode()


def read_bytes(path: str | Path) -> bytes:
    """Read a file with `read_blocks`; raises `FormatError` also if it does not fit in memory."""
    with Faults(path, lenient=None):
        return b"".join(read_blocks(path))


def read_blocks(path: str | Path) -> Iterator[bytes]:
    """Read a file or pipe, `unpacked`, in blocks of 1 MB."""
    try:
        with Path(path).open("rb") as raw, io.BufferedReader(raw) as file:
            mode = os.fstat(raw.fileno()).st_mode
            if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not raw.isatty()):
                raise FormatError(path, None, "is a device; give a file or a pipe")
            yield from iter(partial(unpacked(file).read, _BLOCK_BYTES), b"")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise FormatError(path, None, f"is a damaged gzip file ({error}); download or write it again") from None
    except FormatError:
        raise
    except (OSError, ValueError) as error:  # a path with NUL is a ValueError
        reason = getattr(error, "strerror", None) or error
        remedy = "for standard input give /dev/stdin" if str(path) == "-" else "check the path"
        remedy = "name a file in it" if isinstance(error, IsADirectoryError) else remedy
        raise FormatError(path, None, f"cannot be read: {reason}; {remedy}") from None


def unpacked(file: io.BufferedReader[Any]) -> IO[bytes]:
    """Decompress content if its first bytes are gzip's or bzip2's; `FormatError` if they are another packer's."""
    head = file.peek(10)  # a pipe cannot be rewound
    if program := next((program for magic, program in OTHER_MAGICS.items() if head.startswith(magic)), ""):
        raise FormatError(
            file.name, None, f"is compressed, not text: unpack it first with {program}; gzip and bzip2 are read"
        )
    if head.startswith(GZIP_MAGIC):
        return cast(IO[bytes], gzip.GzipFile(fileobj=file))
    return bz2.BZ2File(file) if head.startswith(b"BZh") and head[4:10] == BZIP2_BLOCK else file


def read_rows(
    path: str | Path, columns: str, faults: Faults, *others: str, **options: Any
) -> Iterator[tuple[int, list[bytes]]]:
    """Read the number, from 1, and the columns of each line; see `split_rows`."""
    return split_rows(read_text_blocks(path, faults), columns, faults, *others, **options)


def split_rows(
    blocks: Iterable[bytes],
    columns: str,
    faults: Faults,
    *others: str,
    comments: bool = False,
    further: bool = False,
    scan: Callable[[bytes], Any] | None = None,
) -> Iterator[tuple[int, Any]]:
    """Split each line that is not blank at ASCII white space, as trec_eval; yield its number, from 1, and columns."""
    # `columns` are names, separated by spaces; if the first line has as many columns as one of the `others`, all must.
    # With `further`, there may be more. With `comments`, lines that begin with # are left out, as by trec_eval. One
    # with all columns is a fault if no other line has its name without the #, since its query may be meant.
    width, seen = len(columns.split()), set[bytes]()
    doubtful = list[tuple[int, list[bytes]]]()
    forms, before = (columns, *others), 0
    for block in blocks:
        # What `scan` makes of a whole block with the first form stands for its rows; None leaves them to this loop.
        if scan and columns == forms[0] and (scanned := scan(block)):
            yield before + 1, scanned
            before, others = before + scanned.lines, ()
            seen.update(scanned.qids)
            continue
        _check_line_ends(block, faults.path, before)
        for number, line in enumerate(io.BytesIO(block), before + 1):
            before, row = number, line.split()
            if not row:
                continue
            if comments and line.startswith(b"#"):
                if any(_is_line(row, form) for form in ((columns,) if seen else forms)):
                    doubtful.append((number, row))
                continue
            if others:
                columns = next((other for other in others if len(other.split()) == len(row)), columns)
                width, others, further = len(columns.split()), (), further and columns == forms[0]
            if len(row) == width or (further and len(row) > width):
                seen.add(row[0])
                yield number, row
            else:
                unit = "column" if len(row) == 1 else "columns"
                faults.repair(number, f"{len(row)} {unit} instead of {width}: {columns}", "skips the line")
    for number, row in doubtful:
        if row[0].lstrip(b"#") not in seen:
            reason = f"begins with # as a comment, but has {len(row)} columns: {columns}"
            faults.repair(number, reason, "skips the line")
    if not seen:
        raise FormatError(faults.path, None, f"no line has the {width} columns {columns}; is this the right file?")


def _check_line_ends(block: bytes, path: str | Path, before: int) -> None:
    """Refuse carriage returns alone: they would be white space, and make one line of many."""
    if b"\r" in block:
        line = before + block.count(b"\n", 0, block.index(b"\r")) + 1
        raise FormatError(path, line, "has a carriage return; end lines with a line feed")


def _is_line(row: list[bytes], columns: str) -> bool:
    """Return whether a comment is a line with these columns: its # begins a name, and its numbers are numbers."""
    names = columns.split()
    numbers = [text for name, text in zip(names, row, strict=False) if name in NUMERIC_COLUMNS]
    return len(row) == len(names) and row[0] != b"#" and not any(math.isnan(parse_number(text)) for text in numbers)


def read_pairs(path: str | Path, columns: str) -> dict[str, str]:
    """Read lines of a name and its group, such as ``qid fold``, or as CSV, with a header or not."""
    (named, what), groups = columns.split(), dict[str, str]()
    with Faults(path, lenient=None) as faults:
        lines = read_text(path, faults).decode().split("\n")
    first = next((line for line in lines if line.strip() and line[0] != "#"), "")
    mark = next((mark for mark in "\t," if mark in first), None)
    try:
        rows = [*csv.reader(lines, delimiter=mark)] if mark else [*map(str.split, lines)]
    except csv.Error as error:  # such as a field of 200 kB
        raise FormatError(path, None, f"is not read as a table: {error}") from error
    for number, row in enumerate(rows, 1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#") or (number == 1 and cells[0].lower() in _HEADS):
            continue
        if len(cells) != 2 or not all(cells):
            raise FormatError(path, number, f"{lines[number - 1]!r:.60} is not of the form {named} {what}")
        if groups.setdefault(*cells) != cells[1]:
            raise FormatError(path, number, f"{named} {cells[0]!r} has two {what} names: keep one of the lines")
    return groups


def read_json_lines(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Read JSON lines, possibly gzipped: yield the number, from 1, and object of each line that is not blank.

    `FormatError` if a line is not a JSON object, or an object has a key twice.
    """
    yield from split_json_lines(read_text(path, Faults(path, lenient=None)), path)


def split_json_lines(content: bytes, path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parse the objects of `read_json_lines` from the content of the file at `path`."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if line.strip():
            try:
                record = parse_json(line.decode())
            except json.JSONDecodeError as error:
                reason = f"not a JSON object: {error.msg} at column {error.colno}"
                raise FormatError(path, number, reason) from None
            except (ValueError, RecursionError) as error:  # a huge number, deep nesting
                raise FormatError(path, number, f"not a JSON object: {error}") from None
            if not isinstance(record, dict):
                raise FormatError(path, number, f"not a JSON object: {type(record).__name__}")
            yield number, record


def parse_json(text: str | bytes) -> Any:
    """Parse a JSON text; `ValueError` if it is not JSON or an object has a key twice."""
    return json.loads(text, object_pairs_hook=_unique)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"duplicate key {next(key for key in keys if keys.count(key) > 1)!r:.60}; keep one of them")
    return record


def parse_number(text: bytes) -> float:
    """Parse a decimal number or infinity, as C reads it; NaN for anything else, such as Python's 1_0."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return math.nan if b"_" in text or text.strip() != text else number


def is_name(name: str) -> bool:
    """Return whether a TREC file can contain the name: not empty, UTF-8, without ASCII white space and NUL."""
    encoded = name.encode(errors="surrogatepass")
    return encoded.replace(b"\0", b" ").split() == [encoded] == [name.encode(errors="replace")]


def check_names(what: str, names: Iterable[str]) -> None:
    """Raise `ParameterError` if a name of `what`, such as "document", would not be read back."""
    for name in names:
        if not is_name(name):
            reason = "is empty or has white space or NUL or is not UTF-8, which a TREC file cannot contain; rename it"
            raise ParameterError(f"{what} {name!r} {reason}")
        if what == "query" and name.startswith("#"):
            raise ParameterError(f"query {name!r} begins with #, so that its lines would be comments; rename it")


def is_file(path: str | Path) -> bool:
    """Return whether the path is a regular file, which can be read twice."""
    try:
        return _kind(path) == stat.S_IFREG
    except (OSError, ValueError):  # a path with NUL is a ValueError
        return False


def file_stamp(path: str | Path) -> Stamp:
    """Return a file's inode, size, and times of modification and change (ns); any change differs in one."""
    # A copy or `os.utime` may restore size and time of modification, but not the time of change or another's inode.
    state = os.stat(path)
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def file_digest(path: str | Path) -> str:
    """Compute the SHA-256 of a file's content (hex)."""
    return _digest(os.path.realpath(path), file_stamp(path))


# By the stamp, too, so that a changed file is read again.
@lru_cache
def _digest(path: str, _: Stamp) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def file_stamps(path: Path) -> list[tuple[str, Stamp]]:
    """Return the relative path and stamp of the file `path`, or of every file in the folder `path`, in order."""
    files = sorted(below for below in path.rglob("*") if below.is_file()) if path.is_dir() else [path]
    return [(str(file.relative_to(path)), file_stamp(file)) for file in files]


def write_text(path: str | Path, text: str) -> None:
    """Write a text file with `open_atomically`."""
    with open_atomically(path) as file:
        file.write(text)


@contextmanager
def open_atomically(path: str | Path, *, binary: bool = False) -> Iterator[IO[Any]]:
    """Open a file for writing such that it is replaced only when the block succeeds, by one process at a time."""
    # Names in ``.gz`` are gzipped reproducibly. Symbolic links are followed; devices and pipes are written to directly.
    try:
        target = Path(os.path.realpath(path))
        if _kind(path) not in (None, stat.S_IFREG):
            with _open(Path(path), "wb", path, binary) as file:  # a pipe of this process has no other name
                yield file
            return
        sweep(target.parent)
        with claimed(target) as (part, _):
            with _open(part, "xb", path, binary) as file:
                # Before the first byte is written: no one may read a private file meanwhile.
                with suppress(FileNotFoundError):
                    shutil.copymode(target, part)
                yield file
            # First the content: after a power loss the name would else stand for an empty file.
            sync(part)
            os.replace(part, target)
            sync(target.parent)
    except OSError as error:
        raise ParameterError(f"{path} cannot be written: {why(error)}") from None


@contextmanager
def _open(target: Path, mode: str, name: str | Path, binary: bool) -> Iterator[IO[Any]]:
    """Open `target` for writing, as a file of this name."""
    with ExitStack() as stack:
        raw: Any = stack.enter_context(target.open(mode))
        packed = str(name).endswith(".gz")
        file: Any = stack.enter_context(gzip.GzipFile("", "wb", fileobj=raw, mtime=0)) if packed else raw
        yield file if binary else stack.enter_context(io.TextIOWrapper(file, encoding="utf-8", newline="\n"))


def _kind(path: str | Path) -> int | None:
    """Return the type of the file, or None if there is none."""
    try:
        return stat.S_IFMT(os.stat(path).st_mode)
    except FileNotFoundError:
        return None
