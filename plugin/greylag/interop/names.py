"""What all adapters share: reading identifiers, grades and texts strictly, and importing a package or saying how."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from numbers import Integral
from typing import Any

from greylag.errors import DependencyError, ParameterError
from greylag.hints import shown
from greylag.ranking import Ranking, Run


def imported(module: str, package: str) -> Any:
    """Import a module of an optional package, or raise `DependencyError` with the line that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DependencyError(f"{package} is not usable here ({error}): pip install {package}") from error


def identifier(value: Any, what: str) -> str:
    """A query's or document's identifier as a string; integers, which some packages make of them, are accepted.

    Raises
    ------
    ParameterError
        If it is anything else, such as a missing value or a float, which may have lost digits.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise ParameterError(
        f"{what} is {shown(value)}: it must be a string or an integer; convert identifiers with astype(str)"
    )


def grade(value: Any, what: str) -> int:
    """A relevance grade.

    Raises
    ------
    ParameterError
        If it is not an integer, such as a string.
    """
    if isinstance(value, Integral) and not isinstance(value, bool):
        return int(value)
    raise ParameterError(f"the grade of {what} is {shown(value)}: it must be an integer; convert grades with int()")


def number(value: Any, what: str) -> float:
    """A score.

    Raises
    ------
    ParameterError
        If it is not a number, such as a string.
    """
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise ParameterError(f"the score of {what} is {shown(value)}: it must be a number; convert scores with float()")
    return float(value)


def text(value: Any, what: str) -> str:
    """A text.

    Raises
    ------
    ParameterError
        If it is not a string.
    """
    if not isinstance(value, str):
        raise ParameterError(f"the text of {what} is {shown(value)}: it must be a string")
    return value


def unique(pairs: Iterable[tuple[str, Any]], what: str) -> dict[str, Any]:
    """A dictionary of the pairs.

    Raises
    ------
    ParameterError
        If a key occurs twice.
    """
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ParameterError(f"{what} {key!r} occurs twice")
        found[key] = value
    return found


def run_of(scored: Mapping[str, Mapping[str, float]], topics: Mapping[str, str] | None, tag: str) -> Run:
    """A run from scores by qid and docid; equal scores keep the order of the mapping.

    Raises
    ------
    ParameterError
        If a query has no text in `topics`, where these are given, or a score is not finite.
    """
    rankings = []
    for qid, scores in scored.items():
        if topics is not None and qid not in topics:
            raise ParameterError(f"query {qid!r} is not among the topics, such as {next(iter(topics), None)!r}")
        query = "" if topics is None else topics[qid]
        rankings.append(Ranking.sort(qid, query, list(scores), list(scores.values())))
    return Run(tuple(rankings), tag)
