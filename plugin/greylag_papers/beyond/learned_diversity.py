"""SVM-div after the MRF model: relevance and diversity of every step of a pipeline, cross-validated.

Everything before the diversifiers comes from the collection's main experiment file, as do depth and MMR. The same folds
serve everything that is learned: the SVM-div of a fold is trained on rankings by the fold's own MRF model, so that
nothing learned has seen a judgement of the queries that it is tested on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from greylag import FormatError, ParameterError, Ranking, Run
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures
from greylag.diversity.essential_pages import EssentialPages
from greylag.diversity.mmr import MMR
from greylag.diversity.oracle import SubtopicOracle
from greylag.diversity.svmdiv import SVMDiv
from greylag.diversity.training import train, training_examples
from greylag.evaluation import compare, evaluate, evaluate_by_subtopic
from greylag.learning.structured import CuttingPlane
from greylag.rankers import ModelRanker
from greylag.reports import to_dict
from greylag.reports.charts import result
from greylag.reports.report import Section
from greylag.runtime import parallel_map
from greylag.studies import config, pipeline
from greylag.studies.collection import OpenCollection, open_collection
from greylag.studies.study import Context, Outcome, Study
from greylag.studies.tables import comparison_table, means, means_table, merge_scores
from greylag.trec import SubtopicQrels, read_titles
from greylag_papers.texts import read_texts

_TEXTS = read_texts(__file__)


def parse_system(name: str) -> CoverageFeatures:
    """The feature space of a system's name: a preset, then ``+`` and the name of each document feature."""
    preset, *document_features = name.split("+")
    if preset not in PRESETS:
        raise ParameterError(f"system {name!r} does not begin with one of {', '.join(PRESETS)}")
    return replace(PRESETS[preset], document_features=tuple(document_features))


class Settings(config.Experiment):
    """The settings of the pipeline that diversifiers are added to, and of their training."""

    pipeline: config.InputFile
    """Path of the collection's main experiment file, with subtopic_qrels, a stage mmr, and documents as JSON lines."""
    k: config.Positive = 5
    """Size of the sets that SVM-div is trained to pick. The number that each diversifier picks is in the main file."""
    systems: Annotated[tuple[Annotated[str, config.readable_by(parse_system)], ...], Field(min_length=1)] = (
        "svmdiv",
        "svmdiv2",
        "svmdiv2+score",
    )
    """Feature spaces of SVM-div: svmdiv, svmdiv2 or svmdiv-all-levels, with a plus before each feature of documents."""


@dataclass(frozen=True)
class Opened:
    """The open pipeline."""

    base: pipeline.Settings  # the main experiment
    mmr: MMR  # its stage mmr, whose depth and k are those of the others
    collection: OpenCollection
    subtopics: SubtopicQrels
    titles: dict[str, str]


def open_pipeline(settings: Settings, context: Context) -> Opened:
    """Read the main experiment file, and open what it names."""
    path = settings.path(settings.pipeline)
    base = pipeline.read_pipeline(path)
    steps = [step for text in base.stages for step in pipeline.stages_of(text) if step.name == "mmr"]
    if base.subtopic_qrels is None or not steps or base.collection.docs is None:
        raise FormatError(path, None, "subtopic_qrels, a stage mmr or collection.docs is missing")
    titles = read_titles(base.path(base.collection.docs))
    collection = open_collection(base, context)
    mmr = steps[0].make(collection.index)
    assert isinstance(mmr, MMR)
    return Opened(base, mmr, collection, base.subtopics(collection.tested), titles)


def run(settings: Settings, opened: Opened, context: Context) -> Outcome:
    """Diversify the MRF model's ranking by each method, and compare each with the MRF model."""
    base, mmr, subtopics = opened.base, opened.mmr, opened.subtopics
    index, first, n_jobs = opened.collection.index, opened.collection.first, context.n_jobs
    sizes = {"depth": mmr.depth, "k": mmr.k}
    stages = {
        "mmr": mmr,
        "essential-pages": EssentialPages(index, **sizes),
        "known-subtopics": SubtopicOracle(subtopics, **sizes),
    }
    validated = pipeline.cross_validate(base, opened.collection, context)
    mrf = validated.run
    runs = {first.tag: first, mrf.tag: mrf}
    runs |= {name: stage.run(mrf, n_jobs=n_jobs, tag=name) for name, stage in stages.items()}
    ranked = [ModelRanker(model, index).run(first, n_jobs=n_jobs, tag=mrf.tag) for model in validated.models]
    for name in settings.systems:
        make = CandidateMaker(index, parse_system(name), titles=opened.titles, depth=mmr.depth)
        learned = cross_validate(make, validated.folds, ranked, subtopics, mmr.k, settings.k, n_jobs=n_jobs)
        runs[name] = Run(tuple(learned[qid] for qid in first), name)
        context.progress(f"{name}: trained and tested on {len(validated.folds)} folds")
    measures = [*dict.fromkeys([*base.subtopic_measures, f"subtopic-loss@{settings.k}"])]
    scores = {
        "relevance": {name: evaluate(run, opened.collection.qrels, base.measures) for name, run in runs.items()},
        "diversity": {name: evaluate_by_subtopic(run, subtopics, measures) for name, run in runs.items()},
    }
    after = {
        kind: compare({name: found for name, found in part.items() if name != first.tag}, mrf.tag)
        for kind, part in scores.items()
    }
    merged = merge_scores(map(means, scores.values()))
    table = means_table("Means over queries", merged)
    comparisons = [comparison_table(kind.capitalize(), test) for kind, test in after.items()]
    return Outcome(
        scores=merged,
        results={kind: to_dict(part, after[kind]) for kind, part in scores.items()},
        tables=[table, *comparisons],
        title=f"SVM-div after the MRF model: {settings.name}",
        sections=[
            result([(scores["diversity"], after["diversity"])], _TEXTS["learned_diversity: steps"], [table]),
            Section("After the MRF model", _TEXTS["learned_diversity: tests"], comparisons),
        ],
        runs={name.replace("/", "-"): run for name, run in runs.items()},
        provenance={"pipeline": base.model_dump(mode="json"), "fingerprint": index.fingerprint},
    )


def cross_validate(
    make: CandidateMaker,
    folds: Sequence[Sequence[str]],
    ranked: Sequence[Run],
    subtopics: SubtopicQrels,
    picks: int,
    k: int,
    *,
    n_jobs: int | None = None,
) -> Mapping[str, Ranking]:
    """Each query diversified by a model that neither trained nor chose C on its fold."""

    def diversify(number: int) -> list[Ranking]:
        after = (number + 1) % len(folds)  # the fold that chooses C
        training = [qid for other, fold in enumerate(folds) if other not in (number, after) for qid in fold]
        known, held_out = (
            training_examples([ranked[number][qid] for qid in qids], subtopics, make)
            for qids in (training, folds[after])
        )
        model = train(known, make, CuttingPlane(), k=k, validation=held_out).model
        stage = SVMDiv(model, make.index, titles=make.titles, k=picks)
        return [stage(ranked[number][qid]) for qid in folds[number]]

    by_fold = parallel_map(diversify, range(len(folds)), what="folds of SVM-div", n_jobs=n_jobs)
    return {ranking.qid: ranking for rankings in by_fold for ranking in rankings}


STUDY = Study(Settings, open_pipeline, run)
