"""Experiment files: what is read, what is refused, and where their paths lead."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import ValidationError

from greylag.errors import FormatError, ParameterError
from greylag.experiments import config
from greylag.experiments.config import Experiment, check_fields, file_stamps, read_yaml


class Part(config.Settings):
    size: config.Positive = 3
    folds: config.Folds = 2


def parse_even(text: str) -> int:
    if int(text) % 2:
        raise ParameterError(f"{text} is not even: add 1")
    return int(text)


class Sample(Experiment):
    docs: str = "docs"
    part: Part = Part()
    measures: tuple[config.MeasureName, ...] = ("AP",)
    objective: config.ObjectiveName = "AP"
    even: Annotated[str, config.readable_by(parse_even)] = "2"


def test_fields_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: x\npart: {size: 5}\nmeasures: [nDCG@10]\nexpected: {bm25: {AP: 0.5}}\n")
    found = check_fields(path, read_yaml(path), Sample)
    assert (found.name, found.study, found.part.size, found.part.folds) == ("x", "pipeline", 5, 2)
    assert found.measures == ("nDCG@10",)
    assert found.expected == {"bm25": {"AP": 0.5}}
    assert set(found.model_dump()) == {
        "name", "study", "data", "expected", "docs", "part", "measures", "objective", "even"
    }  # fmt: skip
    with pytest.raises(ValidationError, match="frozen"):
        found.part.size = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{}", r"name: field required"),
        ("{name: x, colour: red}", r"colour: extra inputs are not permitted \(got 'red'\)"),
        ("{name: x, part: {size: 0}}", r"part.size: input should be greater than or equal to 1 \(got 0\)"),
        ("{name: x, part: {folds: 1}}", r"part.folds: .*greater than or equal to 2 \(got 1\)"),
        ("{name: x, measures: [AP, nDGC@10]}", r"measures.1: .*'nDGC@10'.* nDCG"),
        ("{name: x, objective: nDCK}", r"objective: .*nDCK.* \(got 'nDCK'\)"),
        ("{name: x, even: '3'}", r"even: 3 is not even: add 1 \(got '3'\)"),
        ("{name: 3, part: {size: 0}}", r"name: input should be a valid string"),
    ],
)
def test_fields_out_of_their_domain(tmp_path: Path, content: str, reason: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(content)
    with pytest.raises(FormatError, match=reason) as caught:
        check_fields(path, read_yaml(path), Sample)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"name: [", r"x.yaml:1: not YAML"),
        (b"name: x\n  b: c", r"x.yaml:2: not YAML"),
        (b"- name", r"an experiment file is a mapping"),
        (b"", r"an experiment file is a mapping"),
        (b"name: \xe9", r"cannot be read: .*utf-8"),
    ],
)
def test_files_that_are_not_experiments(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(FormatError, match=reason):
        read_yaml(tmp_path / "x.yaml")


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none.yaml: cannot be read: No such file"):
        read_yaml(tmp_path / "none.yaml")
    with pytest.raises(FormatError, match="cannot be read"):
        read_yaml(tmp_path)


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fields = {"name": "x", "data": "../data", "docs": "d/docs.jsonl"}
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    found = check_fields(tmp_path / "configs" / "x.yaml", fields, Sample)
    assert found.path("d/docs.jsonl") == tmp_path / "data" / "d" / "docs.jsonl"
    assert found.path("../qrels/mine.txt") == tmp_path / "qrels" / "mine.txt"
    assert found.path("/absolute") == Path("/absolute")
    assert tmp_path / "data" / "d" / "docs.jsonl" in found.paths()
    assert tmp_path / "data" / "x" not in found.paths()
    monkeypatch.setenv("GREYLAG_DATA", str(tmp_path / "elsewhere"))
    found = check_fields(tmp_path / "configs" / "x.yaml", fields, Sample)
    assert found.path("d") == tmp_path / "elsewhere" / "d"
    assert found.path("./d") == tmp_path / "configs" / "d"
    own = check_fields(tmp_path / "configs" / "x.yaml", {"name": "x"}, Sample)
    assert own.path("d") == tmp_path / "configs" / "d"


def test_file_stamps(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "b.txt").write_text("12")
    (tmp_path / "c.txt").write_text("1")
    stamps = file_stamps(tmp_path)
    assert [stamp[:2] for stamp in stamps] == [("a/b.txt", 2), ("c.txt", 1)]
    assert file_stamps(tmp_path / "c.txt") == [(".", *stamps[1][1:])]
