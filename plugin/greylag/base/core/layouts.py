"""Whether values that were read from JSON are of the types of a layout, such as a `TypedDict`."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from sys import float_info
from types import NoneType, UnionType
from typing import Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from greylag.base.errors import ParameterError

_PLAIN: dict[Any, tuple[set[type], str]] = {
    float: ({float, int}, "number"),
    int: ({int}, "whole number"),
    str: ({str}, "string"),
    bool: ({bool}, "truth value"),
    NoneType: ({NoneType}, "null"),
}
"""The types of Python that a type allows, and its name: neither "1" nor true is a number."""


def check_layout(kind: Any, value: Any, place: str = "") -> None:
    """Raise `ParameterError`, with the place, unless a value of JSON is of a type."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _PLAIN:
        _check(_all_are(kind, [value]), place, value, _PLAIN[kind][1])
    elif origin is Literal:
        _check(value in parts, place, value, " or ".join(map(repr, parts)))
    elif origin in (Union, UnionType):
        faults = [_fault(part, value, place) for part in parts]
        if fault := None if None in faults else faults[0]:
            raise fault
    elif is_typeddict(kind):
        _check(isinstance(value, dict), place, value, "dictionary")
        for name, hint in _hints(kind).items():
            may_lack = get_origin(hint) is NotRequired
            if name in value:
                check_layout(get_args(hint)[0] if may_lack else hint, value[name], _within(place, name))
            elif kind.__total__ and not may_lack:
                raise ParameterError(f"lacks {_within(place, name)!r}")
    elif origin is list or origin is dict:
        _check(isinstance(value, origin), place, value, "list" if origin is list else "dictionary")
        values = value if origin is list else value.values()
        if not (parts[-1] in _PLAIN and _all_are(parts[-1], values)):
            for name, one in zip(range(len(value)) if origin is list else value, values, strict=True):
                check_layout(parts[-1], one, _within(place, name))


def _all_are(kind: Any, values: Collection[Any]) -> bool:
    """Return whether all values are of a plain type; integers that are no float are no numbers."""
    plain = {*map(type, values)} <= _PLAIN[kind][0]
    return plain and (kind is not float or all(isinstance(v, float) or abs(v) <= float_info.max for v in values))


def _fault(kind: Any, value: Any, place: str) -> ParameterError | None:
    try:
        check_layout(kind, value, place)
    except ParameterError as error:
        return error
    return None


def _check(fits: bool, place: str, value: Any, name: str) -> None:
    if not fits:
        raise ParameterError(f"{place or 'the content'} is {value!r:.40}, not a {name}")


def _within(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)
