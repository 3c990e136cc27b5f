"""Selections, the results of learners."""

from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.ltr.learner import Selection

GREEDY = Selection((4, 1, 2), ((1.0,), (0.9, 0.1), (0.8, 0.1, 0.1)), (0.3, 0.4, 0.5))
AT_ONCE = Selection((0, 1, 2), ((0.2, 0.3, 0.5),), (0.6,))


def test_head_is_the_selection_after_fewer_rounds() -> None:
    assert GREEDY.head(2) == Selection((4, 1), ((1.0,), (0.9, 0.1)), (0.3, 0.4))
    assert GREEDY.head(9) == GREEDY
    assert AT_ONCE.head(1) == AT_ONCE.head(2) == AT_ONCE
    assert len(AT_ONCE.head(2).weights) == len(AT_ONCE.head(2).columns)
    with pytest.raises(ParameterError, match="rounds is 0"):
        GREEDY.head(0)


def test_scores_by_feature() -> None:
    assert GREEDY.entry_scores == (0.3, 0.4, 0.5)
    assert AT_ONCE.entry_scores == (0.6, 0.6, 0.6)
