"""References for methods, as BibTeX, for `greylag explain`, LaTeX tables and the page on citing.

``references.bib`` has an entry a paper. Its keywords are the names by which files and options call the method.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_ENTRY = re.compile(r"@(\w+)\{(\w+),\n(.*?)^\}$", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^  (\w+) = \{(.*)\},$", re.MULTILINE)


@dataclass(frozen=True)
class Reference:
    """A paper, with the names of its methods and its BibTeX in one line."""

    key: str
    names: tuple[str, ...]
    bibtex: str


@cache
def references() -> tuple[Reference, ...]:
    """Return all references, in the file's order."""
    entries = []
    for kind, key, body in _ENTRY.findall((files("greylag") / "references.bib").read_text(encoding="utf-8")):
        fields = dict(_FIELD.findall(body))
        names = tuple(fields.pop("keywords").split(", "))
        line = ", ".join([key, *(f"{name} = {{{value}}}" for name, value in fields.items())])
        entries.append(Reference(key, names, f"@{kind}{{{line}}}"))
    return tuple(entries)


def cite(text: str, without: Collection[str] = ()) -> list[str]:
    """Return a line of BibTeX for each method that a text names; names `without` a method are left out."""
    return [
        reference.bibtex
        for reference in references()
        if any(
            # Not within a word or after a hyphen: alpha-nDCG is no nDCG, but nDCG@10 is.
            re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text)
            for name in reference.names
            if name not in without
        )
    ]
