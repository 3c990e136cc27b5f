"""A study's report: one HTML file that needs nothing beside it, with tables, figures as inline SVG, and provenance.

The only place that knows matplotlib and jinja2, which are optional (``pip install 'greylag[report]'``) and imported
when they are used. The same sections give the same bytes.
"""

from __future__ import annotations

import json
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greylag.errors import DependencyError
from greylag.evaluation import aligned
from greylag.experiments.config import Experiment
from greylag.files import write_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Parameters
    ----------
    caption : what the numbers are, and over what.
    header : the columns' names.
    rows : cells: text, whole numbers, numbers (shown with `decimals`), or None for an empty one.
    decimals : of the numbers that are not whole by type.
    """

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str | float | None]]
    decimals: int = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: its caption, and an SVG element (`draw_figure` makes it)."""

    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, a text (paragraphs apart by a blank line), then tables and figures."""

    title: str
    text: str = ""
    parts: Sequence[Table | Figure] = ()


def as_text(table: Table) -> str:
    """A table for the terminal, its caption first."""
    rows = [table.header, *([_cell(value, table.decimals) for value in row] for row in table.rows)]
    return "\n".join([table.caption, *aligned(rows)]) + "\n"


def check_dependencies() -> None:
    """Raise `DependencyError` where matplotlib or jinja2 is missing: for the start of a study, not its end."""
    for module in ("matplotlib", "jinja2"):
        try:
            import_module(module)
        except ImportError:
            raise DependencyError(f"a report needs {module}: pip install 'greylag[report]'") from None


def draw_figure(caption: str, draw: Callable[[Canvas], None], *, width: float = 7.0, height: float = 3.5) -> Figure:
    """A figure that `draw` draws on an empty matplotlib figure (``axes = canvas.subplots(1, 2)``, and so on).

    Parameters
    ----------
    caption : different for every figure of a report.
    width, height : in inches.

    Raises
    ------
    DependencyError
        Where matplotlib is missing.
    """
    import io

    check_dependencies()
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    # The defaults, so that no matplotlibrc shows through; the backend is the user's.
    style: dict[Any, Any] = {name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"}
    # Elements are named by hashes of content and salt, so that names differ between figures and not between runs.
    style |= {"svg.hashsalt": caption, "svg.fonttype": "none", "font.size": 9.0}
    style |= {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
    stream = io.StringIO()
    with matplotlib.rc_context(style):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        draw(canvas)
        canvas.savefig(stream, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    used = set(re.findall(r'#([^")]+)', svg))
    return Figure(caption, re.sub(r' id="([^"]*)"', lambda name: name[0] if name[1] in used else "", svg))


def line_figure(
    caption: str,
    xlabel: str,
    ylabel: str,
    panels: Mapping[str, tuple[Mapping[str, Mapping[float, float]], Mapping[str, float]]],
    *,
    log: bool = False,
) -> Figure:
    """A panel by name, each with curves (x to y) and level lines, by name; `log` for a logarithmic x."""

    def draw(canvas: Canvas) -> None:
        grid = canvas.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
        for axes, (name, (curves, levels)) in zip(grid, panels.items(), strict=True):
            for curve, points in curves.items():
                axes.plot(list(points), list(points.values()), "-o", markersize=3, label=curve)
            for style, (level, value) in zip(("--", ":", "-."), levels.items(), strict=False):
                axes.axhline(value, color="0.5", linewidth=0.8, linestyle=style, label=level)
            axes.set(title=name, xlabel=xlabel, xscale="log" if log else "linear")
            axes.legend(fontsize="small")
        canvas.supylabel(ylabel)

    return draw_figure(caption, draw)


def provenance(settings: Experiment, **more: Any) -> dict[str, Any]:
    """What a result depends on: the settings, the versions, and `more`, such as an index's fingerprint."""
    versions = {name: version(name) for name in ("greylag", "numpy", "scipy")}
    return {"settings": settings.model_dump(mode="json"), **more, "Python": platform.python_version(), **versions}


def write_results(out: Path, content: Mapping[str, Any], *, indent: int | None = 1) -> None:
    """Write ``results.json`` to `out`, atomically; the folder is made where it is not there.

    Parameters
    ----------
    content : whatever JSON can hold.
    indent : of the JSON; None for one line, where numbers are many.
    """
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / "results.json", json.dumps(content, indent=indent) + "\n")


def write_report(path: str | Path, title: str, sections: Sequence[Section], provenance: Mapping[str, Any]) -> None:
    """Write a report, atomically.

    Parameters
    ----------
    provenance : name to value, listed at the end; whatever JSON can hold.

    Raises
    ------
    DependencyError
        Where jinja2 is missing.
    """
    check_dependencies()
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters |= {"cell": _cell, "value": _value}
    page = environment.from_string(_TEMPLATE).render(title=title, sections=sections, provenance=provenance)
    write_text(path, page)


def _cell(value: str | float | None, decimals: int) -> str:
    if value is None:
        return ""
    if isinstance(value, float) and 0 < value < 0.5 * 10**-decimals:
        return f"<{10**-decimals:.{decimals}f}"  # a p of 0 would be a false claim
    return f"{value:.{decimals}f}" if isinstance(value, float) else str(value)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, indent=1)


_TEMPLATE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ title }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; max-width: 54rem; margin: 2rem auto;
  padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption, figcaption { text-align: left; color: #555; font-size: 0.9rem; padding: 0.3rem 0; }
th, td { padding: 0.15rem 0.8rem 0.15rem 0; text-align: left; border-bottom: 1px solid #ddd; vertical-align: top; }
.number { text-align: right; }
figure { margin: 1rem 0; }
svg { max-width: 100%; height: auto; }
pre { margin: 0; white-space: pre-wrap; font-size: 0.8rem; }
.wide { overflow-x: auto; margin: 1rem 0; }
</style>
</head>
<body>
<h1>{{ title }}</h1>
{% for section in sections %}
<section>
<h2>{{ section.title }}</h2>
{% for paragraph in section.text.split("\n\n") if paragraph.strip() %}
<p>{{ paragraph }}</p>
{% endfor %}
{% for part in section.parts %}
{% if part.svg is defined %}
<figure>
{{ part.svg | safe }}
<figcaption>{{ part.caption }}</figcaption>
</figure>
{% else %}
<div class="wide"><table>
<caption>{{ part.caption }}</caption>
<thead><tr>{% for name in part.header %}<th{% if part.rows | map(attribute=loop.index0) | select("number") | list %} \
class="number"{% endif %}>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in part.rows %}
<tr>{% for value in row %}<td{% if value is number %} class="number"{% endif %}>{{ value | cell(part.decimals) }}</td>\
{% endfor %}</tr>
{% endfor %}
</tbody>
</table></div>
{% endif %}
{% endfor %}
</section>
{% endfor %}
<section>
<h2>Provenance</h2>
<div class="wide"><table>
<tbody>
{% for name, value in provenance.items() %}
<tr><th>{{ name }}</th><td><pre>{{ value | value }}</pre></td></tr>
{% endfor %}
</tbody>
</table></div>
</section>
</body>
</html>
"""
