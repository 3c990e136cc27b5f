from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, get_type_hints

import pytest
import typer

from greylag.cli.groups import OnlyFor, flatten, given
from greylag.errors import ParameterError


@dataclass(frozen=True)
class Fruit:
    """A group."""

    kind: Annotated[str, typer.Option("--kind")] = "apple"
    n_stones: Annotated[int | None, typer.Option("--stones", help="Its stones."), OnlyFor("cherry", "plum")] = None
    peeled: Annotated[bool, typer.Option("--peeled", help="Without its peel."), OnlyFor("apple")] = False


@dataclass(frozen=True)
class Bowl:
    """Another group."""

    size: Annotated[int, typer.Option("--size")]


seen: list[tuple[object, ...]] = []


def serve(fruit: Fruit, guests: Annotated[int, typer.Argument()], bowl: Bowl, fast: bool = False) -> None:
    """Serve fruit."""
    seen.append((fruit, guests, bowl, fast))


def test_groups_become_parameters_and_come_back_as_values() -> None:
    flat = flatten(serve)
    parameters = inspect.signature(flat).parameters
    assert list(parameters) == ["guests", "size", "kind", "n_stones", "peeled", "fast"]
    assert flat.__doc__ == serve.__doc__
    flat(guests=3, size=9, kind="plum", n_stones=2, peeled=False, fast=True)
    assert seen.pop() == (Fruit("plum", 2), 3, Bowl(9), True)


def test_help_names_the_choices_that_an_option_is_for() -> None:
    hints = get_type_hints(flatten(serve), include_extras=True)
    (option,) = hints["n_stones"].__metadata__
    assert option.help == "cherry, plum: Its stones."
    own = get_type_hints(Fruit, include_extras=True)["n_stones"].__metadata__[0]
    assert own.help == "Its stones."


def test_typer_takes_the_flat_command() -> None:
    app = typer.Typer(add_completion=False)
    app.command()(flatten(serve))
    app(["2", "--size", "5", "--peeled"], standalone_mode=False)
    assert seen.pop() == (Fruit(peeled=True), 2, Bowl(5), False)


def test_options_of_other_choices_are_refused() -> None:
    assert given(Fruit("plum", 2), "--kind", "plum") == {"n_stones": 2}
    assert given(Fruit("apple", None, True), "--kind", "apple") == {"peeled": True}
    assert given(Fruit(), "--kind", "apple") == {}
    with pytest.raises(ParameterError, match=r"^--stones is for --kind cherry or plum, not for apple$"):
        given(Fruit("apple", 0), "--kind", "apple")
