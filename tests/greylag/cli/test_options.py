from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from greylag.cli.options import Shared, listed, parameters, read_settings
from greylag.errors import FormatError, ParameterError


@dataclass(frozen=True)
class Fruit:
    """A learner of fruit."""

    index: object
    stones: int = 1
    weight: float = 0.5
    kind: Literal["plum", "cherry"] = "plum"
    peeled: bool = False
    more: tuple[str, ...] = ()


KNOWN = parameters(Fruit)


def test_the_parameters_of_a_class() -> None:
    assert list(KNOWN) == ["stones", "weight", "kind", "peeled"]
    assert list(parameters(Fruit, "stones")) == ["weight", "kind", "peeled"]
    assert listed(Fruit) == "stones=1, weight=0.5, kind=plum|cherry, peeled=false"


def test_settings() -> None:
    texts = ["stones=-2", "weight=1e-3", "kind=cherry", "peeled=true"]
    expected = {"stones": -2, "weight": 0.001, "kind": "cherry", "peeled": True}
    assert read_settings(texts, KNOWN, of="fruit") == expected
    assert read_settings(["weight=1,.5"], KNOWN, of="fruit", many=True) == {"weight": (1.0, 0.5)}


@pytest.mark.parametrize(
    ("texts", "reason"),
    [
        (["pips=3"], "fruit has no 'pips', but stones, weight, kind, peeled"),
        (["stones"], "not of the form NAME=VALUE"),
        (["stones=1", "stones=1"], "stones is given twice"),
        (["stones=1.5"], "stones is .*: it must be an integer"),
        (["stones=1_0"], "stones is .*: it must be an integer"),
        (["stones=٣"], "stones is .*: it must be an integer"),
        ([f"stones={'9' * 5000}"], "stones is .*: it must be an integer"),
        (["weight=nan"], "weight is .*: it must be a number"),
        (["weight=1_0"], "weight is .*: it must be a number"),
        (["kind=tea"], "kind is 'tea': it must be plum, cherry"),
        (["peeled=yes"], "peeled is 'yes': it must be true or false"),
    ],
)
def test_mistakes_in_settings(texts: list[str], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        read_settings(texts, KNOWN, of="fruit")


def test_reading(tmp_path: Path) -> None:
    topics, run, qrels = tmp_path / "t.tsv", tmp_path / "r.run", tmp_path / "q.txt"
    topics.write_text("1\ttea\n2\tcoffee\n")
    run.write_text("1 Q0 d1 1 2.0 x\n2 Q0 d2 1 1.0 x\n")
    qrels.write_text("2 0 d2 1\n")
    shared = Shared()
    assert [ranking.query for ranking in shared.run(run, topics).rankings] == ["tea", "coffee"]
    assert [ranking.query for ranking in shared.run(run).rankings] == ["", ""]
    assert shared.qrels(qrels, shared.run(run)) == {"2": {"d2": 1}}
    qrels.write_text("3 0 d2 1\n")
    with pytest.raises(FormatError, match=r"q\.txt: no query in common with the run, whose first query is '1'"):
        shared.qrels(qrels, shared.run(run))
