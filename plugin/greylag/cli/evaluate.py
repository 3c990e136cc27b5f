"""``greylag evaluate``."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

from greylag.base import FormatError, ParameterError, is_file, open_atomically, read_pairs, visible, write_text
from greylag.cli.options import NAMED_FILES, Rule, Shared, Teams, TheNames, check_rules, given_options, parse_measures
from greylag.cli.running import check_outputs
from greylag.cli.terminal import write_line
from greylag.evaluation import (
    FORMS,
    Correction,
    Evaluation,
    Floors,
    Formatted,
    QrelsAgreement,
    RunParts,
    Test,
    check_form,
    compare,
    compare_qrels,
    fold_folders,
    is_evaluation,
    is_feature_file,
    name_with_baselines,
    parse_margin,
    parse_rules,
    read_grades,
    within,
)

_log = logging.getLogger("greylag")
FAILED = 3
"""The exit code of a gate that fails."""
OF_QRELS = {"--qrels", "--other-qrels", "--topics", "--format"}
"""The options that compare judgements without runs."""
_ALONE = "it is of one collection, whose scores are not corrected"
RULES = [
    Rule("--unjudged", "it scores runs with unjudged documents as relevant, too", excluded="--subtopics --per-query"),
    Rule(
        "--predicted",
        "means and differences are corrected by the topics that people judged, with intervals of their own",
        excluded="--all-pairs --test --margin --out-figure --unjudged --per-query --subtopics",
    ),
    Rule("--tau --other-qrels --best-of-team", "it is of runs as a whole", excluded="--per-query --subtopics"),
    Rule("--best-of-team", "the teams of runs", needed="--teams"),
    Rule("--all-pairs", "it compares every run with every other", excluded="--baseline"),
    Rule("--collection", "these are of one collection", excluded="--predicted --out-figure"),
    Rule(
        "--tau --other-qrels --best-of-team --categories --out-sheets --power",
        _ALONE,
        excluded="--collection --predicted",
    ),
    Rule("--fail-if --floor", "it is of one collection", excluded="--collection"),
    Rule("--fail-if --floor", "a gate checks every run, and prints nothing else", excluded="--best-of-team --power"),
    Rule("--best-of-team", "sheets are over all runs", excluded="--out-sheets"),
    Rule("--power", "it is of all topics", excluded="--categories"),
    Rule("--out-figure --margin", "it is of differences between runs", needed="--baseline --all-pairs"),
]


def evaluate(
    context: typer.Context,
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN...", help="TREC runs; NAME=FILE gives one a name in tables. None is needed with --other-qrels."
        ),
        NAMED_FILES,
    ] = None,
    qrels: Annotated[
        list[Path] | None,
        typer.Option(
            "--qrels",
            help="Judgements: a file, irds:NAME, a name of Pyserini, or LETOR text for its grades. Repeat it for files "
            "that correct those before them, or for LETOR text of other topics; a folder with Fold1, Fold2, ... stands "
            "for the test.txt of all.",
        ),
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option("-m", "--measure", help="Measure, such as AP, nDCG@10 or a trec_eval name; can be repeated."),
    ] = None,
    topics: Annotated[
        Path | None,
        typer.Option(
            "--topics", help="Score only these topics, such as the test part of a split, or qids, one a line."
        ),
    ] = None,
    collections: Annotated[
        list[str] | None,
        typer.Option(
            "--collection",
            metavar="NAME",
            help="Name that takes the place of {} in --qrels, --topics and runs, such as '{}/bm25.run'. Repeat it: the "
            "collections are columns of one table, and p is corrected over all.",
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            "--baseline", help="TREC run, or JSON of an earlier evaluation, to compare with; can be repeated."
        ),
        NAMED_FILES,
    ] = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Compare every run with every other.")] = False,
    test: Annotated[Test, typer.Option("--test", help="Paired significance test.")] = "t",
    correction: Annotated[
        Correction,
        typer.Option(
            "--correction",
            help="Correction of p values: Holm, Benjamini and Hochberg, or Tukey's HSD, with --all-pairs.",
        ),
    ] = "holm",
    margin: Annotated[
        str | None,
        typer.Option(
            "--margin",
            metavar="FLOAT",
            help="Also test whether runs are equivalent within this difference of scores, such as 0.01.",
        ),
    ] = None,
    unjudged: Annotated[
        bool, typer.Option("--unjudged", help="Show how much documents without judgements could change.")
    ] = False,
    predicted: Annotated[
        Path | None,
        typer.Option(
            "--predicted",
            help="Predicted judgements, such as a language model's, of the topics of --qrels and of others.",
        ),
    ] = None,
    other_qrels: Annotated[
        Path | None,
        typer.Option(
            "--other-qrels", help="Another assessor's judgements: shows how far both agree, by kappa and tau."
        ),
    ] = None,
    tau: Annotated[bool, typer.Option("--tau", help="Correlate the orders of runs by each pair of measures.")] = False,
    teams: Teams = None,
    best_of_team: Annotated[
        bool, typer.Option("--best-of-team", help="Show and test each team's best run by the first measure.")
    ] = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show the scores of each query.")] = False,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            metavar="|".join(FORMS),
            help="Format of the tables. CSV is the first one; LaTeX needs booktabs, JSON has everything, HTML is a "
            "page, JUnit's XML has the checks of --fail-if and --floor. FORMAT=FILE also writes a file, which a gate "
            "removes at its start, and can be repeated.",
        ),
    ] = None,
    names: TheNames = "path",
    order: Annotated[
        Literal["best", "given"],
        typer.Option("--order", help="Order of runs, after baselines: best first by the first measure, or as given."),
    ] = "best",
    categories: Annotated[
        Path | None,
        typer.Option(
            "--categories", help="Also show means by category of topics: lines of qid and category, TSV or CSV."
        ),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="lower|worse|MARGIN|missing",
            help=f"Exit with {FAILED} if a mean is lower than the baseline's; is shown to be; or is not shown to be at "
            "most MARGIN lower, such as 0.01. On all topics and on each of --categories. missing, also beside one of "
            "these: if a run has no ranking for a judged topic.",
        ),
    ] = None,
    floors: Annotated[
        list[str] | None,
        typer.Option(
            "--floor",
            metavar="MEASURE=SCORE",
            help=f"Exit with {FAILED} if a run's mean is below, as in nDCG@10=0.3, or with low:nDCG@10=0.3 the low end "
            "of its one-sided 95 % interval; needs no baseline. Can be repeated.",
        ),
    ] = None,
    power: Annotated[
        str | None,
        typer.Option(
            "--power",
            metavar="LOSS",
            help="Also show how probably --fail-if worse would find a mean that is LOSS lower, and on how many topics.",
        ),
    ] = None,
    release: Annotated[
        str | None, typer.Option("--release", metavar="TEXT", help="Name of what is evaluated, for JSON and notes.")
    ] = None,
    out_figure: Annotated[
        Path | None,
        typer.Option(
            "--out-figure",
            help="Also draw a chart of changes by topic: .svg, or with the extra `figures` .pdf or .png.",
        ),
    ] = None,
    out_sheets: Annotated[
        Path | None,
        typer.Option(
            "--out-sheets",
            help="Also write TREC's sheets into this folder: a table and a page of topics (best, median and worst over "
            "all runs, by each measure), and of each team's or run's scores against the median.",
        ),
    ] = None,
    subtopics: Annotated[
        bool, typer.Option("--subtopics", help="Judgements are by subtopic or nugget: columns or JSON lines.")
    ] = False,
) -> None:
    """Score runs and, with --baseline or --all-pairs, test their differences.

    Judgements are of documents or, with --subtopics, by subtopic. All runs are read before one is refused.
    """
    shared: Shared = context.obj
    check_rules(context, RULES)
    form, files = _forms(formats or ())
    check_outputs([*files, *filter(None, (out_figure, out_sheets))], shared.inputs)
    if twice := [name for name, number in Counter(collections or ()).items() if number > 1]:
        raise ParameterError(f"--collection {twice[0]} is given twice: give it once")
    if not qrels:
        raise ParameterError("--qrels is missing: name the judgements to score by")
    if not runs:
        _prepare(form, files, gated=False)
        _write(_agreement(context, shared, qrels, other_qrels, topics), form, files)
        return
    rules, least = parse_rules(fail_if), _floors(floors)
    _prepare(form, files, gated=bool(rules or least))
    if least and (measures or not baseline):
        measures = [*(measures or ()), *map(str, least.least)]
    named, baselines = name_with_baselines(runs, baseline or (), names, next(iter(collections or ()), ""))
    by_name = dict[str, tuple[dict[str, Path | RunParts], Any]]()
    for name in collections or [""]:
        among = topics and Path(str(topics).replace("{}", name or "{}"))
        judged = _judgements(shared, [within(path, name) for path in qrels], among, subtopics=subtopics)
        texts = None if among is None else shared.listed_topics(among)
        placed = {label: within(path, name) for label, path in named.items()}
        opened = {n: p if is_evaluation(p) else RunParts(p, texts, lenient=shared.lenient) for n, p in placed.items()}
        by_name[name] = opened, judged
    scored_by = parse_measures(measures, qrels[0]) if measures else None
    for rule in rules:  # before runs are read
        rule.check(named, baselines, scored_by or ())
    kinds = None if categories is None else read_pairs(categories, "qid category")
    compared, judgements = (by_name, None) if collections else by_name[""]
    evaluation = cast(Any, compare)(  # of one of its two forms
        compared,
        judgements,
        scored_by,
        baseline=baselines,
        all_pairs=all_pairs,
        test=test,
        correction=correction,
        margin=None if margin is None else parse_margin("--margin", margin),
        unjudged=teams if unjudged and teams is not None else unjudged,
        predicted=predicted and shared.qrels(predicted, topics=topics),
        other_qrels=other_qrels and shared.qrels(other_qrels, topics=topics),
    )
    evaluation = evaluation.ordered(named) if order == "given" else evaluation
    evaluation = evaluation if release is None else evaluation.released(release)
    evaluation = evaluation if teams is None else evaluation.of_teams(teams)
    gate = None
    if isinstance(evaluation, Evaluation):
        evaluation = evaluation.correlated() if tau else evaluation
        evaluation = evaluation.best_of(teams) if best_of_team and teams is not None else evaluation
        evaluation = evaluation if kinds is None else evaluation.by_category(kinds)
        evaluation = evaluation if power is None else evaluation.powered(power)
        evaluation = evaluation.gated(rules, floors=least) if rules or least else evaluation
        gate = evaluation.gate
        if out_sheets is not None:
            _write_sheets(evaluation, out_sheets)
        if out_figure is not None and evaluation.significance:
            from greylag.evaluation import changes_figure, write_figure

            write_figure(out_figure, changes_figure([(evaluation.scores, evaluation.significance)]))
    _write(evaluation, form, files, per_query=per_query)
    if gate is not None and not gate:
        if form not in ("text", "json"):  # a page or table goes to a file, and the build's log has it, too
            _log.error("%s", gate)
        raise typer.Exit(FAILED)


def _forms(formats: Sequence[str]) -> tuple[str, dict[Path, str]]:
    """Return the form to print, and the forms of files."""
    printed, files = list[str](), dict[Path, str]()
    for text in formats:
        form, has_file, file = text.partition("=")
        check_form("--format", form)
        if not has_file:
            printed.append(form)
        elif not file or Path(file) in files:
            raise ParameterError(f"--format {text} names {'a file twice' if file else 'no file'}: write {form}=FILE")
        else:
            files[Path(file)] = form
    if len(printed) > 1:
        first, *others = printed
        raise ParameterError(f"--format {first} and {others[0]} are both to be printed: write {others[0]}=FILE")
    return (printed or ["text"])[0], files


def _prepare(form: str, files: Mapping[Path, str], *, gated: bool) -> None:
    """Refuse a form that needs a gate where there is none; remove files that may say that an earlier gate passed."""
    if "junit" in (form, *files.values()) and not gated:
        raise ParameterError("--format junit needs --fail-if or --floor: it is of their checks")
    for path in files:
        if not path.parent.is_dir():
            raise ParameterError(f"{path} cannot be written, as {path.parent} is no folder: make it, or name another")
    for path in files if gated else ():
        # Not the link itself, and never /dev/stdout, where the name of what is printed to would be removed.
        if is_file(path) and path.parts[1:2] not in (("dev",), ("proc",)):
            os.unlink(os.path.realpath(path))


def _write(value: Formatted, form: str, files: Mapping[Path, str], *, per_query: bool = False) -> None:
    """Write forms of an evaluation to files, all or none, and print one."""
    printed, *others = (value.format(each, per_query=per_query) for each in (form, *files.values()))
    with ExitStack() as stack:
        for file, text in zip([stack.enter_context(open_atomically(path)) for path in files], others, strict=True):
            file.write(visible(text))
    write_line(printed)


def _write_sheets(evaluation: Evaluation, folder: Path) -> None:
    """Write an evaluation's sheets into a folder, which is made."""
    sheets = evaluation.sheets()
    if strange := sorted({path.name for path in folder.glob("participant-*")} - sheets.keys()):
        raise FormatError(folder, None, f"has {strange[0]} of other sheets: name another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FormatError(folder, None, f"cannot be made ({error.strerror}): name a folder") from None
    for name, text in sheets.items():
        write_text(folder / name, visible(text))  # names of files may be no text


def _agreement(
    context: typer.Context, shared: Shared, qrels: Sequence[Path], other: Path | None, topics: Path | None
) -> QrelsAgreement:
    """Compare judgements without runs; refuse options that are of runs."""
    if other is None:
        raise ParameterError("RUN is missing: name the runs to score, or --other-qrels to compare judgements alone")
    if others := sorted(given_options(context) - OF_QRELS):
        raise ParameterError(f"RUN is missing: {others[0]} is of runs")
    return compare_qrels(*(shared.qrels(paths, topics=topics) for paths in (qrels, [other])))


def _floors(texts: Sequence[str] | None) -> Floors | None:
    """Parse MEASURE=SCORE; None without any."""
    floors = dict[str, str]()
    for text in texts or ():
        name, sign, floor = text.rpartition("=")  # as measures may have one, too
        if not sign:
            raise ParameterError(f"--floor {text!r:.60} is not of the form MEASURE=SCORE, such as nDCG@10=0.3")
        name = name.strip().removesuffix(">").strip()
        if name in floors:
            raise ParameterError(f"--floor of {name} is given twice: give it once")
        floors[name] = floor
    return Floors.parse(floors) if floors else None


def _judgements(shared: Shared, paths: Sequence[Path], topics: Path | None, *, subtopics: bool) -> Any:
    """Read judgements, each file correcting those before it, or the grades of topics in feature files."""
    path, *others = paths
    if subtopics:
        if others:
            raise ParameterError(f"{path} is not corrected by other files: only judgements of documents are")
        return shared.of_topics(shared.subtopic_qrels(path), path, topics)
    folds = [[part / "test.txt" for part in fold_folders(file)] for file in paths]
    plain = [file for file, tests in zip(paths, folds, strict=True) if not (tests or is_feature_file(file))]
    if len(plain) == len(paths):
        return shared.qrels(paths, topics=topics)
    if plain:
        raise ParameterError(
            f"--qrels {plain[0]} is no feature file, as others are: judgements correct those before them, and feature "
            "files are of other topics; give files of one kind"
        )
    grades = dict[str, dict[str, int]]()
    for file in (part for whole, tests in zip(paths, folds, strict=True) for part in tests or [whole]):
        listed = read_grades(file)
        if both := grades.keys() & listed.keys():
            raise FormatError(file, None, f"topic {min(both)!r} is in a --qrels before it, too: give each topic once")
        grades |= listed
    if without := sum(max(judged.values()) < 1 for judged in grades.values()):
        _log.info("%s: %d of %d topics have no relevant document, and count as 0", path, without, len(grades))
    return shared.of_topics(grades, path, topics)
