from __future__ import annotations

import re
from pathlib import Path

from tests.greylag.cli.conftest import DEMO, Command


def test_the_demo_and_its_expected_scores(command: Command, tmp_path: Path) -> None:
    code, out, _ = command("demo", "--out", tmp_path)
    assert code == 0
    for step in ("bm25", "mrf", "mmr"):
        assert re.search(rf"^{step} +0\.\d+", out, re.MULTILINE)
        assert (tmp_path / f"{step}.run").exists()
    assert (tmp_path / "models" / "fold-6.json").exists()
    code, out, _ = command("experiment", DEMO / "demo.yaml", "--out", tmp_path, "--check")
    assert code == 0
    assert out.endswith("all scores are as expected\n")
