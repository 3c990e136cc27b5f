"""Outputs that are inputs are refused by every command, under whatever name, before anything is read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tqdm import tqdm

from greylag.cli import COMMANDS, main
from greylag.cli.outputs import check_options, check_output, tell
from greylag.errors import ParameterError
from tests.greylag.cli.conftest import Refused
from tests.greylag.runtime.test_progress import bars, on_terminal

OPTIONS = {
    "index": ["IN"],
    "search": ["--index", "i", "--topics", "IN"],
    "features": ["--index", "i", "--topics", "t", "--run", "IN", "--features", "FI/term/LM"],
    "train": ["--index", "i", "--topics", "t", "--qrels", "IN"],
    "tune": ["--index", "i", "--topics", "t", "--qrels", "IN"],
    "rerank": ["--index", "i", "--topics", "t", "--run", "r", "--model", "IN"],
    "train-diversity": ["--index", "i", "--topics", "t", "--run", "r", "--qrels", "q", "--titles", "IN"],
    "diversify": ["--index", "i", "--run", "IN"],
    "fuse": ["--run", "r", "--run", "IN"],
    "experiment": ["IN"],
}


def link(kind: str, path: Path) -> Path:
    other = path.with_name("other")
    if kind == "symbolic":
        other.symlink_to(path)
    elif kind == "hard":
        os.link(path, other)
    return path if kind == "same" else other


@pytest.mark.parametrize("kind", ["same", "symbolic", "hard"])
@pytest.mark.parametrize("name", OPTIONS)
def test_an_output_that_is_an_input_is_refused(name: str, kind: str, refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("mine")
    out = link(kind, path)
    told = refused(name, *(path if word == "IN" else word for word in OPTIONS[name]), "--out", out)
    assert f"{out} is the input {path}" in told
    assert path.read_text() == "mine"


def test_all_commands_with_inputs_and_an_output_are_tried() -> None:
    assert COMMANDS.keys() - OPTIONS.keys() == {"explain", "evaluate", "show", "doctor", "demo"}


def test_an_output_inside_an_input_folder_is_refused(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    (tmp_path / "topics").write_text("1\tx\n")
    out = tmp_path / "index" / "new.run"
    assert "is inside the input folder" in refused(
        "search", "--index", tmp_path / "index", "--topics", tmp_path / "topics", "--out", out
    )


def test_a_prior_is_an_input(refused: Refused, ranked: list[object], tmp_path: Path) -> None:
    prior = tmp_path / "prior.tsv"
    prior.write_text("a 1\n")
    assert "is the input" in refused("features", *ranked, "--features", f"prior:{prior}", "--out", prior)


def test_the_runs_of_an_ensemble(refused: Refused, ranked: list[object], ensemble: Path, tmp_path: Path) -> None:
    run = tmp_path / "div.2.run"
    run.write_bytes(Path(str(ranked[-1])).read_bytes())
    words = ["--method", "cssvm", "--model", ensemble, "--k", "3", "--out", tmp_path / "div.run"]
    assert "div.2.run is the input" in refused("diversify", *ranked[:4], "--run", run, *words)
    assert not (tmp_path / "div.1.run").exists()


def test_other_outputs_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x")
    check_output(tmp_path / "out", [tmp_path / "in", tmp_path / "absent"])
    check_options({"out": tmp_path / "out", "runs": [tmp_path / "in"], "k": 3, "model": None})
    with pytest.raises(ParameterError, match="is the input"):
        check_options({"out": tmp_path / "in", "runs": [tmp_path / "in"]})


def test_lines_are_above_the_progress_line(capfd: pytest.CaptureFixture[str]) -> None:
    with tqdm(total=2, desc="folds", file=sys.stderr, ncols=60):
        before = capfd.readouterr().err
        tell("fold 1")
        out, after = capfd.readouterr()
    assert before.count("0/2") == 1
    assert out == "fold 1\n"
    assert after.startswith("\r ")  # the line is cleared
    assert after.count("0/2") == 1
    assert after.rstrip().endswith("]")


SMALL = ["--features", "FI/term/LM,SD/ordered/LM-O-1,FI/term/BM25", "--max-features", "2"]
BARS = {
    "train": (["train", *SMALL, "--folds", "3", "--out-run", "held.run", "--out", "model.json"], [
        "1 features 24/24", "2 folds 2/3 features selected 1/2",
    ]),
    "tune": (["tune", "--model", "rm3", "--folds", "3", "--out-run", "held.run", "--out", "model.json"], [
        "1 folds 1/3 grid of RM3 4/9", "3 baselines 1/2 grid of RM3 4/9",
    ]),
    "rerank": (["rerank", "--method", "manifold", "--out", "out.run"], ["1 run bm25-manifold 12/24"]),
}  # fmt: skip
"""Commands, and some of what their bars say."""


@pytest.mark.parametrize("name", BARS)
def test_the_bars_of_a_command(
    name: str, made: Path, collection: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, texts = BARS[name]
    judged = [] if name == "rerank" else ["--qrels", made / "qrels.txt"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["greylag", *map(str, [*words, *collection, "--run", made / "bm25.run", *judged, "--jobs", 1])]
    )

    def work() -> None:
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code

    shown = bars(on_terminal(work, monkeypatch))
    assert set(texts) <= set(shown), shown
