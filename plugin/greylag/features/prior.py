"""Priors: query-independent document features, read from a file."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np

from greylag.errors import FormatError, ParameterError
from greylag.features.feature import Feature
from greylag.features.normalisation import split_method
from greylag.ranking import FloatArray
from greylag.runtime.files import Faults, parse_number, read_rows

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

_SPELLING = re.compile(
    r"prior:(?P<file>.+?)(?::(?P<scale>raw|log))?(?::(?P<default>[-+]?\d*\.?\d+(?:e[-+]?\d+)?))?", re.ASCII
)


@dataclass(frozen=True, order=True)
class Prior(Feature):
    """A query-independent feature of a document, such as PageRank, a spam score or an age.

    In the Markov random field it is a function of the clique that consists of the document alone. It is spelt
    ``prior:FILE``, optionally followed by ``:log`` and a default: ``prior:pagerank.tsv:log:1e-6``.

    Parameters
    ----------
    file : str
        A file with a docid and a number in each line. Documents outside the index are ignored.
    scale : "raw" or "log", default "raw"
        Whether to take the value itself or its natural logarithm.
    default : float, optional
        The value, before the logarithm, of documents that the file lacks. By default, the least value in the file.

    Raises
    ------
    ParameterError
        If the default is not finite, or not positive for a logarithm.
    """

    uses_ranking: ClassVar[bool] = False

    file: str
    scale: Literal["raw", "log"] = "raw"
    default: float | None = None

    def __post_init__(self) -> None:
        if self.default is not None and not self._fits(self.default):
            raise ParameterError(f"feature {self}: the default must be {self._domain}")

    def __str__(self) -> str:
        ambiguous = split_method(self.file)[1] is not None  # a file whose name ends like a normalisation
        scale = ":log" if self.scale == "log" else ":raw" if ambiguous else ""
        return f"prior:{self.file}{scale}" + ("" if self.default is None else f":{self.default!r}")

    @classmethod
    def parse(cls, text: str) -> Prior:
        """Parse ``prior:FILE[:raw|:log][:DEFAULT]``; the inverse of ``str``."""
        match = _SPELLING.fullmatch(text)
        if match is None:
            raise ParameterError(f"feature {text!r} is not of the form prior:FILE[:log][:DEFAULT]")
        default = None if match["default"] is None else float(match["default"])
        return cls(match["file"], cast(Literal["raw", "log"], match["scale"] or "raw"), default)

    def values(self, index: PositionalIndex) -> FloatArray:
        """The feature of every document of the index, shape (N,).

        Raises
        ------
        FormatError
            If the file cannot be read, a value is not a finite number (or not positive, for a logarithm), a document
            is listed twice, or no document is in the index.
        """
        by_docid = self._read()
        numbers = index.documents(list(by_docid))
        if (numbers < 0).all():
            first = next(iter(by_docid))
            raise FormatError(
                self.file, None, f"none of its documents is in the index ({first!r} first); check the ids"
            )
        read = np.array(list(by_docid.values()))
        values = np.full(index.n_documents, read.min() if self.default is None else self.default)
        values[numbers[numbers >= 0]] = read[numbers >= 0]
        return np.log(values) if self.scale == "log" else values

    def _read(self) -> dict[str, float]:
        values: dict[str, float] = {}
        with Faults(self.file, lenient=None) as faults:
            for line, (docid, text) in read_rows(self.file, "docid value", faults):
                name = docid.decode()
                value = parse_number(text)
                if not self._fits(value):
                    raise FormatError(self.file, line, f"value {text.decode()!r} must be {self._domain}")
                if name in values:
                    raise FormatError(self.file, line, f"duplicate document {name!r}; keep one of its lines")
                values[name] = value
        return values

    def _fits(self, value: float) -> bool:
        return math.isfinite(value) and (self.scale == "raw" or value > 0)

    @property
    def _domain(self) -> str:
        return "a finite number" if self.scale == "raw" else "a finite number above 0 for its logarithm"
