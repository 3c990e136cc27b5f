"""Figures of reports: SVG that stands alone, drawn without another package. The same numbers give the same bytes.

Panels are of one size, two in a row, below a key with the names. Grey text and lines are legible on white and black.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from greylag.base import DependencyError, ParameterError, Table, open_atomically, visible, write_text

Points = Mapping[int, float] | Mapping[float, float]  # y by x
Panel = tuple[Mapping[str, Points], Mapping[str, float]]  # curves and levels, by name
Bar = tuple[str, float, bool]  # name, value, and whether it is for the better
Interval = tuple[float, tuple[float, float] | None, int]  # of a value, and 1 if it is shown to be better, -1 if worse
Scale = Callable[[float], float]  # from a value to pixels
COLOURS = (
    "#d9480f #868e96 #1c7ed6 #2f9e44 #ae3ec9 #e8a200 #12908e #c2255c #a07050 #7cb305".split()
)  # on white and black
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BELOW = 340, 240, 46, 20, 34, 40  # pixels of a panel and its margins
KEY, LETTER = 22, 6.6  # pixels of a line of the key, and of a letter
LABEL_DISTANCE = 30  # pixels between labels of the x axis
PANELS_PER_ROW = 2  # which fit a page of A4
DASHES = ("6 4", "2 3", "8 3 2 3")  # of levels
WIDE = 720  # pixels of a figure of bars
ROW = 22  # pixels of an interval with its name
RESOLUTION = 3  # pixels of a PNG for one of the figure
BETTER, WORSE = COLOURS[2], COLOURS[0]
GREY, PALE = "#767676", "#80808060"  # of texts, 4.5 to 1 on white and on black, and of lines behind


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure."""

    caption: str
    svg: str  # an SVG element, such as `line_figure` makes
    data: Table | None = None  # the figure as a table, for those who cannot see it
    run: str = ""  # that the figure is about, whose name leads to it in tables
    folded: bool = False  # the caption alone is shown until the figure is opened


def line_figure(
    caption: str,
    xlabel: str,
    ylabel: str,
    panels: Mapping[str, Panel],
    *,
    log: bool = False,
    alike: bool = True,
    strong: str = "",
    deviations: Mapping[str, Mapping[str, Mapping[int, float]]] | None = None,
) -> Figure:
    """Draw curves and horizontal lines, in one or more panels, with their table.

    Parameters
    ----------
    panels : mapping of title to Panel
        A panel is a pair of mappings: its curves (name to a mapping of x to y), and its horizontal lines (name to y).
    log : bool, default False
        Logarithmic x axis.
    alike : bool, default True
        Whether all panels have the same y axis.
    strong : str, default ""
        The curve that is drawn thick, above the others.
    deviations : mapping of panel to curve to x to float, optional
        Halves of vertical bars around points.
    """
    bars = deviations or {}
    heights = {title: _heights(panel, bars.get(title, {})) for title, panel in panels.items()}
    every = [height for ends in heights.values() for height in ends]
    names = list(dict.fromkeys(name for curves, _ in panels.values() for name in curves))
    # By name over all panels, so that a curve has one colour in each of them.
    colours = {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}
    level_names = dict.fromkeys(name for _, levels in panels.values() for name in levels)
    dashes = {name: DASHES[place % len(DASHES)] for place, name in enumerate(level_names)}
    drawings = []
    for title, (curves, levels) in panels.items():
        x, y, drawn = _axes(
            title, {x for xy in curves.values() for x in xy}, every if alike else heights[title], log=log
        )
        drawn.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 4, xlabel, 'text-anchor="middle"'))
        drawn.append(_text(4, TOP - 2, ylabel, ""))
        for name, height in levels.items():
            path = f"M{LEFT} {y(height):.1f}H{WIDTH - RIGHT}"
            drawn.append(f'<path d="{path}" stroke="{GREY}" stroke-dasharray="{dashes[name]}"/>')
        for name in sorted(curves, key=lambda name: name == strong):  # the strong one above the others
            spread = bars.get(title, {}).get(name, {})
            drawn += _curve(name, curves[name], x, y, colours[name], 4 if name == strong else 2, spread)
        drawings.append(drawn)
    key = {name: f'stroke="{colour}" stroke-width="{4 if name == strong else 2}"' for name, colour in colours.items()}
    key |= {name: f'stroke="{GREY}" stroke-dasharray="{dash}"' for name, dash in dashes.items()}
    return Figure(caption, _sheet(drawings, key), _points_table(caption, xlabel, panels))


def bar_figure(
    caption: str,
    ylabel: str,
    panels: Mapping[str, Sequence[Bar]],
    data: Table | None = None,
    span: Iterable[float] = (),
) -> Figure:
    """Draw bars of queries from 0, in two colours, with names and values under the mouse; panels one below another."""
    # Of all panels, which share their scale, with room for the values of `span`.
    every = [0.0, *span, *(value for bars in panels.values() for _, value, _ in bars)]
    marks = ticks(min(every), max(every), outward=True)
    y = _scale(marks[0][0], marks[-1][0], HEIGHT - BELOW, TOP + 8)
    parts = []
    for number, (title, bars) in enumerate(panels.items()):
        drawn = [bar for bar in bars if bar[1]]
        better, equal = sum(is_better for *_, is_better in drawn), len(bars) - len(drawn)
        step = (WIDE - LEFT - RIGHT) / max(1, len(drawn))
        below = f"{len(bars)} queries, by change: {better} better, {len(drawn) - better} worse, {equal} equal"
        parts += [f'<g transform="translate(0 {HEIGHT * number})">', _title(title)]
        parts += [*_y_axis(y, marks, WIDE), _text(4, TOP - 2, ylabel, "")]
        parts.append(_text(LEFT, HEIGHT - 14, below + " (not drawn)" * bool(equal), ""))  # seen on a phone
        for place, (name, value, is_better) in enumerate(drawn):
            top, bottom = y(max(value, 0.0)), y(min(value, 0.0))
            parts.append(
                f'<rect x="{LEFT + step * place:.2f}" width="{0.8 * step:.2f}" y="{top:.1f}" '
                f'height="{bottom - top:.1f}" fill="{BETTER if is_better else WORSE}"><title>{_safe(name)}: '
                f"{value:+.4f}</title></rect>"
            )
        parts.append("</g>")
    return Figure(caption, _svg(WIDE, HEIGHT * len(panels), parts), data)


def interval_figure(caption: str, xlabel: str, values: Mapping[str, Interval]) -> Figure:
    """Draw values with their intervals, if they have any, and a line at 0."""
    # Names stand at the left, so the longest decides the width.
    left = 16 + math.ceil(LETTER * max(map(len, values)))
    width, height = max(WIDE, left + WIDE // 2), ROW * len(values)
    ends = [0.0, *(end for value, interval, _ in values.values() for end in interval or (value,))]
    marks = ticks(min(ends), max(ends), outward=True)
    x = _scale(marks[0][0], marks[-1][0], left, width - RIGHT)
    parts = [f'<path d="M{x(0.0):.1f} 0V{height}" stroke="{GREY}"/>']
    for value, text in marks:
        parts.append(f'<path d="M{x(value):.1f} 0V{height}" stroke="{PALE}"/>')
        parts.append(_text(x(value), height + 16, _short_number(text), 'text-anchor="middle"'))
    for place, (name, (value, interval, direction)) in enumerate(values.items()):
        y, colour = ROW * (place + 0.5), (GREY, BETTER, WORSE)[direction]
        parts.append(_text(4, y + 4, name, ""))
        if interval:
            low, high = map(x, interval)
            parts.append(f'<path d="M{low:.1f} {y}H{high:.1f}" stroke="{colour}" stroke-width="2"/>')
        parts.append(f'<circle cx="{x(value):.1f}" cy="{y}" r="4" fill="{colour}"/>')
    parts.append(_text((left + width) / 2, height + 34, xlabel, 'text-anchor="middle"'))
    rows = [(name, value, *(interval or (None, None))) for name, (value, interval, _) in values.items()]
    data = Table(caption, ("", xlabel, "low", "high"), rows)
    return Figure(caption, _svg(width, height + 40, parts), data)


def write_figure(path: Path, figure: Figure) -> None:
    """Write a figure for a paper as .svg, .pdf or .png, by the end of the name; PDF and PNG need cairosvg."""
    # Lines and texts are darker than in a report, which may be read on black. The same figure gives the same bytes;
    # PDF and PNG depend on the fonts of the machine.
    svg = figure.svg.replace(PALE, "#c8c8c8").replace(GREY, "#404040")  # cairosvg draws no pale lines
    form = path.suffix.lower()
    if form == ".svg":
        write_text(path, svg + "\n")
        return
    if form not in (".pdf", ".png"):
        raise ParameterError(f"{path}: a figure is written as .svg, .pdf or .png")
    try:
        import cairosvg
    except (ImportError, OSError) as error:  # OSError: without the library cairo
        raise DependencyError(
            f"{path}: cairosvg is not usable here ({str(error).splitlines()[0]}): pip install "
            "'greylag[figures]', which needs the library cairo (libcairo2 of Debian), or write .svg"
        ) from None
    if form == ".png":
        drawn = cairosvg.svg2png(bytestring=svg.encode(), scale=RESOLUTION, background_color="white")
    else:
        # The date of making, replaced by one of equal length, as a PDF refers to its parts by their offsets.
        drawn = re.sub(rb"\(D:\d{14}", b"(D:19700101000000", cairosvg.svg2pdf(bytestring=svg.encode()))
    with open_atomically(path, binary=True) as file:
        file.write(drawn)


def ticks(low: float, high: float, *, outward: bool = False) -> list[tuple[float, str]]:
    """Round numbers from `low` to `high`, or around them if `outward`, at least two of them unless these are equal."""
    if not high > low:
        return [(low, f"{low:.2f}")]
    # The step is 1, .5 or .2 of the power of ten below the range: the largest with at least three steps in it.
    size = math.floor(math.log10(high - low))
    step = next(f * 10.0**size for f in (1, 0.5, 0.2) if (high - low) / (f * 10.0**size) >= 3 or f == 0.2)
    decimals = max(0, 1 - size if step < 10.0**size else -size)
    # An end that is a multiple of the step has a tick, though the quotient may be off by a rounding error.
    inner = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    first, last = (math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)) if outward else inner
    return [(number * step, f"{number * step:.{decimals}f}") for number in range(first, last + 1)]


def _heights(panel: Panel, bars: Mapping[str, Mapping[int, float]]) -> list[float]:
    """Return all y of a panel, with the ends of bars."""
    curves, levels = panel
    ends = [
        y + sign * bars.get(name, {}).get(x, 0.0)  # type: ignore[arg-type]
        for name, points in curves.items()
        for x, y in points.items()
        for sign in (-1, 1)
    ]
    return [*ends, *levels.values()]


def _axes(title: str, xs: Iterable[float], ys: Sequence[float], *, log: bool) -> tuple[Scale, Scale, list[str]]:
    """Make the scales of x and y, and draw them, with labels at all x if there is room, else at round numbers."""
    places = sorted(set(xs))
    warp = math.log if log else float
    x = _scale(warp(places[0]), warp(places[-1]), LEFT, WIDTH - RIGHT)
    y = _scale(min(ys), max(ys), HEIGHT - BELOW, TOP + 8)
    named = [(place, f"{place:g}") for place in places]
    if not log and (len(places) - 1) * LABEL_DISTANCE > WIDTH - LEFT - RIGHT:
        named = ticks(places[0], places[-1])
    drawn, last = [_title(title), *_y_axis(y, ticks(min(ys), max(ys)), WIDTH)], -math.inf
    # On a logarithmic axis small values crowd: a label that would touch the one before is left out.
    for place, text in named:
        if (at := x(warp(place))) - last >= LABEL_DISTANCE:
            drawn.append(_text(at, HEIGHT - BELOW + 18, _short_number(text), 'text-anchor="middle"'))
            last = at
    return (lambda value: x(warp(value))), y, drawn


def _y_axis(y: Scale, marks: Iterable[tuple[float, str]], width: int) -> list[str]:
    """Draw lines across the figure at round numbers, with these at the left."""
    drawn = []
    for value, text in marks:
        drawn.append(f'<path d="M{LEFT} {y(value):.1f}H{width - 12}" stroke="{PALE}"/>')
        drawn.append(_text(LEFT - 6, y(value) + 4, _short_number(text), 'text-anchor="end"'))
    return drawn


def _short_number(number: str) -> str:
    """Format a number without the 0 before the point; 0 alone is 0."""
    return re.sub(r"^(-?)0\.", r"\1.", number) if float(number) else "0"


def _scale(low: float, high: float, start: float, end: float) -> Scale:
    return lambda value: start + (end - start) * (value - low) / ((high - low) or 1.0)


def _curve(
    name: str, points: Points, x: Scale, y: Scale, colour: str, width: int, bars: Mapping[int, float]
) -> list[str]:
    """Draw a line with its points, and bars around these; the name shows under the mouse."""
    parts = []
    for at, half in bars.items():
        low, high = (y(points[at] + sign * half) for sign in (-1, 1))
        parts.append(f'<path d="M{x(at):.1f} {low:.1f}V{high:.1f}" stroke="{colour}"/>')
    places = [(f"{x(at):.1f}", f"{y(value):.1f}") for at, value in points.items()]
    parts += [f'<circle cx="{left}" cy="{top}" r="{width}" fill="{colour}"/>' for left, top in places]
    line = " ".join(map(",".join, places))
    return [
        *parts,
        f'<polyline points="{line}" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round">'
        f"<title>{_safe(name)}</title></polyline>",
    ]


def _title(title: str) -> str:
    return _text(LEFT, TOP - 16, title, 'font-weight="bold"')


def _safe(text: str) -> str:
    return visible(escape(text))


def _text(x: float, y: float, text: str, style: str) -> str:
    return f'<text fill="{GREY}" x="{x:.1f}" y="{y:.1f}" {style}>{_safe(text)}</text>' if text else ""


def _sheet(drawings: Sequence[Sequence[str]], key: Mapping[str, str]) -> str:
    """Arrange panels in rows, below a key of names and the style of their lines."""
    width = WIDTH * min(PANELS_PER_ROW, len(drawings))
    column = 40 + math.ceil(LETTER * max(map(len, key), default=0))
    in_row = max(1, width // column)
    rows = math.ceil(len(key) / in_row)
    parts = []
    for place, (name, style) in enumerate(key.items()):
        x, y = 10 + place % in_row * column, KEY * (place // in_row) + 12
        parts += [f'<path d="M{x} {y}h20" {style}/>', _text(x + 26, y + 4, name, "")]
    for place, drawn in enumerate(drawings):
        x, y = WIDTH * (place % PANELS_PER_ROW), KEY * rows + HEIGHT * (place // PANELS_PER_ROW)
        parts += [f'<g transform="translate({x} {y})">', *drawn, "</g>"]
    return _svg(width, KEY * rows + HEIGHT * math.ceil(len(drawings) / PANELS_PER_ROW), parts)


def _svg(width: int, height: int, parts: Iterable[str]) -> str:
    style = 'fill="none" font-family="system-ui, sans-serif" font-size="12"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" {style}>'
    return "\n".join([head, *filter(None, parts), "</svg>"])


def _points_table(caption: str, xlabel: str, panels: Mapping[str, Panel]) -> Table:
    """Tabulate the points of all curves, a row for each x and a column for each curve and line."""
    columns: dict[str, dict[float, float]] = {}
    xs = sorted({x for curves, _ in panels.values() for points in curves.values() for x in points})
    for panel, (curves, levels) in panels.items():
        lines = {name: dict.fromkeys(xs, y) for name, y in levels.items()}
        named = {**curves, **lines}.items()
        columns |= {f"{name} ({panel})" if panel else name: dict(points.items()) for name, points in named}
    rows = [(x, *(points.get(x) for points in columns.values())) for x in xs]
    return Table(caption, (xlabel, *columns), rows)
