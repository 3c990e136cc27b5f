"""Learning curves as a small SVG that stands alone, drawn from the scores that experiment files expect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape

from greylag.experiments.charts import ticks
from greylag.experiments.figures import Figure
from greylag.experiments.tables import means_table

Points = Mapping[int, Mapping[str, float]]
"""Means by number of topics and system."""
COLOURS = (
    "#d9480f",
    "#868e96",
    "#1c7ed6",
    "#2f9e44",
    "#ae3ec9",
    "#e8a200",
    "#12908e",
    "#c2255c",
    "#a07050",
    "#7cb305",
)  # on white and black
WIDTH, HEIGHT, LEFT, TOP, BELOW = 340, 240, 46, 26, 40  # pixels of a panel and its margins
KEY_WIDTH, KEY = 136, 22  # pixels of a name of the key, and of its line
IN_ROW = 3  # panels


def points(expected: Mapping[str, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    """The means among the expected scores of a learning curve."""
    return {int(name.split()[0]): dict(row) for name, row in expected.items() if name.endswith(" topics")}


def curve_figure(caption: str, panels: Mapping[str, Points]) -> Figure:
    """A panel for each collection, with its table; of the first system, the line is thick."""
    merged = {f"{title}, {size}": row for title, sizes in panels.items() for size, row in sizes.items()}
    return Figure(caption, draw_curves(panels), means_table(caption, merged))


def draw_curves(panels: Mapping[str, Points]) -> str:
    """The drawing. Numbers of topics are on a logarithmic scale; each panel has a y axis of its own."""
    names = list(dict.fromkeys(name for sizes in panels.values() for row in sizes.values() for name in row))
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    width = WIDTH * min(IN_ROW, len(panels))
    in_row = width // KEY_WIDTH
    rows = math.ceil(len(names) / in_row)
    height = HEIGHT * math.ceil(len(panels) / IN_ROW) + KEY * rows
    parts = []
    for place, name in enumerate(names):
        x, y = 10 + place % in_row * KEY_WIDTH, KEY * (place // in_row) + 12
        parts.append(f'<path d="M{x} {y}h20" stroke="{colours[name]}" stroke-width="{2 + 2 * (not place)}"/>')
        parts.append(f'<text x="{x + 26}" y="{y + 4}">{escape(name)}</text>')
    for place, (title, sizes) in enumerate(panels.items()):
        drawn = _panel(title, sizes, colours)
        x, y = WIDTH * (place % IN_ROW), KEY * rows + HEIGHT * (place // IN_ROW)
        parts += [f'<g transform="translate({x} {y})">', *drawn, "</g>"]
    style = 'fill="none" font-family="system-ui, sans-serif" font-size="12"'
    # grey text and lines are legible on white and on black
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" {style}>'
    return "\n".join([head, *(part.replace("<text", '<text fill="#808080"') for part in parts), "</svg>"])


def _panel(title: str, sizes: Points, colours: Mapping[str, str]) -> list[str]:
    values = [value for row in sizes.values() for value in row.values()]
    low, high = min(values), max(values)
    first, last = math.log(min(sizes)), math.log(max(sizes))

    def x(size: int) -> float:
        return LEFT + (WIDTH - LEFT - 20) * (math.log(size) - first) / ((last - first) or 1.0)

    def y(value: float) -> float:
        return TOP + 8 + (HEIGHT - TOP - BELOW - 8) * (high - value) / ((high - low) or 1.0)

    parts = [f'<text x="{LEFT}" y="{TOP - 8}" font-weight="bold">{escape(title)}</text>']
    for value, text in ticks(low, high):
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - 12}" stroke="#80808060"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{text.lstrip("0")}</text>')
    for size in sizes:
        parts.append(f'<text x="{x(size):.1f}" y="{HEIGHT - BELOW + 18}" text-anchor="middle">{size}</text>')
    for name in reversed(list(colours)):  # the first one above the others
        line = [(x(size), y(row[name])) for size, row in sizes.items() if name in row]
        if line:
            wide = 2 + 2 * (name == next(iter(colours)))
            drawn = " ".join(f"{at:.1f},{height:.1f}" for at, height in line)
            parts.append(
                f'<polyline points="{drawn}" stroke="{colours[name]}" stroke-width="{wide}" stroke-linejoin="round">'
                f"<title>{escape(name)}</title></polyline>"
            )
    return parts
