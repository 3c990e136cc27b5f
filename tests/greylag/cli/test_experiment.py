from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.greylag.cli.conftest import DEMO, Command, Refused


def test_a_check_that_fails(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    text = (DEMO / "demo.yaml").read_text()
    changed = re.sub(r"(bm25: \{AP: 0\.\d\d)\d\d", r"\g<1>99", text)
    assert changed != text
    config = tmp_path / "wrong.yaml"
    config.write_text(f"data: {DEMO}\n{changed}")
    code, _, err = command("experiment", config, "--out", tmp_path / "out", "--check")
    assert code == 1
    assert re.fullmatch(r"bm25 AP: expected 0\.\d\d99, got 0\.\d+\n", err.splitlines()[-1] + "\n")


def test_files_that_are_no_experiments(refused: Refused, made: Path, tmp_path: Path) -> None:
    assert "cannot be read: No such file or directory" in refused("experiment", tmp_path / "none.yaml")
    assert "an experiment file is a mapping" in refused("experiment", made / "qrels.txt")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: x\nstudy: tea", "unknown study 'tea'"),
        ("name: x\ntopics: t\nqrels: q", "collection: field required"),
        ("name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\nfold: 3", "fold: extra inputs are not permitted"),
        (
            "name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\ntraining: {folds: 1}",
            "training.folds: input should be",
        ),
        ("name: [", "bad.yaml:1: not YAML"),
    ],
)
def test_bad_experiment_files(refused: Refused, tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    assert reason in refused("experiment", tmp_path / "bad.yaml")


def test_a_check_needs_expected_scores(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\n")
    assert "--check needs expected scores" in refused("experiment", tmp_path / "x.yaml", "--check")
