"""Compiled: the lines of LETOR text; what is not plain is left to `greylag.ltr.letor`."""

from __future__ import annotations

from typing import Any

import numpy as np

from greylag.ranking import FloatArray
from greylag.runtime.compilation import compiled

_jit = compiled(error_model="numpy")

PLAIN, COMMENT, ODD = range(3)
GRADE, QID, QID_END, BODY_END, KIND = range(5)
MAX_NUMBER = 100_000
"""The highest number of a feature: all documents have a column for it."""

_POWERS = [10**k for k in range(61)]
_HIGH = np.array([float(power) for power in _POWERS])
_LOW = np.array([float(power - int(float(power))) for power in _POWERS])  # 10^k = high + low, to 2^-106
_EXACT = 22  # 10^22 is the highest power of ten that float64 has exactly
_FULL = 10**17  # a number of 18 digits or more; with one more digit, it may not fit in 64 bits
_SPLIT = 134217729.0  # 2^27 + 1
_DOUBT = 2.0**-95  # of a quotient, more than what the calculation of its remainder may be wrong by


@_jit
def parse(text: Any, starts: Any, values: FloatArray, heads: Any) -> int:
    """Parse lines ``GRADE qid:QID NUMBER:VALUE ... # COMMENT``.

    Parameters
    ----------
    text : uint8 array
    starts : int array, shape (m + 1,)
        Where the lines begin; a line ends a byte before the next begins.
    values : float array, shape (m, width)
        Is set to the values of features 1 to `width`; must be 0.
    heads : int array, shape (m, 5)
        For each line, the grade, where the query's name begins and ends, where the part before the comment ends, and
        `PLAIN`, `COMMENT` for a line that starts with #, or `ODD` for one that has to be parsed by other means. Only
        the last two are set for `ODD` and `COMMENT`.

    Returns
    -------
    int
        The highest number of a feature in a plain line. If it is above `width`, values are missing.
    """
    highest = 0
    for line in range(len(starts) - 1):
        start, stop = starts[line], starts[line + 1] - 1
        end = start
        while end < stop and text[end] != 35:  # #
            end += 1
        heads[line, BODY_END] = end
        if start < stop and end == start:
            heads[line, KIND] = COMMENT
            continue
        number = _line(text, start, end, values[line], heads[line])
        heads[line, KIND] = PLAIN if number > 0 else ODD
        if number == 0:
            values[line] = 0.0
        highest = max(highest, number)
    return highest


@_jit
def _space(byte: int) -> bool:
    """Whether a byte is ASCII white space, as in `bytes.split`."""
    return byte == 32 or 9 <= byte <= 13


@_jit
def _line(text: Any, i: int, end: int, values: FloatArray, head: Any) -> int:
    """Parse a line without comment; the highest number of a feature, or 0 if the line is odd."""
    while i < end and _space(text[i]):
        i += 1
    negative = i < end and text[i] == 45
    i += i < end and (text[i] == 45 or text[i] == 43)
    first, grade = i, 0
    while i < end and 48 <= text[i] <= 57 and i < first + 9:
        grade, i = 10 * grade + text[i] - 48, i + 1
    if i == first or not (i < end and _space(text[i])):
        return 0
    while i < end and _space(text[i]):
        i += 1
    if i + 4 >= end or text[i] != 113 or text[i + 1] != 105 or text[i + 2] != 100 or text[i + 3] != 58:  # qid:
        return 0
    head[GRADE], head[QID] = -grade if negative else grade, i + 4
    while i < end and not _space(text[i]):
        i += 1
    head[QID_END] = i
    return _cells(text, i, end, values) if i > head[QID] else 0


@_jit
def _cells(text: Any, i: int, end: int, values: FloatArray) -> int:
    """Parse cells NUMBER:VALUE with increasing numbers; the last number, or 0 if there is none or one is odd."""
    last = 0
    while True:
        while i < end and _space(text[i]):
            i += 1
        if i == end:
            return last
        first, number = i, 0
        while i < end and 48 <= text[i] <= 57 and i < first + 6:
            number, i = 10 * number + text[i] - 48, i + 1
        if text[first] == 48 or number <= last or number > MAX_NUMBER or i == end or text[i] != 58:  # :
            return 0
        value, i = read_number(text, i + 1, end)
        if np.isnan(value) or (i < end and not _space(text[i])):
            return 0
        last = number
        if number <= len(values):
            values[number - 1] = value


@_jit
def read_number(text: Any, i: int, end: int) -> tuple[float, int]:
    """The decimal number that begins at i, and where it ends; NaN if there is none, or its value is not certain."""
    negative = i < end and text[i] == 45
    i += i < end and (text[i] == 45 or text[i] == 43)
    mantissa = seen = fraction = 0
    point = False
    while i < end and (48 <= text[i] <= 57 or (text[i] == 46 and not point)):
        if text[i] == 46:
            point = True
        elif mantissa >= _FULL:
            return np.nan, i
        else:
            mantissa = 10 * mantissa + int(text[i]) - 48
            seen, fraction = seen + 1, fraction + point
        i += 1
    exponent, first = 0, i + 1
    if i < end and (text[i] == 101 or text[i] == 69):  # e or E
        lower = first < end and text[first] == 45
        first += first < end and (text[first] == 45 or text[first] == 43)
        i = first
        while i < end and 48 <= text[i] <= 57 and i < first + 4:
            exponent, i = 10 * exponent + text[i] - 48, i + 1
        if i == first:
            return np.nan, i
        exponent = -exponent if lower else exponent
    value = decimal(mantissa, exponent - fraction) if seen else np.nan
    return -value if negative else value, i


@_jit
def decimal(mantissa: int, exponent: int) -> float:
    """The float64 nearest to mantissa 10^exponent, for 0 <= mantissa < 10^18; NaN where it is not certain.

    Mantissa and power that are exact give it in one operation. Otherwise the quotient is calculated with about twice
    the digits, and it is certain unless it is too close to the middle between two numbers.
    """
    if mantissa == 0:
        return 0.0
    nearest = np.float64(mantissa)
    if exponent == 0:
        return nearest
    if mantissa < 2**53 and -_EXACT <= exponent <= _EXACT:
        return float(nearest * _HIGH[exponent] if exponent > 0 else nearest / _HIGH[-exponent])
    if exponent > 0 or exponent <= -len(_HIGH):
        return np.nan
    high, low = _HIGH[-exponent], _LOW[-exponent]
    quotient = nearest / high
    product, error = _product(quotient, high)
    rest = (nearest - product) - error + np.float64(mantissa - np.int64(nearest)) - quotient * low
    more, doubt = rest / high, _DOUBT * quotient
    certain = quotient + (more - doubt) == quotient + (more + doubt)
    return quotient + more if certain else np.nan


@_jit
def _product(a: float, b: float) -> tuple[float, float]:
    """The product of two numbers as the sum of a rounded one and its error (Dekker 1971)."""
    product = a * b
    a_high, b_high = _SPLIT * a - (_SPLIT * a - a), _SPLIT * b - (_SPLIT * b - b)
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
