"""Experiment files: what is read, what is refused, and where their paths lead."""

from pathlib import Path
from typing import Annotated

import pytest
from pydantic import ValidationError

import greylag
from greylag import FormatError, ParameterError
from greylag.features.named_files import FeatureText
from greylag.runtime.yaml_text import read_yaml
from greylag.studies import Experiment, config
from greylag.studies.config import check_fields


class Part(config.Settings):
    size: config.Positive = 3
    folds: config.Folds = 2
    seed: config.Seed = 0


def parse_even(text: str) -> int:
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


def test_fields_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("name: x\npart: {size: 5}\nmeasures: [nDCG@10]\nexpected: {bm25: {AP: 0.5}}\n")
    found = check_fields(path, read_yaml(path), Sample)
    assert (found.name, found.study, found.part.size, found.part.folds) == ("x", "pipeline", 5, 2)
    assert found.measures == ("nDCG@10",)
    assert found.expected == {"bm25": {"AP": 0.5}}
    assert set(found.model_dump()) == {
        "name", "study", "data", "expected", "docs", "features", "part", "measures", "objective", "even"
    }  # fmt: skip
    with pytest.raises(ValidationError, match="frozen"):
        found.part.size = 7  # type: ignore[misc]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{}", r"name: field required"),
        ("{name: x, colour: red}", r"colour: unknown field: use name, study, data, expected, docs, features,"),
        ("{name: x, data_folder: /tmp}", r"data_folder: unknown field"),
        ("{name: x, mesures: [AP]}", r"mesures: unknown field: did you mean measures"),
        ("{name: x, part: {sizes: 2}}", r"part.sizes: unknown field: did you mean size\?"),
        ("{name: x, part: {size: 0}}", r"part.size: input should be greater than or equal to 1 \(got 0\)"),
        ("{name: x, part: {folds: 1}}", r"part.folds: .*greater than or equal to 2 \(got 1\)"),
        ("{name: x, measures: [AP, nDGC@10]}", r"measures.1: .*'nDGC@10'.* nDCG"),
        ("{name: x, objective: nDCK}", r"objective: .*nDCK.* \(got 'nDCK'\)"),
        ("{name: x, even: '3'}", r"even: 3 is not even: add 1 \(got '3'\)"),
        ("{name: 3, part: {size: 0}}", r"name: it must be text"),
        ("{name: ''}", r"name: '' cannot name a file"),
        ("{name: ../../victim}", r"name: '../../victim' cannot name a file"),
        ("{name: a/b}", r"name: 'a/b' cannot name a file"),
        ("{name: ..}", r"name: '..' cannot name a file"),
        (f"{{name: {'x' * 201}}}", r"name: 'xxx.* cannot name a file"),
        ('{name: "a\\nb"}', r"name: 'a.*b' cannot name a file"),
        ("{name: x, part: {size: true}}", r"part.size: .*valid integer"),
        ("{name: x, part: {size: '3'}}", r"part.size: .*valid integer"),
        ("{name: x, part: {size: 2.5}}", r"part.size: .*valid integer"),
        ("{name: x, part: {size: 100000000000000000000}}", r"part.size: .*less than"),
        ("{name: x, part: {seed: -1}}", r"part.seed: .*greater than or equal to 0"),
        ("{name: x, expected: {bm25: {AP: .nan}}}", r"expected.bm25.AP: .*finite"),
        ("{name: x, expected: {bm25: {AP: .inf}}}", r"expected.bm25.AP: .*finite"),
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
        (b"name: a\x00b", r"not YAML: .*special characters"),
        (b"a: &a [x]\nb: *a", r"x.yaml:2: not YAML: aliases are not supported"),
        (b"a: &a [*a]", r"x.yaml:1: not YAML: aliases"),
        (b"name: x\nname: y", r"x.yaml:2: not YAML: duplicate key 'name'"),
        (b"name: x\npart: {size: 1, size: 2}", r"x.yaml:2: not YAML: duplicate key 'size'"),
        (b"name: x\n1: y", r"x.yaml:2: not YAML: key '1' is not text"),
        (b"? [a]\n: y", r"not YAML: key .* is not text"),
        (b"a: " + b"9" * 5000, r"a value is not valid: .*digits"),
        (b"a: !!timestamp 2020-13-45", r"a value is not valid"),
        (b"a: !!binary x", r"not YAML|a value is not valid"),
        (b"a: !!set {x}", r"a value is not valid|not text"),
        (b"a: !!bool x", r"a value is not valid"),
        (b"a: !!python/object/apply:os.system [ls]", r"not YAML: could not determine a constructor"),
        (b"a: " + b"[" * 100_000, r"nested too deeply"),
        (b"a: x\n" + b"#" * (1 << 20), r"more than 1048576"),
    ],
)
def test_files_that_are_not_experiments(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(FormatError, match=reason) as caught:
        read_yaml(tmp_path / "x.yaml")
    assert str(caught.value).startswith(f"{tmp_path / 'x.yaml'}:")
    assert "\n" not in str(caught.value)


def test_dates_are_text_and_marks_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"\xef\xbb\xbfname: 2020-02-30\r\nday: 2020-01-01\r\n")
    assert read_yaml(tmp_path / "x.yaml") == {"name": "2020-02-30", "day": "2020-01-01"}


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
    features = {"features": ["run:a.run@minmax"]}
    with_feature = check_fields(tmp_path / "configs" / "x.yaml", fields | features, Sample)
    assert [*with_feature.paths()] == [tmp_path / "data" / "d" / "docs.jsonl", tmp_path / "data" / "a.run"]
    monkeypatch.setenv("GREYLAG_DATA", str(tmp_path / "elsewhere"))
    found = check_fields(tmp_path / "configs" / "x.yaml", fields, Sample)
    assert found.path("d") == tmp_path / "elsewhere" / "d"
    assert found.path("./d") == tmp_path / "configs" / "d"
    own = check_fields(tmp_path / "configs" / "x.yaml", {"name": "x"}, Sample)
    assert own.path("d") == tmp_path / "configs" / "d"


def test_the_files_of_a_checkout() -> None:
    plugin = Path(greylag.__file__).parents[1]
    files = [*plugin.glob("greylag/demo/*.yaml"), *plugin.parent.glob("configs/*.yaml")]
    assert list(config.shipped_files().values()) == sorted(files, key=lambda path: path.stem)
    cacm = plugin.parent / "configs" / "cacm.mrf.yaml"
    assert config.shipped_file("cacm.mrf") == config.shipped_file("cacm.mrf.yaml") == cacm


def test_an_unknown_name() -> None:
    with pytest.raises(ParameterError, match=r"'cacn.yaml' cannot be read: .* did you mean cacm\b"):
        config.shipped_file("cacn.yaml")
    with pytest.raises(ParameterError, match=r"'x' cannot be read: .* comes with greylag: use ambient.cssvm, .*, cacm"):
        config.shipped_file("x")
