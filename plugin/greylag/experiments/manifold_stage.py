"""`ManifoldRanker` on a test collection: after the first stage and after the MRF model, alpha by cross-validation.

Everything but the stage comes from the collection's main experiment file, whose folds serve both the model and alpha: a
fold's alpha is chosen on the other folds, each of them ranked by a model that was not trained on it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

from pydantic import Field

from greylag.errors import FormatError
from greylag.evaluation import Scores, compare, evaluate, to_dict
from greylag.experiments import config, pipeline
from greylag.experiments.collection import open_collection
from greylag.experiments.report import (
    Figure,
    Section,
    Table,
    as_text,
    check_dependencies,
    draw_figure,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say, load
from greylag.index.positional import PositionalIndex
from greylag.ltr.cross_validation import split_folds
from greylag.manifold.graph import Graph
from greylag.manifold.stage import Confidence, ManifoldRanker
from greylag.ranking import Ranking, Run, run_step
from greylag.trec import Qrels, read_qrels, read_topics

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

TIMED = 20  # queries


class Settings(config.Experiment):
    """The pipeline that the stage is added to, and the stage.

    Parameters
    ----------
    pipeline : the collection's main experiment file (``./cacm.yaml`` where it is beside this one).
    alphas : what cross-validation chooses from.
    graphs, confidences : the stage's; all pairs are tried.
    depth, k : the stage's.
    """

    pipeline: str
    alphas: Annotated[tuple[float, ...], Field(min_length=1)] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
    graphs: tuple[Graph, ...] = ("full", "knn", "mutual_knn")
    confidences: tuple[Confidence, ...] = ("query", "scores")
    depth: config.Positive = 100
    k: config.Positive = 10


class Tuned(NamedTuple):
    """The stage on one run, each fold of which was ranked with the alpha that is best on the others.

    Parameters
    ----------
    baseline : the tag of the run that it reranks.
    run : its own run.
    alphas : the alpha of each fold.
    curve : mean AP over all queries, by alpha.
    """

    baseline: str
    run: Run
    alphas: tuple[float, ...]
    curve: Mapping[float, float]


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    base = _pipeline(settings)
    qrels = read_qrels(base.path(base.qrels), lenient=base.lenient)
    index, baselines = rank_baselines(base, qrels, out, n_jobs, say)
    folds = split_folds(list(baselines[0]), base.training.folds, base.training.seed)
    tuned = []
    for baseline, graph, confidence in product(baselines, settings.graphs, settings.confidences):
        stage = ManifoldRanker(index, depth=settings.depth, graph=graph, neighbours=settings.k, confidence=confidence)
        tuned.append(tune(stage, baseline, qrels, settings.alphas, folds, n_jobs))
        say(f"{tuned[-1].run.tag}: alpha {', '.join(map(str, tuned[-1].alphas))} by fold")
    runs = [*baselines, *(found.run for found in tuned)]
    scores = {ranked.tag: evaluate(ranked, qrels, ["AP"]) for ranked in runs}
    content = {
        "fingerprint": index.fingerprint,
        "alphas": {found.run.tag: found.alphas for found in tuned},
        "AP by alpha": {found.run.tag: found.curve for found in tuned},
        **to_dict(scores),
    }
    write_results(out, content)
    tables = [ap_table(baseline.tag, scores, tuned) for baseline in baselines]
    times = times_table(index, baselines[0], settings)
    sections = [
        Section("AP", parts=[*tables, curves_figure(scores, tuned)]),
        Section("Time", "On the machine at hand; everything else in this report is the same in every run.", [times]),
    ]
    more = {"pipeline": base.model_dump(mode="json"), "fingerprint": index.fingerprint}
    title = f"Manifold ranking as a stage: {base.name}"
    write_report(out / "report.html", title, sections, provenance(settings, **more))
    means = {name: found.by_measure for name, found in scores.items()}
    return Result(means, "\n".join(map(as_text, [*tables, times])))


def rank_baselines(
    base: pipeline.Settings, qrels: Qrels, out: Path, n_jobs: int, say: Say
) -> tuple[PositionalIndex, tuple[Run, Run]]:
    """The first stage's run, and the MRF model's after it."""
    topics = read_topics(base.path(base.topics), lenient=base.lenient)
    lucene = open_collection(base.path(base.collection.docs), base.collection.type, out / "index", say)
    index = PositionalIndex.from_lucene(lucene)
    stage = base.first_stage
    source = stage.source(lucene)
    first = run_step(source, topics, n_jobs=n_jobs, tag=stage.model)
    say(f"search: {len(topics)} topics, {stage.hits} documents each")
    mrf, _ = pipeline.cross_validate(base, index, first, qrels, n_jobs=n_jobs, say=say)
    return index, (first, mrf)


def tune(
    stage: ManifoldRanker,
    first: Run,
    qrels: Qrels,
    alphas: Sequence[float],
    folds: Sequence[Sequence[str]],
    n_jobs: int,
) -> Tuned:
    """Rerank `first` with every alpha, and take for each fold the first one whose AP is highest on the other folds."""
    tag = f"{first.tag}-{stage.graph}-{stage.confidence}"
    runs = {alpha: run_step(replace(stage, alpha=alpha), first, n_jobs=n_jobs, tag=tag) for alpha in alphas}
    scores = {alpha: evaluate(ranked, qrels, ["AP"]) for alpha, ranked in runs.items()}
    chosen: list[float] = []
    rankings: dict[str, Ranking] = {}
    for test in folds:
        others = [row for row, qid in enumerate(qrels) if qid not in test]
        means = {alpha: scores[alpha].values[others].mean() for alpha in alphas}
        chosen.append(max(alphas, key=means.__getitem__))
        rankings |= {qid: runs[chosen[-1]][qid] for qid in test}
    curve = {alpha: float(found.means[0]) for alpha, found in scores.items()}
    return Tuned(first.tag, Run(tuple(rankings[qid] for qid in first), tag), tuple(chosen), curve)


def ap_table(baseline: str, scores: Mapping[str, Scores], tuned: Sequence[Tuned]) -> Table:
    """The stage after `baseline`, and what it changes."""
    alphas = {found.run.tag: ", ".join(map(str, found.alphas)) for found in tuned if found.baseline == baseline}
    compared = {name: scores[name] for name in (baseline, *alphas)}
    rows: list[tuple[str | float | None, ...]] = [(baseline, float(scores[baseline].means[0]), *[None] * 5)]
    for found in compare(compared, baseline).comparisons:
        mean = float(scores[found.run].means[0])
        p = "<0.0001" if found.corrected_p < 0.00005 else found.corrected_p
        rows.append((found.run, mean, found.difference, p, found.wins, found.losses, alphas[found.run]))
    caption = (
        f"AP over {len(scores[baseline].qids)} queries, alpha by cross-validation; difference from {baseline}, with p "
        f"of the paired t-test after Holm's correction over {len(alphas)} comparisons"
    )
    return Table(caption, ("run", "AP", "difference", "p", "better", "worse", "alpha by fold"), rows)


def times_table(index: PositionalIndex, first: Run, settings: Settings) -> Table:
    """Milliseconds a query by graph, at the study's depth and for all documents."""
    rankings = first.rankings[:TIMED]
    depths = (settings.depth, max(len(ranking) for ranking in rankings))
    rows = []
    for graph in settings.graphs:
        stages = [ManifoldRanker(index, depth=depth, graph=graph, neighbours=settings.k) for depth in depths]
        rows.append((graph, *(1e3 * _seconds(stage, rankings) / len(rankings) for stage in stages)))
    header = ("graph", *(f"{depth} documents" for depth in depths))
    return Table(f"Milliseconds a query, mean over {len(rankings)} queries, one thread", header, rows, decimals=1)


def curves_figure(scores: Mapping[str, Scores], tuned: Sequence[Tuned]) -> Figure:
    """AP against alpha, a panel for each baseline."""
    baselines = list(dict.fromkeys(found.baseline for found in tuned))

    def draw(canvas: Canvas) -> None:
        for axes, baseline in zip(canvas.subplots(1, len(baselines), sharey=True), baselines, strict=True):
            axes.axhline(scores[baseline].means[0], color="0.5", linewidth=0.8, label=baseline)
            for found in tuned:
                if found.baseline == baseline:
                    axes.plot(found.curve.keys(), found.curve.values(), "-o", markersize=3, label=found.run.tag)
            axes.set_xlabel("alpha")
            axes.legend(fontsize="small")
        canvas.supylabel("AP")

    return draw_figure("AP by alpha over all queries, without cross-validation.", draw, height=4.0)


def _pipeline(settings: Settings) -> pipeline.Settings:
    path = settings.path(settings.pipeline)
    _, base = load(path)
    if not isinstance(base, pipeline.Settings):
        raise FormatError(path, None, f"is of the study {base.study!r}, where one of 'pipeline' is needed")
    return base


def _seconds(stage: ManifoldRanker, rankings: Sequence[Ranking]) -> float:
    stage(rankings[0])
    start = time.perf_counter()
    for ranking in rankings:
        stage(ranking)
    return time.perf_counter() - start
