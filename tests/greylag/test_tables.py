"""What a notebook shows."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

from greylag.diversity.model import DiversityModel
from greylag.evaluation import evaluate
from greylag.features import parse_features
from greylag.ltr import LinearModel
from greylag.ranking import Ranking, Run
from greylag.tables import html_table, html_text
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


LINEAR = LinearModel(parse_features("prior:a&b<c>"), (1.5,))


@pytest.mark.parametrize("model", [LINEAR, samples.MODEL, samples.ENSEMBLE])
def test_models_show_their_summaries(model: LinearModel | DiversityModel) -> None:
    page = Cells(model._repr_html_())
    assert page.tags == ["pre"]
    assert "".join(page.texts) == model.summary()


def test_a_short_table_and_a_text() -> None:
    assert html_table("c", ["a"], [["<"]], 1) == (
        '<table><caption>c</caption><thead><tr><th scope="col">a</th></tr></thead>'
        "<tbody><tr><td>&lt;</td></tr></tbody></table>"
    )
    assert html_text("a<b\n") == "<pre>a&lt;b\n</pre>"
