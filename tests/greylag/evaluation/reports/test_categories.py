"""Means by category are means of those topics alone."""

import csv

import numpy as np
import pytest

from greylag.base import GreylagError
from greylag.base.runtime.files import read_pairs
from greylag.evaluation.reports.evaluation import Evaluation
from greylag.evaluation.reports.parts import category_table, scores_by_category
from tests.greylag.evaluation.reports.test_verdict import scores
from tests.refusals import refuses

CATEGORIES = {str(n): "even" if n % 2 == 0 else "odd" for n in range(20)} | {"other": "none"}


def test_means_of_the_topics_of_a_category():
    found = scores(np.random.default_rng(0), "ab", ["AP", "P@5"])
    parts = scores_by_category(found, CATEGORIES)
    table = category_table(found, parts)
    assert [*table.header] == ["run", "measure", "even", "odd"]
    assert "even 10, odd 10; 10 without a category" in table.caption
    for run, measure, *cells in table.rows:
        values = found[run].values[:20, ["AP", "P@5"].index(measure)]
        assert [cell.value for cell in cells] == pytest.approx([values[::2].mean(), values[1::2].mean()])
    rows = [*csv.DictReader(Evaluation(found).by_category(CATEGORIES).format("csv").splitlines())]
    assert [(row["run"], row["topics"]) for row in rows] == [(r, t) for t in ("all", "even", "odd") for r in "ab"]
    assert float(rows[5]["P@5"]) == pytest.approx(found["b"].values[1:20:2, 1].mean())
    assert float(rows[1]["P@5"]) == pytest.approx(found["b"].values[:, 1].mean())


@pytest.mark.parametrize(
    "text",
    [
        "1\tlong\n2\tshort, sweet\n",
        '# kinds\n\n1,long\n2,"short, sweet"',
        'qid,category\n1,long\n\n2,"short, sweet"\n',
        "topic\tkind\n1\t long\n2\tshort, sweet",
    ],
)
def test_files(tmp_path, text):
    (tmp_path / "of.txt").write_text(text)
    assert read_pairs(tmp_path / "of.txt", "qid category") == {"1": "long", "2": "short, sweet"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("1", "txt:1: category"), ("1,a,b", "txt:1: '1,a,b'"), ("1,a\n2,", "txt:2:"),
        (f"1,{10**6 * 'a'}", "txt: table"), ("1,a\n2,b\n1,b", "txt:3: '1'"), ("", "txt"),
    ],
)  # fmt: skip
def test_refused_files(tmp_path, text, parts):
    (tmp_path / "of.txt").write_text(text)
    limit = csv.field_size_limit(1 << 17)  # Python's own, which other packages raise
    try:
        refuses(lambda: read_pairs(tmp_path / "of.txt", "qid category"), GreylagError, parts)
    finally:
        csv.field_size_limit(limit)


def test_categories_of_other_topics_are_refused():
    found = scores(np.random.default_rng(0), "ab", ["AP", "P@5"])
    refuses(lambda: scores_by_category(found, {"x": "odd"}), GreylagError, "'0' 'x'")
    refuses(lambda: scores_by_category(found, {"0": "all"}), GreylagError, "'all'")
