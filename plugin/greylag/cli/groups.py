"""Groups of options: dataclasses whose fields are options.

Typer takes plain parameters only. A command takes a group as one parameter, and `flatten` replaces it by the group's
fields.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import fields, is_dataclass
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from greylag.cli.outputs import check_options
from greylag.errors import ParameterError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


class Surroundings(ABC):
    """A group of options that says what surrounds a command."""

    @abstractmethod
    def begin(self, command: Callable[..., None], values: Mapping[str, Any]) -> AbstractContextManager[None]:
        """Surround a command that was given these values."""


class OnlyFor:
    """An option in a group that is only for certain choices of another option; `given` refuses it for others.

    Parameters
    ----------
    choices : str or tuple of str
        Its help starts with them.
    flag, help : str
    more
        Passed to `typer.Option`.
    """

    def __init__(self, choices: str | tuple[str, ...], flag: str, help: str, **more: Any) -> None:
        self.choices = (choices,) if isinstance(choices, str) else choices
        self.flag, self.help, self.more = flag, help, more

    def option(self) -> Any:
        """The option as typer takes it."""
        return typer.Option(self.flag, help=f"{', '.join(self.choices)}: {self.help}", **self.more)


def given(group: DataclassInstance, flag: str, choice: str) -> dict[str, Any]:
    """The values, by name, of those options of a group that were given and are for one choice of `flag` only.

    An option that is None, False or an empty list was not given.

    Raises
    ------
    ParameterError
        If one of them is for other choices.
    """
    values = {}
    for name, hint in get_type_hints(type(group), include_extras=True).items():
        value = getattr(group, name)
        (option,) = hint.__metadata__
        if not isinstance(option, OnlyFor) or value is None or value is False or value == []:
            continue
        if choice not in option.choices:
            raise ParameterError(f"{option.flag} is for {flag} {' or '.join(option.choices)}, not for {choice}")
        values[name] = value
    return values


def flatten(command: Callable[..., None]) -> Callable[..., None]:
    """The command with keyword parameters only, each group replaced by its fields; required ones come first."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, type[DataclassInstance]] = {}
    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _parameters(hints[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))

    @wraps(command)
    def flat(**values: Any) -> None:
        check_options(values)
        given_values = dict(values)
        made = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        with ExitStack() as stack:
            for group in made.values():
                if isinstance(group, Surroundings):
                    stack.enter_context(group.begin(command, given_values))
            command(**values, **made)

    parameters.sort(key=lambda parameter: parameter.default is not parameter.empty)
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return flat


def _parameters(group: type[DataclassInstance]) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        parameter.replace(annotation=_plain(hints[name]), kind=parameter.KEYWORD_ONLY)
        for name, parameter in inspect.signature(group).parameters.items()
    ]


def _plain(hint: Any) -> Any:
    (option,) = hint.__metadata__
    return Annotated[hint.__origin__, option.option()] if isinstance(option, OnlyFor) else hint
