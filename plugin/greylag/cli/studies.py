"""Commands that score runs and run whole studies, and the doctor."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from greylag.cli.options import Jobs, Lenient, Test
from greylag.errors import FormatError, ParameterError

if TYPE_CHECKING:
    from greylag.ranking import Run


def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs.")],
    qrels: Annotated[Path, typer.Option("--qrels", help="Judgements of documents, or by subtopic.")],
    measures: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "-m", "--measure", help="AP, nDCG@10, P@30, RR, R@1000, …, or trec_eval's names; repeat for more."
        ),
    ] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="Compare with this run.")] = None,
    test: Annotated[Test, typer.Option("--test", help="The paired test of the differences.")] = Test.t,
    pick_best: Annotated[
        bool, typer.Option("--pick-best", help="Also the best RUN of each query, the second best, …, and who wins.")
    ] = False,
    per_query: Annotated[bool, typer.Option("--per-query", help="Scores of every query.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    lenient: Lenient = False,
) -> None:
    """Score runs with pytrec_eval; with --baseline, test their differences from it.

    With --pick-best, score also what choosing the best RUN for each query would give, the second best, and so on. The
    --baseline is not chosen from, unless it is among the RUNs.
    """
    from greylag import evaluation, trec

    by_subtopic = trec.has_subtopics(qrels)
    names = measures or (["alpha-nDCG@10", "ERR-IA@10", "S-recall@10"] if by_subtopic else ["AP", "P@10", "nDCG@10"])
    parsed = [evaluation.parse_measure(name) for name in names]
    score: Callable[[Run], evaluation.Scores]
    if by_subtopic:
        score = partial(
            evaluation.evaluate_by_subtopic, qrels=trec.read_subtopic_qrels(qrels, lenient=lenient), measures=parsed
        )
    else:
        score = partial(evaluation.evaluate, qrels=trec.read_qrels(qrels, lenient=lenient), measures=parsed)
    scores = {}
    for path in dict.fromkeys([*([] if baseline is None else [baseline]), *runs]):
        run = trec.read_run(path, lenient=lenient)
        try:
            scores[str(path)] = score(run)
        except ParameterError as error:  # no query in common, or measures that need other judgements
            raise FormatError(path, None, str(error)) from None
    choice = evaluation.pick_best_runs({str(path): scores[str(path)] for path in runs}) if pick_best else None
    shown = {**scores, **(choice.scores if choice else {})}
    significance = None if baseline is None else evaluation.compare(shown, str(baseline), test=test.value)
    if as_json:
        typer.echo(json.dumps(evaluation.to_dict(scores, significance, choice), indent=1))
    elif per_query:
        typer.echo(evaluation.per_query(shown), nl=False)
    else:
        typer.echo(evaluation.table(shown, significance), nl=False)
        if choice:
            typer.echo(f"\n{evaluation.wins_table(choice)}", nl=False)


def experiment(
    config: Annotated[Path, typer.Argument(help="An experiment file (YAML); see configs/.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; runs/NAME by default.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 unless the expected scores come out.")] = False,
    jobs: Jobs = -1,
) -> None:
    """Run a whole pipeline from a file: index, search, cross-validated training, diversity, scores."""
    from greylag.experiments.runner import run_study
    from greylag.experiments.study import deviations, load

    study, settings = load(config)
    if check and not settings.expected:
        raise FormatError(config, None, "--check needs expected scores in the file")
    finished = run_study(study, settings, out or Path("runs") / settings.name, n_jobs=jobs, progress=typer.echo)
    typer.echo(f"\n{finished.summary}", nl=False)
    if check:
        found = deviations(finished.scores, settings.expected)
        for line in found:
            typer.echo(line, err=True)
        if found:
            raise typer.Exit(1)
        typer.echo("the expected scores came out")


def doctor(index: Annotated[Path | None, typer.Option("--index", help="An index to look at.")] = None) -> None:
    """Check Java, Pyserini and an index; say what to do where something is missing."""
    from greylag.index import PositionalIndex
    from greylag.lucene import diagnose

    probes = [("export", lambda: PositionalIndex.verify_export(index), "delete it; it is made again")] if index else []
    checks = diagnose(index, *probes)
    for check in checks:
        verdict, remedy = ("ok", "") if check.ok else ("missing", f"; {check.remedy}")
        typer.echo(f"{verdict:8}{check.name}: {check.detail}{remedy}")
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


def demo(
    out: Annotated[Path, typer.Option("--out", help="Where to write.")] = Path("runs/demo"), jobs: Jobs = -1
) -> None:
    """Run the whole pipeline on a small collection that comes with greylag."""
    from importlib.resources import as_file, files

    from greylag.experiments.runner import run_study
    from greylag.experiments.study import load

    with as_file(files("greylag") / "demo") as folder:
        finished = run_study(*load(folder / "demo.yaml"), out, n_jobs=jobs, progress=typer.echo)
    typer.echo(f"\n{finished.summary}")
    typer.echo(f"Runs, models and all scores are in {out}; models/fold-1.json there shows what was learned.")
    typer.echo("Next, on a collection of your own: greylag index, search, train, rerank, diversify, evaluate.")
