"""The preselection study on the demonstration collection, and `greylag train --preselect`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

import greylag
from greylag.cli import main
from greylag.errors import FormatError, ParameterError
from greylag.experiments import study
from greylag.experiments.preselection import WHOLE

DEMO = Path(greylag.__file__).parent / "demo"
CONFIGS = Path(greylag.__file__).parents[2] / "configs"


def config(folder: Path, **options: object) -> Path:
    demo = yaml.safe_load((DEMO / "demo.yaml").read_text())
    fields = {name: demo[name] for name in ("collection", "topics", "qrels", "training")}
    content = {"name": "small", "study": "preselection", "data": str(DEMO), **fields, **options}
    (folder / "small.yaml").write_text(yaml.safe_dump(content))
    return folder / "small.yaml"


def run(path: Path, out: Path, n_jobs: int = 1) -> study.Result:
    module, settings = study.load(path)
    return module.run(settings, out, n_jobs=n_jobs, say=lambda _: None)


@pytest.fixture
def no_other_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREYLAG_DATA", raising=False)


@pytest.mark.usefixtures("no_other_data")
def test_the_whole_pool_is_the_main_studys_and_results_do_not_depend_on_threads(tmp_path: Path) -> None:
    path = config(tmp_path, preselect=["mmr:4", "mmr:4:1"], measures=["AP", "nDCG@10"])
    one, two = run(path, tmp_path / "out"), run(path, tmp_path / "out2", n_jobs=2)
    assert one.scores == two.scores
    assert (tmp_path / "out" / "results.json").read_bytes() == (tmp_path / "out2" / "results.json").read_bytes()
    _, demo = study.load(DEMO / "demo.yaml")
    for measure in ("AP", "nDCG@10"):
        assert one.scores["bm25"][measure] == pytest.approx(demo.expected["bm25"][measure], abs=5e-5)
        assert one.scores[WHOLE][measure] == pytest.approx(demo.expected["mrf"][measure], abs=5e-5)
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert {len(models) for models in results["features"].values()} == {6}
    assert all(len(features) <= 4 for features in results["features"]["mmr:4"])
    assert results["features"]["mmr:4"] != results["features"]["mmr:4:1"]
    times = json.loads((tmp_path / "out" / "times.json").read_text())
    assert times[WHOLE]["narrowing"] < times["mmr:4"]["narrowing"]
    assert times["mmr:4"]["training"] < times[WHOLE]["training"]
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (f"{one.scores['mmr:4']['AP']:.4f}", "times faster", results["features"]["mmr:4"][0][0]):
        assert text in page


@pytest.mark.usefixtures("no_other_data")
@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"preselect": ["mmr"]}, ParameterError, "'mmr' is not of the form"),
        ({"preselect": []}, FormatError, "preselect"),
    ],
)
def test_mistakes(tmp_path: Path, options: dict[str, object], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        run(config(tmp_path, **options), tmp_path / "out")


def test_on_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def command(*words: str | Path) -> int:
        monkeypatch.setattr(sys, "argv", ["greylag", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return int(stop.value.code or 0)

    assert command("index", DEMO / "docs.jsonl", "--out", tmp_path / "index") == 0
    out = tmp_path / "model.json"
    words = ["train", "--index", tmp_path / "index", "--topics", DEMO / "topics.tsv", "--qrels", DEMO / "qrels.txt"]
    assert command(*words, "--out", out, "--preselect", "mmr:3") == 0
    model = json.loads(out.read_text())
    assert 1 <= len(model["features"]) <= 3
    provenance = model["provenance"]
    assert (provenance["preselect"], provenance["pool"], provenance["candidates"]) == ("mmr:3", 54, 3)
    capfd.readouterr()
    assert command(*words, "--out", out, "--preselect", "best") == 2
    assert "'best' is not of the form mmr:16" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cacm", "cranfield", "vaswani"])
def test_expected_scores(data: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    data(name)
    _, settings = study.load(CONFIGS / f"{name}.preselect.yaml")
    assert run(CONFIGS / f"{name}.preselect.yaml", tmp_path).deviations(settings.expected) == []
