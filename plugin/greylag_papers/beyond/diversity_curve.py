"""How many judged queries it takes until a diversifier helps: SVM-div against MMR and xQuAD, which learn one weight.

Documents are texts, without an index or Java. In each fold, every method learns from the same training queries, and
diversifies the queries of the fold. More training queries include the fewer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from greylag import PositionalIndex, Ranking, Run, read_run
from greylag.diversity import fit_svmdiv
from greylag.diversity.choice import alternatives, last_best
from greylag.evaluation import Scores, compare, evaluate_by_subtopic, parse_measure
from greylag.reports import Panel, Section, line_figure, to_dict
from greylag.runtime import read_json_lines
from greylag.stages import StageStep
from greylag.studies import (
    Context,
    Experiment,
    InputFile,
    MeasureName,
    Outcome,
    Positive,
    Study,
    comparison_table,
    means,
    means_table,
)
from greylag.studies import Settings as Fields
from greylag.trec import SubtopicQrels, read_aspects, read_subtopic_qrels
from greylag_papers.beyond.learning_curve import learn_points, pooled, splits
from greylag_papers.contrasts import contrasts
from greylag_papers.texts import read_texts
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics

FIRST, LEARNED = "none", "svmdiv"
_TEXTS = read_texts(__file__)


class Collection(Fields):
    """Paths below the data folder."""

    docs: InputFile
    """JSON lines with id, title and contents."""
    run: InputFile
    """The first stage."""
    subtopic_qrels: InputFile
    """Judgements by subtopic or nugget."""
    aspects: InputFile | None = None
    """Aspects for xQuAD."""


class Settings(Experiment):
    """Rankings, their judgements, and how many queries are learned from."""

    collection: Collection | None = None
    """The collection; by default, synthetic documents in arbitrary order."""
    synthetic_sets: Positive = 30
    """Number of synthetic queries."""
    training_sizes: Annotated[tuple[Positive, ...], Field(min_length=1)] = (4, 8, 16, 32)
    """Numbers of training queries; one above the number that there are outside a fold stands for all."""
    folds: Annotated[int, Field(ge=2)] = 5
    """Number of folds."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seeds folds and training queries."""
    measure: MeasureName = "alpha-nDCG@10"
    """The measure that compares methods and chooses their weights."""


@dataclass(frozen=True)
class Opened:
    """The first stage, its judgements, and the documents' vectors."""

    first: Run
    qrels: SubtopicQrels
    index: PositionalIndex
    aspects: Any  # None if there are none


def open_rankings(settings: Settings, context: Context) -> Opened:
    """Read the collection, or draw it."""
    if settings.collection is None:
        return synthetic(
            SyntheticSubtopics(settings.synthetic_sets, exponent=0.0, concentration=50.0, seed=settings.seed)
        )
    given = settings.collection
    texts = {
        str(record["id"]): f"{record.get('title', '')}\n{record['contents']}"
        for _, record in read_json_lines(settings.path(given.docs))
    }
    aspects = None if given.aspects is None else read_aspects(settings.path(given.aspects))
    qrels = read_subtopic_qrels(settings.path(given.subtopic_qrels))
    return Opened(read_run(settings.path(given.run)), qrels, PositionalIndex.from_texts(texts), aspects)


def synthetic(data: SyntheticSubtopics) -> Opened:
    """Drawn sets as texts, a query for each."""
    texts, rankings, qrels = dict[str, str](), [], SubtopicQrels()
    for number, (frequencies, truth) in enumerate(data.draw()):
        docids = [f"{number}-{document}" for document in range(frequencies.shape[0])]
        for docid, row in zip(docids, frequencies, strict=True):
            texts[docid] = " ".join(f"w{word}x" for word in np.repeat(row.indices, row.data.astype(int)))
        covered = truth.coverage.tocsc()
        qrels[str(number)] = {
            str(subtopic + 1): {docids[row]: 1 for row in covered[:, [subtopic]].indices.tolist()}
            for subtopic in range(covered.shape[1])
        }
        rankings.append(Ranking(str(number), "", tuple(docids), np.arange(len(docids), 0.0, -1.0)))
    return Opened(Run(tuple(rankings), FIRST), qrels, PositionalIndex.from_texts(texts), None)


def run(settings: Settings, opened: Opened, context: Context) -> Outcome:
    """Learn from each number of queries, and compare with the first stage."""
    first, qrels, measure = opened.first, opened.qrels, parse_measure(settings.measure)
    qids = list(qrels)
    parts = splits(qids, None, settings.folds, settings.seed)

    def measured(run: Run, part: Sequence[str]) -> list[float]:
        by_query = evaluate_by_subtopic(run, {qid: qrels[qid] for qid in part}, [measure]).by_query
        return [by_query[qid] for qid in part]

    tried = {}  # by method, the measure of each weight and query
    for name in ("mmr", *(() if opened.aspects is None else ("xquad",))):
        steps = [step for _, step in alternatives(StageStep(name))]
        stages = [step.make(opened.index, aspects=opened.aspects) for step in steps]
        runs = [stage.run(first, n_jobs=context.n_jobs, tag=name) for stage in stages]
        tried[name] = np.array([measured(run, qids) for run in runs])
        context.progress(f"{name}: {len(steps)} weights")

    def learn(training: Sequence[str], test: Sequence[str]) -> dict[str, list[float]]:
        known, held_out = ([qids.index(qid) for qid in part] for part in (training, test))
        values = {}
        for name, of_weights in tried.items():
            best = last_best(of_weights[:, known].mean(axis=1))
            values[name] = of_weights[best, held_out].tolist()
        ranked = [first[qid] for qid in training if qid in first]
        stage = fit_svmdiv(ranked, {qid: qrels[qid] for qid in training}, opened.index)
        diversified = Run(tuple(stage(first[qid]) for qid in test if qid in first), LEARNED)
        return {**values, LEARNED: measured(diversified, test)}

    learned = learn_points(parts, settings.training_sizes, learn, context, ", ".join)
    scores = {FIRST: Scores.single(measure, dict(zip(qids, measured(first, qids), strict=True)))}
    by_method: dict[str, dict[int, float]] = {}
    for size, point in learned.items():
        for name, held_out in pooled(measure, parts, point).items():
            by_query = held_out.by_query  # in the order of folds
            scores[f"{name}, {size} queries"] = Scores.single(measure, {qid: by_query[qid] for qid in qids})
            by_method.setdefault(name, {})[size] = float(held_out.means[0])
    tests = compare(scores, FIRST)
    panel: Panel = by_method, {FIRST: float(scores[FIRST].means[0])}
    figure = line_figure("Training queries", "training queries", str(measure), {settings.name: panel}, log=True)
    merged, values = means(scores), {name: part.values[:, 0] for name, part in scores.items()}
    comparison = comparison_table(f"Differences from {FIRST}", tests)
    table = means_table("Means over all queries, each held out", merged)
    return Outcome(
        scores=merged | contrasts(values, [(name, FIRST) for name in scores if name != FIRST]),
        results=to_dict(scores, tests),
        tables=[table, comparison],
        title=f"Judged queries that diversification needs: {settings.name}",
        sections=[Section("Learning curve", _TEXTS["diversity_curve: curve"], [figure, comparison])],
        provenance={"fingerprint": opened.index.fingerprint},
    )


STUDY = Study(Settings, open_rankings, run)
