"""The spellings of features, whose kinds are entry points of the group ``greylag.features``."""

from __future__ import annotations

import re
from dataclasses import is_dataclass
from functools import cache
from typing import Any, cast

from greylag.base import GreylagError, ParameterError, load_entry, nearest, registered, shown
from greylag.features.column import Column
from greylag.features.feature import Feature, Normalisation, Normalised, split_method, unique_features
from greylag.features.spec import FUNCTIONS, FeatureSpec


def _leading_name(spelling: str) -> str:
    """Return the name that a spelling begins with, with its colon if it has one."""
    return spelling[: spelling.find(":") + 1] or spelling


@cache
def find_feature(name: str) -> type[Feature]:
    """Find the class of a registered kind of features; `ParameterError` if it cannot be imported or is none."""
    kind: Any = load_entry("feature", name)
    if not (isinstance(kind, type) and issubclass(kind, Feature) and is_dataclass(kind)):
        raise ParameterError(f"feature {name} is {shown(kind)}, not a dataclass that extends greylag.features.Feature")
    if _leading_name(kind.form).removesuffix(":") != name:
        raise ParameterError(f"feature {name} is spelt {kind.form}: it must begin with the name that is registered")
    return kind


def _kind(text: str) -> type[Feature]:
    """Return the kind of features that a spelling begins with; `FeatureSpec` if it is not registered."""
    name = _leading_name(text)
    known = name.removesuffix(":") in registered("feature")
    if not known and "/" not in text.partition(":")[0]:
        word, kinds = name.removesuffix(":"), registered("feature")
        how = f"did you mean FI/term/{text}?" if text in FUNCTIONS else nearest(word, kinds)
        how = "columns of a file are 1,2, 1-10 or column:NAME;" if text[:1].isdigit() else how
        meant = "" if how.startswith("use ") else f"{how} "
        every = f"the kinds are DEPENDENCE/CLIQUES/WEIGHTING, {', '.join(kinds)}"
        raise ParameterError(f"unknown feature {text!r:.100}: {meant}{every}")
    kind = find_feature(name.removesuffix(":")) if known else FeatureSpec
    if known and _leading_name(kind.form) != name and "/" not in text:  # without what it needs, or with too much
        raise ParameterError(
            f"feature {text!r:.100} is not of the form {re.sub('{(.*?)}', lambda part: part[1].upper(), kind.form)}"
        )
    return kind if not known or _leading_name(kind.form) == name else FeatureSpec


def parse_feature(text: str) -> Feature:
    """Parse a feature of any kind; the inverse of ``str``.

    ``dependence/cliques/weighting``, ``document:NAME``, ``written:UNIT``, ``latent``, ``neighbours``, ``prior:FILE``,
    ``score``, ``reciprocal-rank``, ``run:FILE``, ``stage:NAME(...)``, ``vectors:(documents=FILE,queries=FILE)`` or
    ``python:NAME``, followed by ``@minmax``, ``@z`` or ``@rank`` if it is normalised. ``column:NAME``, or its number
    alone, is never normalised, since the name may end so.
    """
    if text.strip().isdecimal() or text.startswith("column:"):
        return Column(text.strip().removeprefix("column:"))
    base, method = split_method(text.strip())
    if method is not None:
        return Normalised(parse_feature(base), cast(Normalisation, method))
    kind = _kind(base)
    try:
        return kind.parse(base)
    except GreylagError:
        raise
    except Exception as error:  # whatever the code of another package raises
        raise ParameterError(
            f"feature {base!r:.100}: {kind.__module__}.{kind.__name__}.parse raised {type(error).__name__}: {error}"
        ) from error


def parse_features(text: str) -> tuple[Feature, ...]:
    """Parse comma-separated features; ``1-10`` are ten columns. Raises `ParameterError` if a feature occurs twice."""
    if not isinstance(text, str):
        raise ParameterError(f"features: {shown(text)} is no text; write 'score,FI/term/LM'")
    outside_parentheses = re.split(r",(?![^()]*\))", text)
    return unique_features(
        [feature for part in outside_parentheses for feature in _columns(part) or [parse_feature(part)]]
    )


def _columns(text: str) -> list[Feature]:
    """Return the columns of a span of numbers, such as ``1-10``; none if the text is something else."""
    match = re.fullmatch(r"\s*(\d{1,6})-(\d{1,6})\s*", text)
    return [Column(str(number)) for number in range(int(match[1]), int(match[2]) + 1)] if match else []
