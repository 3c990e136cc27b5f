from dataclasses import MISSING, dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.refusals import refuses

from greylag.base import ParameterError
from greylag.base.core.spelling import nearest, parameters, read_call, read_options, read_value, spell


class Basket:
    """Where fruit is kept.

    Parameters
    ----------
    weight : float > 0, default 0.5
        In pounds.
    """


@dataclass(frozen=True)
class Fruit:
    """A kind of fruit.

    Parameters
    ----------
    index : object
        Cannot be spelt.
    stones, pips : int >= 0, default 1
        What is `hard`.

        And what is not.
    weight
        As in `Basket`.
    kind : {"plum", "cherry"}, default "plum"
        The kind.
    sizes : tuple of float, default ()
        The sizes.

    Examples
    --------
    stones : int
        Not this.
    """

    index: object
    stones: int = 1
    pips: int | None = None
    weight: float = 0.5
    kind: Literal["plum", "cherry"] = "plum"
    peeled: bool = False
    sizes: tuple[float, ...] = ()
    more: tuple[object, ...] = ()


@dataclass(frozen=True)
class Bowl:
    fruit: int
    name: str = ""
    sizes: tuple[int, ...] = field(default_factory=lambda: (1,))


KNOWN = parameters(Fruit)


def test_the_parameters_of_a_class():
    assert list(KNOWN) == ["stones", "pips", "weight", "kind", "peeled", "sizes"]
    assert list(parameters(Fruit, "stones", "pips")) == ["weight", "kind", "peeled", "sizes"]
    assert (KNOWN["pips"].default, parameters(Bowl)["fruit"].default) == (None, MISSING)
    assert parameters(Bowl)["sizes"].default == (1,)


def test_types_and_meanings_are_those_of_the_docstring():
    assert KNOWN["stones"].documented == KNOWN["pips"].documented == ("int >= 0", "What is hard.")
    assert KNOWN["weight"].documented == ("float > 0", "In pounds.")
    assert KNOWN["kind"].documented == ('{"plum", "cherry"}', "The kind.")
    assert KNOWN["sizes"].documented == ("tuple of float", "The sizes.")
    assert KNOWN["peeled"].documented == ("true or false", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plum", ("plum", {})),
        (" plum() ", ("plum", {})),
        ("plum(a=1, b = x)", ("plum", {"a": 1, "b": "x"})),
        ("plum(a=[1,2.5,x],b=[true])", ("plum", {"a": (1, 2.5, "x"), "b": (True,)})),
        ("plum(a=[count>=1,title>=2],b=1e-3)", ("plum", {"a": ("count>=1", "title>=2"), "b": 0.001})),
    ],
)
def test_calls(text, expected):
    assert read_call(text) == expected


SCALARS = (
    st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(["x", "a/b"])
)


@given(SCALARS | st.lists(SCALARS, min_size=1).map(tuple))
def test_values_are_read_as_they_are_spelt(value):
    assert read_value(spell(value)) == value


def test_options():
    text = "fruit(stones=-2,weight=1,kind=cherry,peeled=true,sizes=[1,.5])"
    values = read_options("fruit", read_call(text)[1], KNOWN)
    assert values == {"stones": -2, "weight": 1.0, "kind": "cherry", "peeled": True, "sizes": (1.0, 0.5)}
    assert type(values["weight"]) is type(values["sizes"][0]) is float
    assert read_options("fruit", {"sizes": 3}, KNOWN) == {"sizes": (3.0,)}


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("stone=3", "fruit 'stone' stones"),
        ("index=3", "fruit 'index'"),
        ("zzz=3", "'zzz' stones, pips, weight, kind, peeled, sizes"),
        ("stones=1,stones=1", "fruit stones twice"),
        *((f"stones={value}", "stones integer") for value in ("1.5", "1_0", "true", "[1,2]", "٣", "9" * 5000)),
        *((f"weight={value}", "weight number") for value in ("nan", "1_0")),
        ("kind=tea", "kind 'tea' plum, cherry"),
        ("peeled=yes", "peeled 'yes' true false"),
        *((f"sizes={value}", "sizes number, brackets") for value in ("[1,x]", "[]")),
    ],
)
def test_mistakes_in_options(options, parts):
    refuses(lambda: read_options("fruit", read_call(f"fruit({options})")[1], KNOWN), ParameterError, parts)


def test_what_is_no_call_and_options_that_have_to_be_given():
    for text in ("", "Plum", "plum(", "plum)", "plum(a)", "plum(a=)", "plum(=1)", "plum(a=1)(b=2)", "a b"):
        refuses(lambda: read_call(text), ParameterError, "NAME(OPTION=VALUE,...)")  # noqa: B023
    refuses(lambda: read_options("bowl", {"name": "x"}, parameters(Bowl)), ParameterError, "bowl fruit")


def test_the_nearest_names():
    known = dict.fromkeys(("svmdiv", "cssvm", "mrf"))
    assert nearest("svmdif", known) == "did you mean svmdiv?"
    assert nearest("mfr", known) == "did you mean mrf?"
    assert nearest("tea", known) == "use svmdiv, cssvm, mrf"
    assert nearest("tea", {}) == "there are none"
