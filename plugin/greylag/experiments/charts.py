"""Charts of one series: SVG in percentages, so that its width is the page's, and in the page's colours.

The same numbers give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from itertools import pairwise

from greylag.evaluation import Scores, Significance
from greylag.evaluation.significance import DECIMALS, Comparison
from greylag.experiments.figures import Figure, ticks
from greylag.experiments.report import Section
from greylag.tables import Row, Table

HEIGHT, MARGIN = 180, 12  # pixels of the plot, and above and below it
BAR = 40  # pixels of a bar with its name
LEFT = 14.0  # per cent of the width for the labels of the y axis
Compared = Sequence[tuple[Mapping[str, Scores], Significance]]
"""Scores by run, and a test of their differences."""


def result(compared: Compared, more: str = "") -> Section:
    """The section that a report begins with: a sentence and a chart for each comparison by the first measure."""
    charts = [change_chart(scores, found.baseline, found.run) for scores, found in first_comparisons(compared)]
    return Section("Result", "\n\n".join([*verdicts(compared), more]), charts)


def verdicts(compared: Compared) -> list[str]:
    """A sentence for each comparison by the first measure."""
    return [found.verdict for _, found in first_comparisons(compared)]


def first_comparisons(compared: Compared) -> list[tuple[Mapping[str, Scores], Comparison]]:
    """The comparisons by the first measure, with the scores that they compare."""
    return [
        (scores, found)
        for scores, test in compared
        for found in test.comparisons
        if found.measure == scores[found.run].measures[0]
    ]


def change_chart(scores: Mapping[str, Scores], before: str, after: str) -> Figure:
    """The change of the first measure from one run to another: a bar for each query, in descending order."""
    first, second = scores[before], scores[after]
    columns = (first.qids, first.values[:, 0].tolist(), second.values[:, 0].tolist())
    rows: list[Row] = [(qid, old, new, round(new - old, DECIMALS)) for qid, old, new in zip(*columns, strict=True)]
    rows.sort(key=lambda row: -float(row[3]))  # type: ignore[arg-type]
    changes = [float(row[3]) for row in rows]  # type: ignore[arg-type]
    measure = first.measures[0]
    higher, lower = sum(change > 0 for change in changes), sum(change < 0 for change in changes)
    direction = ", a loss" if measure.family.lower_is_better else ""
    caption = (
        f"Change of {measure}{direction} from {before} to {after}, a bar for each query: {higher} higher, {lower} "
        f"lower, {len(rows) - higher - lower} equal"
    )
    low, high = min(0.0, *changes), max(0.0, *changes)
    good = -1.0 if measure.family.lower_is_better else 1.0
    step, bars = (100 - LEFT) / len(rows), []
    for place, (row, change) in enumerate(zip(rows, changes, strict=True)):
        top, bottom = _y(max(change, 0.0), low, high), _y(min(change, 0.0), low, high)
        kind = "better" if good * change > 0 else "worse"
        bars.append(
            f'<rect class="{kind}" x="{LEFT + step * place:.2f}%" width="{0.8 * step:.2f}%" y="{top:.1f}" '
            f'height="{bottom - top:.1f}"><title>{escape(str(row[0]))}: {change:+.4f}</title></rect>'
        )
    data = Table(f"{measure} by query", ("query", before, after, "change"), rows)
    return Figure(caption, _chart(low, high, bars), data)


def rounds_chart(caption: str, by_name: Mapping[str, Sequence[float]]) -> Figure:
    """Scores after each round of learning, a line for each name."""
    rounds, every = max(map(len, by_name.values())), [value for values in by_name.values() for value in values]
    low, high = min(every), max(every)
    xs = [LEFT + 2 + (96 - LEFT) * place / max(rounds - 1, 1) for place in range(rounds)]
    lines = []
    for name, values in by_name.items():
        points = [(f"{x:.2f}%", f"{_y(value, low, high):.1f}") for x, value in zip(xs, values, strict=False)]
        title = f"<title>{escape(name)}</title>"
        lines += [f'<circle cx="{x}" cy="{y}" r="3">{title}</circle>' for x, y in points]
        lines += [
            f'<line class="curve" x1="{x}" y1="{y}" x2="{to_x}" y2="{to_y}"/>'
            for (x, y), (to_x, to_y) in pairwise(points)
        ]
    below = HEIGHT + 2 * MARGIN + 14
    lines += [f'<text x="{x:.2f}%" y="{below}" text-anchor="middle">{place}</text>' for place, x in enumerate(xs, 1)]
    rows = [
        (place + 1, *(values[place] if place < len(values) else None for values in by_name.values()))
        for place in range(rounds)
    ]
    return Figure(caption, _chart(low, high, lines, extra=20), Table(caption, ("round", *by_name), rows))


def contributions_chart(caption: str, parts: Sequence[tuple[str, float]], unit: str = "contribution") -> Figure:
    """Named parts of a sum, as bars from 0 to the right or, below 0, to the left; each below its name and value."""
    values = [value for _, value in parts]
    low, high = min(0.0, *values), max(0.0, *values)
    scale, drawn = 99 / ((high - low) or 1.0), []
    for place, (name, value) in enumerate(parts):
        x, kind = scale * (min(value, 0.0) - low), "better" if value > 0 else "worse"
        drawn.append(f'<text x="0" y="{BAR * place + 16}">{escape(name)}: {value:+.4f}</text>')
        drawn.append(
            f'<rect class="{kind}" x="{x:.2f}%" width="{scale * abs(value):.2f}%" y="{BAR * place + 22}" height="10"/>'
        )
    axis = f'<line x1="{-scale * low:.2f}%" x2="{-scale * low:.2f}%" y1="0" y2="{BAR * len(parts)}"/>'
    svg = f'<svg class="chart" height="{BAR * len(parts)}">{"".join([axis, *drawn])}</svg>'
    return Figure(caption, svg, Table(caption, ("feature", unit), [*parts]))


def _y(value: float, low: float, high: float) -> float:
    return MARGIN + HEIGHT * (high - value) / (high - low) if high > low else MARGIN + HEIGHT / 2


def _chart(low: float, high: float, marks: Sequence[str], extra: int = 0) -> str:
    """The marks behind the lines of the y axis."""
    parts = []
    for value, text in ticks(low, high):
        y = _y(value, low, high)
        parts.append(f'<line x1="{LEFT}%" x2="100%" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 1}%" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    return f'<svg class="chart" height="{HEIGHT + 2 * MARGIN + extra}">{"".join([*parts, *marks])}</svg>'
