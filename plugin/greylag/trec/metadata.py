"""ir_metadata (ir-metadata.org, Breuer et al. 2022): how a run was made, as YAML in comments at its head."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from itertools import chain, takewhile
from pathlib import Path
from typing import Any

import yaml

from greylag.runtime.files import Faults, is_file, read_text_blocks

START, END = "ir_metadata.start", "ir_metadata.end"
SCHEMA_VERSION = 0.1
_log = logging.getLogger("greylag")


def metadata_header(tag: str, metadata: Mapping[str, Any] | None) -> str:
    """The comments at the head of a run with this tag; none without metadata."""
    if metadata is None:
        return ""
    content = {"schema-version": SCHEMA_VERSION, "run-version": 1.0, **metadata, "tag": tag}
    text = dump(content, width=10**6)
    return "".join(f"# {line}\n" for line in (START, *text.removesuffix("\n").split("\n"), END))


def dump(content: Mapping[str, Any], width: int) -> str:
    """YAML that is read back; PyYAML leaves line breaks of Unicode as they are, unless all of Unicode is escaped."""
    text = yaml.safe_dump(content, sort_keys=False, width=width, allow_unicode=True)
    if {"\x85", "\u2028", "\u2029"}.isdisjoint(text):
        return text
    return yaml.safe_dump(content, sort_keys=False, width=width)


def read_metadata(path: str | Path) -> dict[str, Any]:
    """The metadata at the head of a run; {} if there is none, it is not YAML, or the file cannot be read twice."""
    if not is_file(path):
        return {}
    with Faults(path, lenient=True) as faults:
        lines = chain.from_iterable(map(io.BytesIO, read_text_blocks(path, faults)))
        head = [line.decode().strip("\r\n") for line in takewhile(lambda line: line.startswith(b"#"), lines)]
    texts = [line[2:] if line.startswith("# ") else line[1:] for line in head]
    if START not in texts or END not in texts:
        return {}
    try:
        content = yaml.safe_load("\n".join(texts[texts.index(START) + 1 : texts.index(END)]))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        _log.warning("%s: its ir_metadata is not YAML and is ignored (%s)", path, str(error).partition("\n")[0])
        return {}
    return content if isinstance(content, dict) else {}
