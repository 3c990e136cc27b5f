"""The registry: what installed packages name as entry points, such as stages, features, learners and studies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from greylag.base.core.spelling import nearest
from greylag.base.errors import ParameterError

GROUPS = {
    "stage": "greylag.stages",
    "feature": "greylag.features",
    "fusion rule": "greylag.fusions",
    "learner": "greylag.learners",
    "diversity learner": "greylag.diversity_learners",
    "study": "greylag.studies",
}
"""The groups of entry points, by what errors call their members."""

packages_in_use: set[str] = set()
"""The packages whose entry points were imported."""


@cache
def _installed() -> Any:  # `SelectableGroups` up to Python 3.11, then `EntryPoints`
    """Return the entry points of all packages: their metadata are read once, and not for each kind."""
    return entry_points()


@cache
def registered(kind: str) -> Mapping[str, EntryPoint]:
    """Return the entry points of a kind of `GROUPS` by name; each is imported when it is first used."""
    return {
        entry.name: entry for entry in sorted(_installed().select(group=GROUPS[kind]), key=lambda entry: entry.name)
    }


def names_of_others() -> set[str]:
    """Return the names that other packages register, which may equal the name of a published method."""
    entries = [entry for kind in GROUPS for entry in registered(kind).values()]
    return {entry.name for entry in entries if entry.module.partition(".")[0] not in ("greylag", "greylag_papers")}


def unknown(kind: str, name: str) -> ParameterError:
    """Return the error of a name that is not registered."""
    known = registered(kind) or ["(none: install greylag, whose metadata names them)"]
    return ParameterError(f"unknown {kind} {name!r:.60}: {nearest(name, known)}")


def load_entry(kind: str, name: str) -> Any:
    """Import what a name is registered for; `ParameterError` if it is unknown, ambiguous or cannot be imported."""
    if name not in registered(kind):
        raise unknown(kind, name)
    # Several packages may claim a name, and which comes first depends on the order of folders on the path.
    values = {entry.value for entry in _installed().select(group=GROUPS[kind], name=name)}
    if len(values) > 1:
        packages = ", ".join(sorted(values))
        raise ParameterError(f"{kind} {name} is registered several times, as {packages}: uninstall all but one")
    return import_entry(kind, registered(kind)[name])


def import_entry(kind: str, entry: EntryPoint) -> Any:
    """Import an entry point; an error of its package becomes `ParameterError`."""
    try:
        value = entry.load()
        packages_in_use.add(entry.module.partition(".")[0])
        return value
    except Exception as error:  # whatever the code of another package raises
        raise ParameterError(f"{kind} {entry.name} cannot be imported: {error}") from error
