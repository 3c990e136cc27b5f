"""ir_metadata (ir-metadata.org, Breuer et al. 2022): how a run was made, as YAML in comments at its head."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Mapping
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

from greylag.runtime.files import Faults, is_file, read_text_blocks

START, END = "ir_metadata.start", "ir_metadata.end"
SCHEMA_VERSION = 0.1
_log = logging.getLogger("greylag")


def metadata_header(tag: str, metadata: Mapping[str, Any] | None) -> str:
    """Write the comments at the head of a run with this tag; none without metadata."""
    if metadata is None:
        return ""
    from greylag.runtime.yaml_text import write_yaml  # few runs have metadata

    content = {"schema-version": SCHEMA_VERSION, "run-version": 1.0, **metadata, "tag": tag}
    text = write_yaml(content, width=10**6)
    return "".join(f"# {line}\n" for line in (START, *text.removesuffix("\n").split("\n"), END))


def read_metadata(path: str | Path) -> dict[str, Any]:
    """Read the metadata at the head of a run, all of whose values are those of JSON; {} if there is none."""
    # A file that cannot be read twice has none, nor, with a warning, one that `parse_yaml` refuses. Names in ``actor``
    # and in the steps of ``method: retrieval`` are text; fields of another form are left out with a warning, so that
    # nobody else needs to check a stranger's metadata.
    if not is_file(path):
        return {}
    with Faults(path, lenient=True) as faults:
        lines = chain.from_iterable(map(io.BytesIO, read_text_blocks(path, faults)))
        head = [line.decode().strip("\r\n") for line in takewhile(lambda line: line.startswith(b"#"), lines)]
    texts = [line[2:] if line.startswith("# ") else line[1:] for line in head]
    if START not in texts or END not in texts:
        return {}
    from greylag.runtime.yaml_text import NotYAMLError, parse_yaml

    try:
        content = parse_yaml("\n".join(texts[texts.index(START) + 1 : texts.index(END)]).encode())
    except NotYAMLError as error:
        _log.warning("%s: its ir_metadata is ignored (%s)", path, error)
        return {}
    if not isinstance(content, dict):
        return {}
    checked = {**content, **{name: check(content[name]) for name, check in _LAYOUT.items() if name in content}}
    if odd := [name for name in _LAYOUT if checked.get(name) is None and name in checked]:
        _log.warning("%s: its ir_metadata has %s, which ir-metadata.org does not define and is left out", path, odd[0])
    return {name: value for name, value in checked.items() if name not in odd}


def _names(value: Any) -> Any:
    """Return a mapping whose team and name, if it has them, are text; None if it is something else."""
    if not isinstance(value, dict):
        return None
    read = {key: _text(value[key]) for key in ("team", "name") if key in value}
    return None if None in read.values() else {**value, **read}


def _method(value: Any) -> Any:
    """Return a mapping whose retrieval, if it has one, is a list of steps with names; None if it is something else."""
    if not isinstance(value, dict) or "retrieval" not in value:
        return value if isinstance(value, dict) else None
    steps = value["retrieval"]
    read = [_names(step) for step in steps] if isinstance(steps, list) else [None]
    return None if None in read else {**value, "retrieval": read}


def _text(value: Any) -> str | None:
    """Return a name, a number as one, or several names joined; None if it is something else."""
    if isinstance(value, list) and value:
        names = [_text(part) if not isinstance(part, list) else None for part in value]
        return None if None in names else ", ".join(map(str, names))
    return str(value) if isinstance(value, str | int | float) else None


_LAYOUT: dict[str, Callable[[Any], Any]] = {"actor": _names, "method": _method}
"""The fields of metadata that are read again, with functions that check them, or return None."""
