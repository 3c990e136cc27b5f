"""A report with every kind of content, at the widths of a phone and of a laptop."""

import pytest

from greylag.base.core.tables import Marked, Table
from greylag.evaluation import Scores, compare_scores, parse_measure
from greylag.evaluation.reports.charts import contributions_chart, result
from greylag.evaluation.reports.figures import line_figure
from greylag.evaluation.reports.report import Section, report_page
from tests.browser.pages import show
from tests.greylag.evaluation.reports.test_report import queries

SEARCH = """
  const box = document.querySelector(".queries");
  const input = box.querySelector("input"), select = box.querySelector("select");
  const items = () => [...box.querySelectorAll("li")].filter((item) => item.offsetParent);
  const shown = () => items().map((item) => item.querySelector("b").textContent);
  const typed = (text) => { input.value = text; input.dispatchEvent(new Event("input")); return shown(); };
  const sorted = (order) => { select.value = order; select.dispatchEvent(new Event("change")); return shown(); };
  const found = { all: shown(), words: typed("LAYER bound"), id: typed("q1"), none: typed("zzz"),
    status: box.querySelector("[role=status]").textContent };
  typed("");
  found.gain = sorted("gain"); found.loss = sorted("loss");
  for (const details of document.querySelectorAll("details")) details.open = true;
  const [left, right] = [...box.querySelectorAll(".pair table")].map((table) => table.getBoundingClientRect());
  found.beside = right.left > left.right - 1;
  const small = [...document.querySelectorAll(".wide > table")].find((table) => table.rows.length === 4);
  found.sorted = [...small.querySelectorAll("thead button")].slice(0, 2).map((button) => [1, 2, 3].map(() => {
    button.focus();
    document.activeElement.click();
    const order = [...small.tBodies[0].rows].map((row) => row.cells[0].textContent).join(" ");
    return [button.parentNode.ariaSort, order];
  }));
  found.links = [...small.querySelectorAll("a")].map((link) => document.querySelector(link.hash).tagName);
  const tables = [...document.querySelectorAll("section > .wide > table")];
  found.unsorted = tables.filter((table) => !table.querySelector("button")).map((table) => table.rows[2].textContent);
  return found;
"""
SORTED = [
    [["ascending", "10% new old"], ["descending", "old new 10%"], ["none", "old new 10%"]],
    [["descending", "new 10% old"], ["ascending", "10% new old"], ["none", "old new 10%"]],
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    names = ("a system", *(f"measure {number}" for number in range(12)))
    table = Table("A wide table, seconds", names, [(f"row {row}", *[row / 3] * 12) for row in range(4)])
    curves = {"one": ({"up": {1: 0.1, 2: 0.4}}, {"chance": 0.2}), "two": ({"down": {1: 0.4, 2: 0.1}}, {})}
    values = {"old": (0.1, 0.5, 0.3), "new": (0.4, 0.2, 0.3)}
    scores = {n: Scores.single(parse_measure("AP"), dict(zip("abc", row, strict=True))) for n, row in values.items()}
    drawn = [table, line_figure("Curves", "x", "AP", curves)]
    drawn.append(contributions_chart("Parts", [("SD/unordered/BM25-U-unlimited", 2.0), ("score", -1.0)]))
    drawn.append(Table("", ("", "AP"), [("in", 0.5), ("  set in", 0.25)]))  # which belongs to the row above
    small = Table("", ("run", "p"), [("old", None), ("new", Marked(0.25, mark=" ab")), ("10%", 0.00001)])
    first = result([(scores, compare_scores(scores, "old"))], tables=[small])
    sections = [first, Section("Tables", "Words.", drawn), queries()]
    path.write_text(report_page("A report", sections, {"settings": {"name": "x" * 300}}), encoding="utf-8")
    return path


@pytest.mark.parametrize(("width", "dark"), [(390, False), (390, True), (1280, False), (1280, True)])
def test_it_fits_its_width_and_is_accessible(page, tmp_path, width, dark):
    seen = show(page, tmp_path, width, dark=dark, question=SEARCH)
    assert (seen.width, seen.dark, seen.violations, seen.console) == (width, dark, [], [])
    assert seen.needed <= width  # wide tables scroll on their own
    found = {"all": ["q1", "q2"], "words": ["q2"], "id": ["q1"], "none": [], "gain": ["q1", "q2"], "loss": ["q2", "q1"]}
    found |= {"sorted": SORTED, "links": ["FIGURE", "FIGURE"], "unsorted": ["  set in0.2500"]}
    assert seen.asked == found | {"status": "0 of 2 queries", "beside": width > 1000}


def test_it_prints_whole_tables_and_the_provenance(page, tmp_path):
    printed = tmp_path / "printed.html"
    text = page.read_text(encoding="utf-8")
    printed.write_text(text.replace("@media print", "@media all"), encoding="utf-8")
    question = """
      const cut = [...document.querySelectorAll(".wide")].filter((box) => box.scrollWidth > box.clientWidth + 1);
      const shown = [...document.querySelectorAll("#provenance + details td")].map((cell) => cell.checkVisibility());
      return { cut: cut.map((box) => box.querySelector(".note")?.textContent), shown };
    """
    seen = show(printed, tmp_path, 700, question=question)  # A4 between its margins, in CSS pixels
    # Twelve measures beside each other need the paper's other side up.
    assert seen.asked == {"cut": ["A wide table, seconds"], "shown": [True]}
