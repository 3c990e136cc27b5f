"""The README's blocks, run in order in a folder with the demonstration collection, and what it says in figures."""

import re
import tomllib

import pytest
import yaml

from tests.docs import DOCS, ROOT, lay_out, run_page

README = ROOT / "README.md"


@pytest.mark.long
def test_blocks(tmp_path, monkeypatch, capsys):
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    printed = run_page(README)
    assert "The cat sat.\nA dog ran.\nThe cat sat down.\n" in capsys.readouterr().out
    assert "is better than tuned RM3" in printed
    for name in ("best.run", "trained.run", "general-mmr.run"):
        assert (tmp_path / name).read_text().startswith("1 Q0 ")


def test_gains_without_judgements_are_those_that_the_study_expects():
    """Of the top 1000, as the command reranks them."""
    expected = yaml.safe_load((ROOT / "configs" / "general.yaml").read_text())["expected"]
    kind = ", nDCG@10, top 1000, general less BM25"
    ours = [row for name, row in expected.items() if name.endswith(kind) and name != f"all{kind}"]
    gains = [row["difference"] for row in ours]
    shown = re.search(
        r"nDCG@10 by (\.\d+) on average on eighteen public collections "
        r"\(from (\.\d+) to (\.\d+), significantly on sixteen;",
        " ".join(README.read_text().split()),
    )
    assert shown
    for found, figure in zip(shown.groups(), (expected[f"all{kind}"]["mean"], min(gains), max(gains)), strict=True):
        assert float(found) == pytest.approx(figure, abs=0.00051)
    assert (len(ours), sum(row["p"] < 0.05 for row in ours)) == (18, 16)


def test_means_beside_an_encoder_are_those_that_the_study_expects():
    expected = yaml.safe_load((ROOT / "configs" / "encoder.yaml").read_text())["expected"]
    (row,) = re.findall(r"^\| (\.\d+(?: \| \.\d+){5}) \|$", README.read_text(), re.MULTILINE)
    means = expected["all, nDCG@10"]
    systems = "BM25", "general", "MiniLM", "RRF(BM25, MiniLM)", "sum(general, MiniLM)", "hybrid"
    assert [float(shown) for shown in row.split(" | ")] == pytest.approx([means[one] for one in systems], abs=0.00051)
    less = ", nDCG@10, hybrid less RRF(BM25, MiniLM)"
    rows = [one for name, one in expected.items() if name.endswith(less) and "p" in one]
    assert [len(rows), sum(one["difference"] > 0 for one in rows), sum(one["p"] < 0.05 for one in rows)] == [17, 16, 10]


def test_the_extras_of_the_installation_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for page in (README, DOCS / "installation.md"):
        named = re.findall(r"'?\.\[([\w,-]+)\]", page.read_text())
        assert named
        assert {name for names in named for name in names.split(",")} <= extras.keys()
    page = (DOCS / "installation.md").read_text()
    assert all(f"`{name}`" in page or f"[{name}]" in page for name in extras)


def test_the_two_commands_are_named_with_the_time_that_other_pages_say():
    said = dict(re.findall(r"^\$ make (demo|test) +#.*; (\d to \d minutes)", README.read_text(), re.MULTILINE))
    assert said.keys() == {"demo", "test"}
    for page in (ROOT / "CONTRIBUTING.md", ROOT / "Makefile"):
        assert said["test"] in page.read_text()
