from dataclasses import MISSING, dataclass, field
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greylag.core.spelling import nearest, parameters, read_call, read_options, read_value, spell
from greylag.errors import ParameterError


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


@pytest.mark.parametrize(
    "text", ["", "Plum", "plum(", "plum)", "plum(a)", "plum(a=)", "plum(=1)", "plum(a=1)(b=2)", "a b"]
)
def test_what_is_no_call(text):
    with pytest.raises(ParameterError, match="is not of the form NAME"):
        read_call(text)


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
    ("options", "reason"),
    [
        ("stone=3", "fruit has no option 'stone': did you mean stones"),
        ("index=3", "fruit has no option 'index'"),
        ("rind=3", "fruit has no option 'rind': did you mean kind"),
        ("zzz=3", "fruit has no option 'zzz': use stones, pips, weight, kind, peeled, sizes"),
        ("stones=1,stones=1", "fruit has the option stones twice"),
        ("stones=1.5", "stones is .*: it must be an integer"),
        ("stones=1_0", "stones is .*: it must be an integer"),
        ("stones=true", "stones is .*: it must be an integer"),
        ("stones=[1,2]", r"stones is '\[1,2\]': it must be an integer"),
        ("stones=٣", "stones is .*: it must be an integer"),
        (f"stones={'9' * 5000}", "stones is .*: it must be an integer"),
        ("weight=nan", "weight is .*: it must be a number"),
        ("weight=1_0", "weight is .*: it must be a number"),
        ("kind=tea", "kind is 'tea': it must be plum, cherry"),
        ("peeled=yes", "peeled is 'yes': it must be true or false"),
        ("sizes=[1,x]", "sizes is .*: it must be a number, or several in brackets"),
        ("sizes=[]", "sizes is .*: it must be a number"),
    ],
)
def test_mistakes_in_options(options, reason):
    with pytest.raises(ParameterError, match=reason):
        read_options("fruit", read_call(f"fruit({options})")[1], KNOWN)


def test_options_that_have_to_be_given():
    with pytest.raises(ParameterError, match="bowl needs the option fruit"):
        read_options("bowl", {"name": "x"}, parameters(Bowl))


def test_the_nearest_names():
    known = dict.fromkeys(("svmdiv", "cssvm", "mrf"))
    assert nearest("svmdif", known) == "did you mean svmdiv or cssvm?"
    assert nearest("mfr", known) == "did you mean mrf?"
    assert nearest("tea", known) == "use svmdiv, cssvm, mrf"
    assert nearest("tea", {}) == "there are none"
