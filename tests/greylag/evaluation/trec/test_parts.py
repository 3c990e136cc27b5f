import pytest

from greylag.base import ParameterError
from greylag.evaluation.trec.parts import Part
from tests.refusals import refuses


@pytest.mark.parametrize("n", [16, 17, 24, 100, 6980])
@pytest.mark.parametrize("of", [1, 2, 3, 16])
def test_parts_are_all_topics_in_order_and_of_nearly_equal_size(n, of):
    parts = [Part.parse(f"{number}/{of}") for number in range(1, of + 1)]
    topics = [f"q{number}" for number in range(n)]
    shares = [[*part.among(topics, topics)] for part in parts]
    assert [topic for share in shares for topic in share] == topics
    assert {len(share) for share in shares} <= {n // of, -(-n // of)}
    assert [len(part.places(n)) for part in parts] == [*map(len, shares)]


def test_no_part_is_the_whole():
    assert Part.parse(None).places(0) == range(0)
    assert Part.parse(None).places(7) == range(7)


OTHER_FORMS = ["", "3", "3/", "/3", "1.5/3", "-1/3", "1/3/5", "١/٣", "1 / 3", "9" * 5000 + "/1"]


@pytest.mark.parametrize(
    ("call", "part"),
    [
        *((lambda text=text: Part.parse(text), "NUMBER/PARTS") for text in OTHER_FORMS),
        *((lambda text=text: Part.parse(text), f"--part {text}: ") for text in ("0/3", "4/3", "0/0", "1/0")),
        *((lambda number=number: Part(number, 4).places(3), "3 topics") for number in range(1, 5)),
    ],
)
def test_refusals(call, part):
    refuses(call, ParameterError, part, "|")
