"""Reports: parsed as HTML and compared with what they were made from."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from greylag.experiments import QueryChanges, Section, draw_figure
from greylag.experiments.queries import Place, QueryChange
from greylag.experiments.report import write_report
from greylag.tables import Table
from tests.greylag.experiments.samples import Page
from tests.greylag.experiments.test_figures import draw


def sections() -> list[Section]:
    rows = [("a <b>", 0.25, 7, None), ("c", 1.0, 12, "x & y")]
    table = Table("Means <over> queries", ("system", "AP", "n", "note"), rows, decimals=3)
    figures = [draw_figure("One figure", draw), draw_figure("The same drawing", draw)]
    empty = Table("No rows", ("a", "b"), [])
    return [
        Section("Scores & more", "First paragraph.\n\nSecond <one>.", [table, empty, *figures]),
        Section("Empty", " ", [empty, QueryChanges("No queries", "AP", ("a", "b"), ())]),
    ]


def queries() -> Section:
    left = (Place(1, "d<1>", 2, "down to 2"), Place(2, "d2", None, "up to 1"))
    right = (Place(1, "d2", None, "up from 2", "+1 FI/term/LM (new & old)"), Place(2, "d<1>", 2, "down from 1", "-1"))
    found = [
        QueryChange("q1", "wing <flow>", 0.25, 0.75, left, right),
        QueryChange("q2", "boundary layer", 0.5, 0.125, left, right),
    ]
    return Section("Queries", "", [QueryChanges("Before & after", "AP", ("bm25", "mrf"), tuple(found))])


@pytest.fixture
def page(tmp_path: Path) -> str:
    write_report(tmp_path / "report.html", "A <title>", sections(), {"seed": 3, "settings": {"name": "x"}})
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_all_content_is_in_well_formed_html(page: str) -> None:
    parsed = Page(page)
    assert parsed.open == []
    assert parsed.texts["title"] == parsed.texts["h1"] == ["A <title>"]
    assert parsed.texts["h2"] == ["Scores & more", "Provenance"]
    assert parsed.texts["p"] == ["First paragraph.", "Second <one>."]
    assert parsed.texts["caption"] == ["Means <over> queries"]
    assert parsed.texts["figcaption"] == ["One figure", "The same drawing"]
    assert parsed.texts["th"] == ["system", "AP", "n", "note", "a <b>", "c", "seed", "settings"]
    assert parsed.texts["td"][:6] == ["0.250", "7", "", "1.000", "12", "x & y"]
    assert parsed.texts["pre"] == ["3", '{\n "name": "x"\n}']
    assert len(parsed.texts["svg"]) == 2
    assert "first & <second>" in parsed.texts["text"]
    assert [pair for pair in parsed.attributes if pair[:2] == ("td", "class")] == [("td", "class", "number")] * 4


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    parsed = Page(page)
    assert not {"script", "link", "img", "iframe", "image"} & {tag for tag, *_ in parsed.attributes}
    assert not {"script", "link", "img", "iframe", "image"} & set(parsed.texts)
    for _, name, value in parsed.attributes:
        if name in ("src", "href", "xlink:href"):
            assert value is not None
            assert value.startswith("#")
        assert name.startswith("xmlns") or "//" not in (value or "")
    assert "url(" not in re.sub(r"url\(#\w+\)", "", page)
    assert "@import" not in page


def test_identifiers_are_unique_and_referenced(page: str) -> None:
    attributes = Page(page).attributes
    identifiers = Counter(value for _, name, value in attributes if name == "id")
    links = {(value or "")[1:] for _, name, value in attributes if name in ("href", "xlink:href")}
    labels = {value or "" for _, name, value in attributes if name == "aria-labelledby"}
    references = links | labels | set(re.findall(r"url\(#(\w+)\)", page))
    assert references
    assert identifiers == Counter(references)


def test_the_same_sections_give_the_same_bytes(tmp_path: Path, page: str) -> None:
    write_report(tmp_path / "again.html", "A <title>", sections(), {"seed": 3, "settings": {"name": "x"}})
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_headers_have_scope_and_drawings_have_names(page: str) -> None:
    attributes = Page(page).attributes
    assert [pair[2] for pair in attributes if pair[:2] == ("th", "scope")] == ["col"] * 4 + ["row"] * 4
    assert sum(tag == "th" for tag in re.findall(r"<(th)\b", page)) == 8
    names = [value for tag, name, value in attributes if tag == "svg" and name == "aria-label"]
    assert names == ["One figure", "The same drawing"]


def test_queries_with_both_rankings(tmp_path: Path) -> None:
    write_report(tmp_path / "report.html", "t", [queries()], {})
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    parsed = Page(text)
    assert parsed.open == []
    assert parsed.texts["caption"] == ["bm25, query q1", "mrf, query q1", "bm25, query q2", "mrf, query q2"]
    assert [value for tag, name, value in parsed.attributes if name == "data-change"] == ["0.5", "-0.375"]
    assert parsed.rows[1] == ["1", "d<1>", "2", "down to 2"]
    assert parsed.rows[2] == ["2", "d2", "not judged", "up to 1"]
    assert parsed.rows[4] == ["1", "d2", "not judged", "up from 2", "+1 FI/term/LM (new & old)"]
    assert "AP 0.2500 to 0.7500" in text
    assert "<script>" in text


def test_only_pages_with_queries_have_a_script(page: str) -> None:
    assert "<script" not in page
