"""Names of documents without identifiers, by their values."""

from itertools import product

import numpy as np
import pytest
from tests.greylag.learning.samples import row_name

from greylag.base.core.row_names import digest_rows, is_row, name_rows, split_grades


@pytest.mark.parametrize("start", [0, 1])
def test_a_digest_equals_its_definition_in_whole_numbers(start):
    rng = np.random.default_rng(start)
    values = np.where(rng.random((50, 9)) < 0.4, 0.0, rng.normal(size=(50, 9)) * 10.0 ** rng.integers(-99, 99, (50, 9)))
    values[0], values[1] = 0.0, -0.0
    names, pairs = name_rows(digest_rows(values, start), np.arange(50))
    assert names == [row_name(dict(enumerate(row, start))) for row in values.tolist()]
    assert (names[0], pairs) == (f"row-{0:016}", [])
    wider = np.column_stack([values, np.zeros((50, 3))])
    for other in (wider, np.asfortranarray(values), values + 0.0):
        assert (digest_rows(other, start) == digest_rows(values, start)).all()
    assert len(digest_rows(values[:0], start)) == 0


@pytest.mark.parametrize("values", [(0, 0.5, 1, 2, -1), (0, 1, 2, 3, 4), (0, 1e-300, 1e100, 2**-40, 0.1)])
def test_rows_of_few_values_have_different_digests(values):
    """Such floats differ in few bits, and rows are often each other's permutations."""
    rows = np.asfortranarray(list(product(values, repeat=8)), dtype=float)
    assert len(np.unique(digest_rows(rows, 1))) == len(rows)


def test_equal_rows_are_numbered_within_a_query():
    digests, queries = np.array([7, 5, 7, 7, 7, 5], np.uint64), np.array([0, 0, 0, 0, 1, 1])
    seven, five = f"row-{7:016x}", f"row-{5:016x}"
    assert name_rows(digests, queries) == (
        [seven, five, f"{seven}-2", f"{seven}-3", seven, five], [(0, 2), (2, 3)]
    )  # fmt: skip


def test_equal_rows_of_different_grades_are_told():
    a, b = f"row-{7:016x}", f"row-{5:016x}"
    assert split_grades({a: 1, f"{a}-2": 1, b: 0, "row": 1, "row-2": 0, "row-a long name of two": 0}) == {}
    assert [*map(is_row, (a, f"{a}-12", f"{a}-02", f"{a}0", "row-1", "row-", "7"))] == [True, True, *[False] * 5]
    assert split_grades({a: 1, f"{a}-2": 1, f"{a}-3": 0, b: 0, f"{b}-2": 0}) == {a: a, f"{a}-2": a, f"{a}-3": a}
