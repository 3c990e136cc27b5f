"""Readers of the usual lines of runs, and compiled ones of LETOR text: a block of bytes at a time, or not at all.

They know names, digits and decimal numbers, separated by spaces or tabs. Of a block with anything else they say so, and
the strict reader takes the whole block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from greylag.base import BoolArray, FloatArray, IntArray, compiled, parse_number

MIN_BYTES = 1 << 22  # of LETOR text for which importing Numba is worth it
POWERS = np.array([float(f"1e{exponent}") for exponent in range(23)])  # floats without rounding
WORDS = np.frombuffer(b"qid:docid=qid=", np.uint8)


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


def scan(block: bytes) -> Scan | None:
    """Read a block of whole lines; None if it has any that are out of the ordinary."""
    block = block if block.endswith(b"\n") else block + b"\n"
    text = np.frombuffer(block, np.uint8)
    named, line_ends = text > 32, np.flatnonzero(text == 10)
    edges = np.flatnonzero(np.diff(named, prepend=False))  # where names begin and end, by turns
    if len(edges) != 12 * len(line_ends):
        return None
    starts, stops = np.ascontiguousarray(edges.reshape(-1, 6, 2).T)
    begins, widths = np.append(0, line_ends[:-1] + 1), stops - starts
    spaces = len(line_ends) + np.count_nonzero(text == 32) + np.count_nonzero(text == 9)  # other controls are odd
    aligned = (starts[0] >= begins).all() and (stops[5] <= line_ends).all()
    if not aligned or len(text) - np.count_nonzero(named) != spaces or (text[starts[0]] == 35).any():
        return None
    if widths[0].max() > 255 or widths[3].max() > 9 or (scores := _scores(block, text, starts[4], stops[4])) is None:
        return None
    new, ranks = np.append(True, widths[0, 1:] != widths[0, :-1]), np.zeros(len(begins), np.int64)
    for has, byte in _bytes(text, starts[0], widths[0]):
        new[1:] |= has[1:] & (byte[1:] != byte[:-1])
    for has, byte in _bytes(text, starts[3], widths[3]):
        if (has & (byte - 48 > 9)).any():
            return None
        ranks = np.where(has, 10 * ranks + (byte - 48), ranks)
    parts, lines = np.flatnonzero(new), text.copy()
    lines[stops[2]] = 10
    # What to keep and what not, by turns: identifiers with what ends them, and all between.
    bounds = np.concatenate([[0], np.stack([starts[2], stops[2] + 1], axis=1).ravel(), [len(text)]])
    kept = np.repeat(np.arange(len(bounds) - 1) % 2 == 1, np.diff(bounds))
    docids = lines[kept][:-1].tobytes().decode().split("\n")
    qids = [block[i:j] for i, j in zip(starts[0, parts].tolist(), stops[0, parts].tolist(), strict=True)]
    first = np.stack([np.append(parts, len(begins)), np.append(begins[parts], len(text))], axis=1)
    return Scan(block, len(begins), qids, first, docids, scores, ranks)


def _bytes(text: Any, starts: IntArray, widths: IntArray) -> Iterator[tuple[BoolArray, Any]]:
    """Yield which names have a first byte, and these; a second; and so on."""
    for place in range(int(widths.max())):
        yield place < widths, text.take(starts + place, mode="clip")


def _scores(block: bytes, text: Any, starts: IntArray, stops: IntArray) -> FloatArray | None:
    """Read decimal numbers; None if one is none."""
    widths, minus = stops - starts, text[starts] == 45
    mantissa, digits, decimals, points = np.zeros((4, len(starts)), np.int64)
    for has, byte in _bytes(text, starts, np.minimum(widths, 17)):
        is_digit, is_point = has & (byte - 48 <= 9), has & (byte == 46)
        mantissa = np.where(is_digit, 10 * mantissa + (byte - 48), mantissa)
        digits, decimals, points = digits + is_digit, decimals + (is_digit & (points > 0)), points + is_point
    # Integers of 15 digits and powers of ten up to 1e22 are floats, so that the division is the only rounding.
    plain = (digits > 0) & (digits <= 15) & (points <= 1) & (digits + points + minus == widths)
    scores = np.where(minus, -1.0, 1.0) * (mantissa / POWERS[decimals])
    places = np.flatnonzero(~plain)
    others = [block[i:j] for i, j in zip(starts[places].tolist(), stops[places].tolist(), strict=True)]
    scores[places] = [*map(parse_number, others)]
    return None if np.isnan(scores).any() else scores


def scan_features(
    block: bytes, largest: int, limit: float, check: Callable[[int, int], None], gap: float = 0.0
) -> tuple[int, list[tuple[bytes, int]], IntArray, list[str], FloatArray, int] | None:
    """Read lines of LETOR text, with features up to `largest` and values up to `limit`.

    Returns the end of the first line with a document; qids with the numbers of successive documents; grades; docids, ""
    where there is none; values by column, `gap` where a line has none, and the number of the first feature, 0 or 1.
    `check` is given the numbers of documents and features. None without a document, or if a line is out of the
    ordinary: numbers of features rise in a line.
    """
    if not block.endswith(b"\n"):
        block += b"\n"
    text, lines, cells = np.frombuffer(block, np.uint8).copy(), block.count(b"\n"), block.count(b":")
    rows, spans = np.empty((lines, 4), np.int64), np.empty((lines, 2), np.int64)
    features, values, others = np.empty(cells, np.int32), np.empty(cells), np.empty(cells, np.int64)
    names, numbers = np.empty(len(block), np.uint8), np.empty(len(block), np.uint8)
    counts: Any = scan_rows(text, POWERS, largest, rows, spans, features, values, others, names, numbers)
    documents, queries, width, length, length_of_others, number_of_others = counts
    if not documents:
        return None
    values[others[:number_of_others]] = _spelt(numbers[:length_of_others])
    firsts, grades, queries_of_rows, ends = rows[:documents].T
    if not (values[: ends[-1]].min() >= -limit and values[: ends[-1]].max() <= limit):
        return None
    begin = min(1, int(features[: ends[-1]].min()))
    check(documents, width + 1 - begin)
    columns = np.full((width + 1 - begin, documents), gap)
    fill_columns(ends, features, values, begin, columns)
    qids = [block[start:end] for start, end in spans[:queries].tolist()]
    pairs = [*zip(qids, np.bincount(queries_of_rows).tolist(), strict=True)]
    docids = names[: length - 1].tobytes().decode().split("\n")
    return int(firsts[0]), pairs, grades.copy(), docids, columns.T, begin


def _spelt(numbers: Any) -> FloatArray:
    """Read numbers that `number_at` leaves to Python, from bytes with a line for each."""
    return np.array([*map(float, numbers.tobytes().split())])


@compiled()
def scan_rows(  # noqa: PLR0911, PLR0912, PLR0915
    text: Any, powers: Any, largest: int, rows: Any, spans: Any, features: Any, values: Any, others: Any,
    names: Any, numbers: Any,
) -> Any:  # fmt: skip
    """Fill in the arrays of `scan_features`; return how much of each is used, or no rows if a line is odd."""
    at, row, queries, cell, width, length, spelt, left = 0, 0, 0, 0, 0, 0, 0, 0
    odd, words = (0, 0, 0, 0, 0, 0), np.empty((4, 2), np.int64)
    while at < len(text):
        if text[at] == 35:
            while text[at] != 10:
                at += 1
        at = after_spaces(text, at)
        if text[at] == 10:
            at += 1
            continue
        negative = text[at] == 45
        start = at + (negative or text[at] == 43)
        grade, end = integer_at(text, start, 999_999_999)
        at = after_spaces(text, end)
        if end == start or end - start > 9 or at == end or not equal(text, at, WORDS, 0, 4):
            return odd
        qid, digits = at + 4, True
        at = qid
        while text[at] > 32 and text[at] != 35:
            digits = digits and text[at] >= 48 and text[at] <= 57
            at += 1
        end, number, space, first = at, -1, at, cell
        at = after_spaces(text, at)
        while text[at] != 10 and text[at] != 35:
            below, start = number, at
            number, at = integer_at(text, start, largest)
            if start in (space, at) or (text[start] == 48 and at > start + 1):
                return odd
            if number <= below or number > largest or text[at] != 58:
                return odd
            start = at + 1
            at, value = number_at(text, start, powers)
            if at < 0:
                return odd
            features[cell], values[cell] = number, value
            if np.isnan(value):
                spelt, others[left] = copy(text, start, at, numbers, spelt), cell
                left += 1
            cell, space = cell + 1, at
            at = after_spaces(text, at)
        if qid == end or cell == first:
            return odd
        width, n_words = max(width, number), 0
        at += text[at] == 35
        while text[at] != 10:
            at = after_spaces(text, at)
            start = at
            while text[at] > 32:
                at += 1
            if start < at and n_words < 4:
                words[n_words, 0], words[n_words, 1] = start, at
                n_words += 1
            at = after_spaces(text, at)
            if start == at:
                return odd
        at += 1
        # "docid = NAME", as in the LETOR collections, and "NAME qid=NAME", as greylag writes it.
        docid = 0
        if n_words > 1 and words[0, 1] - words[0, 0] == 5 and words[1, 1] - words[1, 0] == 1:
            docid = 2 * (equal(text, words[0, 0], WORDS, 4, 5) and equal(text, words[1, 0], WORDS, 9, 1))
        if n_words > docid + 1 and equal(text, words[docid + 1, 0], WORDS, 10, 4):
            if docid or words[1, 1] == words[1, 0] + 4:
                return odd
            if digits:
                qid, end = words[1, 0] + 4, words[1, 1]
        start, stop = (words[docid, 0], words[docid, 1]) if n_words > docid else (at, at)
        length = copy(text, start, stop, names, length)
        last = spans[max(queries - 1, 0)]
        if not queries or end - qid != last[1] - last[0] or not equal(text, qid, text, last[0], end - qid):
            spans[queries, 0], spans[queries, 1] = qid, end
            queries += 1
        rows[row, 0], rows[row, 1], rows[row, 2], rows[row, 3] = at, -grade if negative else grade, queries - 1, cell
        row += 1
    return row, queries, width, length, spelt, left


@compiled()
def number_at(text: Any, at: int, powers: Any) -> Any:
    """Read a decimal number; return its end, -1 if there is none, and its value, NaN if Python has to read it."""
    sign = text[at]
    at += sign in (45, 43)
    mantissa, digits, decimals, point, seen = 0, 0, 0, False, False
    while True:
        byte = text[at]
        if byte >= 48 and byte <= 57:
            seen = True
            digits += digits > 0 or byte > 48
            if digits <= 18:
                mantissa = 10 * mantissa + (byte - 48)
            decimals += point
        elif byte == 46 and not point:
            point = True
        else:
            break
        at += 1
    if text[at] == 69 or text[at] == 101:
        negative = text[at + 1] == 45
        start = at + 1 + (negative or text[at + 1] == 43)
        exponent, at = integer_at(text, start, 999)
        seen = seen and at > start
        decimals += exponent if negative else -exponent
    if not seen:
        return -1, 0.0
    if digits > 18 or decimals < 0 or decimals > 22:
        return at, np.nan
    power, high = powers[decimals], float(mantissa)
    value = high / power
    # Integers of 15 digits and powers of ten up to 1e22 are floats, so that the division is the only rounding.
    if digits > 15:
        # The remainder, by Dekker's exact product, decides the rounding, unless it is close to a tie.
        a, b = 134217729.0 * value, 134217729.0 * power
        a, b = a - (a - value), b - (b - power)
        product = value * power
        error = ((a * b - product) + a * (power - b) + (value - a) * b) + (value - a) * (power - b)
        rest = (((high - product) - error) + float(mantissa - int(high))) / power
        if value + rest * (1.0 - 1e-12) != value + rest * (1.0 + 1e-12):
            return at, np.nan
        value += rest
    return at, -value if sign == 45 else value


@compiled()
def integer_at(text: Any, at: int, largest: int) -> Any:
    """Read digits; return their number, one above `largest` for all beyond, and their end."""
    number = 0
    while text[at] >= 48 and text[at] <= 57:
        number = min(10 * number + (text[at] - 48), largest + 1)
        at += 1
    return number, at


@compiled()
def after_spaces(text: Any, at: int) -> Any:
    """Return the place after spaces and tabs."""
    while text[at] == 32 or text[at] == 9:
        at += 1
    return at


@compiled()
def equal(one: Any, i: int, other: Any, j: int, n: int) -> Any:
    """Return whether n bytes are equal; `one` may end before."""
    k = 0
    while k < n and i + k < len(one) and one[i + k] == other[j + k]:
        k += 1
    return k == n


@compiled()
def copy(text: Any, start: int, end: int, out: Any, at: int) -> Any:
    """Copy bytes and add the end of a line; return the place after it."""
    for i in range(start, end):
        out[at] = text[i]
        at += 1
    out[at] = 10
    return at + 1


@compiled()
def fill_columns(ends: Any, features: Any, values: Any, begin: int, columns: Any) -> None:
    """Put each document's values into an array of shape (features, documents), from feature `begin` on."""
    cell = 0
    for row in range(len(ends)):
        while cell < ends[row]:
            columns[features[cell] - begin, row] = values[cell]
            cell += 1
