"""Teams of runs, of a file or by a pattern over names and tags."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from greylag.base import GroupsLike, ParameterError, as_groups, read_pairs
from greylag.evaluation.scoring.agreement import few_names
from greylag.evaluation.scoring.scores import Scores

Teams = GroupsLike | str | Path
"""Teams by name or tag of run, a file of these in two columns, or a regular expression."""


def assign_teams(known: Mapping[str, Sequence[str]], teams: Teams) -> dict[str, str]:
    """Return each run's team; `known` are, by its name, the names and tags that teams may be given by."""
    if isinstance(teams, str | Path) and not Path(teams).exists():
        what = f"{teams} does not exist as a file, and as a pattern"
        assigned = {name: _matched(str(teams), labels) for name, labels in known.items()}
    else:
        what, given = "teams by name or tag", teams
        if isinstance(given, str | Path):
            what, given = str(given), read_pairs(given, "run team")
        by_label = as_groups(given, "team")
        assigned = {name: next(filter(None, map(by_label.get, labels)), None) for name, labels in known.items()}
    if lacking := [name for name, team in assigned.items() if team is None]:
        raise ParameterError(f"{what} names no team of {few_names(lacking)}")
    return {name: team for name, team in assigned.items() if team is not None}


def best_runs(scores: Mapping[str, Scores], teams: Mapping[str, str], others: Sequence[str]) -> list[str]:
    """Return the first best run of each team by the first measure, and the `others`, in the order of the scores."""
    best = dict[str, str]()
    sign = -1 if next(iter(scores.values())).measures[0].family.lower_is_better else 1
    for name in sorted(scores, key=lambda name: -sign * float(scores[name].rounded_means[0])):
        best.setdefault(teams[name], name)
    return [name for name in scores if name in best.values() or name in others]


def _matched(pattern: str, labels: Sequence[str]) -> str | None:
    """Return what the first group of a pattern, or all of it, matches in the first label that it is found in."""
    try:
        match = next(filter(None, (re.search(pattern, label) for label in labels)), None)
    except re.error as error:
        raise ParameterError(f"teams {pattern!r} is neither a file nor a regular expression: {error}") from None
    return (match and match[min(1, len(match.groups()))]) or None
