"""The README's code blocks, run in order in a folder with the demonstration collection."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.docs import ROOT, blocks, lay_out

README = ROOT / "README.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = "\n".join(blocks(README, "python"))
    exec(compile(code, "README.md", "exec"), {})
    scores = dict(re.findall(r"^(\w+) {'AP': ([\d.]+)", capsys.readouterr().out, re.MULTILINE))
    assert float(scores["trees"]) > float(scores["mrf"]) > float(scores["bm25"]) > 0.8
    assert (folder / "bm25-mmr.run").read_text().startswith("1 Q0 ")


def test_commands(folder: Path) -> None:
    greylag_command = Path(sys.executable).with_name("greylag")
    for line in "\n".join(blocks(README, "sh")).splitlines():
        done = subprocess.run(
            [greylag_command, *line.split()[1:]], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, (line, done.stderr)
        if "--baseline" in line:
            assert re.search(r"held-out.run +0\.9\d+ +\+0\.0", done.stdout)
        if line.startswith("greylag explain"):
            shown = next(block for block in blocks(README, "text") if block.startswith("feature, its cliques"))
            assert set(shown.splitlines()) <= set(done.stdout.splitlines())
    assert " 1=FI/term/LM " in (folder / "features.txt").read_text().partition("\n")[0]


def test_the_table_of_scores_has_what_the_configs_expect() -> None:
    collections = ("cacm", "vaswani", "cranfield")
    expected = [yaml.safe_load((ROOT / "configs" / f"{name}.mrf.yaml").read_text())["expected"] for name in collections]
    _, _, section = README.read_text().partition("### Selected features")
    cells = r" (\.\d{4}|–) \|" * 3
    rows = re.findall(rf"\|{cells}$", section.partition("\n## ")[0], re.MULTILINE)
    for system, row in zip(expected[0], rows[:-2], strict=True):  # the last two are Anserini's
        shown = [f"{own[system]['AP']:.4f}".lstrip("0") if system in own else "–" for own in expected]
        assert shown == list(row)
