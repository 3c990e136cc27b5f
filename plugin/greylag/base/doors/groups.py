"""Groups come in here: of documents, such as sites, of topics, such as categories, and of runs, such as teams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from greylag.base.core.hints import shown
from greylag.base.core.labels import Series, as_identifier, by_label, has_labels, is_missing
from greylag.base.errors import ParameterError

GroupsLike: TypeAlias = Mapping[Any, Any] | Series
"""Names of groups, strings or whole numbers, by identifier, in a mapping or a Series. None, "", and values that pandas
marks as missing are no group.
"""


def as_groups(value: GroupsLike, what: str) -> Mapping[str, str]:
    """Return the names of groups by identifier, in their order; what has no group is left out.

    What a group is, such as "category", is said where a name is wrong.
    """
    if not has_labels(value):
        raise ParameterError(f"{what} names are {shown(value)}: pass them by identifier, in a mapping or a Series")
    names = by_label(value, what)
    if isinstance(names, dict) and all(type(name) is str and name for name in names.values()):
        return names
    return {key: name for key, given in names.items() if (name := group_name(given, f"the {what} of {key!r}"))}


def group_name(value: Any, what: str) -> str | None:
    """Return the name of a group; None if there is none."""
    return None if is_missing(value) else as_identifier(value, what) or None
