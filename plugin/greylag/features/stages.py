"""Features that are the scores of a stage: ``stage:manifold(alpha=0.8)``."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.errors import ParameterError
from greylag.features.feature import Evidence, Values, scores_of
from greylag.ranking import FloatArray, Ranking

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

STAGES: Mapping[str, str] = {
    "coverage": "greylag.diversity:Coverage",
    "essential-pages": "greylag.diversity:EssentialPages",
    "manifold": "greylag.manifold:ManifoldRanker",
    "mmr": "greylag.diversity:MMR",
    "mrf": "greylag.ltr:MRFRanker",
    "rm3": "greylag.ltr:RM3",
    "svmdiv": "greylag.diversity:SVMDiv",
}
"""The stages by name, as public names, which are imported when they are first used."""
MODELS: Mapping[str, str] = {"mrf": "greylag.ltr:LinearModel", "svmdiv": "greylag.diversity:DiversityModel"}
"""The models of those stages that have one."""

_STEP = re.compile(r"(?P<name>[a-z0-9-]+)(?:\((?P<options>[^()]*)\))?")
_NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)

Option = bool | int | float | str


@dataclass(frozen=True)
class StageStep:
    """A stage of a `StageScore`, spelt ``NAME(OPTION=VALUE,...)``.

    Parameters
    ----------
    name : str
        A key of `STAGES`.
    options : tuple of pairs of str and value, default ()
        Numbers, ``true``, ``false`` or words, kept in the order of their names: the parameters of the stage, and for
        ``mrf`` and ``svmdiv`` the file of the ``model`` and, if it is an ensemble, the number of a ``member`` from 1.

    Raises
    ------
    ParameterError
        If there is no stage of this name, or an option is given twice or cannot be spelt.
    """

    name: str
    options: tuple[tuple[str, Option], ...] = ()

    def __post_init__(self) -> None:
        if self.name not in STAGES:
            raise ParameterError(f"unknown stage {self.name!r:.60} in a feature: use {', '.join(STAGES)}")
        names = [name for name, _ in self.options]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ParameterError(f"stage {self.name} of a feature has the option {twice} twice: keep one")
        for name, value in self.options:
            if not name.isidentifier() or _read(_spell(value)) != value or re.search(r"[(),=>\s]", _spell(value)):
                raise ParameterError(f"stage {self.name} of a feature: {name}={value!r} cannot be spelt")
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
            raise ParameterError(f"{text!r:.100} in a feature is not of the form NAME(OPTION=VALUE,...)")
        return cls(match["name"], tuple((name.strip(), _read(value.strip())) for name, _, value in pairs))

    @property
    def model(self) -> str | None:
        """The file of the stage's model, if it has one."""
        return next((str(value) for name, value in self.options if name == "model"), None)

    def make(self, index: PositionalIndex) -> Any:
        """The stage; `StageScore.bind` lists the errors."""
        options: dict[str, Any] = dict(self.options)
        try:
            if self.name in MODELS:
                options["model"] = self._load(options.pop("member", None))
            stage = _public(STAGES[self.name])
            _check_types(stage, options)
            return stage(index=index, **options)
        except (ParameterError, TypeError) as error:
            raise ParameterError(f"feature stage:{self}: {error}") from None

    def _load(self, member: Option | None) -> Any:
        if self.model is None:
            raise ParameterError(f"stage {self.name} needs a model=FILE")
        model = _public(MODELS[self.name]).load(self.model)
        if member is None:
            return model
        members = getattr(model, "members", ())
        if member not in range(1, len(members) + 1):
            raise ParameterError(f"{self.model} has {len(members)} members, and no member {member}")
        return members[int(member) - 1]


@dataclass(frozen=True)
class StageScore(Evidence):
    """The document's score by a stage, or a pipeline of stages, that reranks the same ranking.

    It is spelt ``stage:NAME(OPTION=VALUE,...)``, and with several stages ``stage:rm3>>manifold(alpha=0.8)``.

    Documents beyond a stage's depth have no value. A last stage that picks documents greedily (``mmr``, ``coverage``,
    ``essential-pages``, ``svmdiv``) gives each document the marginal gain that it was picked with.

    Parameters
    ----------
    steps : tuple of StageStep
        At least one.

    Examples
    --------
    >>> str(StageScore.parse("stage:rm3 >> manifold(graph=knn,alpha=.8)"))
    'stage:rm3>>manifold(alpha=0.8,graph=knn)'
    """

    steps: tuple[StageStep, ...]

    def __str__(self) -> str:
        return f"stage:{'>>'.join(map(str, self.steps))}"

    @classmethod
    def parse(cls, text: str) -> StageScore:
        """Parse ``stage:STAGE`` or ``stage:STAGE>>STAGE...``; the inverse of ``str``."""
        return cls(tuple(map(StageStep.parse, text.removeprefix("stage:").split(">>"))))

    @property
    def models(self) -> list[str]:
        """The files of the stages' models."""
        return [step.model for step in self.steps if step.model is not None]

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Make the stages; features with the same first stages share them.

        Raises
        ------
        ParameterError
            If a stage lacks one of the options, needs another, or a value is outside its domain.
        ModelError
            If the file of a model is not such a model, or the model is of another collection.
        """
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


def _public(name: str) -> Any:
    module, _, own = name.partition(":")
    return getattr(import_module(module), own)


def _check_types(stage: type, options: Mapping[str, Any]) -> None:
    """Check the numbers among the options of a stage, which is a dataclass."""
    types = {field.name: field.type for field in fields(stage)}
    for name, value in options.items():
        for kind, allowed, what in (("int", int, "an integer"), ("float", int | float, "a number")):
            if types.get(name) == kind and (isinstance(value, bool) or not isinstance(value, allowed)):
                raise ParameterError(f"{name} is {value!r}: it must be {what}")


def _spell(value: Option) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read(text: str) -> Option:
    if text in ("true", "false"):
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _unchanged(ranking: Ranking) -> Ranking:
    return ranking
