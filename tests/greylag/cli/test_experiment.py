from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.greylag.cli.conftest import DEMO, Command, Refused


def test_the_demo_and_its_expected_scores(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for more, end in (
        (["--out", "demo"], "report.html\n"),
        (["--out", "demo", "--check"], "all scores are as expected\n"),
    ):
        code, out, _ = command("experiment", "demo", *more)
        assert (code, out.endswith(end)) == (0, True), out
    for step in ("bm25", "mrf", "mmr"):
        assert re.search(rf"^{step} +0\.\d+", out, re.MULTILINE)
        assert (tmp_path / "demo" / f"{step}.run").exists()
    assert (tmp_path / "demo" / "models" / "fold-6.json").exists()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(path.stem for path in DEMO.glob("*.yaml")))
def test_the_files_of_the_demonstration_pass_their_own_check(name: str, command: Command, tmp_path: Path) -> None:
    code, out, err = command("experiment", name, "--out", tmp_path / "out", "--check")
    assert (code, out.endswith("all scores are as expected\n")) == (0, True), err


def test_a_check_that_fails(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    text = (DEMO / "demo.yaml").read_text()
    changed = re.sub(r"( bm25: \{AP: 0\.\d\d)\d\d", r"\g<1>99", text)
    assert changed != text
    config = tmp_path / "wrong.yaml"
    config.write_text(f"data: {DEMO}\n{changed}")
    code, _, err = command("experiment", config, "--out", tmp_path / "out", "--check")
    assert code == 1
    assert re.fullmatch(r"bm25 AP: expected 0\.\d\d99, got 0\.\d+\n", err.splitlines()[-1] + "\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("TMP/none.yaml", "No such file"),
        ("QRELS", "mapping"),
        ("bad.yaml --check", "--check"),
        ("demo --init pipeline", "--init"),
        ("--init nothing", "'nothing'"),
        ("--init pipeline --check", "--check"),
        ("", "--init pipeline"),
        ("cacn.yaml", "cacm"),
    ],
)
def test_refusals(refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: str, reason: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.yaml").write_text("name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\n")
    assert reason in refused(f"experiment {words}")


@pytest.mark.long
def test_a_file_to_start_from_runs(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    code, text, err = command("experiment", "--init", "pipeline")
    assert (code, err) == (0, "")
    for file in DEMO.glob("*.t*"):
        shutil.copy(file, tmp_path)
    shutil.copy(DEMO / "docs.jsonl", tmp_path)
    (tmp_path / "mine.yaml").write_text(text.replace("#training:", "training:").replace("#  folds: 5", "  folds: 2"))
    code, told, err = command("experiment", tmp_path / "mine.yaml", "--out", tmp_path / "out")
    assert (code, "fold 2:" in told, "fold 3:" in told) == (0, True, False), err
    assert (tmp_path / "out" / "report.html").exists()


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("training: {folds: 400}", "training.folds: 24 queries cannot be split into 400 folds"),
        ("subtopic_qrels: none.txt", "none.txt: cannot be read"),
        ("qrels: other.txt", "other.txt and .*topics.tsv have no topic in common"),
    ],
)
def test_what_does_not_fit_the_topics_is_refused_before_any_work(
    refused: Refused, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: str, reason: str
) -> None:
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    (made / "other.txt").write_text("999 0 demo-001 1\n")
    qrels = "" if "qrels: other" in more else "qrels: qrels.txt\n"
    text = f"name: x\ndata: {made}\ncollection: {{docs: nothing.jsonl}}\ntopics: topics.tsv\n{qrels}{more}\n"
    (tmp_path / "x.yaml").write_text(text)
    assert re.search(reason, refused("experiment", tmp_path / "x.yaml", "--out", tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_files_that_come_with_greylag(
    command: Command, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GREYLAG_DATA", str(tmp_path))
    config = DEMO.parents[2] / "configs" / "cacm.yaml"
    assert command("experiment", "--init", "cacm") == (0, config.read_text(), "")
    assert f"{tmp_path / 'cacm' / 'topics.cacm.txt'}" in refused("experiment", "cacm.yaml")
    monkeypatch.setenv("GREYLAG_DATA", str(tmp_path / "none"))
    assert f"there is no folder {tmp_path / 'none'}; set GREYLAG_DATA" in refused("experiment", "cacm.yaml")
