"""``greylag check``."""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from greylag.base import GreylagError, ParameterError
from greylag.cli.options import Rule, Shared, Topics, check_rules
from greylag.cli.terminal import write_line
from greylag.evaluation import DEPTH, Submission, check_submission, few_names, group_equal, identical, known_documents

_log = logging.getLogger("greylag")


def check(
    context: typer.Context,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs.")],
    topics: Topics,
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
) -> None:
    """Check whether runs follow the rules of a submission to TREC.

    All runs are checked, with a line for each rule, and warnings of equal rankings or tags, and of ties that trec_eval
    breaks in another order than the ranks. The exit code is 2 if TREC would refuse one. Nothing is repaired.
    """
    shared: Shared = context.obj
    check_rules(context, [Rule("--docids", "both say which documents there are", excluded="--index")])
    asked, known = shared.topics(topics), None if docids is None else known_documents(docids)
    if index is not None:
        from greylag.index import LuceneIndex

        known = LuceneIndex(index).known_docids
    refused, submissions = [], dict[str, Submission]()
    for path, times in Counter(runs).items():
        if times > 1:
            _log.warning("%s is given %d times, and counts once", path, times)
        try:
            submission = check_submission(path, asked, known=known, depth=depth)
        except GreylagError as error:  # such as an empty file; the runs after it are checked, too
            write_line(f"{'refused':8}file: {error}")
            broken = ["file"]
        else:
            submissions[str(path)] = submission
            write_line("\n".join(map(str, submission.findings)))
            broken = [finding.rule for finding in submission.findings if finding.broken]
            submission.ties.warn(path)
        write_line(f"{path}: {'refused for ' + ', '.join(broken) if broken else 'follows the rules'}")
        refused += [str(path)] if broken else []
    for warning in identical({name: run.rankings for name, run in submissions.items() if run.rankings}):
        _log.warning("%s", warning)
    # Two runs with one tag would be one line of the track's results.
    for names in group_equal({name: run.tag for name, run in submissions.items() if run.tag}):
        _log.warning(f"{few_names(names)} have the same tag, {submissions[names[0]].tag}: give each run one of its own")
    if refused:
        number = f"{len(refused)} of {len(runs)} runs" if len(runs) > 1 else "the run"
        raise ParameterError(f"{number} would be refused, for the reasons above: {few_names(refused)}")
