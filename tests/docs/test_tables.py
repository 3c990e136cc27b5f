"""The figures that pages make from experiment files."""

import os
import re

import pytest
import yaml

from tests.docs import DOCS, ROOT, load


@pytest.fixture(scope="module")
def tables():
    return load("tables")


def test_kept_blocks_are_those_of_the_expected_scores(tables):
    """`make names` writes them."""
    used = set()
    for page in DOCS.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        made = tables.with_figures(text)
        if os.environ.get("GREYLAG_GOLDEN") == "write" and made != text:
            page.write_text(made, encoding="utf-8")
            text = made
        assert text == made, page
        used |= set(re.findall(r"<!-- made: ([\w-]+) -->\n\n(?:(?!<!-- ).*\n)+\n<!-- end -->", text))
    assert used == tables.MADE.keys()


def test_a_table_has_the_figures_of_its_file(tables):
    expected = yaml.safe_load((ROOT / "configs" / "general.yaml").read_text())["expected"]
    (row,) = [line for line in tables.general_collections().splitlines() if line.startswith("| WikiQA")]
    means = expected["wikiqa, nDCG@10, top 100"]
    for system, shown in zip(("BM25", "tuned BM25", "RM3", "SDM", "general"), row.split(" | ")[2:], strict=False):
        assert float(shown) == pytest.approx(means[system], abs=0.00051)
