from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Annotated, Any, get_type_hints

import pytest
import typer

from greylag.cli import diversify, rerank, search, train, train_diversity
from greylag.cli.groups import OnlyFor, flatten, given
from greylag.diversity.registry import diversifier
from greylag.errors import ParameterError
from greylag.lucene import RM3Search
from greylag.manifold import ManifoldRanker
from greylag.structured import Coulomb, CuttingPlane


@dataclass(frozen=True)
class Fruit:
    """A group."""

    kind: Annotated[str, typer.Option("--kind")] = "apple"
    n_stones: Annotated[int | None, OnlyFor(("cherry", "plum"), "--stones", "Its stones.", min=0)] = None
    peeled: Annotated[bool, OnlyFor("apple", "--peeled", "Without its peel.")] = False


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
    assert (option.help, option.min) == ("cherry, plum: Its stones.", 0)


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


def searched(model: str) -> tuple[Any, ...]:
    """What a model of `greylag search` consists of."""
    name, _, expansion = model.partition("+")
    return (search.MODELS[name], RM3Search) if expansion else (search.MODELS[name],)


@pytest.mark.parametrize(
    ("group", "made_by"),
    [
        (search.ModelOptions, searched),
        (train.LearnerOptions, train.LEARNERS.__getitem__),
        (rerank.MethodOptions, {"manifold": ManifoldRanker}.get),
        (diversify.MethodOptions, diversifier),
        (train_diversity.LearnerOptions, {"svmdiv": CuttingPlane, "cssvm": Coulomb}.__getitem__),
    ],
)
def test_defaults_in_help_are_the_librarys(group: Any, made_by: Callable[[str], Any]) -> None:
    shown = 0
    for name, hint in get_type_hints(group, include_extras=True).items():
        (option,) = hint.__metadata__
        default = re.search(r"\(default (\S+)\)", option.help)
        for choice in option.choices if default else ():
            made = made_by(choice)
            classes = made if isinstance(made, tuple) else (made,)
            (own,) = [field for kind in classes for field in fields(kind) if field.name == name]
            assert str(own.default).removesuffix(".0") == default[1]  # type: ignore[index]
            shown += 1
    assert shown
