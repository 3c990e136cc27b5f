"""Experiment files to start from, made from a study's settings and their docstrings."""

from __future__ import annotations

import inspect
import json
import textwrap
from collections.abc import Collection, Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from greylag.runtime.yaml_text import write_yaml
from greylag.studies.config import Experiment, file_fields, part_of

PLACEHOLDERS = {
    "topics": "topics.tsv",
    "qrels": "qrels.txt",
    "subtopic_qrels": "qrels.subtopics.txt",
    "pipeline": "./pipeline.yaml",
}
"""Values of required fields, by name; others are made from the field's type. Optional fields may have examples."""
LINE_WIDTH = 100


def template(study: str, form: type[Experiment]) -> str:
    """Write a commented experiment file for a study; required fields have values to be replaced."""
    # All other fields are commented out, with their defaults, so that the file without its comments is short.
    head = [*_comment(summary(form)), "# Fields that are commented out show their defaults.", ""]
    name = f"my-{study.replace('_', '-')}"
    lines = [*head, f"name: {name}", f"study: {study}", *_fields(form, {"name", "study", "expected"})]
    if form.shared is not None:
        required = {field for field, kind in file_fields(form.shared).items() if kind.is_required()}
        lines += ["", "# Shared by all:", *_fields(form.shared, required | form.model_fields.keys())]
    return "\n".join(lines) + "\n"


def description(field: FieldInfo) -> str:
    """Describe the meaning of a field, and its possible words; for a section, the section."""
    if part := part_of(field):
        return summary(part)
    words = ", ".join(_words(field.annotation))
    return (field.description or "") + (f" One of {words}." if words else "")


def _words(kind: Any) -> Iterator[str]:
    for argument in get_args(kind):
        if get_origin(kind) is Literal:
            yield str(argument)
        else:
            yield from _words(argument)


def summary(form: type[BaseModel]) -> str:
    """Return the first paragraph of the docstring of a form."""
    return inspect.cleandoc(form.__doc__ or "").split("\n\n")[0]


def _fields(
    form: type[BaseModel], left_out: Collection[str] = (), *, plain: bool = False, given: object = None
) -> Iterator[str]:
    """Yield the lines of a form's fields, the required ones first; the others are commented out unless `plain`."""
    # Defaults are those of `given`, the form that a field has by default, or else those of the form.
    for name, field in sorted(file_fields(form).items(), key=lambda item: not item[1].is_required()):
        if name not in left_out:
            yield ""
            yield from _comment(description(field))
            optional = not (field.is_required() or field.examples or plain)
            default = getattr(given, name, None) if given else field.get_default(call_default_factory=True)
            if field.examples and default is None:
                default = field.examples[0]
            for line in _field(name, field, default, plain=plain or optional):
                yield f"#{line}" if optional else line


def _field(name: str, field: FieldInfo, default: Any, *, plain: bool) -> Iterator[str]:
    part = part_of(field)
    if part is None:
        value = _placeholder(name, field) if field.is_required() else default
        line = f"{name}: {_yaml(value)}"
        if len(line) <= LINE_WIDTH or not isinstance(value, dict):
            yield line
        else:
            yield f"{name}:"
            yield from (f"  {line}" for line in write_yaml(value, width=LINE_WIDTH).splitlines())
        return
    yield f"{name}:"
    lines = [line for line in _fields(part, plain=plain, given=default if isinstance(default, part) else None) if line]
    if get_origin(field.annotation) is not dict:
        yield from (f"  {line}" for line in lines)
        return
    # As many parts as the mapping must have, such as two collections.
    least = max((getattr(rule, "min_length", 1) for rule in field.metadata), default=1)
    for number in range(1, least + 1):
        yield from (f"  {part.__name__.lower()}-{number}:", *(f"    {line}" for line in lines))


def _placeholder(name: str, field: FieldInfo) -> Any:
    kind = str(field.annotation)
    if field.examples:
        return field.examples[0]
    if name in PLACEHOLDERS:
        return PLACEHOLDERS[name]
    if "tuple" in kind:
        return [1.0] if "float" in kind else ["1"]
    return 1 if field.annotation is int else "CHANGE-ME"


def _yaml(value: Any) -> str:
    jsonable = json.loads(json.dumps(value))
    text = write_yaml(jsonable, width=10**6, in_line=True)
    return text.removesuffix("\n").removesuffix("\n...")


def _comment(text: str) -> list[str]:
    return [f"# {line}" for line in textwrap.wrap(text.replace("`", ""), LINE_WIDTH - 6)]
