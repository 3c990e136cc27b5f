"""SVM-div after the MRF model: relevance and diversity of every step of a pipeline, cross-validated.

Everything before the diversifiers comes from the collection's main experiment file, and so do depth and MMR. The folds
serve all that is learned: a fold's SVM-div is trained on rankings by the fold's own MRF model, so that nothing that is
learned has seen a judgement of the queries that it is tested on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures
from greylag.diversity.essential_pages import EssentialPages
from greylag.diversity.mmr import MMR
from greylag.diversity.oracle import SubtopicOracle
from greylag.diversity.svmdiv import SVMDiv
from greylag.diversity.titles import read_titles
from greylag.diversity.training import train, training_examples
from greylag.errors import FormatError, ParameterError
from greylag.evaluation import Scores, Significance, compare, comparison_rows, evaluate, evaluate_by_subtopic, to_dict
from greylag.experiments import config, pipeline
from greylag.experiments.collection import open_collection
from greylag.experiments.report import (
    Section,
    Table,
    as_text,
    check_dependencies,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say, load
from greylag.index.positional import PositionalIndex
from greylag.ltr.cross_validation import split_folds
from greylag.ltr.rankers import MRFRanker
from greylag.ranking import Ranking, Run, run_step
from greylag.structured import CuttingPlane
from greylag.trec import SubtopicQrels, read_qrels, read_subtopic_qrels, read_topics, write_run

_TEXT = """\
BM25, the MRF model after it, and diversifiers after that. svmdiv and svmdiv2 are the paper's two feature spaces; "+"
names features of single documents that are learned together with the words. C is chosen by the fold after the tested
one, and SVM-div trained on the rest. "known-subtopics" is the greedy choice by the truth. Relevance and diversity are
of the whole lists, of which a diversifier reorders the top."""
_TESTS = """\
Differences from the MRF model's ranking; p of the paired t-test over queries, two-sided, with Holm's correction over
the table."""


class Settings(config.Experiment):
    """The pipeline that the diversifiers are added to, and what is learned.

    Parameters
    ----------
    pipeline : the collection's main experiment file, with a part ``diversify``, and documents as JSON lines.
    k : the size of the sets that SVM-div is trained to pick; how many each diversifier picks is in the main file.
    systems : SVM-div's feature spaces by the systems' names: a preset, ``+`` and the name of each document feature.
    """

    pipeline: str
    k: config.Positive = 5
    systems: Annotated[tuple[str, ...], Field(min_length=1)] = ("svmdiv", "svmdiv2", "svmdiv2+score")


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``SYSTEM.run``, ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    base, option = read_pipeline(settings.path(settings.pipeline))
    spaces = {name: parse_system(name) for name in settings.systems}
    topics, qrels = read_topics(base.path(base.topics)), read_qrels(base.path(base.qrels))
    subtopics = read_subtopic_qrels(base.path(option.subtopic_qrels))
    docs, stage = base.path(base.collection.docs), base.first_stage
    lucene = open_collection(docs, base.collection.type, out / "index", say)
    index = PositionalIndex.from_lucene(lucene)
    source = stage.source(lucene)
    first = run_step(source, topics, n_jobs=n_jobs, tag=stage.model)
    mrf, models = pipeline.cross_validate(base, index, first, qrels, n_jobs=n_jobs, say=say)
    sizes = {"depth": option.depth, "k": option.k}
    steps = {
        "mmr": MMR(index, relevance_weight=option.relevance_weight, **sizes),
        "essential-pages": EssentialPages(index, **sizes),
        "known-subtopics": SubtopicOracle(subtopics, **sizes),
    }
    runs = {first.tag: first, mrf.tag: mrf}
    runs |= {name: run_step(step, mrf, n_jobs=n_jobs, tag=name) for name, step in steps.items()}
    folds = split_folds(list(first), base.training.folds, base.training.seed)
    ranked = [run_step(MRFRanker(model, index), first, n_jobs=n_jobs, tag=mrf.tag) for model in models]
    titles = read_titles(docs)
    for name, features in spaces.items():
        make = CandidateMaker(index, features, titles=titles)
        learned = cross_validate(make, folds, ranked, subtopics, option, settings.k)
        runs[name] = Run(tuple(learned[qid] for qid in first), name)
        say(f"{name}: trained and tested on {len(folds)} folds")
    measures = dict.fromkeys([*option.measures, f"subtopic-loss@{settings.k}"])
    scores = {
        "relevance": {name: evaluate(run, qrels, base.measures) for name, run in runs.items()},
        "diversity": {name: evaluate_by_subtopic(run, subtopics, [*measures]) for name, run in runs.items()},
    }
    more = {"pipeline": base.model_dump(mode="json"), "fingerprint": index.fingerprint}
    return write(settings, runs, scores, more, out)


def read_pipeline(path: Path) -> tuple[pipeline.Settings, pipeline.Diversify]:
    """A main experiment file, and its part ``diversify``.

    Raises
    ------
    FormatError
        Where the file is of another study, or lacks that part.
    """
    _, base = load(path)
    if not isinstance(base, pipeline.Settings) or base.diversify is None:
        raise FormatError(path, None, "is no file of the study 'pipeline' with a part 'diversify'")
    return base, base.diversify


def parse_system(name: str) -> CoverageFeatures:
    """The feature space of a system's name.

    Raises
    ------
    ParameterError
        Where it does not begin with a preset's name.
    """
    preset, *document_features = name.split("+")
    if preset not in PRESETS:
        raise ParameterError(f"system {name!r} does not begin with one of {', '.join(PRESETS)}")
    return replace(PRESETS[preset], document_features=tuple(document_features))


def cross_validate(
    make: CandidateMaker,
    folds: Sequence[Sequence[str]],
    ranked: Sequence[Run],
    subtopics: SubtopicQrels,
    option: pipeline.Diversify,
    k: int,
) -> dict[str, Ranking]:
    """Each query diversified by a model that neither trained nor chose C on its fold.

    Parameters
    ----------
    ranked : for each fold, all queries ranked by the model that was trained on the other folds.
    """
    diversified: dict[str, Ranking] = {}
    for number, test in enumerate(folds):
        after = (number + 1) % len(folds)
        training = [qid for other, fold in enumerate(folds) if other not in (number, after) for qid in fold]
        known, held_out = (
            training_examples([ranked[number][qid] for qid in qids], subtopics, make, depth=option.depth)
            for qids in (training, folds[after])
        )
        model = train(known, make, CuttingPlane(), k=k, validation=held_out)
        stage = SVMDiv(model, make.index, titles=make.titles, depth=option.depth, k=option.k)
        diversified |= {qid: stage(ranked[number][qid]) for qid in test}
    return diversified


def write(
    settings: Settings,
    runs: Mapping[str, Run],
    scores: Mapping[str, Mapping[str, Scores]],
    more: Mapping[str, Any],
    out: Path,
) -> Result:
    """Write the study's files, and summarise it."""
    for name, run in runs.items():
        write_run(run, out / f"{name}.run")
    tests = {
        kind: compare({name: found for name, found in part.items() if name != next(iter(part))}, "mrf")
        for kind, part in scores.items()
    }
    content = {kind: to_dict(part, tests[kind]) for kind, part in scores.items()}
    write_results(out, {**provenance(settings, **more), **content})
    means = {
        name: {measure: mean for part in scores.values() for measure, mean in part[name].by_measure.items()}
        for name in runs
    }
    rows: list[tuple[str | float, ...]] = [(name, *values.values()) for name, values in means.items()]
    steps = Table("Means over queries", ("", *next(iter(means.values()))), rows)
    against = [comparison_table(kind, test) for kind, test in tests.items()]
    sections = [Section("Every step", _TEXT, [steps]), Section("After the MRF model", _TESTS, against)]
    title = f"SVM-div after the MRF model: {settings.name}"
    write_report(out / "report.html", title, sections, provenance(settings, **more))
    summary = "\n".join(as_text(part) for part in (steps, *against))
    return Result(means, f"{summary}\nThe report is {out / 'report.html'}\n")


def comparison_table(caption: str, significance: Significance) -> Table:
    """Differences from the MRF model's ranking."""
    columns = ("run", "measure", "difference", "wins", "ties", "losses", "corrected_p")
    rows = comparison_rows([significance], columns)
    return Table(caption.capitalize(), ("", "measure", "difference", "better", "equal", "worse", "p"), rows)
