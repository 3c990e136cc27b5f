"""YAML, read strictly and written so that it is read back: experiment files, and the metadata of runs.

Scalars are those of YAML 1.2: 010 is ten; ``no``, 1:30 and dates are texts. Values are those of JSON: no aliases, which
can make a short text endless, no tags that make something else, and keys that are text, each once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from greylag.base.errors import FormatError
from greylag.base.runtime.files import read_bytes

MAX_BYTES = 1 << 20
"""The largest text, in bytes."""
# The core schema of YAML 1.2.2, section 10.3.2, with the first characters of each kind; other scalars are text.
_SCALARS = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    "float": (
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
}


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (as yaml has it)

    def compose_node(self, parent: Any, index: Any) -> Any:
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or event.tag:
            raise _refusal("aliases and tags are not supported; write the value itself", event)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if not key.tag.endswith(":str"):
                raise _refusal(f"key {key.value!r:.60} is not text; put it in quotes", key)
            if key.value in seen:
                raise _refusal(f"duplicate key {key.value!r:.60}; keep one of them", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep)


class _Dumper(yaml.SafeDumper):
    """Puts texts in quotes that programs of YAML 1.1 or 1.2 would read as something else."""

    yaml_implicit_resolvers = {  # noqa: RUF012 (as yaml has it)
        first: list(resolvers) for first, resolvers in yaml.SafeDumper.yaml_implicit_resolvers.items()
    }


for _kind, (_pattern, _first) in _SCALARS.items():
    for _class in (_Loader, _Dumper):
        _class.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", re.compile(f"(?:{_pattern})\\Z"), _first)
_Loader.add_constructor(  # not PyYAML's, by which 010 is eight
    "tag:yaml.org,2002:int", lambda _, node: int(node.value, 0 if node.value.startswith(("0o", "0x")) else 10)
)
_Loader.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(re.sub(r"\.(?=[in])", "", node.value.lower())))


def _refusal(reason: str, mark: Any) -> yaml.MarkedYAMLError:
    return yaml.MarkedYAMLError(problem=reason, problem_mark=mark.start_mark)


def parse_yaml(text: bytes, path: str | Path = "the text") -> Any:
    """Parse the text of the file `path` as values of JSON; `FormatError` if it is none, or has too many bytes."""
    try:
        if len(text) > MAX_BYTES:
            raise ValueError(f"{len(text)} bytes are more than {MAX_BYTES}")
        content = yaml.load(text.decode("utf-8-sig"), _Loader)
        json.dumps(content)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise FormatError(path, mark.line + 1 if mark else None, f"not YAML: {reason}") from None
    except RecursionError:
        raise FormatError(path, None, "it is nested too deeply") from None
    except ValueError as error:  # not UTF-8, or a number of 5,000 digits
        raise FormatError(path, None, f"cannot be read: {error}") from None
    return content


def write_yaml(content: Mapping[str, Any]) -> str:
    """Format YAML that is read back, each text on one line."""
    # PyYAML leaves Unicode's line breaks as they are, unless all of Unicode is escaped.
    options: dict[str, Any] = {"sort_keys": False, "width": 10**6, "default_flow_style": False, "Dumper": _Dumper}
    text: str = yaml.dump(content, allow_unicode=True, **options)
    return text if {"\x85", "\u2028", "\u2029"}.isdisjoint(text) else str(yaml.dump(content, **options))


def read_yaml(path: str | Path, what: str = "an experiment file") -> dict[str, Any]:
    """Read the fields of an experiment file or the like, unchecked; all values are those of JSON."""
    content = parse_yaml(read_bytes(path), path)
    if not isinstance(content, dict):
        raise FormatError(path, None, f"{what} is a mapping of field names to values")
    return content
