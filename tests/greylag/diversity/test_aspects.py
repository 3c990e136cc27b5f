"""Given aspects."""

from __future__ import annotations

from pathlib import Path

import pytest

from greylag.diversity import aspect_relevance, read_aspects
from greylag.errors import FormatError
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from tests.greylag.experiments.samples import DEMO


def test_the_demonstration_collection_has_aspects() -> None:
    aspects = read_aspects(DEMO / "subtopics.tsv")
    assert aspects["1"][:2] == ("the big cat of the Americas", "the British car maker")
    assert len(aspects) == 24


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1\ta\n", "1: not of the form QID TAB NAME TAB TEXT"),
        ("1\ta\tcats\n1\tb\t \n", "2: not of the form"),
        ("1\ta\tcats\n1\ta\tdogs\n", "2: query '1' has the aspect 'a' twice"),
        ("", "empty|no aspects"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "aspects.tsv").write_text(text)
    with pytest.raises(FormatError, match=reason):
        read_aspects(tmp_path / "aspects.tsv")


def test_relevance_is_bm25_by_the_highest() -> None:
    index = PositionalIndex.from_texts({"a": "cat cat dog", "b": "cat cow pig", "c": "cow"})
    ranking = Ranking("q", "x", ("a", "b", "c"), [3.0, 2.0, 1.0])
    found = aspect_relevance(index, ranking, ["cat", "horse"])
    assert found[0, 0] == 1.0
    assert 0 < found[1, 0] < 1
    assert found[2, 0] == 0
    assert found[:, 1].tolist() == [0.0] * 3
    assert aspect_relevance(index, ranking, []).shape == (3, 0)
