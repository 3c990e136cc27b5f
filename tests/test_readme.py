"""The README's blocks, run in order in a folder with the demonstration collection, and what it says in figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from tests.browser.__main__ import picture
from tests.docs import DEMO, DOCS, ROOT, lay_out, run_page

README = ROOT / "README.md"


def test_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = run_page(README)
    assert (DOCS / "demo.svg").read_text() == picture(tmp_path / "runs" / "demo" / "report.html")
    assert "is better than tuned BM25" in printed
    assert (tmp_path / "best.run").read_text().startswith("1 Q0 ")
    assert (tmp_path / "best-mmr.run").read_text().startswith("1 Q0 ")


def test_length() -> None:
    assert len(README.read_text().splitlines()) <= 160


def test_scores_of_the_demonstration_are_those_that_it_expects() -> None:
    expected = yaml.safe_load((DEMO / "demo.yaml").read_text())["expected"]
    for system, measures in expected.items():
        row = re.search(rf"^{system} +(.*)$", README.read_text(), re.MULTILINE)
        assert row, system
        for measure in measures.keys() & {"AP", "nDCG@10"}:
            assert f"{measures[measure]:.4f}" in row[1].split()


def test_scores_of_studies_are_those_that_the_configs_expect() -> None:
    shown = re.findall(r"\.(\d{4}), \.(\d{4}) and \.(\d{4})", " ".join(README.read_text().split()))
    collections = ("cacm", "vaswani", "cranfield")
    expected = [yaml.safe_load((ROOT / "configs" / f"{name}.mrf.yaml").read_text())["expected"] for name in collections]
    for system, row in zip(("MRF-FS", "BM25", "RM3"), shown, strict=True):
        assert tuple(f"{own[system]['AP']:.4f}"[2:] for own in expected) == row
