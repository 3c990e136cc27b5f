"""The spellings of features: a table of their kinds, and the functions that read them."""

from __future__ import annotations

import re
from typing import cast

from greylag.features.column import Column
from greylag.features.evidence import (
    DocumentStatistic,
    LatentCosine,
    Prior,
    ReciprocalRank,
    RunScore,
    Score,
    VectorCosine,
)
from greylag.features.feature import Feature, Normalisation, Normalised, PythonFeature, split_method, unique_features
from greylag.features.spec import FeatureSpec
from greylag.features.stages import StageScore
from greylag.features.written import WrittenForm


def _name(spelling: str) -> str:
    """The name that a spelling begins with, with its colon if it has one."""
    return spelling[: spelling.find(":") + 1] or spelling


KINDS: dict[str, type[Feature]] = {
    _name(kind.form): kind
    for kind in (
        Score,
        ReciprocalRank,
        DocumentStatistic,
        Prior,
        RunScore,
        VectorCosine,
        WrittenForm,
        LatentCosine,
        StageScore,
        PythonFeature,
        Column,
    )
}
"""The kinds of features, by the name that their spelling begins with; every other spelling is a `FeatureSpec`."""


def parse_feature(text: str) -> Feature:
    """Parse a feature of any kind; the inverse of ``str``.

    ``dependence/cliques/weighting``, ``document:NAME``, ``written:UNIT``, ``latent``, ``prior:FILE``, ``score``,
    ``reciprocal-rank``, ``run:FILE``, ``stage:NAME(...)``, ``vectors:(documents=FILE,queries=FILE)`` or
    ``python:NAME``, followed by ``@minmax``, ``@z`` or ``@rank`` if it is normalised. ``column:NAME``, or its number
    alone, is never normalised, since the name may end so.
    """
    if text.strip().isdecimal() or text.startswith("column:"):
        return Column(text.strip().removeprefix("column:"))
    base, method = split_method(text.strip())
    if method is not None:
        return Normalised(parse_feature(base), cast(Normalisation, method))
    return KINDS.get(_name(base), FeatureSpec).parse(base)


def parse_features(text: str) -> tuple[Feature, ...]:
    """Parse comma-separated features; raises `ParameterError` if one is given twice."""
    outside_parentheses = re.split(r",(?![^()]*\))", text)
    return unique_features([parse_feature(part) for part in outside_parentheses])
