"""Normalisation within a query: exact rational arithmetic, over all magnitudes of floats.

Tests `greylag.features.feature`.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from greylag.base import Ranking, Run, unit_range
from greylag.evaluation import fuse_runs
from greylag.features.feature import z_scores

LARGEST = float(np.finfo(float).max)
ROWS = [
    [3.0, 1.5, -2.0, 0.0],
    [LARGEST, 0.0, -LARGEST],
    [LARGEST, 1.0],
    [1e200, 1.0, 0.0],
    [1e-200, 2e-200, 5e-200],
    [5e-324, 1.5e-323, 0.0],
    [-1e308, 1e-308],
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("row", ROWS)
def test_values_of_any_magnitude_are_normalised(row):
    exact = [Fraction(value) for value in row]
    mean, lowest, spread = sum(exact) / len(exact), min(exact), max(exact) - min(exact)
    variance = sum((value - mean) ** 2 for value in exact) / len(exact)
    ranges = [float((value - lowest) / spread) for value in exact]
    z = [math.copysign(math.sqrt((value - mean) ** 2 / variance), value - mean) for value in exact]
    found = np.array([row, [0.0] * len(row), [row[0]] * len(row)])
    np.testing.assert_allclose(unit_range(found[0]), ranges, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(unit_range(found), [ranges, [0.5] * len(row), [0.5] * len(row)], rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(z_scores(found), [z, [0.0] * len(row), [0.0] * len(row)], rtol=1e-14, atol=1e-14)


def test_ordinary_values_keep_every_bit():
    values = np.random.default_rng(0).standard_normal((200, 30)) * 10.0 ** np.arange(-100, 100)[:, None]
    differences = values - values.mean(axis=-1, keepdims=True)
    plain = differences / np.sqrt(np.square(differences).mean(axis=-1, keepdims=True))
    assert z_scores(values).tobytes() == plain.tobytes()
    lowest = values.min(axis=-1, keepdims=True)
    plain = (values - lowest) / (values.max(axis=-1, keepdims=True) - lowest)
    assert unit_range(values).tobytes() == plain.tobytes()


@pytest.mark.filterwarnings("error")
def test_sums_of_the_largest_scores_are_numbers():
    runs = [Run((Ranking("q", "", ("a", "b", "c"), [LARGEST, 0.0, -LARGEST]),), tag) for tag in ("one", "two")]
    assert fuse_runs(runs, "combsum")["q"].scores.tolist() == [2.0, 1.0, 0.0]
