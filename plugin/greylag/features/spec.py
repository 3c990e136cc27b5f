"""The features of Metzler (2007), 3-tuples of dependence model, clique set and weighting, and the candidate pool."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import ClassVar, Literal, NamedTuple, cast, get_args

from greylag.base import ParameterError
from greylag.features.feature import Feature
from greylag.features.weighting import WEIGHTINGS, Profile

Dependence = Literal["FI", "SD", "FD"]
CliqueSet = Literal["term", "ordered", "unordered", "expansion"]
Order = Literal["O", "U", "F"]
Pool = Literal["sd", "fd", "full"]

NO_WINDOW = ""
ORDERS: Mapping[CliqueSet, tuple[str, ...]] = {
    "term": (NO_WINDOW, "F"),
    "ordered": ("O", "U"),
    "unordered": ("O", "U"),
    "expansion": (NO_WINDOW,),
}
"""The orders of the windows that each clique set takes."""

UNLIMITED = 0
FUNCTIONS = "LM", "BM25"  # of the paper

_WINDOW = re.compile(r"(?P<order>[OUF])-(?P<width>[1-9][0-9]{0,5}|(?<!F-)unlimited)")


class Window(NamedTuple):
    """A proximity constraint on the terms of a clique."""

    # "O" is Indri's ``#M``: the terms in the clique's order, each at most `width` tokens after the previous one. "U" is
    # ``#uw``: in any order, within ``width * |clique|`` tokens, or `width` if `FeatureParameters.profile` is "inquery".
    # "F", of single terms, is the document's first `width` positions.
    order: Order
    width: int  # in tokens, from 1 to 999,999, or `UNLIMITED` for anywhere in the document

    def __str__(self) -> str:
        return f"{self.order}-{self.width or 'unlimited'}"

    @classmethod
    def parse(cls, text: str) -> Window | None:
        """Parse ``O-4`` or ``U-unlimited``, the inverse of ``str``; None if `text` is neither."""
        match = _WINDOW.fullmatch(text)
        if match is None:
            return None
        return cls(cast(Order, match["order"]), UNLIMITED if match["width"] == "unlimited" else int(match["width"]))


SINGLE_TERM = Window("O", 1)

POOL_WINDOWS: dict[CliqueSet, tuple[Window, ...]] = {
    "ordered": tuple(Window("O", width) for width in (1, 2, 4, 8, 16, 32)),
    "unordered": tuple(Window("U", width) for width in (1, 2, 4, 8, 16, 32, UNLIMITED)),
}
"""The windows of the candidate pool, by the clique set that they match (Metzler 2007, section 5)."""


@dataclass(frozen=True, order=True)
class FeatureSpec(Feature):
    """A feature as a 3-tuple of dependence model, clique set and weighting (Metzler 2007, section 3).

    Parameters
    ----------
    dependence : "FI", "SD" or "FD"
        Full independence (no edges between query terms), sequential dependence (edges between adjacent query terms) or
        full dependence (edges between all pairs).
    cliques : "term", "ordered", "unordered" or "expansion"
        "term": the query terms. "ordered": contiguous sub-sequences of two or more query terms that are cliques of the
        graph. "unordered": all subsets of two or more that are. "expansion": the terms of a relevance model of the top
        documents, each weighted by its probability (see `greylag.features.cliques`).
    weighting : str
        "LM", "BM25" or "early" (see `greylag.features.weighting`). Clique sets of several terms need a window after it:
        "-O-M" for ``#M``, or "-U-N" for ``#uw``, where N is a number or "unlimited" (see `Window`). "term" may have
        "-F-N": the document's first N positions are taken for the document. tf counts occurrences there, and |D| is
        min(|D|, N); df, cf and |C| remain those of whole documents.

    Examples
    --------
    >>> str(FeatureSpec("SD", "ordered", "LM-O-4"))
    'SD/ordered/LM-O-4'
    >>> FeatureSpec.parse("FI/term/BM25").function
    'BM25'
    """

    form: ClassVar[str] = "{dependence}/{cliques}/{weighting}"

    dependence: Dependence
    cliques: CliqueSet
    weighting: str

    def __post_init__(self) -> None:
        for value, known, what in (
            (self.dependence, get_args(Dependence), "dependence model"),
            (self.cliques, get_args(CliqueSet), "clique set"),
        ):
            if value not in known:
                raise ParameterError(f"unknown {what} {value!r} in feature {self}: use one of {', '.join(known)}")
        function, dash, text = self.weighting.partition("-")
        window = Window.parse(text)
        if function not in WEIGHTINGS or (dash and window is None):
            raise ParameterError(
                f"unknown weighting {self.weighting!r} in feature {self}: use {', '.join(WEIGHTINGS)}, followed by a "
                "window of up to 999999 tokens for cliques of several terms, as in LM-O-4, BM25-U-8 or LM-U-unlimited"
            )
        if (window.order if window else NO_WINDOW) not in ORDERS[self.cliques]:
            rules = {"term": "takes no window but the first words, as in BM25-F-10", "expansion": "takes no window"}
            rule = rules.get(self.cliques, "needs a window, as in LM-O-1")
            raise ParameterError(f"feature {self}: the clique set {self.cliques!r} {rule}")
        if self.expands and self.positional:
            raise ParameterError(f"feature {self}: where expansion terms stand is not looked at; use LM or BM25")
        if self.dependence == "FI" and NO_WINDOW not in ORDERS[self.cliques]:
            raise ParameterError(f"feature {self}: under FI no two query terms form a clique; use SD or FD")
        if self.dependence != "FI" and self.expands:
            raise ParameterError(f"feature {self}: expansion terms are independent of each other; use FI")

    @property
    def function(self) -> str:
        """The name of the weighting function, such as "LM"."""
        return self.weighting.partition("-")[0]

    @property
    def window(self) -> Window:
        """The window that cliques are matched in; `SINGLE_TERM` for cliques of one term in the whole document."""
        return Window.parse(self.weighting.partition("-")[2]) or SINGLE_TERM

    @property
    def lead(self) -> int | None:
        """The number of positions that are taken for the document; None for all."""
        return self.window.width if self.window.order == "F" else None

    @property
    def positional(self) -> bool:
        """Whether the weighting is by the position of the first match."""
        return WEIGHTINGS[self.function].positional

    @property
    def expands(self) -> bool:
        """Whether the cliques are expansion terms, so that values depend on the ranking as well as the document."""
        return self.cliques == "expansion"

    @property
    def uses_ranking(self) -> bool:  # type: ignore[override]
        """The same as `expands`."""
        return self.expands


POOLS: Mapping[Pool, tuple[Dependence, ...]] = {"sd": ("SD",), "fd": ("FD",), "full": ("SD", "FD")}
"""The dependence models of clique sets of several terms, by the name of the candidate pool."""

EXPANSION = tuple(FeatureSpec("FI", "expansion", function) for function in FUNCTIONS)
"""The expansion features, one for each weighting."""


def candidate_pool(name: Pool = "full", profile: Profile = "indri") -> tuple[FeatureSpec, ...]:
    """List the candidate features of Metzler (2007, section 5): all combinations of weighting, clique set and window.

    {LM, BM25} x {term under FI; O-1, 2, 4, 8, 16, 32; U-1, 2, 4, 8, 16, 32, unlimited}. Clique sets of several terms
    are of sequential dependence ("sd"), full dependence ("fd") or both ("full"): 28, 28 or 54 features.

    By the profile "inquery", U-1 is left out: two terms never fit into one token. It is one of the trivial features
    that the paper removes, although by LM its values differ: those of a clique without matches fall with the document's
    length.
    """
    if name not in POOLS:
        raise ParameterError(f"unknown pool {name!r}: use {', '.join(POOLS)}")
    windows = [
        (cliques, window)
        for cliques, windows in POOL_WINDOWS.items()
        for window in windows
        if (profile, window) != ("inquery", Window("U", 1))
    ]
    return (
        *(FeatureSpec("FI", "term", function) for function in FUNCTIONS),
        *(
            FeatureSpec(dependence, cliques, f"{function}-{window}")
            for dependence, function, (cliques, window) in product(POOLS[name], FUNCTIONS, windows)
        ),
    )
