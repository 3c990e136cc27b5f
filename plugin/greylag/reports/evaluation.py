"""The evaluation of runs: one value with scores, tests and views of judgements, and the forms that it prints in."""

from __future__ import annotations

import json
import logging
import shlex
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from string import ascii_letters
from typing import Any, Literal, NamedTuple

from greylag.core.checks import check_choice, naming
from greylag.core.citations import cite
from greylag.core.foreign import as_qrels
from greylag.core.guidance import guided
from greylag.core.tables import (
    Library,
    Marked,
    Table,
    as_html,
    as_latex,
    as_markdown,
    as_text,
    as_tsv,
    table_frame,
    visible,
)
from greylag.errors import GreylagError, ParameterError
from greylag.evaluation.agreement import check_agreement, check_levels, few_names, identical
from greylag.evaluation.concordance import (
    Agreement,
    RankCorrelation,
    compare_judgements,
    compare_measures,
    rankings_table,
)
from greylag.evaluation.holes import Holes, compare_with_holes, holes_sentences, holes_table, score_holes
from greylag.evaluation.measures import Measure, parse_measures
from greylag.evaluation.predicted import Corrections, check_coverage, check_predictions, evaluate_with_predictions
from greylag.evaluation.scores import (
    DEFAULT_MEASURES,
    PartsScores,
    Scores,
    by_query_alone,
    check_judged,
    evaluate,
    evaluate_by_subtopic,
    ranking_keys,
)
from greylag.evaluation.significance import (
    Correction,
    Design,
    Significance,
    Test,
    as_baselines,
    check_baselines,
    check_comparable,
    check_run_names,
    compare_collections,
    comparison_table,
    narrow_table,
)
from greylag.evaluation.teams import Teams, assign_teams, best_runs
from greylag.ranking import Run, as_run
from greylag.reports.categories import by_category, category_table
from greylag.reports.earlier import digests, is_evaluation, read_earlier
from greylag.reports.gate import Gate, check_gate, parse_fail_if
from greylag.reports.names import name_runs, short_names
from greylag.reports.parts import Tested, joint_comparisons, joint_means, paper_note, paper_table, stacked
from greylag.reports.scores import (
    best_first,
    equivalence_note,
    has_many_pairs,
    means_table,
    method_names,
    query_table,
    to_dict,
    unjudged_note,
)
from greylag.reports.verdict import verdict
from greylag.runtime.files import read_pairs
from greylag.runtime.software import TREC_EVAL, versions
from greylag.trec import read_qrels
from greylag.trec.runs import RunParts

SUBTOPIC_MEASURES = "alpha-nDCG@10", "ERR-IA@10", "S-recall@10"
MOST_GROUPS = 10  # of runs without a significant difference, whose letters a page shows; beyond, a chart does
MIN_UNJUDGED_LEAD = 0.1  # of the top 10, one document
_log = logging.getLogger("greylag")


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

    def leaves(self) -> dict[str, Evaluation]:
        """Return the evaluations that have scores, by the names of their parts; "" is the name of a single one."""
        if not self.parts:
            return {"": self}
        below = [(name, part.leaves()) for name, part in self.parts.items()]
        return {", ".join(filter(None, [name, more])): leaf for name, leaves in below for more, leaf in leaves.items()}

    def to_dict(self) -> dict[str, Any]:
        """Return all figures, unrounded, as a dictionary that JSON can represent."""
        agreed: dict[str, Any] = {"agreement": asdict(self.agreement)} if self.agreement else {}
        agreed |= {"rankings": [one._asdict() for one in self.rankings]} if self.rankings else {}
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


def _latex(found: Evaluation, per_query: bool) -> str:
    """Format the first table as LaTeX, and notes, other tables and works to cite as comments."""
    if found.parts and not found.tested:
        return "\n".join(_latex(part, per_query) for part in found.parts.values())
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
    return as_latex(shown, "tab:greylag", note) + "".join(f"% {line}\n" for line in comments)


def _html(found: Evaluation, per_query: bool) -> str:
    """Write a page: sentences of the comparisons, tables, charts."""
    # With all that explains rankings, which no other form needs.
    from greylag.reports.charts import collections_chart, result, scores_by_query
    from greylag.reports.report import Section, report_page

    tables = [_readable(table, found.significance) for table in found.tables(per_query=per_query, wide=True)]
    queries = [scores_by_query(found.scores, name) for name in found.scores if not per_query]
    sections = [Section("Scores", parts=[*tables, *queries])]
    if found.parts:
        leaves = {name: (part.scores, part.significance) for name, part in found.leaves().items()}
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


@guided
def compare(
    runs: Mapping[str, Run | str | Path | Any],
    qrels: Any = None,
    measures: Sequence[Measure | str | Any] | str | None = None,
    *,
    baseline: str | Sequence[str] | None = None,
    all_pairs: bool = False,
    test: Test = "t",
    correction: Correction = "holm",
    margin: float | None = None,
    unjudged: bool = False,
    predicted: Any = None,
    other_qrels: Any = None,
    tau: bool = False,
    teams: Teams | None = None,
    best_of_team: bool = False,
    categories: Mapping[str, str] | str | Path | None = None,
    fail_if: str | float | None = None,
    order: Literal["best", "given"] = "best",
    read: Callable[[Any], Run | RunParts] = RunParts,
) -> Evaluation:
    """Score runs and, with a baseline or for all pairs, test their differences, as ``greylag evaluate`` does.

    Parameters
    ----------
    runs : mapping of str to Run, path, or a run that `evaluate` takes
        Runs by name, or a list of files or of `Run`, by their tags where these differ. All are read and scored before
        one is refused. JSON of an earlier evaluation is the run that it scored, by the same judgements and measures; of
        several, the one of this name. Or, without `qrels`, pairs of runs by name and judgements, by name of collection:
        ``{"nfcorpus": (runs, qrels), ...}``. All have runs of the same names, and p is corrected over all collections
        together.
    qrels : path, judgements that `evaluate` takes, or judgements by subtopic
    measures : sequence of Measure, str or measure of ir_measures, optional
        By default AP, P@10 and nDCG@10; by subtopic alpha-nDCG@10, ERR-IA@10 and S-recall@10.
    baseline : str or sequence of str, optional
        The name of the run that the others are compared with, or several names.
    all_pairs : bool, default False
        Compare every run with every other, without a baseline.
    test, correction, margin
        See `compare_scores`.
    unjudged : bool, default False
        Add scores and differences with documents without judgements as relevant, and left out (`score_holes`).
    predicted : path or judgements, optional
        Predicted judgements, such as a language model's, of the topics of `qrels` and of others: means and differences
        are corrected by people's judgements (`evaluate_with_predictions`), with intervals of their own.
    other_qrels : path or judgements, optional
        Another assessor's judgements: adds how far both agree on the topics of both, by Cohen's kappa of documents,
        plain and weighted, and by Kendall's tau and tau-AP of the runs (Yilmaz, Aslam and Robertson 2008).
    tau : bool, default False
        Add tau and tau-AP of the runs' order by each pair of measures.
    teams : mapping of str to str, path or str, optional
        Teams of runs, as `pool_runs` takes them: "own" and "without own" are a whole team's.
    best_of_team : bool, default False
        Show and test the best run of each team by the first measure, and the baselines.
    categories : mapping of qid to category, or path, optional
        Add means by category. A file has lines of qid and category, parted by a tab or as CSV.
    fail_if : {"lower", "worse"} or float > 0, optional
        Add a `gate`, with each run, measure, and category with all topics a check. It fails if a mean is lower than the
        baseline's; if it is shown to be, by a one-sided test; or if it is not shown to be above the baseline's minus
        this margin, in units of the measure: non-inferiority, by a one-sided paired t-test. p is corrected over all
        checks.
    order : {"best", "given"}, default "best"
        Put runs in the order of their means by the first measure, after the baselines, or leave them.
    read : callable, optional
        Reads the paths among the runs, such as `read_run`. By default, a run is scored as it is read, and not kept in
        memory, if the lines of its queries are together, and if nothing looks at all runs or all topics at once:
        `unjudged`, `predicted`, `other_qrels`, judgements by subtopic, ERR and measures of ir_measures.
    """
    if isinstance(runs, list | tuple) and all(isinstance(run, Run | str | Path) for run in runs):
        runs = dict(name_runs([(None, Path(run) if isinstance(run, str) else run) for run in runs], "tag"))
    collections, baselines = _collections(runs, qrels), as_baselines(baseline)
    check_choice("order", order, ("best", "given"))
    for of_one, _ in collections.values():
        check_baselines(baselines, of_one)
    _check_options(baselines, all_pairs, predicted, (unjudged, margin, test), single=qrels is not None)
    views = _Views(unjudged, other_qrels, tau, teams, best_of_team)
    asked = any(one is not None for one in (other_qrels, categories, fail_if)) or tau or best_of_team
    if asked and (predicted is not None or qrels is None):
        views_of_one = "other_qrels, tau, best_of_team, categories and fail_if"
        raise ParameterError(f"{views_of_one} are of one collection, without predicted judgements")
    if best_of_team and teams is None:
        raise ParameterError("best_of_team needs teams")
    rule = None if fail_if is None else parse_fail_if(fail_if, baselines)
    named = read_pairs(categories, "qid category") if isinstance(categories, str | Path) else categories
    # Before runs are read, so that nothing stops after the work for a reason that was known before.
    design = Design(test, correction=correction, margin=margin, all_pairs=all_pairs)
    judged = {name: _judged(of_one, measures, predicted) for name, (_, of_one) in collections.items()}
    parts = dict[str, Evaluation]()
    for name, (of_one, _) in collections.items():
        with naming(f"collection {name}") if name else nullcontext():
            parts[name] = _scored(of_one, judged[name], baselines, design, views=views, read=read)
    if order == "best":
        names = best_first(next(iter(parts.values())).scores, baselines)
        parts = {name: replace(part, scores={run: part.scores[run] for run in names}) for name, part in parts.items()}
    if predicted is None and (baselines or all_pairs):
        tests = compare_collections({name: part.scores for name, part in parts.items()}, None, baselines, design)
        for name, part in parts.items():
            found = compare_with_holes(tests[name], part.holes) if part.holes else tests[name]
            parts[name] = replace(part, significance=found)
    for name, part in parts.items():
        for warning in part.warnings:
            _log.warning("%s", f"{name}: {warning}" if name else warning)
    if qrels is None:
        return Evaluation({}, parts=parts)
    return _with_views(replace(parts[""], judgements=judged[""].qrels), named or {}, rule)


def _check_options(
    baselines: Sequence[str], all_pairs: bool, predicted: Any, options: tuple[bool, float | None, Test], *, single: bool
) -> None:
    """Raise `ParameterError` for options of `compare` that exclude each other."""
    if baselines and all_pairs:
        raise ParameterError(f"all_pairs has no baseline: leave one of the two out, all_pairs or {baselines[0]!r}")
    if len(baselines) > len(ascii_letters):
        raise ParameterError(f"{len(baselines)} baselines have no letters: give at most {len(ascii_letters)}")
    if predicted is not None and (all_pairs or options != (False, None, "t")):
        raise ParameterError("predicted judgements exclude all_pairs, unjudged, margin and test: leave these out")
    if predicted is not None and (len(baselines) > 1 or not single):
        raise ParameterError("predicted judgements are of one collection, with one baseline at most: compare in turn")


def _with_views(found: Evaluation, categories: Mapping[str, str], rule: str | float | None) -> Evaluation:
    """Add the verdict, means by category and a gate."""
    scores, tests = found.scores, found.significance
    parts = by_category(scores, categories) if categories else {}
    if tests is None:
        return replace(found, categories=parts)
    gate = check_gate({"all": scores} | parts, tests, rule) if rule is not None else None
    return replace(found, verdict=verdict([(scores, tests)]), categories=parts, gate=gate)


def _collections(runs: Any, qrels: Any) -> dict[str, tuple[Mapping[str, Any], Any]]:
    """Return runs and judgements by name of collection, which is "" for a single one."""
    pairs = isinstance(runs, Mapping) and [value for value in runs.values() if isinstance(value, tuple)]
    if qrels is None and pairs and all(len(pair) == 2 for pair in pairs) and len(pairs) == len(runs):
        collections = dict(runs)
        check_run_names(collections)
    elif qrels is None or pairs:
        raise ParameterError(
            "judgements are given once: compare({'mine': run}, qrels), or with each collection's runs, "
            "compare({'nfcorpus': ({'mine': run}, qrels)}, measures=['AP'])"
        )
    else:
        collections = {"": (runs, qrels)}
    for of_one, _ in collections.values():
        named = isinstance(of_one, Mapping) and not isinstance(of_one, Run)
        if not of_one or not named or any(isinstance(run, Scores) for run in of_one.values()):
            raise ParameterError(
                "runs are by name: compare({'bm25': run, 'mine': 'mine.run'}, qrels); see compare_scores"
            )
        check_run_names(of_one)
    (first, (expected, _)), *others = collections.items()
    for name, (of_one, _) in others:
        if differing := expected.keys() ^ of_one.keys():
            raise ParameterError(f"{first} and {name} differ in their runs: {few_names(sorted(differing))}")
    return collections


class _Views(NamedTuple):
    """What is shown beside the means and comparisons."""

    unjudged: bool
    other: Any
    tau: bool
    teams: Teams | None
    best_of_team: bool


class _Judged(NamedTuple):
    """Judgements, and the measures that runs are scored by."""

    qrels: Any
    by_subtopic: bool
    measures: tuple[Measure, ...]
    predicted: Any = None

    @property
    def score(self) -> Callable[..., Scores]:
        return evaluate_by_subtopic if self.by_subtopic else evaluate


def _judged(qrels: Any, measures: Any, predicted: Any) -> _Judged:
    """Read judgements, of a file or converted, and parse measures."""
    judged, by_subtopic = _judgements(qrels)
    guesses = None if predicted is None else as_qrels(_judgements(predicted)[0])
    if measures is None:
        measures = SUBTOPIC_MEASURES if by_subtopic else DEFAULT_MEASURES
    parsed = parse_measures(measures)
    check_judged(parsed, by_subtopic=by_subtopic)
    return _Judged(judged, by_subtopic, parsed, guesses)


def _scored(
    runs: Mapping[str, Any],
    judged: _Judged,
    baselines: Sequence[str],
    design: Design,
    *,
    views: _Views,
    read: Callable[[Any], Run | RunParts],
) -> Evaluation:
    """Score the runs of a collection, without tests but for corrections by predicted judgements."""
    qrels, parsed, score, predicted = judged.qrels, judged.measures, judged.score, judged.predicted is not None
    guesses = judged.predicted if predicted else qrels
    other = None if views.other is None else as_qrels(_judgements(views.other)[0])
    if other is not None and not as_qrels(qrels).keys() & other.keys():
        raise ParameterError("the two sets of judgements have no topic in common")
    if views.tau and min(len(runs), len(parsed)) < 2:
        raise ParameterError("tau is of the order of runs by two measures: give at least two of both")
    warnings = check_levels(parsed, guesses)
    opened, scores, faults = dict[str, Run](), dict[str, Scores](), list[GreylagError]()
    rankings = dict[str, Hashable]()  # by documents alone: equal rankings may have other scores and tags
    once = not (judged.by_subtopic or views.unjudged or predicted or views.other is not None) and by_query_alone(parsed)
    for name, run in runs.items():
        try:
            if isinstance(run, str | Path) and is_evaluation(run):
                if predicted or views.unjudged or views.other is not None or views.teams is not None:
                    raise ParameterError(f"{run} has scores and no documents, which the other options need: give a run")
                scores[name] = read_earlier(run, name, qrels, parsed)
                continue
            one = read(run) if isinstance(run, str | Path) else as_run(run)
            opened[name], rankings[name], scored = _opened(one, qrels, parsed, score, once=once)
            with naming(name):
                warnings += [f"{name}: {warning}" for warning in check_agreement(opened[name], guesses)]
                scores[name] = scored()
        except GreylagError as error:
            faults.append(error)  # the runs after it are read, too, so that one message has all faults
    _refuse(faults, len(runs))
    warnings += identical(rankings)
    if predicted:
        warnings += check_predictions(qrels, guesses)
        warnings += [line for name, run in opened.items() for line in check_coverage(name, run, qrels, guesses)]
        by_run = {name: evaluate(run, guesses, parsed) for name, run in opened.items()}
        against = baselines[0] if baselines else None
        corrections = evaluate_with_predictions(scores, by_run, against, correction=design.correction)
        agreed = compare_judgements(("people", "predicted"), (qrels, guesses), (scores, by_run))
        return Evaluation(scores, corrections=corrections, agreement=agreed, warnings=tuple(warnings))
    by_run = {name: score(run, qrels, ["Judged@10"]) for name, run in opened.items()}
    judged_at_10 = {name: one.values[one.ranked, 0] for name, one in by_run.items()}  # of queries with documents
    shares = {name: 1 - float(values.mean()) if len(values) else 0.0 for name, values in judged_at_10.items()}
    warnings += _unjudged_lead(shares, [name for name in baselines if name in shares]) if shares else []
    tags = {name: (run.tag, name) for name, run in opened.items()}
    teams = None if views.teams is None else assign_teams(tags, views.teams)
    agreement: Agreement | None = None
    if other is not None:
        by_other = {name: evaluate(run, other, parsed) for name, run in opened.items()}
        agreement = compare_judgements(("first", "second"), (qrels, other), (scores, by_other))
    kept = best_runs(scores, teams, baselines) if teams and views.best_of_team else [*scores]
    return Evaluation(
        {name: scores[name] for name in kept},
        unjudged={name: shares[name] for name in kept if name in shares},
        holes=score_holes(opened, qrels, parsed, teams) if views.unjudged else None,
        warnings=tuple(warnings),
        agreement=agreement,
        rankings=compare_measures(scores) if views.tau else (),
        best_of=teams if views.best_of_team else None,
    )


def _opened(
    run: Run | RunParts, qrels: Any, measures: Sequence[Measure], score: Callable[..., Scores], *, once: bool
) -> tuple[Run, Hashable, Callable[[], Scores]]:
    """Return a run, or its first documents if it is read `once`, a key of its rankings, and a function that scores."""
    if isinstance(run, RunParts) and once:  # it may be larger than memory
        parts = run.apply(partial(PartsScores, qrels, measures))
        return parts.tops, parts.keys, parts.scores
    run = run.whole() if isinstance(run, RunParts) else run
    return run, ranking_keys(run), partial(score, run, qrels, measures)


def _judgements(qrels: Any) -> tuple[Any, bool]:
    """Return judgements, of a file or converted, and whether they are by subtopic."""
    if isinstance(qrels, str | Path | list | tuple):
        qrels = read_qrels(qrels)
    by_qid = [judged for judged in qrels.values() if isinstance(judged, Mapping)] if isinstance(qrels, Mapping) else []
    by_subtopic = any(isinstance(grades, Mapping) for judged in by_qid for grades in judged.values())
    return (qrels if by_subtopic else as_qrels(qrels)), by_subtopic


def _refuse(faults: Sequence[GreylagError], number: int) -> None:
    """Raise what is wrong with runs; if it is several of them, log a line each, and raise one with their number."""
    if number == 1 and faults:
        raise faults[0]
    if len(faults) == 1:
        raise ParameterError(f"{faults[0]} (1 of {number} runs; the others are fine)")
    if faults:
        for fault in faults:
            _log.error("%s", fault)
        raise ParameterError(f"{len(faults)} of {number} runs cannot be scored: mend them or leave them out")


def _unjudged_lead(shares: Mapping[str, float], baselines: Sequence[str]) -> list[str]:
    """Warn of runs with clearly more unjudged documents than the baseline or, without one, than the run with fewest."""
    # A difference between runs favours the one that contributed to the pool; an equal share is fair to both.
    reference = min(baselines or shares, key=lambda name: shares[name])
    more = [name for name, share in shares.items() if share - shares[reference] > MIN_UNJUDGED_LEAD]
    if not more:
        return []
    more.sort(key=lambda name: -shares[name])
    listed = few_names([f"{shares[name]:.0%} of {name}" for name in more])
    return [
        f"of the top 10 documents, {listed} are not judged, against {shares[reference]:.0%} of {reference}, and count "
        "as not relevant: see Judged@10, and measures such as nDCG(judged_only=True)@10"
    ]
