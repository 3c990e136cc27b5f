"""`ManifoldRanker` on a test collection: after the first stage and after the MRF model, alpha by cross-validation.

Everything but the stage comes from the collection's main experiment file. Its folds serve both the model and alpha: the
alpha of a fold is chosen on the other folds, each of them ranked by a model that was not trained on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

from pydantic import Field

from greylag import Ranking, Run
from greylag.evaluation import Scores, compare, evaluate
from greylag.index import PositionalIndex
from greylag.manifold import Graph, ManifoldRanker
from greylag.manifold.stage import Confidence
from greylag.reports import to_dict
from greylag.reports.figures import Figure, line_figure
from greylag.reports.report import Section
from greylag.studies import config, pipeline
from greylag.studies.collection import OpenCollection, open_collection
from greylag.studies.study import Context, Outcome, Study
from greylag.studies.tables import Table, comparison_table, means
from greylag.trec import Qrels

TIMED = 20  # queries
_TESTS = "p is that of the two-sided paired t-test over queries, with Holm's correction over each table."


class Settings(config.Experiment):
    """The pipeline that the stage is added to, and the stage."""

    pipeline: config.InputFile
    """Path of the collection's main experiment file (``./cacm.yaml`` for one in the same folder)."""
    alphas: Annotated[tuple[float, ...], Field(min_length=1)] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
    """The values that cross-validation chooses from."""
    graphs: tuple[Graph, ...] = ("full", "knn", "mutual_knn")
    """Which documents are joined; each is tried with each of `confidences`."""
    confidences: tuple[Confidence, ...] = ("query", "scores")
    """The evidence: the query alone, or incoming scores, too."""
    depth: config.Positive = 100
    """The number of top documents that are reranked."""
    neighbours: config.Positive = 10
    """The number of neighbours that a document is joined to."""


@dataclass(frozen=True)
class Tuned:
    """The stage on one run, each fold with the alpha that is best on the other folds."""

    baseline: str  # the tag of the run that is reranked
    run: Run  # the reranked run
    alphas: tuple[float, ...]  # the alpha of each fold
    curve: Mapping[float, float]


def open_pipeline(settings: Settings, context: Context) -> tuple[pipeline.Settings, OpenCollection]:
    """The main experiment file and its collection."""
    base = pipeline.read_pipeline(settings.path(settings.pipeline))
    return base, open_collection(base, context)


def run(settings: Settings, opened: tuple[pipeline.Settings, OpenCollection], context: Context) -> Outcome:
    """Rerank both baselines with every graph and confidence, and compare each result with its baseline."""
    base, collection = opened
    tuned = []
    validated = pipeline.cross_validate(base, collection, context)
    baselines, qrels, index = (collection.first, validated.run), collection.qrels, collection.index
    for baseline, graph, confidence in product(baselines, settings.graphs, settings.confidences):
        stage = ManifoldRanker(
            index, depth=settings.depth, graph=graph, neighbours=settings.neighbours, confidence=confidence
        )
        tuned.append(tune(stage, baseline, qrels, settings.alphas, validated.folds, context.n_jobs))
        context.progress(f"{tuned[-1].run.tag}: alpha {', '.join(map(str, tuned[-1].alphas))} by fold")
    runs = [*baselines, *(stage.run for stage in tuned)]
    scores = {ranked.tag: evaluate(ranked, qrels, ["AP"]) for ranked in runs}
    tables = [alpha_table(tuned), *(baseline_table(baseline.tag, scores, tuned) for baseline in baselines)]
    times = time_stages(index, collection.first.rankings, settings, context)
    return Outcome(
        scores=means(scores),
        results={
            "alphas": {stage.run.tag: stage.alphas for stage in tuned},
            "AP by alpha": {stage.run.tag: stage.curve for stage in tuned},
            **to_dict(scores),
        },
        tables=[*tables, times],
        title=f"Manifold ranking as a stage: {base.name}",
        sections=[
            Section("AP", _TESTS, [*tables, curves_figure(scores, tuned)]),
            Section("Time", "As measured in this run. All other results are the same in every run.", [times]),
        ],
        seconds=context.seconds,
        provenance={"pipeline": base.model_dump(mode="json"), "fingerprint": index.fingerprint},
    )


def tune(
    stage: ManifoldRanker,
    first: Run,
    qrels: Qrels,
    alphas: Sequence[float],
    folds: Sequence[Sequence[str]],
    n_jobs: int | None,
) -> Tuned:
    """Rerank `first` with every alpha, and keep for each fold the first alpha of highest AP on the other folds."""
    tag = f"{first.tag}-{stage.graph}-{stage.confidence}"
    # All queries with every alpha, once; folds only choose among these.
    runs = {alpha: replace(stage, alpha=alpha).run(first, n_jobs=n_jobs, tag=tag) for alpha in alphas}
    scores = {alpha: evaluate(ranked, qrels, ["AP"]) for alpha, ranked in runs.items()}
    chosen: list[float] = []
    rankings: dict[str, Ranking] = {}
    for test in folds:
        training = [row for row, qid in enumerate(qrels) if qid not in test]
        on_others = {alpha: scores[alpha].values[training].mean() for alpha in alphas}
        chosen.append(max(alphas, key=on_others.__getitem__))
        rankings |= {qid: runs[chosen[-1]][qid] for qid in test}
    curve = {alpha: float(of_alpha.means[0]) for alpha, of_alpha in scores.items()}
    return Tuned(first.tag, Run(tuple(rankings[qid] for qid in first), tag), tuple(chosen), curve)


def alpha_table(tuned: Sequence[Tuned]) -> Table:
    """The alpha of each fold."""
    folds = range(1, len(tuned[0].alphas) + 1)
    rows = [(stage.run.tag, *map(str, stage.alphas)) for stage in tuned]
    return Table("Alpha of each fold, chosen on the other folds", ("", *(f"fold {fold}" for fold in folds)), rows)


def baseline_table(baseline: str, scores: Mapping[str, Scores], tuned: Sequence[Tuned]) -> Table:
    """The stage after `baseline`, compared with it."""
    reranked = [stage.run.tag for stage in tuned if stage.baseline == baseline]
    significance = compare({name: scores[name] for name in (baseline, *reranked)}, baseline)
    before = scores[baseline]
    caption = (
        f"{baseline} has AP {before.means[0]:.4f} over {len(before.qids)} queries; differences of the stage after it"
    )
    return comparison_table(caption, significance)


def time_stages(index: PositionalIndex, rankings: Sequence[Ranking], settings: Settings, context: Context) -> Table:
    """Milliseconds per query by graph, at the study's depth and over all retrieved documents."""
    timed = rankings[:TIMED]
    depths = list(dict.fromkeys((settings.depth, max(len(ranking) for ranking in timed))))
    rows: list[list[str | float]] = []
    for graph in settings.graphs:
        rows.append([graph])
        for depth in depths:
            stage = ManifoldRanker(index, depth=depth, graph=graph, neighbours=settings.neighbours)
            step = f"{graph}, {depth} documents"
            stage(timed[0])  # loads everything that is compiled or imported on first use
            with context.timed(step):
                for ranking in timed:
                    stage(ranking)
            rows[-1].append(1e3 * context.seconds[step] / len(timed))
    header = ("graph", *(f"{depth} documents" for depth in depths))
    return Table(f"Milliseconds per query, mean over {len(timed)} queries, one thread", header, rows, decimals=1)


def curves_figure(scores: Mapping[str, Scores], tuned: Sequence[Tuned]) -> Figure:
    """AP against alpha, a panel for each baseline."""
    panels = {
        baseline: (
            {found.run.tag: found.curve for found in tuned if found.baseline == baseline},
            {baseline: float(scores[baseline].means[0])},
        )
        for baseline in dict.fromkeys(found.baseline for found in tuned)
    }
    return line_figure("AP by alpha over all queries, without cross-validation", "alpha", "AP", panels)


STUDY = Study(Settings, open_pipeline, run)
