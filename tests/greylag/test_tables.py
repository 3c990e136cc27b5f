"""What a notebook shows."""

from __future__ import annotations

import csv
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markdown_it import MarkdownIt

from greylag.diversity.model import DiversityModel
from greylag.evaluation import evaluate
from greylag.features import parse_features
from greylag.ltr import LinearModel
from greylag.ranking import Ranking, Run
from greylag.tables import Marked, Table, as_html, as_latex, as_markdown, as_text, as_tsv, cell_text, html_text
from tests.greylag.diversity import samples

EVIL = "<script>alert('1')</script>&amp;"


class Cells(HTMLParser):
    """The texts and tags of a page, as a browser reads them."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_rankings_and_runs() -> None:
    ranking = Ranking("q<1>", EVIL, tuple(f"<d{n}>" for n in range(12)), np.arange(12.0, 0.0, -1.0))
    page = Cells(ranking._repr_html_())
    assert "script" not in page.tags
    assert page.tags.count("tr") == 1 + 10
    assert page.texts[:4] == [f"query q<1>: {EVIL}; the first 10 of 12", "rank", "docid", "score"]
    assert page.texts[4:7] == ["1", "<d0>", "12.0000"]
    page = Cells(Run((ranking, Ranking("2", "none", (), np.empty(0))), tag="<b>")._repr_html_())
    assert page.texts[0] == "run <b>"
    assert page.texts[5:] == ["q<1>", EVIL, "12", "<d0>", "2", "none", "0"]
    assert "script" not in page.tags


def test_scores_are_labelled_means() -> None:
    run = Run((Ranking("1", "", ("a", "b"), np.array([2.0, 1.0])), Ranking("2", "", ("b",), np.array([1.0]))))
    scores = evaluate(run, {"1": {"b": 1}, "2": {"b": 1}}, ["AP", "P@1"])
    page = Cells(scores._repr_html_())
    assert page.texts == ["means over 2 queries", "measure", "mean", "AP", "0.7500", "P@1", "0.5000"]


@pytest.mark.parametrize("seed", range(5))
def test_cells_survive_markdown_latex_and_tsv(seed: int) -> None:
    """Read again by markdown-it, by undoing LaTeX's escapes, and by csv."""
    rng = np.random.default_rng(seed)
    alphabet = list("ab 1|\\*_`<>[]&%$#{}~^-\"'")
    names = ["".join(rng.choice(alphabet, 8)).strip() or "x" for _ in range(12)]
    rows = [
        (names[3 * row], names[3 * row + 1], names[3 * row + 2], Marked(-0.25 * row, "+.4f", " ab")) for row in range(4)
    ]
    table = Table("a_b & c", ("one", "two", "three", "four"), rows)
    page = Cells(MarkdownIt().enable("table").render(as_markdown(table)))
    texts = "".join(page.texts).split("\n")
    shown = [text.strip() for text in texts if text.strip()]
    assert shown == [*table.header, *(cell for row in rows for cell in (*row[:3], f"{row[3].value:+.4f}ab")), "a_b & c"]
    lines = as_latex(table).splitlines()
    body = [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in lines[7:11]]
    plain = {r"\textbackslash{}": "\\", r"\textasciitilde{}": "~", r"\textasciicircum{}": "^", r"\textless{}": "<"}
    undo = {**plain, r"\textgreater{}": ">", **{rf"\{character}": character for character in "&%$#_{}"}}
    pattern = re.compile("|".join(map(re.escape, undo)))
    read = [[*(pattern.sub(lambda found: undo[found[0]], cell) for cell in row[:3]), row[3]] for row in body]
    assert read == [[*row[:3], f"${row[3].value:+.4f}^{{ab}}$"] for row in rows]
    found = list(csv.reader(as_tsv(table).splitlines(), "excel-tab"))
    assert found == [[*table.header], *([*row[:3], str(row[3].value)] for row in rows)]


LINEAR = LinearModel(parse_features("prior:a&b<c>"), (1.5,))


@pytest.mark.parametrize("model", [LINEAR, samples.MODEL, samples.ENSEMBLE])
def test_models_show_their_summaries(model: LinearModel | DiversityModel) -> None:
    page = Cells(model._repr_html_())
    assert page.tags == ["pre"]
    assert "".join(page.texts) == model.summary()


def test_a_table_as_text() -> None:
    table = Table("Scores", ("system", "AP", "n"), [("a", 0.25, 7), ("long", 12.5, None)], decimals=2)
    assert as_text(table) == "Scores\nsystem     AP  n\na        0.25  7\nlong    12.50\n"
    assert as_text("any text\n") == "any text\n"


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (None, 2, ""),
        ("text", 2, "text"),
        (3, 2, "3"),
        (0.125, 2, "0.12"),
        (0.0, 2, "0.00"),
        (0.005, 2, "0.01"),
        (0.0049, 2, "<0.01"),
        (1e-9, 4, "<0.0001"),
        (-1e-9, 4, "-0.0000"),
    ],
)
def test_cells(value: str | float | None, decimals: int, text: str) -> None:
    assert cell_text(value, decimals) == text


def test_html() -> None:
    table = Table("<c>", ("", "AP", "p"), [("a&b", 0.25, "<0.001*"), (3, None, "")], decimals=2)
    assert as_html(table, "part-1") == (
        '<table><caption id="part-1">&lt;c&gt;</caption>'
        '<thead><tr><td></td><th scope="col" class="number">AP</th><th scope="col" class="number">p</th></tr></thead>'
        '<tbody><tr><th scope="row">a&amp;b</th><td class="number">0.25</td><td class="number">&lt;0.001*</td></tr>'
        '<tr><td>3</td><td class="number"></td><td class="number"></td></tr></tbody></table>'
    )
    assert html_text("a<b\n") == "<pre>a&lt;b\n</pre>"
