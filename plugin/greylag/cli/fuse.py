"""``greylag fuse``."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import combinations
from os.path import samefile
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.base import SEEN, ParameterError, Run, marked, open_atomically, parameters
from greylag.cli.options import (
    MEASURE,
    NAMED_FILES,
    SPELLING,
    Kind,
    MeasureName,
    OutputRun,
    Rule,
    Shared,
    Tag,
    check_rules,
    help_of,
    parse_measures,
)
from greylag.cli.terminal import write_line
from greylag.evaluation import (
    RRF,
    CombMNZ,
    CombSUM,
    Fusion,
    JoinedRuns,
    RunFile,
    cut,
    named_file,
    parse_fusion,
    write_rankings,
    write_run,
)
from greylag.learning import read_scores

METHODS = {
    "rrf": Kind("sum of reciprocal ranks, 1 / (60 + rank)", parameters(RRF)),
    "combsum": Kind("sum of scores, each run's scaled to [0, 1] per query", parameters(CombSUM)),
    "combmnz": Kind("the same sum, times the number of runs that have the document", parameters(CombMNZ)),
}
RULES = [
    Rule("--measure --folds --out-model", "the judgements to learn from", needed="--qrels"),
    Rule("--method", "from judgements, fusion is learned", excluded="--qrels"),
]


def fuse(
    context: typer.Context,
    run: Annotated[
        list[str],
        typer.Option("--run", help="TREC run, or NAME=FILE to name it in tables and models; repeat it for each."),
        NAMED_FILES,
    ],
    out: OutputRun,
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            is_eager=True,
            callback=help_of(METHODS),
            metavar=SPELLING,
            help="rrf, the default, sums reciprocal ranks; combsum and combmnz sum scores. "
            'rrf(rank_constant=10,weights=[0.7,0.3]) has parameters; "rrf(help)" lists them.',
        ),
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option("--qrels", help="Learn from these judgements: a file, a name of Pyserini, or irds:NAME."),
    ] = None,
    measure: MeasureName = MEASURE,
    folds: Annotated[
        int | None,
        typer.Option(
            "--folds",
            min=2,
            help="Number of folds: each judged topic is fused by weights learned from the other folds.",
        ),
    ] = None,
    out_model: Annotated[
        Path | None,
        typer.Option(
            "--out-model", help="Also write the learned model, by which `greylag rerank` fuses runs of other topics."
        ),
    ] = None,
    hits: Annotated[
        int | None, typer.Option("--hits", help="Number of documents per query; all by default.", min=1)
    ] = None,
    scored: Annotated[
        Path | None,
        typer.Option(
            "--scores-of",
            metavar="FILE",
            help="Output of `greylag features`, for whose documents each --run has scores.",
        ),
    ] = None,
    tag: Tag = None,
) -> None:
    """Fuse runs into one with all their documents, such as the candidates for reranking.

    With --qrels, weights of each run's scores and ranks are learned from judged topics, and a table compares the result
    with the runs and with the fusion rules. The weights have seen the topics of the fused run, unless --folds holds
    each topic out.

    With --scores-of FILE, each --run has the scores that another program, such as LightGBM or RankLib, gave to the
    documents of FILE, in the same order: one per line, or RankLib's QID INDEX SCORE. A single --run keeps its scores.
    """
    shared: Shared = context.obj
    check_rules(context, RULES)
    rule = parse_fusion(method or "rrf")
    rule.check_number(len(run))
    labels, paths = zip(*map(named_file, run), strict=True)
    if twice := next((pair for pair in combinations(paths, 2) if pair[0].exists() and samefile(*pair)), None):
        raise ParameterError(f"{twice[0]} and {twice[1]} are the same file: give each run once")
    runs: list[Run | RunFile] = [
        shared.open_run(path, None) if scored is None else read_scores(path, scored) for path in paths
    ]
    joined, tags = JoinedRuns(tuple(runs)), [each.tag for each in runs]
    if scored is not None and len(runs) == 1 and qrels is None:  # reciprocal ranks would replace its scores
        alone = Run(tuple(each.head(hits or len(each)) for each in runs[0].rankings), tag or tags[0])
        write_run(alone, out, metadata=shared.metadata({"name": alone.tag, "interpolates": tags}, tags))
        return
    fusion: Fusion = rule
    made: dict[str, Any] = {"method": (method or "rrf").lower()}
    name, seen = rule.name, ""
    if qrels is not None:
        from greylag.evaluation import Evaluation
        from greylag.learning import Objective  # as all that learns, slow to import
        from greylag.rankers import FusionRanker
        from greylag.recipes import learn_fusion, named_runs

        [maximised] = map(Objective.parse, parse_measures([measure], qrels))
        # Short names if they tell the runs apart, longer ones if not.
        names = tags, [path.name for path in paths], list(map(str, paths))
        labelled = [[label or name for label, name in zip(labels, same, strict=True)] for same in names]
        learned = learn_fusion(named_runs(runs, labelled), shared.qrels(qrels, joined), maximised, folds=folds)
        write_line(f"{Evaluation(learned.scores, learned.significance).format()}\n{learned}")
        fusion = learned.held_out or FusionRanker(learned.model)
        made = {"method": learned.fitted.chosen[0], "folds": folds}
        name, seen = ("fused", SEEN) if folds is None else ("fused-held-out", "")
    tag = marked(tag or name, joined.tag, seen)
    metadata = shared.metadata({"name": tag, **made, "interpolates": tags}, tags)
    with ExitStack() as outputs:  # the model is in its place only if the run is
        if out_model is not None:
            outputs.enter_context(open_atomically(out_model)).write(learned.model.as_json())
        write_rankings(cut(fusion, hits), joined, out, tag=tag, n_jobs=shared.jobs, metadata=metadata)
