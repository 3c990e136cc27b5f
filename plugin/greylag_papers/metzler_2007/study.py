"""Metzler's study (CIKM 2007): does greedy selection from a pool of MRF features beat hand-picked features?

Hand-picked and learned models rerank the same first stage. In each fold, everything is learned or chosen from the
queries of the other folds: parameters, weights, the number of features, the cut-off of the objective. `learning`
defines the systems, and `report` compares their scores and presents them.

"MRF-FS" follows the paper: no threshold, at most five features, weights by line search ("any number of learning to rank
techniques"). The study departs from it as follows. A feature that does not raise the training mean is dropped, whereas
line 9 of Algorithm 1 keeps the last one. Cliques of FD have at most `max_clique` terms. All systems rerank a first
stage instead of ranking the collection. Significance is also corrected for multiple comparisons. Added are systems that
choose their length by inner cross-validation, one of them with expansion features.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from greylag import ParameterError, Run
from greylag.base import parallel_map
from greylag.evaluation import evaluate, rerank_by_fold, split_folds, to_dict
from greylag.rankers import ModelRanker
from greylag.recipes import Fitted
from greylag.studies import Context, OpenCollection, Outcome, Study, open_collection
from greylag_papers.metzler_2007 import learning
from greylag_papers.metzler_2007.learning import Settings
from greylag_papers.metzler_2007.report import Findings, comparisons_table, retraining_table, score_table, sections

FIRST = "first stage"


def open_first_stage(settings: Settings, context: Context) -> OpenCollection:
    """Open the collection; the run of the first stage is tagged as a system of this study."""
    with context.timed("reading, indexing, first stage"):
        opened = open_collection(settings, context)
    return replace(opened, first=Run(opened.first.rankings, file_name(FIRST)))


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Learn every system in every fold, and score and compare the rankings of the test queries."""
    index, first = opened.index, opened.first
    folds = make_folds(settings, list(first))
    experiment = learning.Experiment(settings, opened, context.n_jobs)
    if experiment.limited:
        context.progress(f"{experiment.limited} queries have more terms than the largest cliques of FD")
    with context.timed("tuning hand-picked models"):
        tuned = learning.tune_baselines(experiment, folds, context.progress)
    learned = learn_folds(experiment, folds, tuned[learning.RM3.name], context)
    models = {name: [fitted.model for fitted in every] for name, every in tuned.items()}
    models |= {system: [part.models[system] for part in learned] for system in learning.LEARNED}
    with context.timed("ranking and scoring"):
        tests = [fold.test for fold in folds]
        tested = {qid for test in tests for qid in test}
        # A split tests some of the queries, and all systems are scored on these.
        runs = {FIRST: first.select_queries(tested)}
        for system, fold_models in models.items():
            stages = [ModelRanker(model, index) for model in fold_models]
            runs[system] = rerank_by_fold(stages, tests, first, n_jobs=context.n_jobs, tag=file_name(system))
        judged = {qid: grades for qid, grades in opened.qrels.items() if settings.split is None or qid in tested}
        measures = [settings.training.objective, *settings.measures]
        scores = {system: evaluate(ranked, judged, measures) for system, ranked in runs.items()}
    findings = Findings(experiment, scores, tuple(folds), models, tuple(learned))
    return Outcome(
        scores={**findings.means, **findings.claims},
        results={**findings.as_dict(), **to_dict(scores)},
        tables=[score_table(findings), comparisons_table(findings), retraining_table(findings)],
        title=f"Selected features against hand-picked ones: {settings.name}",
        sections=sections(findings),
        runs={ranked.tag: ranked for ranked in runs.values()},
        models={
            f"{file_name(system)}/fold-{fold.number}": replace(model, query_form=opened.query_form)
            for system, fold_models in models.items()
            for fold, model in zip(folds, fold_models, strict=True)
        },
        seconds=context.seconds,
        provenance={"fingerprint": index.fingerprint},
    )


def make_folds(settings: Settings, qids: Sequence[str]) -> list[learning.Fold]:
    """Make the folds of cross-validation over `qids`, or the single fold of a fixed split."""
    if settings.split is None:
        tests = split_folds(qids, settings.training.folds, settings.training.seed)
        pairs = [([qid for qid in qids if qid not in test], test) for test in tests]
    else:
        train, test = (_topics(names, qids) for names in (settings.split.train, settings.split.test))
        if both := set(train) & set(test):
            raise ParameterError(f"topic {min(both)!r} is in both parts of the split, train and test")
        pairs = [(train, test)]
    return [learning.Fold(number, tuple(train), tuple(test)) for number, (train, test) in enumerate(pairs, 1)]


def _topics(names: Sequence[str], qids: Sequence[str]) -> list[str]:
    """Return the topics of one part of a split."""
    chosen: list[str] = []
    for name in names:
        first, _, last = name.partition("..")
        for qid in (first, last or first):
            if qid not in qids:
                raise ParameterError(f"the split names topic {qid!r}, which is not among the topics ({qids[0]!r}, ...)")
        chosen += qids[qids.index(first) : qids.index(last or first) + 1]
    return chosen


def learn_folds(
    experiment: learning.Experiment, folds: Sequence[learning.Fold], around: Sequence[Fitted], context: Context
) -> list[learning.Learned]:
    """Train the systems of each fold, with the parameters of its tuned RM3."""
    parts = [(fold, tuned.model.parameters) for fold, tuned in zip(folds, around, strict=True)]
    work = parallel_map(
        lambda part, shared: learning.learn(shared, *part), parts, experiment,
        what="folds", n_jobs=context.n_jobs, coarse=True,
    )  # fmt: skip
    learned: list[learning.Learned] = []
    for fold in folds:
        with context.timed(f"learning, fold {fold.number}"):
            learned.append(next(work))
        context.progress(f"fold {fold.number}: {', '.join(map(str, learned[-1].models[learning.SELECTED].features))}")
    return learned


def file_name(system: str) -> str:
    """Return a system's name in file names, which is also the tag of its run."""
    return system.lower().replace(" ", "-")


STUDY = Study(Settings, open_first_stage, run)
