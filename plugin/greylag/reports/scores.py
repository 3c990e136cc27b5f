"""Scores and comparisons as tables and plain dictionaries."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count
from string import ascii_lowercase
from typing import Any, Literal

from greylag.core.citations import cite
from greylag.core.tables import Cell, Marked, Row, Table, as_latex, as_markdown, as_text, as_tsv
from greylag.evaluation.holes import Holes, holes_table
from greylag.evaluation.measures import Measure
from greylag.evaluation.power import SIGNIFICANCE_LEVEL
from greylag.evaluation.scores import Scores
from greylag.evaluation.significance import (
    COLUMNS_NOTE,
    CORRECTION_NAMES,
    TEST_NAMES,
    Significance,
    check_comparable,
    comparison_table,
    narrow_table,
)
from greylag.runtime.software import TREC_EVAL

Form = Literal["text", "tsv", "markdown", "latex", "json"]


def table(
    scores: Mapping[str, Scores],
    significance: Significance | None = None,
    *,
    form: Form = "text",
    per_query: bool = False,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    unjudged: Mapping[str, float] | None = None,
    holes: Holes | None = None,
) -> str:
    """Format scores: the mean of each run (rows) by each measure (columns), with notes.

    Parameters
    ----------
    scores : mapping
        Scores by name of run.
    significance : Significance, optional
        Adds to each mean the letters of the runs that it is significantly better than, and a table of the comparisons:
        the difference, its 95 % interval, the effect size d, the detectable difference, and the corrected p.
    form : {"text", "tsv", "markdown", "latex", "json"}, default "text"
        LaTeX needs the package booktabs, has labels such as ``tab:greylag-1``, and ends with comments: BibTeX for
        measures and tests. TSV and JSON have numbers unrounded; TSV has no notes, and an empty line between tables.
        JSON has everything.
    per_query : bool, default False
        Give the scores of each query instead.
    metadata : mapping, optional
        How runs were made, as their files say (ir_metadata), by name of run: whole in JSON, shortened in notes.
    unjudged : mapping, optional
        The share of the top 10 documents without judgements, by name of run: in JSON, and in a note if it is not 0.
    holes : Holes, optional
        Adds tables of scores and differences with documents without judgements as relevant, and left out.
    """
    if form == "json":
        content = to_dict(scores, significance)
        content |= {"metadata": metadata} if metadata else {}
        content |= {"unjudged_at_10": unjudged} if unjudged else {}
        content |= {"holes": holes.to_dict()} if holes else {}
        return json.dumps(content, indent=1, default=str) + "\n"
    tables = score_tables(
        scores,
        significance,
        per_query=per_query,
        metadata=metadata,
        unjudged=unjudged,
        holes=holes,
        wide=form == "tsv",
    )
    cited = _cited(next(iter(scores.values())).measures, significance) if form == "latex" else []
    return format_tables(tables, form, cited)


def format_tables(tables: Sequence[Table], form: Form, cited: Sequence[str] = ()) -> str:
    """Format tables as text, TSV, Markdown, or LaTeX with works to cite in comments; in text, captions come last."""
    if form == "text":
        notes = [shown.caption for shown in tables if shown.caption]
        return "\n".join([*(as_text(replace(shown, caption="")) for shown in tables), *notes]) + "\n" * bool(notes)
    if form == "latex":
        labelled = [as_latex(shown, f"tab:greylag-{number}") for number, shown in enumerate(tables, 1)]
        return "\n".join([*labelled, "".join(f"% {line}\n" for line in cited)])
    return "\n".join(map({"tsv": as_tsv, "markdown": as_markdown}[form], tables))


def score_tables(
    scores: Mapping[str, Scores],
    significance: Significance | None = None,
    *,
    per_query: bool = False,
    metadata: Mapping[str, Mapping[str, Any]] | None = None,
    unjudged: Mapping[str, float] | None = None,
    holes: Holes | None = None,
    wide: bool = False,
) -> list[Table]:
    """Make the tables of `table`, with all columns if `wide`."""
    check_comparable(scores)
    tables = [_query_table(scores)] if per_query else [_means_table(scores, significance)]
    if significance and not per_query:
        whole = comparison_table("", significance) if wide else narrow_table(significance)
        tables.append(
            replace(
                whole,
                caption=f"{significance.method}\n{COLUMNS_NOTE}.{_equivalence_note(significance)}",
                header=("run", *whole.header[1:]),
            )
        )
    notes = [*filter(None, [tables[0].caption]), *_coverage(unjudged or {}), *_origins(metadata or {})]
    tables[0] = replace(tables[0], caption="\n".join(notes))
    if holes:
        tables += [holes.table, *([holes_table(significance)] if significance else [])]
    return tables


def _equivalence_note(significance: Significance) -> str:
    """Write a sentence on the column of equivalence, if there is one."""
    margin = significance.comparisons[0].margin
    if margin is None:
        return ""
    correction = CORRECTION_NAMES[significance.correction]
    return (
        f" same p: two one-sided t-tests that the means differ by less than {margin:g}, {correction} correction; "
        f"* below {SIGNIFICANCE_LEVEL}: the two are the same within {margin:g}."
    )


def _cited(measures: Sequence[Measure], significance: Significance | None) -> list[str]:
    """Return BibTeX for the measures and the tests."""
    kinds = [measure.family for measure in measures]
    own = [kind.from_subtopics or kind.from_grades or kind.from_ir_measures for kind in kinds]
    names = [*map(str, measures), *([] if all(own) else ["trec_eval"])]
    if significance:
        names += [TEST_NAMES[significance.test], CORRECTION_NAMES[significance.correction], "effect size"]
    return cite(", ".join(names))


def _means_table(scores: Mapping[str, Scores], significance: Significance | None) -> Table:
    measures = next(iter(scores.values())).measures
    labels, letters = _letters(scores, significance) if significance else ({}, {})
    widths = [max((len(letters.get((name, measure), "")) for name in scores), default=0) for measure in measures]
    rows: list[Row] = []
    for name, run in scores.items():
        row: list[Cell] = [f"{name} ({labels[name]})" if significance else name]
        for measure, width, mean in zip(measures, widths, run.means.tolist(), strict=True):
            mark = f" {letters.get((name, measure), ''):<{width}}" if width else ""
            row.append(Marked(mean, ".0f" if measure.family.summary == "sum" else ".4f", mark))
        rows.append(row)
    return Table("\n".join(_notes(scores, significance)), ("run", *map(str, measures)), rows)


def _letters(
    scores: Mapping[str, Scores], significance: Significance
) -> tuple[Mapping[str, str], Mapping[tuple[str, Measure], str]]:
    """Return a letter for each run (numbers for many), and those of the runs that it is significantly better than."""
    few = len(scores) <= len(ascii_lowercase)
    labels = dict(zip(scores, ascii_lowercase if few else map(str, count(1)), strict=False))
    worse: dict[tuple[str, Measure], list[str]] = {}
    for c in significance.comparisons:
        if c.corrected_p < SIGNIFICANCE_LEVEL and c.direction:
            better, other = (c.run, c.baseline) if c.direction > 0 else (c.baseline, c.run)
            worse.setdefault((better, c.measure), []).append(labels[other])
    return labels, {cell: ("" if few else ",").join(letters) for cell, letters in worse.items()}


def _query_table(scores: Mapping[str, Scores]) -> Table:
    """Tabulate the scores of every query, a row for each run and query."""
    rows: list[Row] = [
        (name, qid, *map(Marked, values))
        for name, run in scores.items()
        for qid, values in zip(run.qids, run.values.tolist(), strict=True)
    ]
    return Table("", ("run", "qid", *map(str, next(iter(scores.values())).measures)), rows)


def to_dict(scores: Mapping[str, Scores], significance: Significance | None = None) -> dict[str, Any]:
    """Return all figures, unrounded, as a dictionary that JSON can represent; infinite statistics become None."""
    content: dict[str, Any] = {**TREC_EVAL, "runs": {name: _run_to_dict(run) for name, run in scores.items()}}
    if significance:
        comparisons = [
            {
                **asdict(c),
                "measure": str(c.measure),
                "statistic": c.statistic if math.isfinite(c.statistic) else None,
            }
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
        **({"seen": True} if run.seen else {}),
        **({"empty": list(run.empty)} if run.empty else {}),
    }


def _notes(scores: Mapping[str, Scores], significance: Significance | None) -> list[str]:
    queries = len(next(iter(scores.values())).qids)
    notes = [f"Means over {queries} judged queries."]
    measures = next(iter(scores.values())).measures
    if losses := ", ".join(str(measure) for measure in measures if measure.family.lower_is_better):
        notes.append(f"Lower is better: {losses}.")
    for summary in ("sum", "geometric mean"):
        if names := ", ".join(str(measure) for measure in measures if measure.family.summary == summary):
            notes.append(f"Not a mean but a {summary} over queries: {names}.")
    runs_of: dict[str, list[str]] = {}  # the runs that a note is about
    for name, run in scores.items():
        if run.missing:
            text = f"{len(run.missing)} missing, scored as empty rankings ({_few(run.missing)})."
            runs_of.setdefault(text, []).append(name)
        if run.empty:
            runs_of.setdefault(f"{len(run.empty)} with empty rankings ({_few(run.empty)}).", []).append(name)
        if run.unjudged:
            text = f"{len(run.unjudged)} without judgements, ignored ({_few(run.unjudged)})."
            runs_of.setdefault(text, []).append(name)
        if run.seen:
            text = "a model ranked topics that it was trained on, which says nothing about others."
            runs_of.setdefault(text, []).append(name)
    notes += [f"{', '.join(names)}: {text}" for text, names in runs_of.items()]
    if significance:
        notes.append(f"Letters: significantly better than that run, corrected p below {SIGNIFICANCE_LEVEL}.")
    return notes


def _coverage(unjudged: Mapping[str, float]) -> list[str]:
    """Write a line on the shares of unjudged documents, if there are any."""
    if not any(unjudged.values()):
        return []
    shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in unjudged.items())
    return [f"Not judged among the top 10, and counted as not relevant: {shares}."]


def _origins(metadata: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Write a line for each run with metadata: its steps, and who made it."""
    lines = []
    for name, content in metadata.items():
        actor, method = content.get("actor", {}), content.get("method", {})
        names = " > ".join(step.get("name", "?") for step in method.get("retrieval", ()))
        lines.append(
            f"{name}: {'; '.join(filter(None, [names, actor.get('team') or actor.get('name')]))} (ir_metadata)."
        )
    return lines


def _few(qids: Sequence[str]) -> str:
    return ", ".join(qids[:10]) + (", ..." if len(qids) > 10 else "")
