"""Experiment files: YAML, checked field by field.

Every file names its study; the study's module, in `greylag.experiments`, holds the fields that it adds to `Experiment`.
A path in a file is below its ``data`` folder, which the environment's GREYLAG_DATA overrides, or, where it begins with
a dot (``../qrels/mine.txt``), below the file's own folder.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from greylag.errors import FormatError

T = TypeVar("T", bound="Experiment")
Positive = Annotated[int, Field(ge=1)]


class Settings(BaseModel):
    """A part of an experiment file: frozen, and without room for unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Experiment(Settings):
    """What every experiment file has.

    Parameters
    ----------
    name : the experiment's name, and its folder's below ``runs``.
    study : which study it is; see `greylag.experiments.study`.
    data : the folder that its paths are relative to, itself relative to the file.
    expected : the scores that it is expected to give, by system and measure.
    """

    name: str
    study: str = "pipeline"
    data: str = "."
    expected: Mapping[str, Mapping[str, float]] = {}
    data_folder: Path = Field(default=Path(), exclude=True)
    own_folder: Path = Field(default=Path(), exclude=True)

    def path(self, name: str) -> Path:
        """Where a file is that the experiment names."""
        return Path(os.path.normpath((self.own_folder if name.startswith(".") else self.data_folder) / name))


def read_yaml(path: str | Path) -> dict[str, Any]:
    """An experiment file's fields, unchecked.

    Raises
    ------
    FormatError
        Where the file is missing, not YAML or not a mapping.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(path, None, "no such experiment file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise FormatError(
            path, mark.line + 1 if mark else None, f"not YAML: {getattr(error, 'problem', error)}"
        ) from None
    if not isinstance(content, dict):
        raise FormatError(path, None, "an experiment file is a mapping of names to values, with at least a name")
    return content


def check_fields(path: str | Path, fields: Mapping[str, Any], form: type[T]) -> T:
    """The fields of the file `path` as a study's settings.

    Raises
    ------
    FormatError
        Where a field is unknown, missing or out of its domain: the first such field.
    """
    try:
        settings = form(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise FormatError(path, None, f"{place}: {first['msg'].lower()} (got {first['input']!r:.60})") from None
    own = Path(path).parent
    data = os.environ.get("GREYLAG_DATA") if settings.data != "." else None
    return settings.model_copy(update={"data_folder": Path(data or own / settings.data), "own_folder": own})
