"""The exceptions a caller may want to catch.

    GreylagError
    ├── FormatError       a file is not in its format: ``path:line: reason``
    ├── ParameterError    an argument is outside its domain
    ├── CollectionError   an index or a collection cannot serve what is asked of it
    ├── ModelError        a model does not fit the data, or its file is unusable
    └── DependencyError   Java, Pyserini or an optional package is missing

The command line turns each of them into one line and exit code 2.
"""

from __future__ import annotations

from pathlib import Path


class GreylagError(Exception):
    """Base of every error that greylag raises on purpose."""


class FormatError(GreylagError, ValueError):
    """A file that is not in its format.

    Parameters
    ----------
    path : the file.
    line : the line, from 1, or None where the fault is not in one line.
    reason : what is wrong, the value, and what to do about it.
    """

    def __init__(self, path: str | Path, line: int | None, reason: str) -> None:
        self.path, self.line, self.reason = Path(path), line, reason
        place = str(path) if line is None else f"{path}:{line}"
        super().__init__(f"{place}: {reason}")

    def __reduce__(self) -> tuple[type[FormatError], tuple[Path, int | None, str]]:
        return type(self), (self.path, self.line, self.reason)


class ParameterError(GreylagError, ValueError):
    """An argument outside its domain."""


class CollectionError(GreylagError):
    """An index or a collection that cannot serve what is asked of it."""


class ModelError(GreylagError):
    """A model that does not fit the data or index, or whose file is unusable."""


class DependencyError(GreylagError):
    """Something that has to be installed; the message gives the command."""
