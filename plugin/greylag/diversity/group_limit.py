"""Caps and demotion by group: a limit on the documents of a site, or the passages of a document, near the top."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from greylag.base import (
    FloatArray,
    GroupsLike,
    IntArray,
    Ranking,
    as_groups,
    check_counts,
    check_fractions,
    group_name,
    report_missing,
    unit_range,
)
from greylag.diversity.stage import DiversityStage
from greylag.evaluation import read_groups

Groups = GroupsLike | Callable[[str], Any]
"""The group of a document: names by docid, or a function. None, or no entry, is a group of its own."""


@dataclass(frozen=True)
class GroupLimit(DiversityStage):
    """Pick documents by their scores, where those beyond the first of a group count less.

    Each pick maximises

        rel(d) decay^max(0, 1 + n(d) - m)

    with rel the incoming score scaled to [0, 1] over the candidates, n(d) the number of picks of the document's group,
    and m = `max_per_group`. With decay 0, documents beyond the limit follow all others, in the incoming order. Among
    the first `k` documents there are then at most m of a group, unless there are no others.

    Parameters
    ----------
    groups : GroupsLike, or callable from str to str, int or None
        The group of each docid. A document without one is in no group.
    max_per_group : int >= 1, default 1
        m.
    decay : float in [0, 1], default 0
        0 is a cap; higher values demote softly; 1 keeps the incoming order.
    depth, k, min_relevance
        See `greylag.diversity.DiversityStage`.
    """

    needs = frozenset({"groups"})
    readers: ClassVar = {"groups": read_groups}

    groups: Groups
    max_per_group: int = 1
    decay: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self._group_of  # checks the groups
        check_counts(max_per_group=self.max_per_group)
        check_fractions(decay=self.decay)

    @cached_property
    def _group_of(self) -> Callable[[str], str | None]:
        if not callable(given := self.groups):
            return as_groups(given, "group").get
        return lambda docid: group_name(given(docid), f"the group of document {docid!r}")

    def gain(self, candidates: Ranking) -> GroupGain:
        """Return the relevance of these documents, reduced for those beyond the limit."""
        named = ((docid, self._group_of(docid)) for docid in candidates.docids)
        # Pairs, so that no name of a group is taken for a docid.
        names = [("alone", docid) if group is None else ("group", group) for docid, group in named]
        if not any(kind == "group" for kind, _ in names):
            report_missing("no limit applies", candidates.qid, candidates.docids, len(names), what="without a group")
        numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
        groups = np.array([numbers[name] for name in names], dtype=np.int64)
        return GroupGain(unit_range(candidates.scores), groups, self.max_per_group, self.decay)


class GroupGain:
    """The gain of `GroupLimit` over n candidates: relevance in [0, 1] and numbers of groups, each of shape (n,)."""

    def __init__(self, relevance: FloatArray, groups: IntArray, max_per_group: int, decay: float) -> None:
        self._gains = relevance
        self._groups = groups
        self._left = np.full(len(groups), max_per_group)  # by number of group; there are at most n
        self._decay = decay

    def gains(self) -> FloatArray:
        """Compute the gains, shape (n,)."""
        return self._gains

    def add(self, candidate: int) -> None:
        """Count a document of its group."""
        group = self._groups[candidate]
        self._left[group] -= 1
        if self._decay and self._left[group] <= 0:
            self._gains = np.where(self._groups == group, self._gains * self._decay, self._gains)
        elif self._left[group] == 0:
            # Relevance is in [0, 1], so that nothing else is as low.
            self._gains = np.where(self._groups == group, self._gains - 2.0, self._gains)  # behind all others
