"""Experiment files: YAML, checked field by field.

Every file names its study, whose module adds its own fields to `Experiment`. A path in a file is relative to the
``data`` folder, which the environment variable GREYLAG_DATA overrides. A path that begins with a dot
(``../qrels/mine.txt``) is relative to the file's own folder.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_args

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from greylag.base import FormatError, Names, ParameterError, nearest, record_files
from greylag.evaluation import parse_measure
from greylag.learning import Objective

MAX_NAME = 200
"""The longest name of a file in an output folder, in UTF-8 bytes, without its suffix."""
T = TypeVar("T", bound="Experiment")


def readable_by(parse: Callable[[str], object]) -> AfterValidator:
    """Make a check for text fields: `parse` must accept the text."""

    def check(text: str) -> str:
        parse(text)
        return text

    return AfterValidator(check)


def check_file_name(name: str) -> str:
    """Check the name, if it can be the name of a file or folder inside another."""
    odd = any(c in "/\\" or not c.isprintable() for c in name)
    if odd or name.startswith(".") or not 1 <= len(name.encode(errors="replace")) <= MAX_NAME:
        raise ParameterError(
            f"{name!r:.60} cannot name a file: use 1 to {MAX_NAME} bytes without slashes and control characters, "
            "not starting with a dot"
        )
    return name


FileName = Annotated[str, AfterValidator(check_file_name)]
InputFile = Annotated[str, Names(lambda text: (text,))]
"""A file or folder that a study reads: see `Experiment.path`."""
Positive = Annotated[int, Field(ge=1, lt=1 << 31)]
Folds = Annotated[int, Field(ge=2, lt=1 << 31)]
Seed = Annotated[int, Field(ge=0, lt=1 << 32)]
MeasureName = Annotated[str, readable_by(parse_measure)]
ObjectiveName = Annotated[str, readable_by(Objective.parse)]


class Settings(BaseModel):
    """A part of an experiment file: frozen; unknown fields and numbers that are not finite are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Experiment(Settings):
    """The fields of every experiment file."""

    name: FileName
    """The experiment's name, which is also the name of its folder in ``runs``. See `check_file_name`."""
    study: str = "pipeline"
    """The name of a registered study."""
    data: str = "."
    """The folder that paths are relative to, itself relative to the file."""
    expected: Mapping[str, Mapping[str, float]] = {}
    """The scores that ``greylag experiment --check`` verifies."""
    # the folders of the data and of the file, which `check_fields` sets; no fields of the file
    data_folder: Path = Field(default=Path(), exclude=True)
    file_folder: Path = Field(default=Path(), exclude=True)

    def path(self, name: str) -> Path:
        """Return the location of a file that the experiment names."""
        return Path(os.path.normpath((self.file_folder if name.startswith(".") else self.data_folder) / name))

    def paths(self) -> Iterator[Path]:
        """Yield the files and folders that the fields name, by their types."""
        yield from map(self.path, record_files(self, "data_folder", "file_folder"))


def check_fields(path: str | Path, fields: Mapping[str, Any], form: type[T]) -> T:
    """Check the fields of the file `path` as a study's settings."""
    try:
        # From JSON, as strict validation of Python values would refuse lists for tuples.
        settings = form.model_validate_json(json.dumps(fields), strict=True)
    except ValidationError as error:
        raise FormatError(path, None, ": ".join(filter(None, fault(form, error)))) from None
    for name in fields.keys() & form.model_fields.keys() - file_fields(form).keys():  # data_folder and file_folder
        raise FormatError(path, None, f"{name}: {_unknown_field(form, (name,))}")
    folder = Path(path).parent
    # GREYLAG_DATA replaces a folder that the file names; a file without one has its data beside it.
    data = os.environ.get("GREYLAG_DATA") if settings.data != "." else None
    return settings.model_copy(update={"data_folder": Path(data or folder / settings.data), "file_folder": folder})


PLAIN = {
    "string_type": "it must be text",
    "too_short": "there must be at least {min_length}, and there are {actual_length}",
}
"""Messages for faults of pydantic, by type."""


def fault(form: type[BaseModel], error: ValidationError) -> tuple[str, str]:
    """Return the place of the first fault, "" if it is of several fields, which the reason names; and the reason."""
    # One fault at a time: later ones may follow from the first.
    first = error.errors()[0]
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        return "", message
    place = ".".join(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        return place, _unknown_field(form, first["loc"])
    plain = PLAIN.get(first["type"], f"{message[:1].lower()}{message[1:]}").format(**first.get("ctx", {}))
    return place, f"{plain} (got {first['input']!r:.60})"


def part_of(field: FieldInfo) -> type[BaseModel] | None:
    """Return the settings that a field holds, or None."""
    kinds = [field.annotation, *get_args(field.annotation)]
    return next((kind for kind in kinds if isinstance(kind, type) and issubclass(kind, BaseModel)), None)


def file_fields(form: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a form that files have."""
    return {name: field for name, field in form.model_fields.items() if not field.exclude}


def _unknown_field(form: type[BaseModel], location: tuple[int | str, ...]) -> str:
    """Return the fault at a location of pydantic: the names of fields and, in sequences, positions."""
    for name in location[:-1]:
        if isinstance(name, str) and name in form.model_fields:
            form = part_of(form.model_fields[name]) or form
    return f"unknown field: {nearest(str(location[-1]), file_fields(form))}"


def shipped_files() -> dict[str, Path]:
    """List the experiment files by name, without ``.yaml``, in alphabetical order."""
    folders = [Path(str(files("greylag") / name)).resolve() for name in ("demo", "configs")]
    return dict(sorted((path.stem, path) for folder in folders for path in folder.glob("*.yaml")))


def shipped_file(name: str) -> Path:
    """Find an experiment file that comes with greylag."""
    known, stem = shipped_files(), name.removesuffix(".yaml")
    if stem not in known:
        raise ParameterError(
            f"{name!r:.60} cannot be read: there is no such file, and none of that name comes with greylag: "
            f"{nearest(stem, known)}"
        )
    return known[stem]
