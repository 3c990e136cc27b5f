"""The exceptions that greylag raises.

    GreylagError
    ├── FormatError       a file is malformed or cannot be read: ``path:line: reason``
    ├── ParameterError    an argument is outside its domain
    ├── CollectionError   an index or a collection is unusable
    ├── ModelError        a model does not fit the data, or its file is unusable
    └── DependencyError   Java, Pyserini or an optional package is missing

The command line prints any of them as one line and exits with code 2.
"""

from __future__ import annotations

import re
from pathlib import Path

_GAP = re.compile(r"[\s\x00-\x1f\x7f-\x9f\u2028\u2029]++")
_BREAK = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LONG_WORD = re.compile(r"[^\s/]{320,}")  # longer than the name of a file can be


def one_line(text: str) -> str:
    """Return the text on one line: line breaks and control characters become spaces, and very long words are cut."""
    return _LONG_WORD.sub(
        lambda word: f"{word[0][:60]}...", _GAP.sub(lambda gap: " " if _BREAK.search(gap[0]) else gap[0], text).strip()
    )


class GreylagError(Exception):
    """Base class of the errors that greylag raises deliberately. A message is one line.

    Parameters
    ----------
    message : str
    """

    def __init__(self, message: str) -> None:
        super().__init__(one_line(message))


class FormatError(GreylagError, ValueError):
    """A file is malformed or cannot be read.

    Parameters
    ----------
    path : str or Path
        The file.
    line : int or None
        The line, from 1, or None if the fault is not in a single line.
    reason : str
        The fault, with the value, and the remedy.
    """

    def __init__(self, path: str | Path, line: int | None, reason: str) -> None:
        self.path, self.line, self.reason = Path(path), line, reason
        place = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {reason}")

    def __reduce__(self) -> tuple[type[FormatError], tuple[Path, int | None, str]]:
        return type(self), (self.path, self.line, self.reason)


class ParameterError(GreylagError, ValueError):
    """An argument is outside its domain."""


class CollectionError(GreylagError):
    """An index or a collection is unusable for the requested operation."""


class ModelError(GreylagError):
    """A model does not fit the data or the index, or its file is unusable."""


class DependencyError(GreylagError):
    """A program or package is missing; the message has the command that installs it."""
