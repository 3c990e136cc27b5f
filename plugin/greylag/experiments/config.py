"""Experiment files: YAML, checked field by field.

Every file names its study, whose module adds its own fields to `Experiment`. A path in a file is relative to the
``data`` folder, which the environment variable GREYLAG_DATA overrides. A path that begins with a dot
(``../qrels/mine.txt``) is relative to the file's own folder.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from greylag.errors import FormatError
from greylag.evaluation import parse_measure
from greylag.ltr.objectives import Objective

T = TypeVar("T", bound="Experiment")


def readable_by(parse: Callable[[str], object]) -> AfterValidator:
    """A check for text fields: `parse` must accept the text."""

    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


Positive = Annotated[int, Field(ge=1)]
Folds = Annotated[int, Field(ge=2)]
MeasureName = Annotated[str, readable_by(parse_measure)]
ObjectiveName = Annotated[str, readable_by(Objective.parse)]


class Settings(BaseModel):
    """A part of an experiment file: frozen; unknown fields are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Experiment(Settings):
    """The fields of every experiment file.

    Parameters
    ----------
    name : str
        The experiment's name, which is also the name of its folder in ``runs``.
    study : str, default "pipeline"
        A key of `greylag.experiments.study.STUDIES`.
    data : str, default "."
        The folder that paths are relative to, itself relative to the file.
    expected : mapping of system to measure to float, default {}
        The scores that ``greylag experiment --check`` verifies.
    """

    name: str
    study: str = "pipeline"
    data: str = "."
    expected: Mapping[str, Mapping[str, float]] = {}
    data_folder: Path = Field(default=Path(), exclude=True)
    own_folder: Path = Field(default=Path(), exclude=True)

    def path(self, name: str) -> Path:
        """The location of a file that the experiment names."""
        return Path(os.path.normpath((self.own_folder if name.startswith(".") else self.data_folder) / name))

    def paths(self) -> Iterator[Path]:
        """What the text fields would be as paths. Most of them name no file."""
        return map(self.path, _texts(self.model_dump(mode="json", exclude={"name", "study", "data", "expected"})))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(part)


def read_yaml(path: str | Path) -> dict[str, Any]:
    """The fields of an experiment file, unchecked.

    Raises
    ------
    FormatError
        If the file is missing, is not YAML or does not hold a mapping.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FormatError(path, None, "no such experiment file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(path, None, f"cannot be read: {error}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        raise FormatError(path, line, f"not YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(content, dict):
        raise FormatError(path, None, "an experiment file is a mapping of field names to values")
    return content


def check_fields(path: str | Path, fields: Mapping[str, Any], form: type[T]) -> T:
    """The fields of the file `path` as a study's settings.

    Raises
    ------
    FormatError
        If a field is unknown, missing or out of its domain. Only the first such field is reported.
    """
    try:
        settings = form(**fields)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        reason = f"{message[:1].lower()}{message[1:]} (got {first['input']!r:.60})"
        raise FormatError(path, None, f"{place}: {reason}") from None
    own = Path(path).parent
    data = os.environ.get("GREYLAG_DATA") if settings.data != "." else None
    return settings.model_copy(update={"data_folder": Path(data or own / settings.data), "own_folder": own})


def file_stamps(path: Path) -> list[tuple[str, int, int]]:
    """The relative path, size and modification time of the file `path`, or of every file in the folder `path`."""
    files = sorted(below for below in path.rglob("*") if below.is_file()) if path.is_dir() else [path]
    states = [(str(file.relative_to(path)), file.stat()) for file in files]
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states]
