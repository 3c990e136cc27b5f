"""Experiment files to start from, and their JSON Schema: both made from a study's settings and their docstrings."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Collection, Iterator
from typing import Any

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from greylag.experiments.config import Experiment, part_of

PLACEHOLDERS = {
    "docs": "docs.jsonl",
    "topics": "topics.tsv",
    "qrels": "qrels.txt",
    "subtopic_qrels": "qrels.subtopics.txt",
    "pipeline": "./pipeline.yaml",
}
"""Values of required fields, by name; others are made from the field's type."""
WIDTH = 100
_LEFT_OUT = {"study", "expected", "data_folder", "own_folder"}
_ENTRY = re.compile(r"^(?P<names>\w+(?:, \w+)*) : (?P<type>.*)$")


def template(study: str, form: type[Experiment]) -> str:
    """A commented experiment file for a study.

    Required fields have values to be replaced. All others are commented out, with their defaults, so that the file
    without its comments is short.

    Parameters
    ----------
    study : str
        The study's name.
    form : type
        Its settings.
    """
    head = [*_comment(_summary(form)), "# Fields that are commented out show their defaults.", ""]
    name = f"my-{study.replace('_', '-')}"
    return "\n".join([*head, f"name: {name}", f"study: {study}", *_fields(form, {"name", *_LEFT_OUT})]) + "\n"


def schema(study: str, form: type[Experiment]) -> dict[str, Any]:
    """The JSON Schema of a study's experiment files, with the descriptions of all fields, for editors and validators.

    Parameters
    ----------
    study, form
        As for `template`.
    """
    content = form.model_json_schema()
    _describe(content, form)
    for part in _parts(form):
        _describe(content["$defs"][part.__name__], part)
    for hidden in ("data_folder", "own_folder"):
        content["properties"].pop(hidden, None)
    content["properties"]["study"] = {"const": study, "description": "The study."}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **content}


def descriptions(form: type[BaseModel]) -> dict[str, str]:
    """Type and description of each field, from the docstrings of the settings and the classes that they extend."""
    found: dict[str, str] = {}
    for cls in reversed(form.__mro__):
        section = inspect.cleandoc(cls.__doc__ or "").partition("Parameters\n----------\n")[2]
        names: list[str] = []
        for line in section.splitlines():
            if entry := _ENTRY.match(line):
                names = entry["names"].split(", ")
                found |= dict.fromkeys(names, f"{entry['type']}.")
            elif re.match(r"^\w+(, \w+)*$", line):
                names = line.split(", ")
                found |= dict.fromkeys(names, "")
            elif line.startswith("    "):
                found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
            elif line.strip():
                break
    return found


def _describe(content: dict[str, Any], form: type[BaseModel]) -> None:
    content["description"] = _summary(form)
    for name, text in descriptions(form).items():
        if name in content.get("properties", {}):
            content["properties"][name]["description"] = text


def _summary(form: type[BaseModel]) -> str:
    return inspect.cleandoc(form.__doc__ or "").split("\n\n")[0]


def _fields(form: type[BaseModel], left_out: Collection[str] = (), *, plain: bool = False) -> Iterator[str]:
    """The lines of a form's fields, the required ones first; the others are commented out unless `plain`."""
    texts = descriptions(form)
    for name, field in sorted(form.model_fields.items(), key=lambda item: not item[1].is_required()):
        if name not in left_out:
            yield ""
            part = part_of(field)
            yield from _comment(_summary(part) if part else texts.get(name, ""))
            optional = not field.is_required() and not plain
            for line in _field(name, field, plain=plain or optional):
                yield f"#{line}" if optional else line


def _field(name: str, field: FieldInfo, *, plain: bool) -> Iterator[str]:
    part = part_of(field)
    if part is None:
        value = _placeholder(name, field) if field.is_required() else field.get_default(call_default_factory=True)
        yield f"{name}: {_yaml(value)}"
        return
    yield f"{name}:"
    for line in _fields(part, plain=plain):
        if line:
            yield f"  {line}"


def _parts(form: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for field in form.model_fields.values():
        if part := part_of(field):
            yield part
            yield from _parts(part)


def _placeholder(name: str, field: FieldInfo) -> Any:
    kind = str(field.annotation)
    if name in PLACEHOLDERS:
        return PLACEHOLDERS[name]
    if "tuple" in kind:
        return [1.0] if "float" in kind else ["1"]
    return 1 if field.annotation is int else "CHANGE-ME"


def _yaml(value: Any) -> str:
    jsonable = json.loads(json.dumps(value))
    text: str = yaml.safe_dump(jsonable, default_flow_style=True, width=10**6, allow_unicode=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text.replace("`", ""), WIDTH)]
