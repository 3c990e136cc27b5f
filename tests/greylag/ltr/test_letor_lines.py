"""Numbers and lines of LETOR text, against Python's own reading of numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from greylag.ltr.letor_lines import COMMENT, ODD, PLAIN, decimal, parse, read_number
from greylag.runtime.files import parse_number


def read(text: str) -> tuple[float, int]:
    """The number at the beginning of a text, and where it ends."""
    content = np.frombuffer(text.encode(), dtype=np.uint8)
    value, end = read_number(content, 0, len(content))
    return float(value), int(end)


def middle(number: float) -> tuple[int, int]:
    """The mantissa and the exponent of the decimal number halfway to the next float64, if it has few digits."""
    (a, b), (c, d) = number.as_integer_ratio(), math.nextafter(number, math.inf).as_integer_ratio()
    numerator, denominator = a * d + c * b, 2 * b * d
    exponent = 0
    while numerator % denominator and exponent < 60:
        numerator, exponent = 10 * numerator, exponent + 1
    return numerator // denominator, -exponent


@settings(deadline=None)
@given(st.integers(0, 10**18 - 1), st.integers(-70, 30))
@example(2**53 + 1, -1)
@example(45035996273704965, -1)  # halfway between two numbers
@example(*middle(2.0**52 + 1))
@example(*middle(2.0**49 + 3))
def test_decimals_are_the_nearest_numbers_or_uncertain(mantissa: int, exponent: int) -> None:
    found = decimal(mantissa, exponent)
    assert math.isnan(found) or found == float(f"{mantissa}e{exponent}")


@settings(deadline=None)
@given(st.floats(1e-40, 1e15))
def test_shortest_decimals_are_certain(number: float) -> None:
    for text in (repr(number), repr(-number), f"{number % 1e6:.6f}", f"{number:.15e}"):
        assert read(text) == (float(text), len(text))


@settings(deadline=None)
@given(st.from_regex(r"[-+]?[0-9]{0,20}\.?[0-9]{0,3}([eE][-+]?[0-9]{0,3})?", fullmatch=True))
@example(".9223372036854775807")
@example("0.9760326411934310276")  # 19 digits that do not fit in 64 bits
@example("-9999999999999999999.0e-3")
def test_numbers_are_read_in_full_or_not_at_all(text: str) -> None:
    value, end = read(text)
    expected = parse_number(text.encode())
    if end < len(text) or math.isnan(expected):
        assert end < len(text) or math.isnan(value)
    elif not math.isnan(value):
        assert repr(value) == repr(expected)


@pytest.mark.parametrize("text", ["", "+", ".", "-.", "1e", "1e+", "e5", "nan", "inf", "1234567890123456789"])
def test_what_is_not_a_plain_number_is_left(text: str) -> None:
    assert math.isnan(read(text)[0])


@pytest.mark.parametrize(
    ("line", "kind", "highest"),
    [
        ("1 qid:q 1:2 3:-4.5e1 # d", PLAIN, 3),
        (" -1\tqid:q 2:.5#1:2", PLAIN, 2),
        ("# 1 qid:q 1:2", COMMENT, 0),
        ("", ODD, 0),
        ("1 qid:q 3:1 2:1", ODD, 0),
        ("1 qid:q 1:1e400", ODD, 0),
        ("1 qid:q 100001:1", ODD, 0),
        ("1 qid:q 01:1", ODD, 0),
        ("1 qid:q 1:1x", ODD, 0),
        ("1234567890 qid:q 1:1", ODD, 0),
        ("1 qid: 1:1", ODD, 0),
        ("1 qid:q", ODD, 0),
        ("1 did:q 1:1", ODD, 0),
    ],
)
def test_kinds_of_lines(line: str, kind: int, highest: int) -> None:
    content, heads, values = (
        np.frombuffer(line.encode() + b"\n", dtype=np.uint8),
        np.zeros((1, 5), int),
        np.zeros((1, 2)),
    )
    assert parse(content, np.array([0, len(content)]), values, heads) == highest
    assert heads[0, -1] == kind
    if kind == PLAIN:
        assert (heads[0, 0], line[heads[0, 1] : heads[0, 2]]) == (int(line.split(maxsplit=1)[0]), "q")
        assert values.tolist() == ([[2.0, 0.0]] if highest == 3 else [[0.0, 0.5]])
    else:
        assert not values.any()
