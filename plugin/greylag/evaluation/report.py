"""Scores and comparisons as text tables and plain dictionaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from greylag.evaluation.oracle import RunChoice
from greylag.evaluation.scores import Scores
from greylag.evaluation.significance import SIGNIFICANCE_LEVEL, Comparison, Significance, check_comparable
from greylag.tables import aligned

TEST_NAMES = {"t": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test", "randomization": "randomisation test"}


def table(scores: Mapping[str, Scores], significance: Significance | None = None) -> str:
    """Format the mean of each run (rows) by each measure (columns), with notes on missing and unjudged queries.

    Parameters
    ----------
    scores : mapping
        Scores by name of run.
    significance : Significance, optional
        Adds the difference from the baseline and the corrected p-value to each mean, marked ``*`` below 0.05.
    """
    check_comparable(scores)
    first = next(iter(scores.values()))
    header = ["run"]
    for measure in first.measures:
        header += [str(measure), "diff", "p"] if significance else [str(measure)]
    rows = [header]
    for name, run in scores.items():
        row = [name]
        for measure, mean in zip(run.measures, run.means.tolist(), strict=True):
            row.append(f"{mean:.4f}")
            if significance:
                row += _difference(significance.find(name, measure))
        rows.append(row)
    return "\n".join([*aligned(rows), "", *_notes(scores, significance)]) + "\n"


def query_table(scores: Mapping[str, Scores]) -> str:
    """Format the scores of every query as tab-separated lines, one for each run and query, below a header."""
    check_comparable(scores)
    first = next(iter(scores.values()))
    lines = ["\t".join(["run", "qid", *map(str, first.measures)])]
    for name, run in scores.items():
        for qid, values in zip(run.qids, run.values.tolist(), strict=True):
            lines.append("\t".join([name, qid, *(f"{value:.4f}" for value in values)]))
    return "\n".join(lines) + "\n"


def wins_table(choice: RunChoice) -> str:
    """Format the proportion of wins of each run (rows) by each measure (columns), with notes on the terms."""
    best, scores = next(iter(choice.scores.items()))
    header = ["wins", *map(str, scores.measures)]
    rows = [header, *([name, *(f"{share:.4f}" for share in wins)] for name, wins in choice.wins.items())]
    notes = [
        f"{best}: the best score of any run on each query (oracle); rank 2: the second best, and so on.",
        "wins: the proportion of queries on which a run is the best; ties share a query.",
    ]
    return "\n".join([*aligned(rows), "", *notes]) + "\n"


def to_dict(
    scores: Mapping[str, Scores], significance: Significance | None = None, choice: RunChoice | None = None
) -> dict[str, Any]:
    """All figures, unrounded, as a dictionary that JSON can represent; infinite statistics become None."""
    content: dict[str, Any] = {"runs": {name: _run_to_dict(run) for name, run in scores.items()}}
    if choice:
        picked = {name: _run_to_dict(run) for name, run in choice.scores.items()}
        columns = next(iter(picked.values()))["means"]
        wins = {name: dict(zip(columns, shares.tolist(), strict=True)) for name, shares in choice.wins.items()}
        content["pick_best"] = {"runs": picked, "wins": wins}
    if significance:
        comparisons = [
            {**asdict(c), "measure": str(c.measure), "statistic": c.statistic if math.isfinite(c.statistic) else None}
            for c in significance.comparisons
        ]
        content["significance"] = {**asdict(significance), "comparisons": comparisons}
    return content


def _run_to_dict(run: Scores) -> dict[str, Any]:
    means = run.by_measure
    return {
        "means": means,
        "per_query": {
            qid: dict(zip(means, values, strict=True))
            for qid, values in zip(run.qids, run.values.tolist(), strict=True)
        },
        "missing": list(run.missing),
        "unjudged": list(run.unjudged),
    }


def _difference(comparison: Comparison | None) -> list[str]:
    if comparison is None:
        return ["", ""]
    p = "<0.001" if comparison.corrected_p < 0.0005 else f"{comparison.corrected_p:.3f}"
    return [f"{comparison.difference:+.4f}", p + ("*" if comparison.corrected_p < SIGNIFICANCE_LEVEL else " ")]


def _notes(scores: Mapping[str, Scores], significance: Significance | None) -> list[str]:
    queries = len(next(iter(scores.values())).qids)
    notes = [f"Means over {queries} judged queries."]
    for name, run in scores.items():
        if run.missing:
            notes.append(f"{name}: {len(run.missing)} missing, scored as empty rankings ({_few(run.missing)}).")
        if run.unjudged:
            notes.append(f"{name}: {len(run.unjudged)} without judgements, ignored ({_few(run.unjudged)}).")
    if significance:
        sides = "two-sided" if significance.alternative == "two-sided" else "one-sided, better than the baseline"
        count = len(significance.comparisons)
        notes.append(
            f"diff: from {significance.baseline}. p: {TEST_NAMES[significance.test]}, {sides}, "
            f"Holm's correction over {count} comparison{'s' if count != 1 else ''}; * below {SIGNIFICANCE_LEVEL}."
        )
    return notes


def _few(qids: Sequence[str]) -> str:
    return ", ".join(qids[:10]) + (", ..." if len(qids) > 10 else "")
