"""Options of features, for the commands that extract or learn: the others load no features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from greylag.features import FEATURE_FILES, Feature, Pool, parse_features

Features = Annotated[
    list[str] | None,
    typer.Option(
        "--features",
        help="Comma-separated features, besides those of a --pool: SD/ordered/LM-O-4,score@z,run:FILE,prior:FILE.",
    ),
    FEATURE_FILES,
]
PoolOption = Annotated[
    Pool | None,
    typer.Option(
        "--pool", help="Pool of features to add: those of sequential dependence, of full dependence, or both."
    ),
]


def named_features(texts: Sequence[str] | None) -> tuple[Feature, ...]:
    """Parse the features of ``--features``; none without the option."""
    return () if texts is None else parse_features(",".join(texts))
