"""Figures as SVG: reproducible, self-contained, and independent of the user's style."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from greylag.errors import DependencyError
from greylag.experiments import Figure, Panel, Section, draw_figure, line_figure, plain_text
from greylag.experiments.figures import check_dependencies
from greylag.experiments.report import write_report
from tests.greylag.experiments.samples import Page


def draw(canvas: Any) -> None:
    left, right = canvas.subplots(1, 2)
    left.plot([1, 2, 3], [3, 1, 2], marker="o", label="first & <second>")
    left.legend()
    right.scatter([1, 2], [3, 4])


def test_the_same_drawing_gives_the_same_bytes_in_any_style() -> None:
    figure = draw_figure("one", draw)
    with matplotlib.rc_context({"font.size": 20, "lines.linewidth": 9}):
        assert draw_figure("one", draw) == figure
    assert draw_figure("another", draw).svg != figure.svg


def test_drawing_leaves_matplotlib_as_it_was() -> None:
    before = dict(matplotlib.rcParams)
    draw_figure("a figure", draw)
    assert dict(matplotlib.rcParams) == before


def test_sizes() -> None:
    parsed = Page(draw_figure("a figure", draw, width=5.0, height=2.0).svg)
    assert {("svg", "width", "360pt"), ("svg", "height", "144pt")} <= set(parsed.attributes)


def test_curves_and_levels_of_every_panel() -> None:
    panels = {"left": ({"up": {1: 0.1, 2: 0.2, 3: 0.4}}, {"chance": 0.25}), "right": ({"down": {1: 0.4, 3: 0.1}}, {})}
    parsed = Page(line_figure("caption", "rounds", "AP", panels).svg)
    texts = [text.strip() for text in parsed.texts["text"]]
    assert {"left", "right", "up", "down", "chance", "rounds", "AP", "1", "2", "3"} <= set(texts)
    assert texts.count("rounds") == 2
    assert "1.5" not in texts  # whole numbers only, as all x are
    assert sum(tag == "use" for tag, name, _ in parsed.attributes if name == "x") >= 5  # markers
    continuous = Page(line_figure("caption", "x", "y", {"": ({"a": {0.5: 1.0, 2.0: 2.0}}, {})}).svg)
    assert "1.0" in [text.strip() for text in continuous.texts["text"]]
    wide: dict[str, Panel] = {"": ({"a": {1: 1.0, 1000: 2.0}}, {})}
    assert "400" in Page(line_figure("caption", "x", "y", wide).svg).texts["text"]
    assert "400" not in Page(line_figure("caption", "x", "y", wide, log=True).svg).texts["text"]


def test_any_svg_can_be_a_figure(tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", "t", [Section("s", parts=[Figure("c", "<svg><path d='M 0 0'/></svg>")])], {})
    assert """<svg role="img" aria-label="c"><path d='M 0 0'/></svg>""" in (tmp_path / "r.html").read_text()


def test_a_missing_package_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for attempt in (check_dependencies, lambda: draw_figure("c", draw)):
        with pytest.raises(DependencyError, match=r"matplotlib.*pip install 'greylag\[report\]'"):
            attempt()


def test_the_module_alone_loads_neither_package() -> None:
    code = "import sys, greylag.experiments.report; sys.exit(bool({'matplotlib', 'jinja2'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_dollar_signs_in_names_are_text() -> None:
    panels: dict[str, Panel] = {"$a^": ({"q$1": {1: 0.5}, "$x$": {1: 0.2}}, {"$_{": 0.1})}
    text = Page(line_figure("dollars", "x", "y", panels).svg).text
    assert all(name in text for name in ("$a^", "q$1", "$x$", "$_{"))
    assert plain_text("a$b$") == r"a\$b\$"
