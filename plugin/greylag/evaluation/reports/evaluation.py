"""The evaluation of runs: one value with scores, tests and views of judgements, and the forms that it prints in."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from greylag.base import (
    TREC_EVAL,
    Library,
    Marked,
    ParameterError,
    Table,
    as_html,
    as_latex,
    as_markdown,
    as_text,
    as_tsv,
    check_choice,
    cite,
    table_frame,
    versions,
    visible,
)
from greylag.evaluation.reports.categories import category_table
from greylag.evaluation.reports.earlier import digests
from greylag.evaluation.reports.gate import Gate
from greylag.evaluation.reports.names import short_names
from greylag.evaluation.reports.parts import (
    Tested,
    joint_comparisons,
    joint_means,
    paper_note,
    paper_table,
    stacked,
)
from greylag.evaluation.reports.scores import (
    equivalence_note,
    has_many_pairs,
    means_table,
    method_names,
    query_table,
    to_dict,
    unjudged_note,
)
from greylag.evaluation.reports.verdict import verdict
from greylag.evaluation.scoring.agreement import few_names
from greylag.evaluation.scoring.concordance import Agreement, RankCorrelation, rankings_table
from greylag.evaluation.scoring.holes import Holes, holes_sentences, holes_table
from greylag.evaluation.scoring.predicted import Corrections
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.scoring.significance import Significance, check_comparable, comparison_table, narrow_table

MOST_GROUPS = 10  # of runs without a significant difference, whose letters a page shows; beyond, a chart does


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Evaluation:
    """The scores of runs, with tests and views of the judgements; ``str`` is what ``greylag evaluate`` prints.

    Parameters
    ----------
    scores : mapping
        Scores by name of run; empty if there are `parts`.
    significance : Significance, optional
        Adds a star to each mean that differs significantly from the baseline's; of several baselines, the letters of
        those that a run is better than; or, if all pairs are compared, ranks by the first measure and letters that runs
        share if they do not differ significantly. Adds a table of the comparisons: the difference, its 95 % interval,
        the effect size d, the detectable difference, and the corrected p; of more than 45 pairs only TSV and JSON have
        it.
    unjudged : mapping, optional
        The share of the top 10 documents without judgements, by name of run.
    holes : Holes, optional
        Adds tables of scores and differences with documents without judgements as relevant, and left out.
    corrections : Corrections, optional
        Means and differences corrected by people's judgements; they take the place of all tables.
    warnings : tuple of str, default ()
        Reasons why scores may not mean what they seem to.
    agreement : Agreement, optional
        Adds tables of how far two sets of judgements agree.
    rankings : tuple of RankCorrelation, default ()
        Adds a table of how far the measures agree about the order of the runs.
    best_of : mapping, optional
        The teams of all runs, of which the best by the first measure are shown.
    parts : mapping, optional
        Evaluations by collection, whose p are corrected together. With the same runs and measures, they are the columns
        of one table; else each has its own.
    verdict : str, default ""
        What the comparisons by the first measure show, in a paragraph, which text ends with.
    categories : mapping, optional
        Scores by category of topics, whose means are a table.
    gate : Gate, optional
        What is checked for an exit code; text has nothing else.
    judgements : mapping, optional
        Adds their SHA-256 to JSON, so that a later evaluation can be compared with this one.
    """

    scores: Mapping[str, Scores]
    significance: Significance | None = None
    unjudged: Mapping[str, float] | None = None
    holes: Holes | None = None
    corrections: Corrections | None = None
    warnings: tuple[str, ...] = ()
    agreement: Agreement | None = None
    rankings: tuple[RankCorrelation, ...] = ()
    best_of: Mapping[str, str] | None = None
    parts: Mapping[str, Evaluation] = field(default_factory=dict)
    verdict: str = ""
    categories: Mapping[str, Mapping[str, Scores]] = field(default_factory=dict)
    gate: Gate | None = None
    judgements: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not self.parts:
            check_comparable(self.scores)

    def format(self, form: str = "text", *, per_query: bool = False) -> str:
        """Format the tables with their notes.

        Parameters
        ----------
        form : {"text", "tsv", "csv", "markdown", "latex", "json", "html"}, default "text"
            LaTeX is one table for a paper, with the package booktabs: short names, the best of each column in bold,
            letters of the baselines that a run is better than; comments after it have notes, comparisons, and BibTeX
            for measures and tests. TSV, CSV and JSON have numbers unrounded, and the letters, each measure's in a
            column of its own in TSV and CSV. TSV has no notes, and an empty line between tables; CSV is the first table
            alone, as `to_frame`. JSON has everything. HTML is a page with charts.
        per_query : bool, default False
            Give the scores of each query instead of the means and comparisons.
        """
        check_form("form", form)
        return FORMS[form](self, per_query)

    def tables(self, *, per_query: bool = False, wide: bool = False, complete: bool = False) -> list[Table]:
        """Make the tables, with all columns if `wide`, and with all pairs of runs if `complete`."""
        agreed = self.agreement.tables if self.agreement else []
        agreed = [*agreed, rankings_table(self.rankings)] if self.rankings else agreed
        if self.corrections:
            return [*self.corrections.tables, *agreed]
        if self.parts:
            return self._part_tables(per_query=per_query, wide=wide, complete=complete)
        tests = self.significance
        # A reader of 45 pairs looks at letters; a program gets all.
        many = bool(tests and not complete and has_many_pairs(self.scores, tests))
        first = query_table(self.scores) if per_query else means_table(self.scores, tests, complete)
        notes, others = [first.caption], list[Table]()
        if tests and not per_query and many:
            note = f"{tests.method}{equivalence_note(tests, counted=True)} TSV and JSON list all comparisons."
            notes.append(note)
        elif tests and not per_query:
            compared = comparison_table("", tests) if wide else narrow_table(tests)
            caption = f"{tests.method}\n{tests.columns_note}.{equivalence_note(tests)}"
            others.append(replace(compared, caption=caption, header=("run", *compared.header[1:])))
        if self.best_of:
            measure = next(iter(self.scores.values())).measures[0]
            notes.append(f"Of each team, the best run by {measure} is shown, chosen on these topics.")
        notes.append(unjudged_note(self.unjudged or {}))
        others += [category_table(self.scores, self.categories)] if self.categories and not per_query else []
        others += [*self._holes_tables(many=many), *agreed]
        return [replace(first, caption="\n".join(filter(None, notes))), *others]

    def _holes_tables(self, *, many: bool) -> list[Table]:
        """Make the tables of views of unjudged documents; of many pairs sentences stand for the second."""
        if not self.holes or not self.significance:
            return [self.holes.table] if self.holes else []
        whole, sentences = self.holes.table, holes_sentences(self.significance)
        if many:
            return [replace(whole, caption="\n".join([whole.caption, *sentences]))]
        return [whole, holes_table(self.significance)]

    def _part_tables(self, *, per_query: bool, wide: bool, complete: bool) -> list[Table]:
        """Make one table of the parts if they can share it, else each part's own."""
        if not (tested := self.tested):
            made = partial(Evaluation.tables, per_query=per_query, wide=wide, complete=complete)
            own = [(name, table) for name, part in self.parts.items() for table in made(part)]
            return [replace(table, caption=f"{name}: {table.caption}") for name, table in own]
        if per_query:
            return [stacked({name: query_table(scores) for name, (scores, _) in tested.items()})]
        means, (scores, tests) = joint_means(tested), next(iter(tested.values()))
        many = bool(tests and not complete and has_many_pairs(scores, tests))
        notes, others = [means.caption], list[Table]()
        if tests and complete:
            others = [stacked({name: comparison_table("", test) for name, (_, test) in tested.items() if test})]
        elif tests and many:
            notes.append(f"{tests.method} TSV and JSON list all comparisons.")
        elif tests:
            first, *others = joint_comparisons(tested)
            others = [replace(first, caption=f"{first.caption} {tests.method}{equivalence_note(tests)}"), *others]
        notes += [unjudged_note(part.unjudged or {}, f"{name}: ") for name, part in self.parts.items()]
        of_holes = zip(*(part._holes_tables(many=many) for part in self.parts.values()), strict=True)
        others += [stacked(dict(zip(self.parts, tables, strict=True))) for tables in of_holes]
        return [replace(means, caption="\n".join(filter(None, notes))), *others]

    @property
    def tested(self) -> Tested:
        """The scores and tests of each part, if all have the same runs and measures; else empty."""
        parts = {name: (part.scores, part.significance) for name, part in self.parts.items()}
        if not all(scores for scores, _ in parts.values()):
            return {}
        shapes = {(frozenset(scores), next(iter(scores.values())).measures) for scores, _ in parts.values()}
        return parts if len(shapes) == 1 else {}

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, unrounded, as a dictionary that JSON can represent."""
        agreed: dict[str, Any] = {"agreement": asdict(self.agreement)} if self.agreement else {}
        agreed |= {"rankings": list(map(asdict, self.rankings))} if self.rankings else {}
        if self.corrections:
            return self.corrections.to_dict() | agreed
        if self.parts:
            return {"parts": {name: part.to_dict() for name, part in self.parts.items()}}
        content = to_dict(self.scores, self.significance)
        content |= agreed | ({"unjudged_at_10": self.unjudged} if self.unjudged else {})
        content |= {"best_of": self.best_of} if self.best_of else {}
        content |= {"digests": digests(self.judgements)} if self.judgements else {}
        of_categories = self.categories.items()
        means = {name: {run: one.by_measure for run, one in scores.items()} for name, scores in of_categories}
        content |= {"categories": means} if means else {}
        content |= {"gate": self.gate.to_dict()} if self.gate else {}
        return content | ({"holes": self.holes.to_dict()} if self.holes else {})

    def to_latex(self, *, per_query: bool = False) -> str:
        """Format the table of a paper: `format` with "latex"."""
        return self.format("latex", per_query=per_query)

    def to_frame(self, library: Library = "pandas", *, per_query: bool = False) -> Any:
        """Make a data frame of pandas or polars of the first table, unrounded; `significance` has one of its own."""
        return table_frame(self.tables(per_query=per_query, complete=True)[0], library)

    def __repr__(self) -> str:
        caption = self.tables()[0].caption.splitlines()[0]
        return visible(f"<Evaluation of {few_names([*(self.scores or self.parts)])}: {caption}>")

    def __str__(self) -> str:
        return visible(self.format().removesuffix("\n"))

    def _repr_html_(self) -> str:
        return "".join(as_html(table) for table in self.tables(wide=True))


def _text(found: Evaluation, per_query: bool) -> str:
    """Format tables with their captions and the verdict below all of them; of a gate, its checks alone."""
    if found.gate:
        return f"{found.gate}\n"
    tables = found.tables(per_query=per_query)
    notes = [*dict.fromkeys(line for table in tables for line in table.caption.splitlines())]
    notes += [f"\n{found.verdict}"] if found.verdict and not per_query else []
    return "\n".join([*(as_text(replace(table, caption="")) for table in tables), *notes]) + "\n" * bool(notes)


def _latex(found: Evaluation, per_query: bool, number: int = 1) -> str:
    """Format the first table as LaTeX, and notes, other tables and works to cite as comments."""
    if found.parts and not found.tested:
        return "\n".join(_latex(part, per_query, place) for place, part in enumerate(found.parts.values(), 1))
    tested = found.tested if found.parts else {"": (found.scores, found.significance)}
    first, *others = found.tables(per_query=per_query)
    labels = short_names(found.scores)
    rows = [[labels.get(str(cell), cell) for cell in row[:1]] + [*row[1:]] for row in first.rows]
    caption = "Scores of each query." if per_query else first.caption.partition("\n")[0]
    shown, note = replace(first, caption=caption, rows=rows), ""
    if not (found.corrections or per_query):
        shown, note = paper_table(tested), paper_note(tested)
    names = [name for scores, tests in tested.values() for name in method_names(scores, None if per_query else tests)]
    cited = cite("prediction-powered" if found.corrections else ", ".join(dict.fromkeys(names)))
    comments = "\n".join([first.caption, *map(as_text, others), *cited]).splitlines()
    label = "tab:greylag" + f"-{number}" * (number > 1)
    return as_latex(shown, label, note) + "".join(f"% {line}\n" for line in comments)


def _html(found: Evaluation, per_query: bool) -> str:
    """Write a page: sentences of the comparisons, tables, charts."""
    # With all that explains rankings, which no other form needs.
    from greylag.evaluation.reports.charts import collections_chart, result, scores_by_query
    from greylag.evaluation.reports.report import Section, report_page

    tables = [_readable(table, found.significance) for table in found.tables(per_query=per_query, wide=True)]
    queries = [scores_by_query(found.scores, name) for name in found.scores if not per_query]
    sections = [Section("Scores", parts=[*tables, *queries])]
    if found.parts:
        leaves = {name: (part.scores, part.significance) for name, part in found.parts.items()}
        shared = found.tested if all(tests for _, tests in leaves.values()) else {}
        charts = [collections_chart(shared)] if shared else []
        shown = [f"{name}: {verdict([(scores, test)])}" for name, (scores, test) in leaves.items() if test]
        sections = [Section("Scores", parts=[*shown, *tables, *charts])]
        sections += [replace(result([(scores, test)]), title=name) for name, (scores, test) in leaves.items() if test]
    elif found.significance:
        sections = [result([(found.scores, found.significance)], tables=tables)]
    # The command that made the page, for whoever finds it later.
    origin = {"command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]), "versions": versions() | TREC_EVAL}
    return report_page("Evaluation", sections, origin)


def _readable(table: Table, tests: Significance | None) -> Table:
    """Leave out letters of more than `MOST_GROUPS` groups, and the column that names the one baseline."""
    letters = {letter for row in table.rows for cell in row if isinstance(cell, Marked) for letter in cell.mark.strip()}
    if len(letters) > MOST_GROUPS:
        rows = [[replace(cell, mark="") if isinstance(cell, Marked) else cell for cell in row] for row in table.rows]
        lines = [line for line in table.caption.splitlines() if "common letter" not in line]
        return replace(table, rows=rows, caption="\n".join([*lines, "TSV and JSON have the letters of groups."]))
    if tests and tests.baseline and "against" in table.header:
        header, *rows = ([cell for n, cell in enumerate(row) if n != 1] for row in (table.header, *table.rows))
        caption = f"Differences from {tests.baseline}.\n{table.caption}"
        return replace(table, header=[*map(str, header)], rows=rows, caption=caption)
    return table


FORMS: Mapping[str, Callable[[Evaluation, bool], str]] = {
    "text": _text,
    "tsv": lambda found, per_query: "\n".join(map(as_tsv, found.tables(per_query=per_query, wide=True, complete=True))),
    "csv": lambda found, per_query: as_tsv(found.tables(per_query=per_query, complete=True)[0], "excel"),
    "markdown": lambda found, per_query: "\n".join(map(as_markdown, found.tables(per_query=per_query))),
    "latex": _latex,
    "json": lambda found, _: json.dumps(found.to_dict(), indent=1, default=str) + "\n",
    "html": _html,
}
"""The forms of an evaluation: a function of it, and of whether each query's scores are shown."""


def check_form(option: str, form: str) -> None:
    """Raise `ParameterError` unless `form` is one of `FORMS`."""
    if form == "parquet":
        raise ParameterError(
            f"{option} cannot be parquet: in Python, write compare(...).to_frame().to_parquet('scores.parquet')"
        )
    check_choice(option, form, FORMS)
