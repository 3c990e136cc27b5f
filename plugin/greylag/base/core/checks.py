"""Checks that methods share: the domains of their parameters, and sequences of ids."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from greylag.base.core.hints import shown
from greylag.base.errors import FormatError, ParameterError

MAX_VALUE = 1e100  # products of a few of them stay far from overflow


@contextmanager
def naming(place: str | Path) -> Iterator[None]:
    """Put a file, or words such as "collection cacm", before the `ParameterError` of what is done within."""
    try:
        yield
    except ParameterError as error:
        raise (
            FormatError(place, None, str(error)) if isinstance(place, Path) else ParameterError(f"{place}: {error}")
        ) from None


def check_positive(**values: float) -> None:
    """Raise `ParameterError` unless all values are above 0, and products of them are finite."""
    for name, value in values.items():
        if not (_is_number(value) and 0 < value <= MAX_VALUE):
            raise ParameterError(f"{name} must be a number above 0 and at most {MAX_VALUE:g}, not {value}")


def check_non_negative(**values: float) -> None:
    """Raise `ParameterError` unless all values are finite and at least 0."""
    for name, value in values.items():
        if not (_is_number(value) and 0 <= value < math.inf):
            raise ParameterError(f"{name} must be a finite number of at least 0, not {value}")


def check_fractions(**values: float) -> None:
    """Raise `ParameterError` unless all values are in [0, 1]."""
    for name, value in values.items():
        if not (_is_number(value) and 0 <= value <= 1):
            raise ParameterError(f"{name} must be in [0, 1], not {value}")


def check_counts(**values: int) -> None:
    """Raise `ParameterError` unless all values are integers of at least 1."""
    for name, value in values.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
            raise ParameterError(f"{name} must be an integer of at least 1, not {value!r}")


def _is_number(value: Any) -> bool:
    """Return whether a value is a real number, and no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_choice(name: str, value: str, choices: Collection[str]) -> None:
    """Raise `ParameterError` unless the value is among the choices."""
    if value not in choices:
        raise ParameterError(f"{name} must be one of {', '.join(choices)}, not {value!r}")


def check_ids(**values: Any) -> None:
    """Raise `ParameterError` for a set or a string where ids have an order; a mapping has that of its keys."""
    for name, value in values.items():
        if isinstance(value, str | bytes | set | frozenset):
            raise ParameterError(f"{name}: {shown(value)} has no order of ids; pass a list")


def check_sequences(**values: Any) -> None:
    """Raise `ParameterError` for a mapping, a set or a string where places count: their order means something else."""
    for name, value in values.items():
        if isinstance(value, str | bytes | set | frozenset | Mapping) or not hasattr(value, "__iter__"):
            raise ParameterError(f"{name}: {shown(value)} is no sequence; pass a list or an array")
