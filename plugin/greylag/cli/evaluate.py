"""``greylag evaluate``."""

from __future__ import annotations

import logging
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from greylag import evaluation
from greylag.cli.options import RelevanceLevel, Shared, measures_at
from greylag.cli.terminal import tell
from greylag.errors import FormatError, ParameterError
from greylag.evaluation.report import Form, score_tables
from greylag.evaluation.significance import Correction, Family, Test
from greylag.runtime.software import versions
from greylag.trec.metadata import read_metadata

Shape = Literal[Form, "html"]
MARKED = 0.1  # of the top 10, one document
_log = logging.getLogger("greylag")
MEASURES = ["AP", "P@10", "nDCG@10"]
SUBTOPIC_MEASURES = ["alpha-nDCG@10", "ERR-IA@10", "S-recall@10"]


def evaluate(
    context: typer.Context,
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs.")],
    qrels: Annotated[
        Path,
        typer.Option(
            "--qrels", help="Relevance or subtopic judgements: a file, irds:NAME, or for relevance a name of Pyserini."
        ),
    ],
    measures: Annotated[
        list[str] | None,
        typer.Option("-m", "--measure", help="Measure, such as AP, nDCG@10 or a trec_eval name; can be repeated."),
    ] = None,
    level: RelevanceLevel = None,
    topics: Annotated[
        Path | None, typer.Option("--topics", help="Score these topics alone, such as the test part of a split.")
    ] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="TREC run to compare with.")] = None,
    all_pairs: Annotated[bool, typer.Option("--all-pairs", help="Compare every run with every other.")] = False,
    test: Annotated[Test, typer.Option("--test", help="Paired significance test.")] = "t",
    correction: Annotated[
        Correction, typer.Option("--correction", help="Correction of p: Holm, or Benjamini & Hochberg.")
    ] = "holm",
    family: Annotated[
        Family, typer.Option("--family", help="Correct over all comparisons, or over those by each measure.")
    ] = "all",
    pick_best: Annotated[
        bool, typer.Option("--pick-best", help="Score the best RUN of each query, the second best, and so on, too.")
    ] = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="Show the scores of each query.")] = False,
    form: Annotated[
        Shape,
        typer.Option("--format", help="Form of the tables; LaTeX needs booktabs, JSON has everything, HTML is a page."),
    ] = "text",
    subtopics: Annotated[
        bool, typer.Option("--subtopics", help="The judgements are by subtopic or nugget: columns or JSON lines.")
    ] = False,
) -> None:
    """Score runs and, with --baseline or --all-pairs, test their differences.

    Judgements are of documents, unless --subtopics says that they are by subtopic.

    With --pick-best, also score an oracle that chooses the best RUN for each query, the second best, and so on, and
    show on which share of the queries each RUN wins. The --baseline is a choice only if it is among the RUNs.
    """
    shared: Shared = context.obj
    if baseline and all_pairs:
        raise ParameterError("--all-pairs compares every run with every other: leave out --baseline")
    score = _scorer(shared, qrels, measures, level, topics, subtopics=subtopics)
    scores, unjudged = {}, {}
    for path in dict.fromkeys([*([] if baseline is None else [baseline]), *runs]):
        run = shared.run(path, topics)
        try:
            scores[str(path)] = score(run)
        except ParameterError as error:  # no query in common
            raise FormatError(path, None, str(error)) from None
        judged = score(run, measures=["Judged@10"])
        unjudged[str(path)] = 1 - float(np.mean(judged.values[[qid not in judged.missing for qid in judged.qids], 0]))
    _warn_unjudged(unjudged, str(baseline) if baseline else min(unjudged, key=lambda name: unjudged[name]))
    metadata = {str(path): found for path in map(Path, scores) if (found := read_metadata(path))}
    choice = evaluation.pick_best_runs({str(path): scores[str(path)] for path in runs}) if pick_best else None
    shown = {**scores, **(choice.scores if choice else {})}
    significance = None
    if baseline or all_pairs:
        compared, against = (scores, None) if all_pairs else (shown, str(baseline))
        significance = evaluation.compare(compared, against, test=test, correction=correction, family=family)
    if form == "html":
        from greylag.experiments.charts import result
        from greylag.experiments.report import Section, report_page

        whole = score_tables(
            scores, significance, choice, per_query=per_query, metadata=metadata, unjudged=unjudged, wide=True
        )
        verdicts = [result([(shown, significance)])] if significance else []
        origin = {"command": shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]]), "versions": versions()}
        tell(report_page("Evaluation", [*verdicts, Section("Scores", parts=whole)], origin))
        return
    tell(
        evaluation.table(
            scores, significance, choice, form=form, per_query=per_query, metadata=metadata, unjudged=unjudged
        )
    )


def _warn_unjudged(unjudged: Mapping[str, float], reference: str) -> None:
    """Warn of runs that have over one unjudged document more than the reference among the top 10, on average."""
    for name, share in unjudged.items():
        if share - unjudged[reference] > MARKED:
            _log.warning(
                f"{share:.0%} of the top 10 documents of {name} are not judged, against {unjudged[reference]:.0%} of "
                f"{reference}, and count as not relevant: see Judged@10, and measures such as nDCG(judged_only=True)@10"
            )


def _scorer(
    shared: Shared, path: Path, names: Sequence[str] | None, level: int | None, topics: Path | None, *, subtopics: bool
) -> Callable[..., evaluation.Scores]:
    """A function that scores a run by the judgements in `path`."""
    measures = measures_at(names or (SUBTOPIC_MEASURES if subtopics else MEASURES), level, path)
    if subtopics:
        by_subtopic = shared.of_topics(shared.subtopic_qrels(path), path, topics)
        return partial(evaluation.evaluate_by_subtopic, qrels=by_subtopic, measures=measures)
    for measure in measures:
        if measure.family.from_subtopics:
            raise ParameterError(f"{measure} needs judgements by subtopic: give --subtopics if {path} has them")
    return partial(evaluation.evaluate, qrels=shared.qrels(path, topics=topics), measures=measures)
