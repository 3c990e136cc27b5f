"""Checks of parameters and models."""

from __future__ import annotations

import math

import pytest

from greylag.errors import ParameterError
from greylag.structured import ComparingModel, CuttingPlane, StructuredModel
from greylag.structured.checks import check_choice, check_counts, check_model, check_non_negative, check_positive
from tests.greylag.structured.models import ComparingTable, Table


def test_valid_values_pass() -> None:
    check_positive(C=1e-9)
    check_non_negative(alpha=0.0, seed=3)
    check_counts(M=1)
    check_choice("slack", "n", ("one", "n"))


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
def test_positive(value: float) -> None:
    with pytest.raises(ParameterError, match=f"C must be a finite number above 0, not {value}"):
        check_positive(epsilon=1.0, C=value)


@pytest.mark.parametrize("value", [-1.0, math.inf, math.nan])
def test_non_negative(value: float) -> None:
    with pytest.raises(ParameterError, match=f"alpha must be a finite number of at least 0, not {value}"):
        check_non_negative(alpha=value)


def test_counts_and_choices() -> None:
    with pytest.raises(ParameterError, match="M must be at least 1, not 0"):
        check_counts(M=0)
    with pytest.raises(ParameterError, match="slack must be one of one, n, not 'two'"):
        check_choice("slack", "two", ("one", "n"))


def test_models() -> None:
    learner = CuttingPlane()
    check_model(Table(), StructuredModel, learner)
    check_model(ComparingTable(3), ComparingModel, learner)
    with pytest.raises(ParameterError, match=r"Table does not fit learner CuttingPlane: missing infer_apart, sim"):
        check_model(Table(), ComparingModel, learner)
    with pytest.raises(ParameterError, match=r"object does not fit learner CuttingPlane: missing infer, .*, target$"):
        check_model(object(), StructuredModel, learner)
