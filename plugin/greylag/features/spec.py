"""Feature specifications: the 3-tuples of Metzler (2007), their spelling, and the pool that selection chooses from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple, cast

from greylag.errors import ParameterError

Dependence = Literal["FI", "SD", "FD"]
CliqueSet = Literal["term", "ordered", "unordered"]

DEPENDENCES: tuple[Dependence, ...] = ("FI", "SD", "FD")
CLIQUE_SETS: tuple[CliqueSet, ...] = ("term", "ordered", "unordered")
FUNCTIONS = ("LM", "BM25")
ORDERED_WIDTHS = (1, 2, 4, 8, 16, 32)
UNLIMITED = 0
UNORDERED_WIDTHS = (1, 2, 4, 8, 16, 32, UNLIMITED)

_WEIGHTING = re.compile(r"(?P<function>[A-Z0-9]+)(?:-(?P<order>[OU])-(?P<width>[1-9]\d*|unlimited))?")


class Window(NamedTuple):
    """How a clique's terms have to stand in a document.

    ``order`` "O": in the clique's order, each at most `width` after the one before. "U": in any order, within
    `width` x |clique| tokens; `UNLIMITED`: anywhere in the document.
    """

    order: Literal["O", "U"]
    width: int


SINGLE_TERM = Window("O", 1)


@dataclass(frozen=True, order=True)
class FeatureSpec:
    """A feature as a 3-tuple: dependence model, clique set, weighting (Metzler 2007, section 3).

    Parameters
    ----------
    dependence : "FI" (full independence: no edges between query terms), "SD" (sequential: adjacent query terms) or "FD"
        (full: all pairs).
    cliques : "term"; "ordered", contiguous sub-sequences of two or more query terms that are cliques of the graph;
        "unordered", all sub-sets of two or more that are.
    weighting : "LM" or "BM25", and for a clique set of several terms the window: "-O-M" for #M or "-U-N" for #uw(N x
        |clique|), N a number or "unlimited".

    Examples
    --------
    >>> str(FeatureSpec("SD", "ordered", "LM-O-4"))
    'SD/ordered/LM-O-4'
    >>> FeatureSpec.parse("FI/term/BM25").function
    'BM25'
    """

    dependence: Dependence
    cliques: CliqueSet
    weighting: str

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.dependence, DEPENDENCES, "dependence model"),
            (self.cliques, CLIQUE_SETS, "clique set"),
        ):
            if value not in known:
                raise ParameterError(f"unknown {what} {value!r} in feature {self}: use one of {', '.join(known)}")
        match = _WEIGHTING.fullmatch(self.weighting)
        if not match or match["function"] not in FUNCTIONS:
            raise ParameterError(
                f"unknown weighting {self.weighting!r} in feature {self}: use LM or BM25, for cliques of several terms "
                "followed by a window, as in LM-O-4, BM25-U-8 or LM-U-unlimited"
            )
        if (self.cliques == "term") != (match["order"] is None):
            rule = "takes no window" if self.cliques == "term" else "needs a window, as in LM-O-1"
            raise ParameterError(f"feature {self}: the clique set {self.cliques!r} {rule}")
        if self.dependence == "FI" and self.cliques != "term":
            raise ParameterError(f"feature {self}: under FI no two query terms form a clique; use SD or FD")

    def __str__(self) -> str:
        return f"{self.dependence}/{self.cliques}/{self.weighting}"

    @classmethod
    def parse(cls, text: str) -> FeatureSpec:
        """The feature spelt ``dependence/cliques/weighting``; the inverse of ``str``."""
        parts = text.strip().split("/")
        if len(parts) != 3:
            raise ParameterError(
                f"feature {text!r} is not of the form dependence/cliques/weighting (SD/ordered/LM-O-4)"
            )
        return cls(cast(Dependence, parts[0]), cast(CliqueSet, parts[1]), parts[2])

    @property
    def function(self) -> str:
        """The weighting function's name, "LM" or "BM25"."""
        return self.weighting.partition("-")[0]

    @property
    def window(self) -> Window:
        """How the clique's terms are matched; a single term is matched as it stands."""
        _, _, rest = self.weighting.partition("-")
        if not rest:
            return SINGLE_TERM
        order, width = rest.split("-")
        return Window(cast(Literal["O", "U"], order), UNLIMITED if width == "unlimited" else int(width))


def parse_features(text: str) -> tuple[FeatureSpec, ...]:
    """Comma-separated specifications; an error names one that stands twice."""
    return unique_features([FeatureSpec.parse(part) for part in text.split(",")])


def unique_features(specs: Sequence[FeatureSpec]) -> tuple[FeatureSpec, ...]:
    """`specs` as a tuple; ParameterError where there are none or one stands twice."""
    if not specs:
        raise ParameterError("no features are given")
    if len(set(specs)) < len(specs):
        raise ParameterError(f"feature {next(spec for spec in specs if list(specs).count(spec) > 1)} is given twice")
    return tuple(specs)


def candidate_pool(dependences: Iterable[Literal["SD", "FD"]] = ("SD", "FD")) -> tuple[FeatureSpec, ...]:
    """The candidate features (Metzler 2007, section 4): every function, clique set and window under `dependences`.

    {LM, BM25} x {term under FI; O-1, 2, 4, 8, 16, 32; U-1, 2, 4, 8, 16, 32, unlimited}.
    """
    windows = [("ordered", f"O-{width}") for width in ORDERED_WIDTHS]
    windows += [("unordered", f"U-{width or 'unlimited'}") for width in UNORDERED_WIDTHS]
    terms = [FeatureSpec("FI", "term", function) for function in FUNCTIONS]
    return (
        *terms,
        *(
            FeatureSpec(dependence, cast(CliqueSet, cliques), f"{function}-{window}")
            for dependence, function, (cliques, window) in product(dependences, FUNCTIONS, windows)
        ),
    )


def named_pool(name: str) -> tuple[FeatureSpec, ...]:
    """The candidate pool under "sd", "fd" or, "full", both."""
    pools: dict[str, tuple[Literal["SD", "FD"], ...]] = {"sd": ("SD",), "fd": ("FD",), "full": ("SD", "FD")}
    if name not in pools:
        raise ParameterError(f"unknown pool {name!r}: use sd, fd or full")
    return candidate_pool(pools[name])
