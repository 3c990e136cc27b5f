"""The charts of results: changes by query, differences of runs, terms of a score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from greylag.base import Table
from greylag.evaluation.reports.figures import Bar, Figure, Interval, bar_figure, interval_figure
from greylag.evaluation.reports.parts import Tested, runs_and_measures
from greylag.evaluation.reports.report import Section
from greylag.evaluation.reports.scores import query_table, ranked
from greylag.evaluation.reports.verdict import Compared, first_comparisons, revealed, verdict
from greylag.evaluation.scoring.scores import DIFFERENCE_DECIMALS, Scores
from greylag.evaluation.scoring.significance import MOST_SENTENCES, Comparison

_INTERVALS = "with 95 % intervals that are not corrected; coloured if shown to be better or worse"


def result(compared: Compared, more: str = "", tables: Sequence[Table] = ()) -> Section:
    """Make the first section of a report: a verdict for each comparison by the first measure, means and charts."""
    findings, charts = list[Comparison | str](), list[Figure]()
    for scores, tests in compared:
        comparisons = [comparison for _, comparison in first_comparisons([(scores, tests)])]
        pairs = [(comparison.baseline, comparison.run) for comparison in comparisons]
        # Sentences and charts of all would fill pages: a paragraph and a chart of all runs stand for them.
        many = len(pairs) > MOST_SENTENCES * max(1, len(tests.baselines))
        if many:
            reference = next(iter(tests.baselines or ranked(scores)))
            pairs = [(reference, name) for name in ranked(scores) if name != reference]
            charts.append(differences_chart(scores, comparisons, reference))
        findings += [verdict([(scores, tests)])] if many else comparisons
        span = [change for pair in pairs for *_, change in _changes(scores, *pair)]
        charts += [replace(change_chart(scores, *pair, span), folded=many) for pair in pairs]
        charts += [scores_by_query(scores, name) for name in scores if name not in {after for _, after in pairs}]
    # Which differences the queries reveal is said once, below the sentences of several comparisons.
    told = [finding for finding in findings if isinstance(finding, Comparison)]
    if len(told) > 1:
        findings = [replace(one, detectable=None) if isinstance(one, Comparison) else one for one in findings]
        findings.append(revealed(told))
    return Section("Result", parts=[*findings, more, *tables, *charts])


def differences_chart(scores: Mapping[str, Scores], comparisons: Sequence[Comparison], against: str) -> Figure:
    """Draw each run's difference from one of them, with its 95 % interval, best first."""
    bars = {c.run: _interval(c) for c in comparisons if c.baseline == against}
    # The other way round if that one comes later than the other.
    turned = {c.baseline: _interval(c) for c in comparisons if c.run == against}
    for name, (value, interval, sign) in turned.items():
        bars[name] = (-value, interval and (-interval[1], -interval[0]), -sign)
    rows, measure = {name: bars[name] for name in ranked(scores) if name in bars}, comparisons[0].measure
    return interval_figure(f"Difference of {measure} from {against}, {_INTERVALS}", f"difference of {measure}", rows)


def collections_chart(tested: Tested) -> Figure:
    """Draw the differences by the first measure, with their 95 % intervals: each comparison in each collection."""
    first = runs_and_measures(tested)[1][0]
    by_collection = zip(*(tests.comparisons for _, tests in tested.values() if tests), strict=True)
    named = [(name, c) for compared in by_collection for name, c in zip(tested, compared, strict=True)]
    bars = {f"{c.run} against {c.baseline}, {name}": _interval(c) for name, c in named if c.measure == first}
    return interval_figure(f"Differences in {first} by collection, {_INTERVALS}", f"difference of {first}", bars)


def _interval(c: Comparison) -> Interval:
    return c.difference, c.interval, c.direction * c.significant


def changes_figure(compared: Compared) -> Figure:
    """Draw all these charts in one figure, each with the names of its runs as the title."""
    pairs = first_comparisons(compared)
    panels = {f"{c.run} against {c.baseline}": _bars(scores, c.baseline, c.run) for scores, c in pairs}
    measure = pairs[-1][1].measure
    return bar_figure(f"Changes of {measure} by query", f"change of {measure}", panels)


def change_chart(scores: Mapping[str, Scores], before: str, after: str, span: Sequence[float] = ()) -> Figure:
    """Draw the change of the first measure from one run to another: a bar for each query that changed, sorted.

    The axis has room for the values of `span`, too, such as changes to other runs, so that charts share their scale.
    """
    rows, measure = [row for row in _changes(scores, before, after) if row[3]], scores[before].measures[0]
    caption = f"Change of {measure}{', a loss' * measure.family.lower_is_better} from {before} to {after}, by query"
    data = Table(f"{measure} by query, where it changed", ("query", before, after, "change"), rows)
    panels = {f"{after} against {before}": _bars(scores, before, after)}
    return replace(bar_figure(caption, f"change of {measure}", panels, data, span), run=after)


def scores_by_query(scores: Mapping[str, Scores], name: str) -> Figure:
    """Tabulate the scores of a run, folded."""
    return Figure(f"Scores of {name}, by query", "", query_table({name: scores[name]}), name, folded=True)


def _changes(scores: Mapping[str, Scores], before: str, after: str) -> list[tuple[str, float, float, float]]:
    """List queries, both scores by the first measure and the change, in descending order of changes."""
    new = scores[after].by_query
    # Rounded, since differences that are equal on paper differ in their last bits, which would order the bars.
    rows = [
        (qid, old, new[qid], round(new[qid] - old, DIFFERENCE_DECIMALS)) for qid, old in scores[before].by_query.items()
    ]
    return sorted(rows, key=lambda row: -row[3])


def _bars(scores: Mapping[str, Scores], before: str, after: str) -> list[Bar]:
    loss = scores[before].measures[0].family.lower_is_better
    return [(qid, change, (change > 0) != loss) for qid, _, _, change in _changes(scores, before, after)]


def contributions_chart(caption: str, parts: Sequence[tuple[str, float]], unit: str = "contribution") -> Figure:
    """Draw the named terms of a sum as lines from 0 to the right or, below 0, to the left."""
    rows = {f"{name}: {v:+.4f}": (v, (min(v, 0.0), max(v, 0.0)), (v > 0) - (v < 0)) for name, v in parts}
    return replace(interval_figure(caption, unit, rows), data=Table(caption, ("feature", unit), [*parts]))
