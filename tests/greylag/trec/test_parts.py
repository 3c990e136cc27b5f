from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.trec.parts import Part


@pytest.mark.parametrize("n", [16, 17, 24, 100, 6980])
@pytest.mark.parametrize("of", [1, 2, 3, 16])
def test_parts_are_all_topics_in_order_and_of_nearly_equal_size(n: int, of: int) -> None:
    parts = [Part.parse(f"{number}/{of}") for number in range(1, of + 1)]
    topics = [f"q{number}" for number in range(n)]
    shares = [[*part.among(topics, topics)] for part in parts]
    assert [topic for share in shares for topic in share] == topics
    assert {len(share) for share in shares} <= {n // of, -(-n // of)}
    assert [len(part.places(n)) for part in parts] == [*map(len, shares)]


def test_no_part_is_the_whole() -> None:
    assert Part.parse(None).places(0) == range(0)
    assert Part.parse(None).places(7) == range(7)


@pytest.mark.parametrize("text", ["", "3", "3/", "/3", "1.5/3", "-1/3", "1/3/5", "١/٣", "1 / 3", "9" * 5000 + "/1"])
def test_other_forms_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match="NUMBER/PARTS"):
        Part.parse(text)


@pytest.mark.parametrize("text", ["0/3", "4/3", "0/0", "1/0"])
def test_numbers_of_no_part_are_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=f"--part {text}: "):
        Part.parse(text)


def test_more_parts_than_topics_are_refused_in_each() -> None:
    for number in range(1, 5):
        with pytest.raises(ParameterError, match=r"\b3 topics"):
            Part(number, 4).places(3)
