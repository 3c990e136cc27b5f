"""Metzler's study (CIKM 2007): does greedy selection from a pool of MRF features beat what people picked?

Hand-picked models and learned ones rerank the same first stage. In each fold everything is learned or chosen from the
other folds' queries: parameters, weights, the number of features, the measure's cut-off. See `mrf_learning` for the
systems, `mrf_findings` and `mrf_report` for what is made of their scores, and `mrf_files` for what is written.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from greylag.errors import ParameterError
from greylag.evaluation import evaluate
from greylag.experiments import config
from greylag.experiments.collection import open_collection
from greylag.experiments.pipeline import FirstStage
from greylag.experiments.report import as_text, check_dependencies
from greylag.experiments.study import Result, Say
from greylag.features.prior import Prior
from greylag.features.spec import named_pool, unique_features
from greylag.features.weighting import FeatureParameters
from greylag.index import PositionalIndex
from greylag.ltr.baselines import RM3
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.cross_validation import split_folds
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.linear import LinearModel
from greylag.ltr.objectives import Objective
from greylag.ltr.rankers import MRFRanker
from greylag.ranking import Ranking, Run, run_step
from greylag.trec import Qrels, read_qrels, read_topics
from greylag_papers.metzler_2007 import learning
from greylag_papers.metzler_2007 import report as mrf_report
from greylag_papers.metzler_2007.files import FIRST, file_name, write
from greylag_papers.metzler_2007.findings import Findings


class Features(config.Settings):
    """The pool that selection chooses from, and the parameters that are not tuned.

    Parameters
    ----------
    pool : the dependence models of the pool.
    priors : features ``prior:FILE[:log][:DEFAULT]`` beside it, the files below the data folder.
    idf, profile, max_clique : as in `FeatureParameters`.
    """

    pool: Literal["sd", "fd", "full"] = "full"
    priors: tuple[str, ...] = ()
    idf: Literal["lucene", "robertson"] = "lucene"
    profile: Literal["indri", "galago"] = "indri"
    max_clique: int = 3


class Grid(config.Settings):
    """The values of `FeatureParameters`' fields that training queries choose from."""

    mu: Annotated[tuple[float, ...], Field(min_length=1)] = (10, 25, 50, 100, 250, 500, 1000, 2500, 5000)
    k1: Annotated[tuple[float, ...], Field(min_length=1)] = (0.6, 0.9, 1.2, 1.6, 2.2)
    b: Annotated[tuple[float, ...], Field(min_length=1)] = (0.1, 0.25, 0.4, 0.6, 0.8)
    fb_docs: Annotated[tuple[int, ...], Field(min_length=1)] = (5, 10, 20)
    fb_terms: Annotated[tuple[int, ...], Field(min_length=1)] = (10, 30, 100)


class Training(config.Settings):
    """How models are learned.

    Parameters
    ----------
    objective : what is maximised, and what choices within training queries go by; as `Objective.parse` reads it.
    cutoffs : the objective at these cut-offs is tried as what selection maximises; without any, the objective itself.
    max_features, epsilon : of greedy selection; the number of features is chosen from 1 to `max_features`.
    restarts : of coordinate ascent.
    folds, inner_folds, seed : of cross-validation, and of that within training queries.
    """

    objective: str = "AP"
    cutoffs: tuple[config.Positive, ...] = ()
    max_features: config.Positive = 7
    epsilon: float = 0.0
    restarts: config.Positive = 3
    folds: Annotated[int, Field(ge=2)] = 5
    inner_folds: Annotated[int, Field(ge=2)] = 3
    seed: int = 0


class Split(config.Settings):
    """A fixed split of the topics: identifiers, or FIRST..LAST for all from one to another in the topics' order."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    train: tuple[str, ...]
    test: tuple[str, ...]


class Settings(config.Experiment):
    """A collection, a first stage, and how the systems that rerank it are learned.

    Parameters
    ----------
    split : train on some topics and rank others, in place of cross-validation.
    measures : what runs are scored by, beside the objective.
    """

    collection: config.Collection
    topics: str
    qrels: str
    lenient: bool = False
    first_stage: FirstStage = FirstStage()
    features: Features = Features()
    grid: Grid = Grid()
    training: Training = Training()
    split: Split | None = None
    measures: tuple[str, ...] = ("P@10", "nDCG@10")


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write runs with their descriptions, models by system and fold, ``results.json``, ``report.html``.

    All but the times, which are in the report and in ``times.json``, is the same every time.
    """
    check_dependencies()
    clock = Clock(say)
    with clock.step("reading, indexing, first stage"):
        topics = read_topics(settings.path(settings.topics), lenient=settings.lenient)
        qrels = read_qrels(settings.path(settings.qrels), lenient=settings.lenient)
        lucene = open_collection(settings.path(settings.collection.docs), settings.collection.type, out / "index", say)
        index, stage = PositionalIndex.from_lucene(lucene), settings.first_stage
        source = stage.source(lucene)
        first = run_step(source, topics, n_jobs=n_jobs, tag=file_name(FIRST))
    folds = make_folds(settings, list(first))
    experiment = set_up(settings, index, first, qrels, n_jobs)
    if experiment.limited:
        largest = settings.features.max_clique
        say(f"FD's cliques have {largest} terms at most; queries with more terms: {experiment.limited}")
    models, learned = learn_all(experiment, folds, clock, say)
    with clock.step("ranking and scoring"):
        tested = {qid for fold in folds for qid in fold.test}
        runs = {FIRST: Run(tuple(first[qid] for qid in first if qid in tested), first.tag)}
        runs |= {name: rerank(name, own, folds, index, first, n_jobs) for name, own in models.items()}
        judged = qrels if settings.split is None else {qid: own for qid, own in qrels.items() if qid in tested}
        measures = [settings.training.objective, *settings.measures]
        scores = {name: evaluate(ranked, judged, measures) for name, ranked in runs.items()}
    findings = Findings(
        settings, index, scores, tuple(folds), models, tuple(learned), experiment.redundant, experiment.limited
    )
    write(findings, runs, clock.seconds, out)
    summary = as_text(mrf_report.score_table(findings)), as_text(mrf_report.comparison_table(findings))
    return Result(findings.means, "\n".join([*summary, f"The report is {out / 'report.html'}"]) + "\n")


class Clock:
    """The seconds that each step took, in `seconds`; says so when it is over."""

    def __init__(self, say: Say) -> None:
        self.seconds: dict[str, float] = {}
        self._say = say

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Time the block."""
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start
        self._say(f"{name}: {self.seconds[name]:.1f} s")


def make_folds(settings: Settings, qids: Sequence[str]) -> list[learning.Fold]:
    """The folds of cross-validation over `qids`, or the one of a fixed split.

    Raises
    ------
    ParameterError
        Where a split names a topic that is not there, or one for training and for testing.
    """
    if settings.split is None:
        tests = split_folds(qids, settings.training.folds, settings.training.seed)
        pairs = [([qid for qid in qids if qid not in test], test) for test in tests]
    else:
        train, test = (_topics(names, qids) for names in (settings.split.train, settings.split.test))
        if both := set(train) & set(test):
            raise ParameterError(f"topic {min(both)!r} is in the split's train and in its test part")
        pairs = [(train, test)]
    return [learning.Fold(number, tuple(train), tuple(test)) for number, (train, test) in enumerate(pairs, 1)]


def _topics(names: Sequence[str], qids: Sequence[str]) -> list[str]:
    """The topics of a split's part."""
    found: list[str] = []
    for name in names:
        first, _, last = name.partition("..")
        for qid in (first, last or first):
            if qid not in qids:
                raise ParameterError(f"the split names topic {qid!r}, which is not among the topics ({qids[0]!r}, ...)")
        found += qids[qids.index(first) : qids.index(last or first) + 1]
    return found


def set_up(settings: Settings, index: PositionalIndex, first: Run, qrels: Qrels, n_jobs: int) -> learning.Experiment:
    """What the settings ask for, as the folds take it."""
    features, training = settings.features, settings.training
    objective = Objective.parse(training.objective)
    objectives = [replace(objective, cutoff=cutoff) for cutoff in training.cutoffs] or [objective]
    priors = [Prior.parse(prior) for prior in features.priors]
    return learning.Experiment(
        index=index,
        rankings=first.rankings,
        qrels=qrels,
        pool=unique_features(
            [*named_pool(features.pool), *(replace(p, file=str(settings.path(p.file))) for p in priors)]
        ),
        base=FeatureParameters(idf=features.idf, profile=features.profile, max_clique=features.max_clique),
        grid=settings.grid.model_dump(),
        learners=learning.Learners(
            greedy=tuple(
                GreedySelection(own, max_features=training.max_features, epsilon=training.epsilon) for own in objectives
            ),
            ascent=CoordinateAscent(objective, restarts=training.restarts, seed=training.seed),
            measure=objective,
            inner_folds=training.inner_folds,
            seed=training.seed,
        ),
        n_jobs=n_jobs,
    )


def learn_all(
    experiment: learning.Experiment, folds: Sequence[learning.Fold], clock: Clock, say: Say
) -> tuple[dict[str, list[LinearModel]], list[learning.Learned]]:
    """Every system's models, one for each fold, and what each fold led to."""
    with clock.step("tuning hand-picked models"):
        tuned = learning.tune_baselines(experiment, folds, say)
    models = {
        model.name: [
            learning.baseline_model(experiment, model, *own) for own in zip(tuned[model.name], folds, strict=True)
        ]
        for model in learning.BASELINES
    }
    learned = []
    for fold, around in zip(folds, tuned[RM3.name], strict=True):
        with clock.step(f"learning, fold {fold.number}"):
            learned.append(learning.learn(experiment, fold, around.parameters))
        say(f"fold {fold.number}: {', '.join(map(str, learned[-1].models[learning.SELECTED].features))}")
    models |= {system: [part.models[system] for part in learned] for system in learning.LEARNED}
    return models, learned


def rerank(
    system: str,
    models: Sequence[LinearModel],
    folds: Sequence[learning.Fold],
    index: PositionalIndex,
    first: Run,
    n_jobs: int,
) -> Run:
    """Each test query ranked by its fold's model, in the first stage's order of queries."""
    found: dict[str, Ranking] = {}
    for fold, model in zip(folds, models, strict=True):
        found.update(run_step(MRFRanker(model, index), [first[q] for q in fold.test], n_jobs=n_jobs, tag=system))
    return Run(tuple(found[qid] for qid in first if qid in found), file_name(system))
