"""Feature specifications: the 3-tuples of Metzler (2007), their spelling, and the candidate pool."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, NamedTuple, cast, get_args

from greylag.errors import ParameterError
from greylag.features.derived import PREFIX, Product, plain_features, rebuild, split_factors
from greylag.features.feature import Feature, Supplied
from greylag.features.normalisation import Normalisation, Normalised, split_method
from greylag.features.prior import Prior
from greylag.features.ranked import ReciprocalRank, RunScore, Score
from greylag.features.similarity import VectorCosine
from greylag.features.stages import StageScore, StageStep
from greylag.features.weighting import WEIGHTINGS
from greylag.hints import shown

Dependence = Literal["FI", "SD", "FD"]
CliqueSet = Literal["term", "ordered", "unordered", "expansion"]
Order = Literal["O", "U"]
Pool = Literal["sd", "fd", "full"]

SINGLE_TERM_SETS = ("term", "expansion")
UNLIMITED = 0
FUNCTIONS = tuple(WEIGHTINGS)

_WINDOW = re.compile(r"(?P<order>[OU])-(?P<width>[1-9][0-9]{0,5}|unlimited)")


class Window(NamedTuple):
    """A proximity constraint on the terms of a clique.

    Parameters
    ----------
    order : "O" or "U"
        "O" is Indri's ``#M``: the terms in the clique's order, each at most `width` tokens after the previous one.
        "U" is ``#uw``: the terms in any order, within ``width * |clique|`` tokens, or within `width` tokens if
        `FeatureParameters.profile` is "inquery".
    width : int
        In tokens, from 1 to 999,999, or `UNLIMITED` for anywhere in the document.
    """

    order: Order
    width: int

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
        documents, each weighted by its probability (see `greylag.features.expansion`).
    weighting : str
        "LM" or "BM25". Clique sets of several terms need a window after it: "-O-M" for ``#M``, or "-U-N" for
        ``#uw``, where N is a number or "unlimited" (see `Window`).

    Raises
    ------
    ParameterError
        If a part is unknown, or the parts do not go together.

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
            (self.dependence, get_args(Dependence), "dependence model"),
            (self.cliques, get_args(CliqueSet), "clique set"),
        ):
            if value not in known:
                raise ParameterError(f"unknown {what} {value!r} in feature {self}: use one of {', '.join(known)}")
        function, dash, window = self.weighting.partition("-")
        if function not in FUNCTIONS or (dash and Window.parse(window) is None):
            raise ParameterError(
                f"unknown weighting {self.weighting!r} in feature {self}: use {' or '.join(FUNCTIONS)}, followed by a "
                "window of up to 999999 tokens for cliques of several terms, as in LM-O-4, BM25-U-8 or LM-U-unlimited"
            )
        single = self.cliques in SINGLE_TERM_SETS
        if single == bool(dash):
            rule = "takes no window" if single else "needs a window, as in LM-O-1"
            raise ParameterError(f"feature {self}: the clique set {self.cliques!r} {rule}")
        if self.dependence == "FI" and not single:
            raise ParameterError(f"feature {self}: under FI no two query terms form a clique; use SD or FD")
        if self.dependence != "FI" and self.expands:
            raise ParameterError(f"feature {self}: expansion terms are independent of each other; use FI")

    def __str__(self) -> str:
        return f"{self.dependence}/{self.cliques}/{self.weighting}"

    @classmethod
    def parse(cls, text: str) -> FeatureSpec:
        """Parse ``dependence/cliques/weighting``; the inverse of ``str``."""
        parts = text.strip().split("/")
        if len(parts) != 3:
            raise ParameterError(
                f"feature {text!r} is not of the form dependence/cliques/weighting (SD/ordered/LM-O-4)"
            )
        return cls(cast(Dependence, parts[0]), cast(CliqueSet, parts[1]), parts[2])

    @property
    def function(self) -> str:
        """The name of the weighting function, "LM" or "BM25"."""
        return self.weighting.partition("-")[0]

    @property
    def window(self) -> Window:
        """The window that cliques are matched in; `SINGLE_TERM` for cliques of one term."""
        return Window.parse(self.weighting.partition("-")[2]) or SINGLE_TERM

    @property
    def expands(self) -> bool:
        """Whether the cliques are expansion terms, so that values depend on the ranking as well as the document."""
        return self.cliques == "expansion"

    @property
    def uses_ranking(self) -> bool:  # type: ignore[override]
        """The same as `expands`."""
        return self.expands


KINDS: Mapping[str, Callable[[str], Feature]] = {
    "score": lambda text: Score(),
    "reciprocal-rank": lambda text: ReciprocalRank(),
    "prior:": Prior.parse,
    "run:": RunScore.parse,
    "stage:": StageScore.parse,
    "vectors:": VectorCosine.parse,
    "python:": Supplied.parse,
    PREFIX: lambda text: Product(tuple(map(parse_feature, split_factors(text)))),
}
"""The kinds of features other than `FeatureSpec`: a name or, with a colon, the beginning of a spelling."""


def parse_feature(text: str) -> Feature:
    """Parse a feature of any kind; the inverse of ``str``.

    ``dependence/cliques/weighting``, ``prior:FILE``, ``score``, ``reciprocal-rank``, ``run:FILE``, ``stage:NAME(...)``,
    ``vectors:(documents=FILE,queries=FILE)``, ``python:NAME`` or ``product:(FEATURE*FEATURE)``, followed by
    ``@minmax``, ``@z`` or ``@rank`` if it is normalised.

    Raises
    ------
    ParameterError
        If it has none of these forms, or a part is unknown.
    """
    base, method = split_method(text.strip())
    if method is not None:
        return Normalised(parse_feature(base), cast(Normalisation, method))
    kind = base[: base.find(":") + 1] or base
    return KINDS.get(kind, FeatureSpec.parse)(base)


def parse_features(text: str) -> tuple[Feature, ...]:
    """Parse comma-separated features; raises `ParameterError` if one is given twice."""
    outside_parentheses = re.split(r",(?![^()]*\))", text)
    return unique_features([parse_feature(part) for part in outside_parentheses])


def unique_features(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """Return `features` as a tuple; raises `ParameterError` if it is empty or has a duplicate or anything else."""
    if not features:
        raise ParameterError("no features are given")
    for feature in features:
        if not isinstance(feature, Feature):
            how = "read texts with parse_features('FI/term/LM,SD/ordered/LM-O-4')"
            raise ParameterError(f"{shown(feature)} is not a feature: {how}")
    if len(set(features)) < len(features):
        twice = next(feature for feature in features if list(features).count(feature) > 1)
        raise ParameterError(f"feature {twice} is given twice")
    return tuple(features)


def feature_files(features: Iterable[Feature]) -> list[str]:
    """The names of the files that features are read from."""
    bases = [base for feature in features for base in plain_features(feature)]
    return [
        *(base.file for base in bases if isinstance(base, Prior | RunScore)),
        *(model for base in bases if isinstance(base, StageScore) for model in base.models),
        *(file for base in bases if isinstance(base, VectorCosine) for file in (base.documents, base.queries)),
    ]


def place_files(feature: Feature, place: Callable[[str], str]) -> Feature:
    """The feature with ``place(file)`` in place of the name of the file that it is read from, if any."""

    def placed(plain: Feature) -> Feature:
        if isinstance(plain, Prior | RunScore):
            return replace(plain, file=place(plain.file))
        if isinstance(plain, VectorCosine):
            return VectorCosine(place(plain.documents), place(plain.queries))
        if isinstance(plain, StageScore):
            return StageScore(tuple(_placed(step, place) for step in plain.steps))
        return plain

    return rebuild(feature, placed)


def _placed(step: StageStep, place: Callable[[str], str]) -> StageStep:
    if step.model is None:
        return step
    return replace(step, options=tuple({**dict(step.options), "model": place(step.model)}.items()))


EXPANSION = tuple(FeatureSpec("FI", "expansion", function) for function in FUNCTIONS)
"""The expansion features, one for each weighting."""


def candidate_pool(dependences: Pool | Iterable[Literal["SD", "FD"]] = "full") -> tuple[FeatureSpec, ...]:
    """The candidate features of Metzler (2007, section 5): every combination of weighting, clique set and window.

    {LM, BM25} x {term under FI; O-1, 2, 4, 8, 16, 32; U-1, 2, 4, 8, 16, 32, unlimited}.

    Parameters
    ----------
    dependences : "sd", "fd", "full" or iterable of "SD" and "FD", default "full"
        Dependence models of the clique sets of several terms; "full" is both. One gives 28 features, both give 54.

    Raises
    ------
    ParameterError
        If there is no pool of this name.
    """
    if isinstance(dependences, str):
        return named_pool(dependences)
    windows = [(cliques, window) for cliques, windows in POOL_WINDOWS.items() for window in windows]
    return (
        *(FeatureSpec("FI", "term", function) for function in FUNCTIONS),
        *(
            FeatureSpec(dependence, cliques, f"{function}-{window}")
            for dependence, function, (cliques, window) in product(dependences, FUNCTIONS, windows)
        ),
    )


def named_pool(name: Pool) -> tuple[FeatureSpec, ...]:
    """The candidate pool under sequential dependence ("sd"), full dependence ("fd") or both ("full")."""
    pools: dict[str, tuple[Literal["SD", "FD"], ...]] = {"sd": ("SD",), "fd": ("FD",), "full": ("SD", "FD")}
    if name not in pools:
        raise ParameterError(f"unknown pool {name!r}: use {', '.join(pools)}")
    return candidate_pool(pools[name])
