"""``greylag fuse``."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from greylag.fusion import fuse_runs
from greylag.ranking import Ranking, Run
from greylag.trec import read_run, write_run
from tests.greylag.cli.conftest import Command, Refused


def test_runs_are_fused(tmp_path: Path, command: Command, refused: Refused) -> None:
    paths = [tmp_path / "one.run", tmp_path / "two.run"]
    write_run(Run((Ranking("1", "", ("a", "b"), [2.0, 1.0]),)), paths[0])
    write_run(Run((Ranking("1", "", ("c", "b"), [9.0, 8.0]),)), paths[1])
    out = tmp_path / "out.run"
    words = ["--run", paths[0], "--run", paths[1], "--method", "combmnz", "--hits", 2, "--out", out]
    assert command("fuse", *words) == (0, "", "")
    expected = fuse_runs([read_run(path) for path in paths], "combmnz", k=2)
    assert read_run(out)["1"].docids == expected["1"].docids
    assert "which it would replace" in refused("fuse", "--run", paths[0], "--out", paths[0])


def test_scores_come_back_as_a_run(tmp_path: Path, command: Command, ranked: list[object]) -> None:
    """The features of another program's file, its scores and a run: here the first stage's own scores."""
    names, out = [tmp_path / "f.npz", tmp_path / "f.txt"], tmp_path / "out.run"
    first = read_run(Path(str(ranked[-1])))
    for features in names:
        assert command("features", *ranked, "--features", "score", "--out", features) == (0, "", "")
    np.savetxt(tmp_path / "own.scores", np.load(names[0])["features"][:, 0])
    for features in names:
        words = ["--run", tmp_path / "own.scores", "--scores-of", features, "--out", out]
        assert command("fuse", *words) == (0, "", "")
        run = read_run(out)
        assert (run.tag, run.rankings) == ("own", first.rankings)
        assert command("fuse", "--run", tmp_path / "own.scores", *words, "--hits", 3, "--tag", "two") == (0, "", "")
        assert read_run(out)["1"].docids == first["1"].docids[:3]
