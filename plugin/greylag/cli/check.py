"""``greylag check``."""

from __future__ import annotations

import json
import logging
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from greylag import __version__
from greylag.base import GreylagError, ParameterError
from greylag.cli.options import Rule, Shared, check_rules
from greylag.cli.terminal import write_line
from greylag.evaluation import DEPTH, Submission, check_submission, few_names, group_equal, identical, known_documents

_log = logging.getLogger("greylag")


def check(
    context: typer.Context,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs.")],
    topics: Annotated[Path, typer.Option("--topics", help="Topics, or a file of their qids, one per line.")],
    index: Annotated[
        list[Path] | None,
        typer.Option("--index", help="Index of the collection, to report documents that it lacks."),
    ] = None,
    docids: Annotated[
        Path | None,
        typer.Option(
            "--docids",
            help="In place of an index: docids, one per line, or judgements that share a document with each run.",
        ),
    ] = None,
    depth: Annotated[int, typer.Option("--depth", min=1, help="Maximum number of documents per topic.")] = DEPTH,
    form: Annotated[
        Literal["text", "json"], typer.Option("--format", metavar="text|json", help="Format of the findings.")
    ] = "text",
) -> None:
    """Check whether runs follow the rules of a submission to TREC.

    All runs are checked, with a line for each rule, and warnings of equal rankings or tags, and of ties that trec_eval
    breaks in another order than the ranks. The exit code is 2 if TREC would refuse one. Nothing is repaired.
    """
    shared: Shared = context.obj
    check_rules(context, [Rule("--docids", "both say which documents there are", excluded="--index")])
    asked, known = shared.listed_topics(topics), None if docids is None else known_documents(docids)
    if index is not None:
        from greylag.index import LuceneIndex

        known = LuceneIndex(index).known_docids
    refused, submissions, content, warnings = [], dict[str, Submission](), dict[str, Any](), list[str]()
    for path, times in Counter(runs).items():
        if times > 1:
            warnings.append(f"{path} is given {times} times, and counts once")
        try:
            submission = check_submission(path, asked, known=known, depth=depth)
        except GreylagError as error:  # such as an empty file; the runs after it are checked, too
            lines, broken, content[str(path)] = [f"{'refused':8}file: {error}"], ["file"], {"error": str(error)}
        else:
            submissions[str(path)] = submission
            lines = [*map(str, submission.findings)]
            broken = [finding.rule for finding in submission.findings if finding.broken]
            submission.ties.warn(path)
            found = {
                "findings": [finding.to_dict() for finding in submission.findings],
                "ties_turned": submission.ties.turned,
            }
            content[str(path)] = {"tag": submission.tag, **found}
        content[str(path)] = {"passed": not broken, "refused_for": broken, **content[str(path)]}
        if form == "text":
            word = f"refused for {', '.join(broken)}" if broken else "follows the rules"
            write_line("\n".join([*lines, f"{path}: {word}"]))
        refused += [str(path)] if broken else []
    warnings += identical({name: run.rankings for name, run in submissions.items() if run.rankings})
    # Two runs with one tag would be one line of the track's results.
    for names in group_equal({name: run.tag for name, run in submissions.items() if run.tag}):
        same = f"{few_names(names)} have the same tag, {submissions[names[0]].tag}"
        warnings.append(f"{same}: give each run one of its own")
    for warning in warnings:
        _log.warning("%s", warning)
    if form == "json":
        whole = {"greylag": __version__, "passed": not refused, "runs": content, "warnings": warnings}
        write_line(json.dumps(whole, indent=1))
    if refused:
        number = f"{len(refused)} of {len(runs)} runs" if len(runs) > 1 else "the run"
        raise ParameterError(f"{number} would be refused, for the reasons above: {few_names(refused)}")
