"""Figures of a report: inline SVG, drawn by matplotlib. The only module that imports matplotlib.

The same drawing gives the same bytes.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from greylag.errors import DependencyError

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure: its caption, and an SVG element (`draw_figure` makes it)."""

    caption: str
    svg: str


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
