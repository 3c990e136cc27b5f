"""What the pages on studies say, compared with what the experiment files expect."""

from __future__ import annotations

import re

import yaml

from tests.docs import ROOT

METZLER = ROOT / "plugin" / "greylag_papers" / "metzler_2007" / "README.md"


def test_the_table_of_scores_has_what_the_configs_expect() -> None:
    collections = ("cacm", "vaswani", "cranfield")
    expected = [yaml.safe_load((ROOT / "configs" / f"{name}.mrf.yaml").read_text())["expected"] for name in collections]
    _, _, section = METZLER.read_text().partition("## Scores")
    rows = re.findall(r"\|" + r" (\.\d{4}) \|" * 3 + "$", section, re.MULTILINE)
    assert len(rows) == len(expected[0]) + 2
    for system, row in zip(expected[0], rows[:-2], strict=True):  # the last two are Anserini's
        assert tuple(f"{own[system]['AP']:.4f}".lstrip("0") for own in expected) == row


def test_all_experiment_files_are_listed() -> None:
    listed = set(re.findall(r"`([\w.-]+\.yaml)`", (ROOT / "configs" / "README.md").read_text()))
    assert listed == {path.name for path in (ROOT / "configs").glob("*.yaml")}
