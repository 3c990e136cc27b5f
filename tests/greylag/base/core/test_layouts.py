"""The types of values of JSON, against pydantic in strict mode."""

import random
from typing import Any, Literal, NotRequired, TypedDict

import pytest
import typing_extensions
from pydantic import TypeAdapter, ValidationError

from greylag.base import ParameterError, check_layout


def layout(typed_dict):
    """A layout; pydantic takes only those of typing_extensions before Python 3.12."""
    inner = typed_dict("Inner", {"a": int, "b": list[float]}, total=False)
    entries = {
        "name": str, "inner": inner, "either": NotRequired[inner | list[bool]], "score": float | None,
        "kind": Literal["t", "wilcoxon"], "table": dict[str, dict[str, float]], "free": NotRequired[Any],
    }  # fmt: skip
    return typed_dict("Outer", entries)


OUTER = layout(TypedDict)
VALUES = (None, True, 0, 1, 10**400, 1.5, float("nan"), float("inf"), "", "t", [], [1.0, 2], [True], [None], {},
          {"a": 1}, {"a": 1.0}, {"b": [1]}, {"x": {"y": 1}}, {"x": {"y": "1"}})  # fmt: skip
GOOD = {"name": "n", "inner": {"a": 1}, "either": [True], "score": 1.0, "kind": "t", "table": {"x": {"y": 1}}}


def is_refused(value):
    try:
        check_layout(OUTER, value)
    except ParameterError:
        return True
    return False


def test_what_is_refused_is_what_pydantic_refuses():
    """But for integers that are no float, which pydantic alone takes for a number."""
    rng, adapter, refused = random.Random(0), TypeAdapter(layout(typing_extensions.TypedDict)), []
    for _ in range(3000):
        value = dict(GOOD)
        for name in rng.sample([*GOOD, "free", "other"], rng.randint(0, 3)):
            value[name] = rng.choice(VALUES)
        for name in rng.sample([*GOOD], rng.choice([0, 0, 0, 1])):
            value.pop(name)
        try:
            adapter.validate_python(value, strict=True)
        except ValidationError:
            refused.append(True)
        else:
            refused.append(value.get("score") == 10**400)
        assert is_refused(value) == refused[-1], value
    assert 500 < sum(refused) < 2500


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"inner": {"b": [1, 2.5, "x"]}}, "inner.b.2 is 'x', not a number"),
        ({"inner": {"a": True}}, "inner.a is True, not a whole number"),
        ({"kind": "z"}, "kind is 'z', not a 't' or 'wilcoxon'"),
        ({"table": {"x": []}}, "table.x is [], not a dictionary"),
        ({"either": {"a": "1"}}, "either.a is '1', not a whole number"),
    ],
)
def test_the_place_is_named(change, message):
    with pytest.raises(ParameterError) as refused:
        check_layout(OUTER, GOOD | change)
    assert str(refused.value) == message
    with pytest.raises(ParameterError, match=r"^lacks 'name'$"):
        check_layout(OUTER, {name: GOOD[name] for name in GOOD if name != "name"})
