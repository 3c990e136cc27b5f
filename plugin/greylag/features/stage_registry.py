"""Stages by name: the registry, and the spelling ``mmr(k=20)`` of a stage with its options.

Stages are registered as entry points of the group ``greylag.stages``, by which other packages may add theirs. The
command line, `greylag.rerank`, the choice of a diversifier and features all find them here.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greylag.base import (
    ParameterError,
    Stage,
    Value,
    import_entry,
    load_entry,
    naming,
    parameters,
    read_call,
    read_options,
    read_value,
    registered,
    shown,
    spell,
)

if TYPE_CHECKING:
    from greylag.index import PositionalIndex


def registered_stages() -> Mapping[str, EntryPoint]:
    """Return the stages of all installed packages by name; each is imported when it is first used."""
    return registered("stage")


_FOLDERS: ContextVar[tuple[Path, ...]] = ContextVar("_FOLDERS", default=())
"""Where stages ``MODULE:CLASS`` are looked for beside the working folder."""


@contextmanager
def modules_of(folder: Path) -> Iterator[None]:
    """Let stages ``MODULE:CLASS`` be files of this folder, too."""
    token = _FOLDERS.set((folder, *_FOLDERS.get()))
    try:
        yield
    finally:
        _FOLDERS.reset(token)


@cache
def find_stage(name: str) -> type[Stage]:
    """Find the class of a registered stage, or of ``MODULE:CLASS``, a module which may be in the working folder."""
    if ":" in name:
        # Last, so that a file there does not hide a module of the same name; and only while a named module is imported,
        # as other packages import optional ones, which must not be files beside the user's data.
        added = [str(folder) for folder in (*_FOLDERS.get(), Path.cwd()) if str(folder) not in sys.path]
        sys.path += added
        try:
            kind: Any = import_entry("stage", EntryPoint(name, name, "greylag.stages"))
        finally:
            sys.path[:] = [path for path in sys.path if path not in added]
    else:
        kind = load_entry("stage", name)
    if not (isinstance(kind, type) and issubclass(kind, Stage) and is_dataclass(kind)):
        raise ParameterError(f"stage {name} is {shown(kind)}, not a dataclass that extends greylag.Stage")
    return kind


def stage_parameters(stage: type[Stage]) -> dict[str, Field[Any]]:
    """Return the parameters of a stage by name."""
    return {field.name: field for field in fields(stage) if field.init}  # type: ignore[arg-type]


def required_parameters(stage: type[Stage]) -> list[str]:
    """Return the parameters without a default."""
    parameters = stage_parameters(stage).items()
    return [name for name, field in parameters if field.default is field.default_factory is MISSING]


@dataclass(frozen=True)
class StageStep:
    """A stage with its options, spelt ``NAME(OPTION=VALUE,...)``; the name is registered or ``MODULE:CLASS``."""

    name: str
    # Numbers, true, false or words, by name; files for `Stage.readers`; `member` numbers an ensemble's models from 1.
    options: tuple[tuple[str, Value], ...] = ()

    def __post_init__(self) -> None:
        # Without importing the stage, which may load SciPy and more; only its spelling is checked here.
        if ":" not in self.name and self.name not in registered_stages():
            find_stage(self.name)  # raises the error
        if len(dict(self.options)) < len(self.options):
            raise ParameterError(f"stage {self.name} has an option twice: keep one")
        for name, value in self.options:
            # What cannot be read again would make the file of a model useless.
            text = spell(value)
            spelt = text and name.isidentifier() and read_value(text.strip()) == value
            if not spelt or re.search(r"[(),=>\r\n]", text):
                raise ParameterError(f"stage {self.name}: {name}={value!r} cannot be spelt")
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def __str__(self) -> str:
        inside = ",".join(f"{name}={spell(value)}" for name, value in self.options)
        return f"{self.name}({inside})" if inside else self.name

    @classmethod
    def parse(cls, text: str) -> StageStep:
        """Parse ``NAME`` or ``NAME(OPTION=VALUE,...)``; the inverse of ``str``."""
        if ">>" in text:
            raise ParameterError(f"{text!r:.100} is several stages: give one --stage for each, in this order")
        name, options = read_call(text)
        return cls(name, tuple(options.items()))

    @property
    def stage(self) -> type[Stage]:
        """The class of the stage."""
        return find_stage(self.name)

    @property
    def modules(self) -> list[str]:
        """List the file of the module of a class that is named with it, which no output may replace."""
        return [str(sys.modules[self.stage.__module__].__file__)] if ":" in self.name else []

    def adding(self, **options: Value) -> StageStep:
        """Return the stage with these options, too."""
        return StageStep(self.name, (*self.options, *options.items()))

    def files(self) -> list[str]:
        """Return the names of the files among the options."""
        return [spell(value) for name, value in self.options if name in self.stage.readers]

    def place_files(self, place: Callable[[str], str]) -> StageStep:
        """Return the stage with each file replaced by ``place(file)``."""
        files = self.stage.readers
        options = {name: read_value(place(spell(value))) for name, value in self.options if name in files}
        return StageStep(self.name, tuple({**dict(self.options), **options}.items()))

    def make(self, index: PositionalIndex | None, **values: Any) -> Stage:
        """Make the stage over an index; `ParameterError` if an option is unknown, missing or outside its domain."""
        # A value in `values`, such as vectors, replaces the file of that name, unless it is spelt.
        kind, spelt = self.stage, dict(self.options)
        member = spelt.pop("member", None)
        options = {name: values[name] for name in kind.readers if values.get(name) is not None}
        with naming(f"stage {self}"):
            # Files are read before parameters are filled in, so that an error names the option.
            options |= read_options(self.name, spelt, parameters(kind, "index", *(options.keys() - spelt.keys())))
            if member is not None:
                options["model"] = _member(options.get("model"), member)
            # Vectors take the place of an index: a stage that compares documents takes one of the two.
            if index is not None and "vectors" not in options and "index" in stage_parameters(kind):
                options["index"] = index
            if index is None and "index" in kind.needs:
                raise ParameterError("it needs an index")
            if lacking := [name for name in required_parameters(kind) if name not in options]:
                raise ParameterError(f"{lacking[0]} cannot be spelt: make the stage in Python")
            return kind(**options)


def _member(model: Any, number: Value) -> Any:
    """Return a model of an ensemble, numbered from 1."""
    members = getattr(model, "members", ())
    if not isinstance(number, int) or not 1 <= number <= len(members):
        raise ParameterError(f"the model has {len(members)} members, and no member {number}")
    return members[number - 1]
