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

from greylag import PositionalIndex, Ranking, Run, read_run, read_subtopic_qrels
from greylag.diversity import fit_svmdiv
from greylag.diversity.choice import alternatives, last_best
from greylag.evaluation import Scores, compare, evaluate_by_subtopic, split_folds, to_dict
from greylag.experiments import config
from greylag.experiments.figures import line_figure
from greylag.experiments.report import Section
from greylag.experiments.study import Context, Outcome, Study
from greylag.experiments.tables import comparison_table, means, means_table
from greylag.features.stages import StageStep
from greylag.runtime import parallel_map
from greylag.runtime.files import read_json_lines
from greylag.trec import SubtopicQrels, read_aspects
from greylag_papers.contrasts import contrasts
from greylag_papers.texts import read_texts
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics

FIRST, LEARNED = "none", "svmdiv"
_TEXTS = read_texts(__file__)


class Collection(config.Settings):
    """Paths below the data folder."""

    docs: str
    """JSON lines with id, title and contents."""
    run: str
    """The first stage."""
    subtopic_qrels: str
    """Judgements by subtopic or nugget."""
    aspects: str | None = None
    """Aspects for xQuAD."""


class Settings(config.Experiment):
    """Rankings, their judgements, and how many queries are learned from."""

    collection: Collection | None = None
    """The collection; by default, synthetic documents in arbitrary order."""
    synthetic_sets: config.Positive = 30
    """Number of synthetic queries."""
    training_sizes: Annotated[tuple[config.Positive, ...], Field(min_length=1)] = (4, 8, 16, 32)
    """Numbers of training queries; at most as many as there are outside a fold."""
    folds: Annotated[int, Field(ge=2)] = 5
    """Number of folds."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seeds folds and training queries."""
    measure: config.MeasureName = "alpha-nDCG@10"
    """What is compared, and weights are chosen by."""


@dataclass(frozen=True)
class Opened:
    """What is diversified."""

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
    first, qrels, measure, n_jobs = opened.first, opened.qrels, settings.measure, context.n_jobs
    qids = list(qrels)
    parts = split_folds(qids, settings.folds, settings.seed)
    orders = [training_order(qids, part, settings.seed) for part in parts]
    sizes = [size for size in settings.training_sizes if size <= min(map(len, orders))]
    scores = {FIRST: evaluate_by_subtopic(first, qrels, [measure])}
    by_method: dict[str, dict[int, float]] = {}
    for name in ("mmr", *(() if opened.aspects is None else ("xquad",))):
        steps = [step for _, step in alternatives(StageStep(name))]
        runs = [step.make(opened.index, aspects=opened.aspects).run(first, n_jobs=n_jobs, tag=name) for step in steps]
        values = np.array([evaluate_by_subtopic(tried, qrels, [measure]).values[:, 0] for tried in runs])
        for size in sizes:
            held_out = np.empty(len(qids))
            for part, order in zip(parts, orders, strict=True):
                best = last_best(values[:, np.isin(qids, order[:size])].mean(axis=1))
                rows = np.isin(qids, part)
                held_out[rows] = values[best, rows]
            add(scores, by_method, name, size, dict(zip(qids, held_out.tolist(), strict=True)))
        context.progress(f"{name}: {len(steps)} weights")

    def diversify(item: tuple[int, Sequence[str], Sequence[str]]) -> list[Ranking]:
        size, part, order = item
        training = [first[qid] for qid in order[:size] if qid in first]
        stage = fit_svmdiv(training, {qid: qrels[qid] for qid in order[:size]}, opened.index)
        return [stage(first[qid]) for qid in part if qid in first]

    items = [(size, part, order) for size in sizes for part, order in zip(parts, orders, strict=True)]
    learned = list(parallel_map(diversify, items, what="models of SVM-div", n_jobs=n_jobs))
    for place, size in enumerate(sizes):
        folds = learned[place * len(parts) : (place + 1) * len(parts)]
        found = Run(tuple(ranking for rankings in folds for ranking in rankings), LEARNED)
        values = evaluate_by_subtopic(found, qrels, [measure]).values[:, 0]
        add(scores, by_method, LEARNED, size, dict(zip(qids, values.tolist(), strict=True)))
    tests = compare(scores, FIRST)
    level = float(scores[FIRST].means[0])
    figure = line_figure("Training queries", "training queries", measure, {settings.name: (by_method, {FIRST: level})})
    merged, by_query = means(scores), {name: part.values[:, 0] for name, part in scores.items()}
    comparison = comparison_table(f"Differences from {FIRST}", tests)
    table = means_table("Means over all queries, each held out", merged)
    return Outcome(
        scores=merged | contrasts(by_query, [(name, FIRST) for name in scores if name != FIRST]),
        results=to_dict(scores, tests),
        tables=[table, comparison],
        title=f"Judged queries that diversification needs: {settings.name}",
        sections=[Section("Learning curve", _TEXTS["diversity_curve: curve"], [figure, comparison])],
        provenance={"fingerprint": opened.index.fingerprint},
    )


def add(
    scores: dict[str, Scores], by_method: dict[str, dict[int, float]], name: str, size: int, values: dict[str, float]
) -> None:
    """Add the scores of a method that learned from so many queries."""
    found = Scores.single(scores[FIRST].measures[0], values)
    scores[f"{name}, {size} queries"] = found
    by_method.setdefault(name, {})[size] = float(found.means[0])


def training_order(qids: Sequence[str], part: Sequence[str], seed: int) -> list[str]:
    """The queries outside a fold in random order, of which the first ones are learned from."""
    others = [qid for qid in qids if qid not in part]
    return [others[place] for place in np.random.default_rng(seed).permutation(len(others))]


STUDY = Study(Settings, open_rankings, run)
