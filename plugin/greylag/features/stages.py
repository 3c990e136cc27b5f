"""Stages by name, as in ``mmr(k=20)``, and features that are their scores: ``stage:manifold(alpha=0.8)``.

Stages are registered as entry points of the group ``greylag.stages``, by which other packages may add theirs.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from greylag.errors import ParameterError
from greylag.features.feature import Evidence, Values, scores_of
from greylag.ranking import FloatArray, Ranking

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

GROUP = "greylag.stages"
_STEP = re.compile(r"(?P<name>[a-z0-9-]+)(?:\((?P<options>[^()]*)\))?")
_NUMBER = re.compile(r"[-+]?(\d{1,100}\.?\d{0,100}|\.\d{1,100})(e[-+]?\d{1,5})?", re.IGNORECASE | re.ASCII)

Option = bool | int | float | str
MAX_INTEGER = 2**31


@cache
def registered_stages() -> Mapping[str, EntryPoint]:
    """The stages of all installed packages by name; each is a dataclass, and is imported when it is first used."""
    return {entry.name: entry for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name)}


@dataclass(frozen=True)
class StageStep:
    """A stage with its options, spelt ``NAME(OPTION=VALUE,...)``.

    Parameters
    ----------
    name : str
        One of `registered_stages`.
    options : tuple of pairs of str and value, default ()
        Parameters of the stage: numbers, ``true``, ``false`` or words, kept in the order of their names. For those in
        `Stage.readers`, the name of a file. ``member`` is the number, from 1, of one model of an ensemble.
    """

    name: str
    options: tuple[tuple[str, Option], ...] = ()

    def __post_init__(self) -> None:
        if self.name not in registered_stages():
            known = ", ".join(registered_stages()) or "(none: install greylag, whose metadata names them)"
            raise ParameterError(f"unknown stage {self.name!r:.60}: use {known}")
        names = [name for name, _ in self.options]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ParameterError(f"stage {self.name} has the option {twice} twice: keep one")
        for name, value in self.options:
            text = _spell(value)
            spelt = text and name.isidentifier() and read_option(text.strip()) == value
            if not spelt or re.search(r"[(),=>\r\n]", text):
                raise ParameterError(f"stage {self.name}: {name}={value!r} cannot be spelt")
        object.__setattr__(self, "options", tuple(sorted(self.options)))

    def __str__(self) -> str:
        inside = ",".join(f"{name}={_spell(value)}" for name, value in self.options)
        return f"{self.name}({inside})" if inside else self.name

    @classmethod
    def parse(cls, text: str) -> StageStep:
        """Parse ``NAME`` or ``NAME(OPTION=VALUE,...)``; the inverse of ``str``."""
        match = _STEP.fullmatch(text.strip())
        pairs = [part.partition("=") for part in ((match and match["options"]) or "").split(",") if part]
        if match is None or not all(name and value for name, _, value in pairs):
            raise ParameterError(f"{text!r:.100} is not of the form NAME(OPTION=VALUE,...)")
        return cls(match["name"], tuple((name.strip(), read_option(value.strip())) for name, _, value in pairs))

    @property
    def stage(self) -> type:
        """The class of the stage."""
        kind: type = registered_stages()[self.name].load()
        return kind

    @property
    def readers(self) -> Mapping[str, Callable[[str], Any]]:
        """See `Stage.readers`."""
        return getattr(self.stage, "readers", {})

    @property
    def needs_index(self) -> bool:
        """Whether the stage cannot be made without an index."""
        return any(field.name == "index" and field.default is MISSING for field in fields(self.stage))

    def adding(self, **options: Option) -> StageStep:
        """The stage with these options, too."""
        return StageStep(self.name, (*self.options, *options.items()))

    def files(self) -> list[str]:
        """The names of the files among the options."""
        return [_spell(value) for name, value in self.options if name in self.readers]

    def place_files(self, place: Callable[[str], str]) -> StageStep:
        """The stage with ``place(file)`` in place of each of its files."""
        files = self.readers
        options = {name: read_option(place(_spell(value))) for name, value in self.options if name in files}
        return StageStep(self.name, tuple({**dict(self.options), **options}.items()))

    def make(self, index: PositionalIndex | None, **given: Any) -> Any:
        """The stage over an index; `ParameterError` if an option is unknown, missing or outside its domain.

        What is `given`, such as vectors, takes the place of the file of that name, if the stage has such an option and
        it is not spelt. A stage with vectors needs no index.
        """
        kind, options = self.stage, dict[str, Any](self.options)
        member = options.pop("member", None)
        try:
            _check_options(kind, options)
            options |= {name: read(_spell(options[name])) for name, read in self.readers.items() if name in options}
            if member is not None:
                options["model"] = _member(options.get("model"), member)
            options = {name: given[name] for name in self.readers if given.get(name) is not None} | options
            if index is None and self.needs_index:
                raise ParameterError("it needs an index")
            if index is not None and "vectors" not in options and "index" in {field.name for field in fields(kind)}:
                options["index"] = index
            return kind(**options)
        except ParameterError as error:
            raise ParameterError(f"stage {self}: {error}") from None


@dataclass(frozen=True)
class StageScore(Evidence):
    """The document's score by a stage, or a pipeline of stages, that reranks the same ranking.

    It is spelt ``stage:NAME(OPTION=VALUE,...)``, and with several stages ``stage:rm3>>manifold(alpha=0.8)``.

    Documents beyond a stage's depth have no value. A last stage that picks documents greedily (``mmr``, ``msd``,
    ``dpp``, ``coverage``, ``essential-pages``, ``group-limit``, ``svmdiv``, ``xquad``, ``pm2``) gives each document the
    marginal gain that it was picked with.

    Parameters
    ----------
    steps : tuple of StageStep
        At least one.

    Examples
    --------
    >>> str(StageScore.parse("stage:rm3 >> manifold(graph=knn,alpha=.8)"))
    'stage:rm3>>manifold(alpha=0.8,graph=knn)'
    """

    form: ClassVar[str] = "stage:NAME(OPTION=VALUE,...)"

    steps: tuple[StageStep, ...]

    def __str__(self) -> str:
        return f"stage:{'>>'.join(map(str, self.steps))}"

    @classmethod
    def parse(cls, text: str) -> StageScore:
        """Parse ``stage:STAGE`` or ``stage:STAGE>>STAGE...``; the inverse of ``str``."""
        return cls(tuple(map(StageStep.parse, text.removeprefix("stage:").split(">>"))))

    def files(self) -> list[str]:
        """Those of the stages."""
        return [file for step in self.steps for file in step.files()]

    def place_files(self, place: Callable[[str], str]) -> StageScore:
        """The score by the placed stages."""
        return StageScore(tuple(step.place_files(place) for step in self.steps))

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Make the stages; features with the same first stages share them."""
        before: Callable[[Ranking], Ranking] = _unchanged
        for place, step in enumerate(self.steps[:-1], 1):
            key = ">>".join(map(str, self.steps[:place]))
            before = shared[key] = shared.get(key) or _Remembering(before, step.make(index))
        last = self.steps[-1].make(index)

        def values(ranking: Ranking) -> FloatArray:
            given = before(ranking)
            if hasattr(last, "marginal_gains"):
                gains = last.marginal_gains(given)
                picked = np.flatnonzero(~np.isnan(gains))
                given = Ranking.sort(given.qid, given.query, [given.docids[i] for i in picked], gains[picked])
            else:
                given = last(given)
            return scores_of(given.head(getattr(last, "depth", len(given))), ranking.docids)

        return values


def _unchanged(ranking: Ranking) -> Ranking:
    return ranking


class _Remembering:
    """Two steps in a row, which remember the last result in each thread."""

    def __init__(self, before: Callable[[Ranking], Ranking], stage: Callable[[Ranking], Ranking]) -> None:
        self._before, self._stage, self._last = before, stage, threading.local()

    def __call__(self, ranking: Ranking) -> Ranking:
        """The ranking after both steps."""
        asked, result = getattr(self._last, "pair", (None, ranking))
        if asked is not ranking:
            result = self._stage(self._before(ranking))
            self._last.pair = ranking, result
        return result


def _readers(stage: type) -> Mapping[str, Callable[[str], Any]]:
    """See `Stage.readers`."""
    return getattr(stage, "readers", {})


def _check_options(stage: type, options: Mapping[str, Any]) -> None:
    """Check that options are parameters of a stage, of their types, and that none is missing."""
    from greylag.index.positional import PositionalIndex  # some stages do not import it, nor Numba with it

    types, readers = get_type_hints(stage, localns={"PositionalIndex": PositionalIndex}), _readers(stage)
    parameters = {field.name: field for field in fields(stage) if field.init and field.name != "index"}
    known = [name for name in parameters if name in readers or domain(types[name])]  # others are for Python
    for name, value in options.items():
        if name not in known:
            raise ParameterError(f"there is no option {name}; use {', '.join(known) or 'none'}")
        if name not in readers and not accepts(types[name], value):
            raise ParameterError(f"{name} is {value!r:.60}: it must be {domain(types[name])}")
    for name, field in parameters.items():
        if field.default is field.default_factory is MISSING and name not in options:
            raise ParameterError(f"{name}={'FILE' if name in readers else 'VALUE'} is missing")


def _alternatives(annotation: Any) -> list[Any]:
    """The types of a union."""
    return list(get_args(annotation)) if get_origin(annotation) in (Union, UnionType) else [annotation]


def accepts(annotation: Any, value: Option) -> bool:
    """Whether a value is of a type; integers are numbers."""
    for kind in _alternatives(annotation):
        if get_origin(kind) is Literal:
            if value in get_args(kind):
                return True
        elif kind is int and type(value) is int:
            return abs(value) < MAX_INTEGER
        elif type(value) is kind or (kind is float and type(value) is int):
            return True
    return False


def domain(annotation: Any) -> str:
    """The values of a type that can be spelt, for errors; empty if there are none."""
    names = {bool: "true or false", int: "an integer below 2^31", float: "a number", str: "a word"}
    kinds = _alternatives(annotation)
    known = [names[kind] for kind in kinds if kind in names]
    known += [", ".join(map(str, get_args(kind))) for kind in kinds if get_origin(kind) is Literal]
    return " or ".join(known)


def _member(model: Any, number: Option) -> Any:
    """A model of an ensemble, numbered from 1."""
    members = getattr(model, "members", ())
    if number not in range(1, len(members) + 1):
        raise ParameterError(f"the model has {len(members)} members, and no member {number}")
    return members[int(number) - 1]


def _spell(value: Option) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def read_option(text: str) -> Option:
    """A value as it is spelt: a number, true or false, or a word."""
    if text in ("true", "false"):
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)
