"""Points of the plane, a figure that only these studies have, as SVG that stands alone."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from greylag.ranking import FloatArray, IntArray
from greylag.reports import Figure

SIZE, EDGE, TOP = 250, 46, 34  # pixels: of a panel, at its left, above it
IN_ROW = 3  # panels
BLUE, RED, GREY = "#1c7ed6", "#d9480f", "#808080"
PALE, DARK = (190, 220, 250), (10, 40, 110)  # red, green and blue of the lowest shade and of the highest


@dataclass(frozen=True, eq=False)
class Cloud:
    """Points of a panel of `point_figure`."""

    points: FloatArray  # shape (n, 2)
    shades: FloatArray | None = None  # shape (n,): the higher, the darker
    edges: IntArray | None = None  # shape (m, 2): pairs of points that are joined
    marked: int | None = None  # the point that is a cross


def point_figure(
    caption: str, panels: Mapping[str, Cloud], *, xlabel: str = "", ylabel: str = "", diagonal: bool = False
) -> Figure:
    """Draw points in panels, with axes if these have names; `diagonal` adds a line where x and y are equal."""
    parts = []
    for number, (title, cloud) in enumerate(panels.items()):
        low, high = cloud.points.min(axis=0), cloud.points.max(axis=0)
        if diagonal:
            low, high = np.full(2, low.min()), np.full(2, high.max())
        shares = (np.vstack([cloud.points, low, high]) - low) / np.where(high > low, high - low, 1.0)
        pixels = SIZE * np.abs(shares - (0, 1)) + (EDGE, TOP)  # y grows downwards
        *points, first, last = pixels.tolist()
        across, down = (SIZE + 2 * EDGE) * (number % IN_ROW), (SIZE + 2 * TOP) * (number // IN_ROW)
        parts += [f'<g transform="translate({across} {down})">', _text(EDGE, TOP - 14, title, 'font-weight="bold"')]
        if xlabel or ylabel:
            parts += _axes(low.tolist(), high.tolist(), xlabel, ylabel)
        if diagonal:
            parts.append(_path([first, last], f'stroke="{GREY}"'))
        joined = [] if cloud.edges is None else cloud.edges.tolist()
        parts += [_path([points[i], points[j]], f'stroke="{GREY}" stroke-width="0.4"') for i, j in joined]
        for place, (x, y) in enumerate(points):
            if place == cloud.marked:
                parts.append(f'<path d="M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10" stroke="{RED}" stroke-width="2"/>')
            else:
                parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{_shade(cloud, place)}"/>')
        parts.append("</g>")
    rows = math.ceil(len(panels) / IN_ROW)
    return Figure(caption, _svg((SIZE + 2 * EDGE) * min(IN_ROW, len(panels)), (SIZE + 2 * TOP) * rows, parts))


def _axes(low: Sequence[float], high: Sequence[float], xlabel: str, ylabel: str) -> list[str]:
    """Draw the axes of a panel, with their ends and names."""
    below = TOP + SIZE
    return [
        _path([(EDGE, TOP), (EDGE, below), (EDGE + SIZE, below)], f'stroke="{GREY}"'),
        _text(EDGE, below + 16, f"{low[0]:.2f}", ""),
        _text(EDGE + SIZE, below + 16, f"{high[0]:.2f}", 'text-anchor="end"'),
        _text(EDGE + SIZE / 2, below + 16, xlabel, 'text-anchor="middle"'),
        _text(EDGE - 6, below, f"{low[1]:.2f}", 'text-anchor="end"'),
        _text(EDGE - 6, TOP + 8, f"{high[1]:.2f}", 'text-anchor="end"'),
        _text(4, TOP - 2, ylabel, 'font-size="10"'),
    ]


def _shade(cloud: Cloud, place: int) -> str:
    """Return a blue, the darker the higher the shade among all points but the marked one."""
    if cloud.shades is None:
        return BLUE
    others = np.delete(cloud.shades, [] if cloud.marked is None else cloud.marked)
    share = (cloud.shades[place] - others.min()) / (np.ptp(others) or 1.0)
    return "#" + "".join(f"{round(pale + (dark - pale) * share):02x}" for pale, dark in zip(PALE, DARK, strict=True))


def _path(points: Sequence[Sequence[float]], style: str) -> str:
    return f'<path d="M{"L".join(f"{x:.1f} {y:.1f}" for x, y in points)}" {style}/>'


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text fill="{GREY}" x="{x:.1f}" y="{y:.1f}" {style}>{escape(text)}</text>' if text else ""


def _svg(width: int, height: int, parts: Iterable[str]) -> str:
    style = 'fill="none" font-family="system-ui, sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" {style}>'
    return "\n".join([head, *filter(None, parts), "</svg>"])
