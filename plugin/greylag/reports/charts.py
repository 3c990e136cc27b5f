"""The charts of results: changes by query, scores by round, terms of a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from greylag.core.tables import Table
from greylag.evaluation import Scores, Significance
from greylag.evaluation.measures import Measure
from greylag.evaluation.significance import DIFFERENCE_DECIMALS, MOST_SENTENCES
from greylag.reports.figures import Bar, Figure, bar_figure, interval_figure, line_figure, part_figure
from greylag.reports.report import Section
from greylag.reports.scores import compares_all, ranked
from greylag.reports.verdict import Compared, first_comparisons


def result(compared: Compared, more: str = "", tables: Sequence[Table] = ()) -> Section:
    """Make the first section of a report: means, and a sentence and a chart for each comparison by the first measure.

    If a baseline or all pairs are compared more often than `MOST_SENTENCES`, one chart of all runs stands for them.
    """
    # A chart per comparison would fill pages; one of all runs shows which differ.
    many = [
        (scores, tests)
        for scores, tests in compared
        if len(first_comparisons([(scores, tests)])) > MOST_SENTENCES
        and (tests.baseline is not None or compares_all(scores, tests))
    ]
    written = [pair for pair in compared if pair not in many]
    charts = [change_chart(scores, test.baseline, test.run) for scores, test in first_comparisons(written)]
    charts += [differences_chart(*pair) for pair in many]
    return Section("Result", parts=[*tables[:1], *verdicts(written), more, *tables[1:], *charts])


def differences_chart(scores: Mapping[str, Scores], significance: Significance) -> Figure:
    """Draw each run's difference from the baseline or, of all pairs, from the best run, with its 95 % interval."""
    compared = [comparison for _, comparison in first_comparisons([(scores, significance)])]
    measure = compared[0].measure
    ranks = ranked(scores)
    against = significance.baseline or next(iter(ranks))
    intervals = {c.run: (c.difference, *c.interval) for c in compared if c.baseline == against}
    # The other way round if the best run comes later than the other.
    intervals |= {c.baseline: (-c.difference, -c.interval[1], -c.interval[0]) for c in compared if c.run == against}
    rows = {name: intervals[name] for name in ranks if name in intervals}
    caption = f"Difference of {measure} from {against}, with 95 % intervals that are not corrected"
    return interval_figure(caption, f"difference of {measure}", rows)


def changes_figure(compared: Compared) -> Figure:
    """Draw all these charts in one figure, each with the names of its runs as the title."""
    panels, measure = {}, ""
    for scores, comparison in first_comparisons(compared):
        rows, measure = _changes(scores, comparison.baseline, comparison.run), str(comparison.measure)
        panels[f"{comparison.run} against {comparison.baseline}"] = _bars(rows, comparison.measure)
    return bar_figure(f"Changes of {measure} by query", "queries, by change", f"change of {measure}", panels)


def verdicts(compared: Compared) -> list[str]:
    """Write a sentence for each comparison by the first measure."""
    return [comparison.verdict for _, comparison in first_comparisons(compared)]


def change_chart(scores: Mapping[str, Scores], before: str, after: str) -> Figure:
    """Draw the change of the first measure from one run to another: a bar for each query, in descending order."""
    rows, measure = _changes(scores, before, after), scores[before].measures[0]
    higher, lower = sum(row[3] > 0 for row in rows), sum(row[3] < 0 for row in rows)
    direction = ", a loss" if measure.family.lower_is_better else ""
    caption = (
        f"Change of {measure}{direction} from {before} to {after}, a bar for each query: {higher} higher, {lower} "
        f"lower, {len(rows) - higher - lower} equal"
    )
    data = Table(f"{measure} by query", ("query", before, after, "change"), rows)
    panels = {"": _bars(rows, measure)}
    return bar_figure(caption, f"{len(rows)} queries, by change", f"change of {measure}", panels, data)


def _changes(scores: Mapping[str, Scores], before: str, after: str) -> list[tuple[str, float, float, float]]:
    """List queries, both scores by the first measure and the change, in descending order of changes."""
    new = scores[after].by_query
    # Rounded, since differences that are equal on paper differ in their last bits, which would order the bars.
    rows = [
        (qid, old, new[qid], round(new[qid] - old, DIFFERENCE_DECIMALS)) for qid, old in scores[before].by_query.items()
    ]
    return sorted(rows, key=lambda row: -row[3])


def _bars(rows: Sequence[tuple[str, float, float, float]], measure: Measure) -> list[Bar]:
    return [Bar(qid, change, (change > 0) != measure.family.lower_is_better) for qid, _, _, change in rows]


def rounds_chart(caption: str, measure: str, by_name: Mapping[str, Sequence[float]]) -> Figure:
    """Draw scores after each round of learning, a line for each name."""
    curves = {name: dict(enumerate(values, 1)) for name, values in by_name.items()}
    return line_figure(caption, "round", measure, {"": (curves, {})})


def contributions_chart(caption: str, parts: Sequence[tuple[str, float]], unit: str = "contribution") -> Figure:
    """Draw the named terms of a sum as bars from 0 to the right or, below 0, to the left, below name and value."""
    bars = [Bar(name, value, value > 0) for name, value in parts]
    return part_figure(caption, unit, bars, Table(caption, ("feature", unit), [*parts]))
