"""Loading studies, their registry, timing of steps, and deviations from expected scores."""

from __future__ import annotations

import time
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from greylag import FormatError, ParameterError
from greylag.experiments import Context, Experiment, Study, deviations, load
from greylag.experiments.study import registered_studies
from tests.greylag.experiments import samples
from tests.greylag.experiments.samples import CONFIGS, DEMO


@pytest.mark.parametrize("entry", registered_studies().values(), ids=lambda entry: entry.name)
def test_every_entry_of_the_registry_is_a_study(entry: EntryPoint) -> None:
    study = entry.load()
    assert isinstance(study, Study)
    assert issubclass(study.settings, Experiment)
    assert study.settings.__doc__


@pytest.mark.parametrize("path", [DEMO / "demo.yaml", *sorted(CONFIGS.glob("*.yaml"))], ids=lambda path: path.stem)
def test_every_experiment_file_loads(path: Path) -> None:
    study, settings = load(path)
    assert isinstance(settings, study.settings)
    assert settings.name == path.stem
    assert settings.expected or "# No scores are expected yet: " in path.read_text()
    assert all(score >= 0 for scores in settings.expected.values() for score in scores.values())


@pytest.mark.usefixtures("sum_study")
def test_the_study_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\nstudy: sum\nnumbers: n.txt\n")
    study, settings = load(tmp_path / "x.yaml")
    assert study is samples.STUDY
    assert settings.path("n.txt") == tmp_path / "n.txt"
    (tmp_path / "x.yaml").write_text("name: x\nstudy: some\n")
    with pytest.raises(FormatError, match=r"x.yaml: unknown study 'some': use one of .*pipeline.* sum"):
        load(tmp_path / "x.yaml")


def test_timed_steps_add_up_and_are_reported(tmp_path: Path) -> None:
    lines: list[str] = []
    context = Context(tmp_path, progress=lines.append)
    for _ in range(2):
        with context.timed("waiting"):
            time.sleep(0.06)
    with pytest.raises(ParameterError), context.timed("failing"):
        raise ParameterError("no")
    assert context.seconds.keys() == {"waiting"}
    assert context.seconds["waiting"] >= 0.12
    assert len(lines) == 2
    assert all(line.startswith("waiting: ") and line.endswith(" s") for line in lines)


def test_deviations_are_at_four_decimals() -> None:
    scores = {"a": {"AP": 0.12344, "P@10": 0.5}, "b": {"AP": 0.3}}
    assert deviations(scores, {"a": {"AP": 0.1234}, "b": {"AP": 0.30004}}) == []
    assert deviations(scores, {"a": {"AP": 0.1235, "P@10": 0.5}, "b": {"AP": 0.4}}) == [
        "a AP: expected 0.1235, got 0.1234",
        "b AP: expected 0.4000, got 0.3000",
    ]
    for expected in ({"a": {"RR": 1.0}}, {"c": {"RR": 1.0}}):
        with pytest.raises(ParameterError, match=r"the study does not compute RR of '[ac]', which its file expects"):
            deviations(scores, expected)
