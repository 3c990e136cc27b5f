"""The subtopic oracle."""

from __future__ import annotations

import numpy as np

from greylag.diversity import SubtopicOracle, subtopic_gain
from greylag.evaluation import Subtopics
from greylag.greedy import greedy
from greylag.ranking import Ranking


def test_picks_the_heaviest_subtopics_first() -> None:
    judged = {"a": {"d1": 1}, "b": {"d2": 1, "d3": 2}, "c": {"d0": 1, "d2": 1, "d3": 1}, "none": {"d0": 0}}
    ranking = Ranking("q", "", ("d0", "d1", "d2", "d3"), np.arange(4.0, 0.0, -1.0))
    assert SubtopicOracle({"q": judged}, k=2)(ranking).docids == ("d2", "d1", "d0", "d3")


def test_without_subtopics_the_order_is_kept() -> None:
    nothing = Subtopics.from_qrels(["d0", "d1"], {"a": {"d0": 0}})
    assert greedy(subtopic_gain(nothing), 2).tolist() == [0, 1]
    ranking = Ranking("q", "", ("d1", "d0"), np.array([2.0, 1.0]))
    assert SubtopicOracle({})(ranking) == ranking
