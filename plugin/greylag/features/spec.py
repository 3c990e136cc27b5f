"""Feature specifications: the 3-tuples of Metzler (2007), priors, their spelling, and the pool to select from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, NamedTuple, cast

from greylag.errors import ParameterError
from greylag.features.prior import Prior

Dependence = Literal["FI", "SD", "FD"]
CliqueSet = Literal["term", "ordered", "unordered", "expansion"]

DEPENDENCES: tuple[Dependence, ...] = ("FI", "SD", "FD")
CLIQUE_SETS: tuple[CliqueSet, ...] = ("term", "ordered", "unordered", "expansion")
SINGLE_TERMS = ("term", "expansion")
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
        "unordered", all sub-sets of two or more that are; "expansion", the terms of a relevance model of the ranking's
        first documents, each weighted by its probability (`greylag.features.expansion`).
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
        single = self.cliques in SINGLE_TERMS
        if single != (match["order"] is None):
            rule = "takes no window" if single else "needs a window, as in LM-O-1"
            raise ParameterError(f"feature {self}: the clique set {self.cliques!r} {rule}")
        if self.dependence == "FI" and not single:
            raise ParameterError(f"feature {self}: under FI no two query terms form a clique; use SD or FD")
        if self.dependence != "FI" and self.cliques == "expansion":
            raise ParameterError(f"feature {self}: the terms of an expansion are independent of each other; use FI")

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


Feature = FeatureSpec | Prior


def parse_feature(text: str) -> Feature:
    """The feature of a spelling, ``dependence/cliques/weighting`` or ``prior:FILE``; the inverse of ``str``."""
    text = text.strip()
    return Prior.parse(text) if text.startswith("prior:") else FeatureSpec.parse(text)


def parse_features(text: str) -> tuple[Feature, ...]:
    """Comma-separated features; an error names one that stands twice."""
    return unique_features([parse_feature(part) for part in text.split(",")])


def unique_features(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """`features` as a tuple; ParameterError where there are none or one stands twice."""
    if not features:
        raise ParameterError("no features are given")
    if len(set(features)) < len(features):
        twice = next(feature for feature in features if list(features).count(feature) > 1)
        raise ParameterError(f"feature {twice} is given twice")
    return tuple(features)


EXPANSION = tuple(FeatureSpec("FI", "expansion", function) for function in FUNCTIONS)


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
