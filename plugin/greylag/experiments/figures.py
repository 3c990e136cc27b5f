"""Figures of reports: inline SVG, drawn by matplotlib. The same drawing gives the same bytes."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from greylag.errors import DependencyError
from greylag.tables import Table, visible

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

Panel = tuple[Mapping[str, Mapping[int, float] | Mapping[float, float]], Mapping[str, float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure.

    Parameters
    ----------
    caption : str
    svg : str
        An SVG element, such as `draw_figure` makes.
    data : Table, optional
        The figure as a table, for those who cannot see it.
    """

    caption: str
    svg: str
    data: Table | None = None


def check_dependencies() -> None:
    """Check that figures can be drawn."""
    try:
        import_module("matplotlib")
    except ImportError:
        raise DependencyError("figures need matplotlib: pip install 'greylag[report]'") from None


def draw_figure(caption: str, draw: Callable[[Canvas], None], *, width: float = 7.0, height: float = 3.5) -> Figure:
    """Draw a figure in matplotlib's default style.

    Parameters
    ----------
    caption : str
        Different for every figure of a report.
    draw : callable
        Draws on the empty matplotlib figure that it is called with (``axes = canvas.subplots(1, 2)``).
    width, height : float, default 7.0 and 3.5
        In inches.

    Raises
    ------
    DependencyError
        If matplotlib is missing.
    """
    check_dependencies()
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    # Ignore the user's matplotlibrc, but keep the backend.
    style: dict[Any, Any] = {name: value for name, value in matplotlib.rcParamsDefault.items() if name != "backend"}
    # Identifiers are hashes of content and salt: they differ between figures but not between runs.
    style |= {"svg.hashsalt": caption, "svg.fonttype": "none", "font.size": 10.0}
    style |= {"axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False}
    stream = io.StringIO()
    with matplotlib.rc_context(style):
        canvas = Canvas(figsize=(width, height), layout="constrained")
        draw(canvas)
        canvas.savefig(stream, format="svg", metadata=dict.fromkeys(("Creator", "Date", "Format", "Type")))
    svg = visible(stream.getvalue())
    svg = svg[svg.index("<svg") :].strip()
    used = set(re.findall(r'#([^")]+)', svg))
    return Figure(caption, re.sub(r' id="([^"]*)"', lambda name: name[0] if name[1] in used else "", svg))


def plain_text(name: str) -> str:
    """The name as text for matplotlib, which takes what is between dollar signs for a formula."""
    return name.replace("$", r"\$")


def line_figure(caption: str, xlabel: str, ylabel: str, panels: Mapping[str, Panel], *, log: bool = False) -> Figure:
    """Draw curves and horizontal lines, in one or more panels, with their table.

    Parameters
    ----------
    caption, xlabel, ylabel : str
    panels : mapping of title to Panel
        A panel is a pair of mappings: its curves (name to a mapping of x to y), and its horizontal lines (name to y).
    log : bool, default False
        Logarithmic x axis.
    """

    def draw(canvas: Canvas) -> None:
        grid = canvas.subplots(1, len(panels), sharey=True, squeeze=False).ravel()
        for axes, (name, (curves, levels)) in zip(grid, panels.items(), strict=True):
            for curve, points in curves.items():
                axes.plot(list(points), list(points.values()), "-o", markersize=3, label=plain_text(curve))
            for style, (level, value) in zip(("--", ":", "-."), levels.items(), strict=False):
                axes.axhline(value, color="0.5", linewidth=0.8, linestyle=style, label=plain_text(level))
            axes.set(title=plain_text(name), xlabel=xlabel, xscale="log" if log else "linear")
            if all(isinstance(x, int) for points in curves.values() for x in points) and not log:
                axes.xaxis.get_major_locator().set_params(integer=True)
            axes.legend(fontsize="small")
        canvas.supylabel(ylabel)

    return replace(draw_figure(caption, draw), data=_points(caption, xlabel, panels))


def _points(caption: str, xlabel: str, panels: Mapping[str, Panel]) -> Table:
    """The points of all curves, a row for each x and a column for each curve and line."""
    columns: dict[str, dict[float, float]] = {}
    xs = sorted({x for curves, _ in panels.values() for points in curves.values() for x in points})
    for panel, (curves, levels) in panels.items():
        lines = {name: dict.fromkeys(xs, y) for name, y in levels.items()}
        named = {**curves, **lines}.items()
        columns |= {f"{name} ({panel})" if panel else name: dict(points.items()) for name, points in named}
    rows = [(x, *(points.get(x) for points in columns.values())) for x in xs]
    return Table(caption, (xlabel, *columns), rows)
