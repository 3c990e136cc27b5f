"""``greylag evaluate``."""

from __future__ import annotations

import json
import logging
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from greylag import evaluation
from greylag.cli.options import (
    NAMED_FILES,
    Rule,
    Shared,
    check_rules,
    named_file,
    parse_measures,
    process_runs,
)
from greylag.cli.repeated_runs import given_once, warn_of_identical
from greylag.cli.terminal import write_line
from greylag.core.citations import cite
from greylag.core.tables import Table
from greylag.errors import FormatError, GreylagError, ParameterError
from greylag.evaluation.agreement import check_agreement, check_levels
from greylag.evaluation.holes import compare_with_holes, score_holes
from greylag.evaluation.measures import Measure
from greylag.evaluation.predicted import check_predictions, evaluate_with_predictions, warn_of_coverage
from greylag.evaluation.scores import DEFAULT_MEASURES, check_common
from greylag.evaluation.significance import Correction, Significance, Test
from greylag.learning.letor import is_feature_file, listed_grades, read_features
from greylag.ranking import Run
from greylag.reports.scores import Form, few_names, format_tables, score_tables, table
from greylag.runtime.software import TREC_EVAL, versions

Shape = Literal[Form, "html"]
MIN_UNJUDGED_LEAD = 0.1  # of the top 10, one document
_log = logging.getLogger("greylag")
RULES = [
    Rule(
        ("--unjudged",),
        (),
        ("--subtopics", "--per-query"),
        "it scores runs with documents that are not judged as relevant, and without them",
    ),
    Rule(
        ("--predicted",),
        (),
        ("--all-pairs", "--test", "--margin", "--out-figure", "--unjudged", "--per-query", "--subtopics"),
        "means and differences are corrected by the topics that people judged, with intervals of their own",
    ),
    Rule(("--out-figure", "--margin"), ("--baseline", "--all-pairs"), (), "it is of differences between runs"),
]
SUBTOPIC_MEASURES = ["alpha-nDCG@10", "ERR-IA@10", "S-recall@10"]


Runs = Annotated[
    list[str],
    typer.Argument(metavar="RUN...", help="TREC runs; NAME=FILE gives one a name in tables."),
    NAMED_FILES,
]
Judgements = Annotated[
    Path | None,
    typer.Option(
        "--qrels",
        help="Judgements: a file, irds:NAME, a name of Pyserini, or LETOR text for its grades.",
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option("-m", "--measure", help="Measure, such as AP, nDCG@10 or a trec_eval name; can be repeated."),
]
OnlyTopics = Annotated[
    Path | None, typer.Option("--topics", help="Score only these topics, such as the test part of a split.")
]
Baseline = Annotated[str | None, typer.Option("--baseline", help="TREC run to compare with."), NAMED_FILES]
AllPairs = Annotated[bool, typer.Option("--all-pairs", help="Compare every run with every other.")]
TheTest = Annotated[Test, typer.Option("--test", help="Paired significance test.")]
TheCorrection = Annotated[
    Correction, typer.Option("--correction", help="Correction of p values: Holm, or Benjamini and Hochberg.")
]
Margin = Annotated[
    float | None,
    typer.Option("--margin", help="Also test whether runs are equivalent within this difference, such as 0.01."),
]
Unjudged = Annotated[bool, typer.Option("--unjudged", help="Show how much documents without judgements could change.")]
Predicted = Annotated[
    Path | None,
    typer.Option(
        "--predicted", help="Predicted judgements, such as a language model's, of the topics of --qrels and of others."
    ),
]
PerQuery = Annotated[bool, typer.Option("--per-query", help="Show the scores of each query.")]
TheShape = Annotated[
    Shape,
    typer.Option("--format", help="Format of the tables. LaTeX needs booktabs, JSON has everything, HTML is a page."),
]
TheFigure = Annotated[
    Path | None,
    typer.Option(
        "--out-figure", help="Also draw a chart of changes by topic: .svg, or with the extra `figures` .pdf or .png."
    ),
]
BySubtopic = Annotated[
    bool, typer.Option("--subtopics", help="Judgements are by subtopic or nugget: columns or JSON lines.")
]


def evaluate(
    context: typer.Context,
    runs: Runs,
    qrels: Judgements = None,
    measures: Measures = None,
    topics: OnlyTopics = None,
    baseline: Baseline = None,
    all_pairs: AllPairs = False,
    test: TheTest = "t",
    correction: TheCorrection = "holm",
    margin: Margin = None,
    unjudged: Unjudged = False,
    predicted: Predicted = None,
    per_query: PerQuery = False,
    form: TheShape = "text",
    out_figure: TheFigure = None,
    subtopics: BySubtopic = False,
) -> None:
    """Score runs and, with --baseline or --all-pairs, test their differences.

    Judgements are of documents or, with --subtopics, by subtopic. All runs are read before one is refused.
    """
    shared: Shared = context.obj
    check_rules(context, RULES)
    judged = _read_judgements(shared, qrels, measures, topics, subtopics=subtopics)
    files = _named_files(runs, baseline)
    if baseline and not next(iter(files.values())).exists():
        raise ParameterError(
            f"--baseline {baseline} is neither a file nor a run's name{_proposed(shared, baseline, files)}"
        )
    guesses = replace(judged, path=predicted, qrels=shared.qrels(predicted, topics=topics)) if predicted else judged
    guesses.check_levels()

    def checked(name: str) -> Run:
        run = shared.run(files[name], topics)
        guesses.check(name, run)
        judged.check_common(name, run)
        return run

    read = process_runs(files, checked)
    against = next(iter(files)) if baseline else None
    warn_of_identical({name: frozenset((qid, one.docids) for qid, one in run.items()) for name, run in read.items()})
    if predicted:
        write_line(_corrected(read, against, judged, guesses, correction, form))
        return
    scores = judged.scores(read)
    unjudged_at_10 = _unjudged(judged, read, against)
    significance = None
    if baseline or all_pairs:
        significance = evaluation.compare(scores, against, test=test, correction=correction, margin=margin)
    holes = score_holes(read, judged.qrels, judged.measures) if unjudged else None
    if holes and significance:
        significance = compare_with_holes(significance, holes)
    if out_figure is not None and significance:
        from greylag.reports.charts import changes_figure
        from greylag.reports.figures import write_figure

        write_figure(out_figure, changes_figure([(scores, significance)]))
    notes: dict[str, Any] = {
        "per_query": per_query,
        "unjudged": unjudged_at_10,
        "holes": holes,
    }
    if form == "html":
        whole = score_tables(scores, significance, wide=True, **notes)
        write_line(_page(whole, [(scores, significance)] if significance else []))
    else:
        write_line(table(scores, significance, form=form, **notes))


@dataclass(frozen=True)
class JudgedFile:
    """The judgements of a file, of documents or of subtopics, and the measures of runs by them."""

    path: Path
    qrels: Any
    measures: Sequence[Measure]
    evaluate: Callable[..., evaluation.Scores] = evaluation.evaluate

    def scores(self, runs: Mapping[str, Run]) -> dict[str, evaluation.Scores]:
        """Score runs by the names of their files."""
        return process_runs(runs, lambda name: self.evaluate(runs[name], self.qrels, self.measures))

    def check_levels(self) -> None:
        """Warn of measures by which no document is relevant; refuse the judgements if this holds of all measures."""
        try:
            warnings = check_levels(self.measures, self.qrels)
        except ParameterError as error:
            raise FormatError(self.path, None, str(error)) from None
        for warning in warnings:
            _log.warning("%s: %s", self.path, warning)

    def check(self, name: str, run: Run) -> None:
        """Warn if nearly all scores of a run are 0; refuse it if nothing can be scored."""
        try:
            warnings = check_agreement(run, self.qrels)
        except ParameterError as error:
            raise FormatError(self.path, None, f"{name}: {error}") from None
        for warning in warnings:
            _log.warning("%s: %s: %s", self.path, name, warning)

    def check_common(self, name: str, run: Run) -> None:
        """Refuse a run without a judged query."""
        try:
            check_common(run, tuple(self.qrels))
        except ParameterError as error:
            raise ParameterError(f"{name}: {error}") from None


def _read_judgements(
    shared: Shared,
    path: Path | None,
    names: Sequence[str] | None,
    topics: Path | None,
    *,
    subtopics: bool,
) -> JudgedFile:
    """Read the judgements of a file, or the grades that a feature file lists."""
    if path is None:
        raise ParameterError("--qrels is missing: name the judgements to score by")
    measures = parse_measures(names or (SUBTOPIC_MEASURES if subtopics else DEFAULT_MEASURES), path)
    if subtopics:
        by_subtopic = shared.of_topics(shared.subtopic_qrels(path), path, topics)
        return JudgedFile(path, by_subtopic, measures, evaluation.evaluate_by_subtopic)
    for measure in measures:
        if measure.family.from_subtopics:
            raise ParameterError(f"{measure} needs judgements by subtopic: give --subtopics if {path} has them")
    if is_feature_file(path):
        return JudgedFile(path, shared.of_topics(_grades(shared, path), path, topics), measures)
    return JudgedFile(path, shared.qrels(path, topics=topics), measures)


def _grades(shared: Shared, path: Path) -> dict[str, dict[str, int]]:
    """Return the grades of a feature file; log how many topics have none above 0."""
    grades = listed_grades(read_features(path))
    if without := sum(max(of_one.values()) < 1 for of_one in grades.values()):
        _log.info("%s: %d of %d topics have no relevant document, and count as 0", path, without, len(grades))
    return grades


def _corrected(
    runs: Mapping[str, Run],
    against: str | None,
    people: JudgedFile,
    guesses: JudgedFile,
    correction: Correction,
    form: Shape,
) -> str:
    """Compute means and differences by people's judgements of some topics and predicted ones of all."""
    check_predictions(people.qrels, guesses.qrels)
    for name, run in runs.items():
        warn_of_coverage(name, run, people.qrels, guesses.qrels)
    corrected = evaluate_with_predictions(people.scores(runs), guesses.scores(runs), against, correction=correction)
    if form == "json":
        return json.dumps(corrected.to_dict(), indent=1) + "\n"
    if form == "html":
        return _page(corrected.tables, [])
    return format_tables(corrected.tables, form, cite("prediction-powered"))


def _named_files(runs: Sequence[str], baseline: str | None) -> dict[str, Path]:
    """Return the files of runs by name, that of the baseline first; it may be among the runs, by file or by name."""

    def named(text: str) -> tuple[str, Path]:
        label, path = named_file(text)
        return label or str(path), path

    files = dict[str, Path]()
    pairs = [named(text) for text in runs]
    given_once(Path(name) for name, path in pairs if name == str(path))
    for name, path in pairs:
        if files.setdefault(name, path) != path:
            raise ParameterError(f"{name} names two runs, {files[name]} and {path}: give each a name of its own")
    if baseline is None:
        return files
    name, path = named(baseline)
    again = next((other for other in files if other == name or files[other] == path), name)
    return {again: files.get(again, path)} | files


def _proposed(shared: Shared, baseline: str, files: Mapping[str, Path]) -> str:
    """Propose the run of this number, file name or tag as the baseline; "" if there is none."""
    names = list(files)[1:]  # without the baseline itself
    if baseline.isdigit() and 1 <= int(baseline) <= len(names):
        return f": write --baseline {names[int(baseline) - 1]} for the run of this number"
    for name in names:
        if baseline in (files[name].name, files[name].stem):
            return f": write --baseline {name}"
    for name in names:
        with suppress(GreylagError):
            if shared.run(files[name]).tag == baseline:
                return f": write --baseline {name} for the run with this tag"
    return ""


def _unjudged(judged: JudgedFile, runs: Mapping[str, Run], baseline: str | None) -> dict[str, float]:
    """Compute the share of each run's top 10 without judgements, over its queries with documents."""
    # A warning names runs that have, on average, over one such document more than the baseline or, without one, than
    # the run with the fewest.
    shares = {}
    for name, run in runs.items():
        judged_at_10 = judged.evaluate(run, judged.qrels, ["Judged@10"])
        ranked = judged_at_10.ranked
        shares[name] = 1 - float(np.mean(judged_at_10.values[ranked, 0])) if ranked.any() else 0.0
    reference = baseline or min(shares, key=lambda name: shares[name])
    if more := [name for name, share in shares.items() if share - shares[reference] > MIN_UNJUDGED_LEAD]:
        more.sort(key=lambda name: -shares[name])
        listed = few_names([f"{shares[name]:.0%} of {name}" for name in more])
        _log.warning(
            f"of the top 10 documents, {listed} are not judged, against {shares[reference]:.0%} of {reference}, and "
            "count as not relevant: see Judged@10, and measures such as nDCG(judged_only=True)@10"
        )
    return shares


def _page(tables: Sequence[Table], compared: Sequence[tuple[Mapping[str, evaluation.Scores], Significance]]) -> str:
    """Format the scores as a page: sentences of the comparisons, tables, charts."""
    from greylag.reports.charts import result
    from greylag.reports.report import Section, report_page

    shown = result(compared, tables=tables) if compared else Section("Scores", parts=tables)
    origin = {"command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]), "versions": versions() | TREC_EVAL}
    return report_page("Evaluation", [shown], origin)
