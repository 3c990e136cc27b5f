"""The metadata of a run (ir_metadata): greylag's fields, and the user's."""

from __future__ import annotations

import os
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from greylag.base import FormatError, nearest, read_yaml, versions

METADATA_FIELDS = (
    "schema-version", "run-version", "tag", "platform", "research goal", "implementation", "method", "actor", "data",
)  # fmt: skip


def read_given(path: Path) -> dict[str, Any]:
    """Read the fields of a user's file of metadata; fields besides those of ir_metadata may be added."""
    fields = read_yaml(path, "a file of metadata")
    for name in fields.keys() - set(METADATA_FIELDS):
        if get_close_matches(name, METADATA_FIELDS):  # a slip, and no field of the user's own
            raise FormatError(path, None, f"unknown field {name!r}: {nearest(name, METADATA_FIELDS)}")
    return fields


def run_metadata(steps: Sequence[Mapping[str, Any]], given: Mapping[str, Any]) -> dict[str, Any]:
    """Make the metadata of a run but its tag, from its steps of retrieval; the user's fields override greylag's."""
    # ``platform: {hardware: auto}`` in `given` requests the hardware.
    given = dict(given)
    if isinstance(wanted := given.get("platform"), dict) and wanted.get("hardware") == "auto":
        cpu = {"architecture": platform.machine(), "number of cores": os.cpu_count()}
        given["platform"] = {**wanted, "hardware": {"cpu": cpu}}
    numbers = versions()
    libraries = [f"{name.lower()}=={number}" for name, number in numbers.items()]
    toolkit = [f"{name}=={numbers[name]}" for name in ("greylag", "pyserini") if name in numbers]
    content: dict[str, Any] = {
        "platform": {
            "operating system": {"kernel": f"{platform.system()} {platform.release()}"},
            "software": {"libraries": {"python": libraries}, "retrieval toolkit": toolkit},
        },
        "implementation": {
            "executable": {"cmd": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])},
            "source": {"lang": ["python"]},
        },
        "method": {"automatic": True, "score ties": "order of the step before", "retrieval": [*steps]},
    }
    # The user's fields last: they know their system better than greylag.
    merged = _merged(content, given)
    # In the order of ir_metadata, then the user's own fields.
    return {name: merged[name] for name in (*METADATA_FIELDS, *merged) if name in merged}


def _merged(ours: Any, theirs: Any) -> Any:
    """Merge two values: mappings field by field, others are replaced."""
    if not (isinstance(ours, dict) and isinstance(theirs, Mapping)):
        return theirs
    return {**ours, **{name: _merged(ours.get(name), value) for name, value in theirs.items()}}
