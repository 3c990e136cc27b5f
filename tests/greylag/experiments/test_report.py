"""Reports: parsed as HTML, held against what went in."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser

import matplotlib
import pytest

from greylag.errors import DependencyError
from greylag.experiments import report
from greylag.experiments.config import Experiment
from greylag.experiments.report import Figure, Section, Table, as_text, draw_figure, provenance, write_report

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Cells, texts by element, attributes, and whether every element is closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.attributes = [], {}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]
        if tag not in VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag, attrs):
        self.attributes += [(tag, *pair) for pair in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1]][-1] += data


def draw(canvas):
    left, right = canvas.subplots(1, 2)
    left.plot([1, 2, 3], [3, 1, 2], marker="o", label="first & <second>")
    left.legend()
    right.scatter([1, 2], [3, 4])


def sections():
    rows = [("a <b>", 0.25, 7, None), ("c", 1.0, 12, "x & y")]
    table = Table("Means <over> queries", ("system", "AP", "n", "note"), rows, decimals=3)
    figures = [draw_figure("One figure", draw), draw_figure("The same drawing", draw)]
    return [Section("Scores & more", "First paragraph.\n\nSecond <one>.", [table, *figures]), Section("Empty")]


@pytest.fixture
def page(tmp_path):
    write_report(tmp_path / "report.html", "A <title>", sections(), {"seed": 3, "settings": {"name": "x"}})
    return (tmp_path / "report.html").read_text(encoding="utf-8")


def test_everything_that_went_in_comes_out_in_well_formed_html(page):
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


def test_nothing_is_loaded_from_elsewhere(page):
    parsed = Page(page)
    assert not {"script", "link", "img", "iframe", "image"} & {tag for tag, *_ in parsed.attributes}
    for _, name, value in parsed.attributes:
        if name in ("src", "href", "xlink:href"):
            assert value.startswith("#")
        assert name.startswith("xmlns") or "//" not in (value or "")
    assert "url(" not in re.sub(r"url\(#\w+\)", "", page)
    assert "@import" not in page


def test_identifiers_are_unique_and_references_have_one(page):
    attributes = Page(page).attributes
    identifiers = Counter(value for _, name, value in attributes if name == "id")
    referred = {value[1:] for _, name, value in attributes if name == "xlink:href"} | set(
        re.findall(r"url\(#(\w+)\)", page)
    )
    assert referred
    assert identifiers == Counter(referred)


def test_the_same_sections_give_the_same_bytes(tmp_path, page):
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):  # a user's own style does not show
        write_report(tmp_path / "again.html", "A <title>", sections(), {"seed": 3, "settings": {"name": "x"}})
    assert (tmp_path / "again.html").read_text(encoding="utf-8") == page


def test_drawing_leaves_matplotlib_as_it_was():
    before = dict(matplotlib.rcParams)
    draw_figure("a figure", draw)
    assert dict(matplotlib.rcParams) == before


def test_any_svg_can_be_a_figure(tmp_path):
    write_report(tmp_path / "r.html", "t", [Section("s", parts=[Figure("c", "<svg><path d='M 0 0'/></svg>")])], {})
    assert "<svg><path d='M 0 0'/></svg>" in (tmp_path / "r.html").read_text()


def test_a_table_as_text():
    table = Table("Scores", ("system", "AP", "n"), [("a", 0.25, 7), ("long", 12.5, None)], decimals=2)
    assert as_text(table) == "Scores\nsystem     AP  n\na        0.25  7\nlong    12.50\n"


def test_provenance_has_settings_versions_and_what_is_added():
    found = provenance(Experiment(name="x", study="two-moons"), fingerprint="ab")
    assert found["settings"]["study"] == "two-moons"
    assert found["fingerprint"] == "ab"
    assert {"greylag", "numpy", "Python"} < set(found)


@pytest.mark.parametrize("missing", ["matplotlib", "jinja2"])
def test_missing_packages_are_named_with_their_remedy(monkeypatch, tmp_path, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    for attempt in (
        report.check_dependencies,
        lambda: write_report(tmp_path / "r", "t", [], {}),
        lambda: draw_figure("c", draw),
    ):
        with pytest.raises(DependencyError, match=rf"{missing}.*pip install 'greylag\[report\]'"):
            attempt()


def test_the_module_alone_loads_neither_package():
    code = "import sys, greylag.experiments.report; sys.exit(bool({'matplotlib', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
