"""Reports: parsed as HTML and compared with what they were made from."""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from greylag.errors import DependencyError
from greylag.experiments.figures import draw_figure
from greylag.experiments.report import Section, write_report
from greylag.experiments.tables import Table
from tests.greylag.experiments.samples import Page
from tests.greylag.experiments.test_figures import draw


def sections() -> list[Section]:
    rows = [("a <b>", 0.25, 7, None), ("c", 1.0, 12, "x & y")]
    table = Table("Means <over> queries", ("system", "AP", "n", "note"), rows, decimals=3)
    figures = [draw_figure("One figure", draw), draw_figure("The same drawing", draw)]
    return [Section("Scores & more", "First paragraph.\n\nSecond <one>.", [table, *figures]), Section("Empty")]


@pytest.fixture
def page(tmp_path: Path) -> str:
    write_report(tmp_path / "report.html", "A <title>", sections(), {"seed": 3, "settings": {"name": "x"}})
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_all_content_is_in_well_formed_html(page: str) -> None:
    parsed = Page(page)
    assert parsed.open == []
    assert parsed.texts["title"] == parsed.texts["h1"] == ["A <title>"]
    assert parsed.texts["h2"] == ["Scores & more", "Empty", "Provenance"]
    assert parsed.texts["p"] == ["First paragraph.", "Second <one>."]
    assert parsed.texts["caption"] == ["Means <over> queries"]
    assert parsed.texts["figcaption"] == ["One figure", "The same drawing"]
    assert parsed.texts["th"] == ["system", "AP", "n", "note", "seed", "settings"]
    assert parsed.texts["td"][:8] == ["a <b>", "0.250", "7", "", "c", "1.000", "12", "x & y"]
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
    references = {(value or "")[1:] for _, name, value in attributes if name == "xlink:href"} | set(
        re.findall(r"url\(#(\w+)\)", page)
    )
    assert references
    assert identifiers == Counter(references)


def test_the_same_sections_give_the_same_bytes(tmp_path: Path, page: str) -> None:
    write_report(tmp_path / "again.html", "A <title>", sections(), {"seed": 3, "settings": {"name": "x"}})
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_missing_packages_are_named_with_their_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(DependencyError, match=rf"{missing}.*pip install 'greylag\[report\]'"):
        write_report(tmp_path / "r", "t", [], {})
