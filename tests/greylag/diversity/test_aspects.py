"""Given aspects."""

from __future__ import annotations

from greylag.diversity.aspects import aspect_relevance
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking


def test_relevance_is_bm25_by_the_highest() -> None:
    index = PositionalIndex.from_texts({"a": "cat cat dog", "b": "cat cow pig", "c": "cow"})
    ranking = Ranking("q", "x", ("a", "b", "c"), [3.0, 2.0, 1.0])
    found = aspect_relevance(index, ranking, ["cat", "horse"])
    assert found[0, 0] == 1.0
    assert 0 < found[1, 0] < 1
    assert found[2, 0] == 0
    assert found[:, 1].tolist() == [0.0] * 3
    assert aspect_relevance(index, ranking, []).shape == (3, 0)
