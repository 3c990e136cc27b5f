"""Experiment files: what is read, what is refused, and where their paths lead."""

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import ValidationError

import greylag
from greylag import FormatError, ParameterError
from greylag.base.runtime.yaml_text import read_yaml
from greylag.features.named_files import FeatureText
from greylag.studies import Experiment, config
from greylag.studies.config import check_fields


class Part(config.Settings):
    size: config.Positive = 3
    folds: config.Folds = 2
    seed: config.Seed = 0


def parse_even(text):
    if int(text) % 2:
        raise ParameterError(f"{text} is not even: add 1")
    return int(text)


class Sample(Experiment):
    docs: config.InputFile = "docs"
    features: tuple[FeatureText, ...] = ()
    part: Part = Part()
    measures: tuple[config.MeasureName, ...] = ("AP",)
    objective: config.ObjectiveName = "AP"
    even: Annotated[str, config.readable_by(parse_even)] = "2"


def test_fields_and_defaults(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("name: x\npart: {size: 5}\nmeasures: [nDCG@10]\nexpected: {bm25: {AP: 0.5}}\n")
    found = check_fields(path, read_yaml(path), Sample)
    assert (found.name, found.study, found.part.size, found.part.folds) == ("x", "pipeline", 5, 2)
    assert found.measures == ("nDCG@10",)
    assert found.expected == {"bm25": {"AP": 0.5}}
    assert set(found.model_dump()) == {
        "name", "study", "data", "expected", "docs", "features", "part", "measures", "objective", "even"
    }  # fmt: skip
    with pytest.raises(ValidationError):
        found.part.size = 7


@pytest.mark.parametrize(
    ("content", "place", "part"),
    [
        ("{}", "name", "required"),
        ("{name: x, colour: red}", "colour", "use name, study, data, expected, docs, features,"),
        ("{name: x, data_folder: /tmp}", "data_folder", ""),
        ("{name: x, part: {sizes: 2}}", "part.sizes", "size?"),
        ("{name: x, part: {size: 0}}", "part.size", "(got 0)"),
        ("{name: x, part: {folds: 1}}", "part.folds", "2 (got 1)"),
        ("{name: x, part: {size: true}}", "part.size", "integer"),
        ("{name: x, part: {size: 100000000000000000000}}", "part.size", "less than"),
        ("{name: x, part: {seed: -1}}", "part.seed", "0"),
        ("{name: x, measures: [AP, nDGC@10]}", "measures.1", "nDCG"),
        ("{name: x, objective: nDCK}", "objective", "(got 'nDCK')"),
        ("{name: x, even: '3'}", "even", "3 is not even: add 1 (got '3')"),
        ("{name: 3, part: {size: 0}}", "name", "text"),
        ("{name: ''}", "name", "''"),
        ("{name: ../../victim}", "name", "'../../victim'"),
        ("{name: ..}", "name", "'..'"),
        (f"{{name: {'x' * 201}}}", "name", "'xxx"),
        ('{name: "a\\nb"}', "name", "cannot name a file"),
        ("{name: x, expected: {bm25: {AP: .nan}}}", "expected.bm25.AP", "finite"),
        ("name: [", "1", "YAML"),
        ("a: &a [x]\nb: *a", "2", "aliases"),
        ("name: x\npart: {size: 1, size: 2}", "2", "'size'"),
        ("- name", "", "mapping"),
        ("", "", "mapping"),
        (None, "", "cannot be read"),
    ],
)
def test_refusals(tmp_path, content, place, part):
    path = tmp_path / "x.yaml"
    if content is not None:
        path.write_text(content)
    with pytest.raises(FormatError) as caught:
        check_fields(path, read_yaml(path), Sample)
    assert str(caught.value).startswith(f"{path}:{place}: " if place.isdigit() else f"{path}: {place}")
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_dates_are_text_and_marks_and_line_ends_do_not_matter(tmp_path):
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfname: 2020-02-30\r\nday: 2020-01-01\r\n")
    assert read_yaml(tmp_path / "x.yaml") == {"name": "2020-02-30", "day": "2020-01-01"}


def test_paths(tmp_path, monkeypatch):
    fields = {"name": "x", "data": "../data", "docs": "d/docs.jsonl"}
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    found = check_fields(tmp_path / "configs" / "x.yaml", fields, Sample)
    assert found.path("d/docs.jsonl") == tmp_path / "data" / "d" / "docs.jsonl"
    assert found.path("../qrels/mine.txt") == tmp_path / "qrels" / "mine.txt"
    assert found.path("/absolute") == Path("/absolute")
    assert tmp_path / "data" / "d" / "docs.jsonl" in found.paths()
    assert tmp_path / "data" / "x" not in found.paths()
    features = {"features": ["run:a.run@minmax"]}
    with_feature = check_fields(tmp_path / "configs" / "x.yaml", fields | features, Sample)
    assert [*with_feature.paths()] == [tmp_path / "data" / "d" / "docs.jsonl", tmp_path / "data" / "a.run"]
    monkeypatch.setenv("GREYLAG_DATA", str(tmp_path / "elsewhere"))
    found = check_fields(tmp_path / "configs" / "x.yaml", fields, Sample)
    assert found.path("d") == tmp_path / "elsewhere" / "d"
    assert found.path("./d") == tmp_path / "configs" / "d"
    own = check_fields(tmp_path / "configs" / "x.yaml", {"name": "x"}, Sample)
    assert own.path("d") == tmp_path / "configs" / "d"


def test_the_files_of_a_checkout():
    plugin = Path(greylag.__file__).parents[1]
    files = [*plugin.glob("greylag/demo/*.yaml"), *plugin.parent.glob("configs/*.yaml")]
    assert list(config.shipped_files().values()) == sorted(files, key=lambda path: path.stem)
    cacm = plugin.parent / "configs" / "cacm.mrf.yaml"
    assert config.shipped_file("cacm.mrf") == config.shipped_file("cacm.mrf.yaml") == cacm


@pytest.mark.parametrize(("name", "part"), [("cacn.yaml", "did you mean cacm"), ("x", "use ambient.cssvm,")])
def test_an_unknown_name(name, part):
    with pytest.raises(ParameterError) as caught:
        config.shipped_file(name)
    assert repr(name) in str(caught.value)
    assert part in str(caught.value)
