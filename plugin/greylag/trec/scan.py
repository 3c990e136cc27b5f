"""A compiled reader of runs' usual lines: a block of bytes at a time, or not at all.

It knows six columns, separated by spaces or tabs, with a rank of digits and a finite decimal score. Of a block with
anything else it says so, and the strict reader takes the whole block.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.runtime.compilation import compiled
from greylag.runtime.files import is_file

MIN_BYTES = 1 << 22  # of a file for which importing Numba is worth it, which takes as long as 10^5 lines without
# Integers of 15 digits and powers of ten up to 1e22 are floats, so that one division is the only rounding.
POWERS = np.array([float(f"1e{exponent}") for exponent in range(23)])


class Lines(NamedTuple):
    """Successive lines of a query: the number of the first, their text, and three of their columns."""

    number: int
    text: bytes
    docids: list[str]
    scores: FloatArray
    ranks: IntArray


class Scan(NamedTuple):
    """A block of whole lines: parts by qid, where the lines of a query may be in several parts."""

    block: bytes
    lines: int
    qids: list[bytes]
    first: IntArray
    """Of each part, and after the last one, the number of lines before it, shape (parts + 1, 2); then of bytes."""
    docids: list[str]
    scores: FloatArray
    ranks: IntArray

    def parts(self, number: int) -> Iterator[tuple[bytes, Lines]]:
        """Yield the qid and the lines of each part; `number` is that of the block's first line."""
        bounds = self.first.tolist()
        for qid, (i, start), (j, end) in zip(self.qids, bounds, bounds[1:], strict=False):
            text = self.block[start:end]
            yield qid, Lines(number + i, text, self.docids[i:j], self.scores[i:j], self.ranks[i:j])


def scanner(path: str | Path) -> Callable[[bytes], Scan | None]:
    """Make a `scan` for the blocks of a file, which leaves small files to the strict reader."""
    size = os.path.getsize(path) if is_file(path) else 0
    total = size if size >= MIN_BYTES else 0

    def scan_large(block: bytes) -> Scan | None:
        nonlocal total
        total += len(block)
        return scan(block) if total >= MIN_BYTES else None

    return scan_large


def scan(block: bytes) -> Scan | None:
    """Read a block of whole lines; None if it has any that are out of the ordinary."""
    if not block.endswith(b"\n"):
        block += b"\n"
    # A copy, as for arrays that are read-only Numba looks at masked ones, too, whose import takes 40 ms.
    text = np.frombuffer(block, np.uint8).copy()
    lines = int(np.count_nonzero(text == ord("\n")))
    names, numbers = np.empty(len(block), np.uint8), np.empty(len(block), np.uint8)
    scores, ranks, first = np.empty(lines), np.empty(lines, np.int64), np.empty((lines + 1, 2), np.int64)
    others = np.empty(lines, np.int64)
    found: Any = scan_lines(text, POWERS, names, numbers, scores, ranks, first, others)
    parts, length, length_of_others, number_of_others = found
    if not parts:
        return None
    try:
        spelt = numbers[:length_of_others].tobytes().split()
        scores[others[:number_of_others]] = np.fromiter(map(float, spelt), np.float64, number_of_others)
    except ValueError:
        return None
    docids = names[: length - 1].tobytes().decode().split("\n")
    first = first[: parts + 1]
    qids = [block[start : start + 300].split(None, 1)[0] for start in first[:-1, 1].tolist()]
    return Scan(block, lines, qids, first, docids, scores, ranks)


@compiled()
def scan_lines(  # noqa: PLR0912, PLR0915
    text: Any, powers: Any, names: Any, numbers: Any, scores: Any, ranks: Any, first: Any, others: Any
) -> Any:
    """Fill in the columns; return the numbers of parts (0 if a line is odd), of bytes of names, and of other scores."""
    at, line, parts, length, spelt, left = 0, 0, 0, 0, 0, 0
    before, before_length = 0, -1
    while at < len(text):
        begin, column = at, 0
        while True:
            start = at
            # Bytes beyond ASCII are parts of names, as the block is UTF-8.
            while text[at] > 32 and text[at] != 127:
                at += 1
            end = at
            if start == end:
                return 0, 0, 0, 0
            if column == 0:
                # A comment, or a name that is cut off by `scan`.
                if text[start] == 35 or end - start > 255:
                    return 0, 0, 0, 0
                same = end - start == before_length
                for i in range(end - start) if same else range(0):
                    if text[start + i] != text[before + i]:
                        same = False
                        break
                if not same:
                    first[parts, 0], first[parts, 1] = line, begin
                    parts += 1
                before, before_length = start, end - start
            elif column == 2:
                for i in range(start, end):
                    names[length] = text[i]
                    length += 1
                names[length] = 10
                length += 1
            elif column == 3:
                rank = 0
                for i in range(start, end):
                    if text[i] < 48 or text[i] > 57 or end - start > 9:
                        return 0, 0, 0, 0
                    rank = 10 * rank + (text[i] - 48)
                ranks[line] = rank
            elif column == 4:
                i, mantissa, digits, decimals, point = start, 0, 0, 0, False
                if text[i] == 45 or text[i] == 43:
                    i += 1
                seen = False
                while i < end:
                    byte = text[i]
                    if byte >= 48 and byte <= 57:
                        seen = True
                        if digits or byte > 48:
                            digits += 1
                        if digits <= 15:
                            mantissa = 10 * mantissa + (byte - 48)
                        decimals += point
                    elif byte == 46 and not point:
                        point = True
                    else:
                        break
                    i += 1
                if i == end and seen and digits <= 15 and decimals <= 22:
                    value = mantissa / powers[decimals]
                    scores[line] = -value if text[start] == 45 else value
                else:
                    # With an exponent or more digits, Python reads the number, which rounds correctly.
                    for i in range(start, end):
                        byte = text[i]
                        if not ((byte >= 48 and byte <= 57) or byte in (43, 45, 46, 69, 101)):
                            return 0, 0, 0, 0
                        numbers[spelt] = byte
                        spelt += 1
                    numbers[spelt] = 10
                    spelt += 1
                    others[left] = line
                    left += 1
            column += 1
            while text[at] == 32 or text[at] == 9:
                at += 1
            if text[at] == 10:
                break
        if column != 6:
            return 0, 0, 0, 0
        at += 1
        line += 1
    first[parts, 0], first[parts, 1] = line, at
    return parts, length, spelt, left
