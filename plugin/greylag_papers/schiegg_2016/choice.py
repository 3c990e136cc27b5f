"""How much of pick-best a learned choice of the member reaches, beyond the paper.

In each fold an ensemble is trained on half of the other queries. The chooser is trained on the other half, on which the
members' losses are those of unseen queries. Compared on the tested queries are the chosen member, the member that is
best on the chooser's queries, the mean of the members, their fusion by reciprocal ranks, and pick-best; and SVM-div,
trained on the queries of the ensemble and on all that were available. The whole is repeated with other splits; the loss
of a query is its mean over repetitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated

import numpy as np
from pydantic import Field

from greylag import CSSVM, Coulomb, CuttingPlane, FloatArray, Ranking, SVMDiv, parallel_map
from greylag.diversity import (
    PRESETS,
    CandidateMaker,
    Candidates,
    ChosenMember,
    DiversityModel,
    member_features,
    train,
    train_chooser,
    training_examples,
)
from greylag.evaluation import Scores, Subtopics, compare, parse_measure, to_dict
from greylag.experiments import (
    Context,
    Outcome,
    Positive,
    Section,
    Seed,
    Study,
    Table,
    comparison_table,
    means,
    means_table,
)
from greylag.ltr import split_folds
from greylag_papers.yue_joachims_2008.candidate_lists import CandidateLists, CandidateSettings, open_candidates

CHOSEN, BEST, MEAN, FUSED, ORACLE = "chosen", "best on average", "mean member", "fused", "pick-best"
SVMDIV, SVMDIV_ALL = "SVM-div", "SVM-div, all queries"
SYSTEMS = (SVMDIV, SVMDIV_ALL, MEAN, BEST, FUSED, CHOSEN, ORACLE)
_TEXT = """\
Loss of the k documents picked: the weight of the subtopics that they do not cover. "chosen" is the member of the
lowest predicted loss, "best on average" the member that lost least on the chooser's queries, "fused" the fusion of the
members by reciprocal ranks. "pick-best" is an oracle. "SVM-div" was trained on the ensemble's queries, "SVM-div, all
queries" on the chooser's, too, so that it has used the same judgements as the choice. Differences: two-sided paired
t-tests over queries, with Holm's correction."""


class Settings(CandidateSettings):
    """Candidates, the ensemble, and the splits.

    Parameters
    ----------
    k : int >= 1, default 5
        Number of documents picked.
    M : int >= 1, default 5
        Number of members.
    alpha, C : float
        Repulsion and cost of the ensemble; C is that of SVM-div, too.
    folds : int >= 3, default 5
        Number of folds.
    repetitions : int >= 1, default 5
        Number of splits into folds.
    seed : int, default 0
        Seed of the first split.
    """

    k: Positive = 5
    M: Positive = 5
    alpha: float = 0.1
    C: float = 0.05
    folds: Annotated[int, Field(ge=3, lt=1 << 31)] = 5
    repetitions: Positive = 5
    seed: Seed = 0


@dataclass(frozen=True)
class Fold:
    """Queries to test, to train the ensemble on, and to train the chooser on, by qid."""

    test: tuple[str, ...]
    ensemble: tuple[str, ...]
    chooser: tuple[str, ...]


@dataclass(frozen=True)
class Experiment:
    """What all folds share.

    Parameters
    ----------
    settings : Settings
    lists : CandidateLists
    make : CandidateMaker
    examples : mapping of qid to a pair of Candidates and Subtopics
    """

    settings: Settings
    lists: CandidateLists
    make: CandidateMaker
    examples: Mapping[str, tuple[Candidates, Subtopics]]

    @cached_property
    def rankings(self) -> dict[str, Ranking]:
        """The candidates of each query that has a covered subtopic."""
        return {ranking.qid: ranking for ranking in self.lists.rankings if ranking.qid in self.examples}

    def learn(self, qids: Sequence[str], learner: Coulomb | CuttingPlane) -> DiversityModel:
        """SVM-div or an ensemble, trained on some queries."""
        return train({qid: self.examples[qid] for qid in qids}, self.make, learner, k=self.settings.k)

    def loss(self, qid: str, ranking: Ranking) -> float:
        """The loss of the first k documents of a ranking of the query's candidates."""
        place = {docid: row for row, docid in enumerate(self.rankings[qid].docids)}
        picks = [place[docid] for docid in ranking.docids[: self.settings.k]]
        return self.examples[qid][1].loss(np.array(picks, dtype=np.int64))


def run(settings: Settings, opened: CandidateLists, context: Context) -> Outcome:
    """Compare the choice of members with fusion and single models."""
    make = CandidateMaker(opened.index, PRESETS["svmdiv"], titles=opened.titles)
    examples = training_examples(opened.rankings, opened.qrels, make, depth=settings.depth)
    experiment = Experiment(settings, opened, make, examples)
    folds = make_folds(settings, list(experiment.rankings))
    found = list(parallel_map(partial(score_fold, experiment), folds, what="folds", n_jobs=context.n_jobs))
    measure = parse_measure(f"subtopic-loss@{settings.k}")
    by_query = mean_losses([losses for losses, _ in found])
    scores = {name: Scores.single(measure, own) for name, own in by_query.items()}
    test = compare({name: own for name, own in scores.items() if name != ORACLE}, CHOSEN)
    penalties = [penalty for _, penalty in found]
    rows = [(f"{penalty:g}", penalties.count(penalty)) for penalty in sorted(set(penalties))]
    tables = [
        means_table(f"Mean loss over {len(experiment.rankings)} queries", means(scores)),
        comparison_table("Difference from the chosen member", test),
        Table("Penalty of the chooser, by number of folds; inf ignores the features", ("penalty", "folds"), rows),
    ]
    return Outcome(
        scores=means(scores),
        results={**to_dict(scores, test), "penalties": [str(penalty) for penalty in penalties]},
        tables=tables,
        title=f"Choosing a member of an ensemble: {settings.name}",
        sections=[Section("Losses", _TEXT, tables)],
        provenance={"fingerprint": opened.index.fingerprint},
    )


def make_folds(settings: Settings, qids: Sequence[str]) -> list[Fold]:
    """The folds of all repetitions; in each, the other folds go alternately to the ensemble and to the chooser."""
    folds = []
    for repetition in range(settings.repetitions):
        parts = split_folds(qids, settings.folds, settings.seed + repetition)
        for number, test in enumerate(parts):
            others = parts[number + 1 :] + parts[:number]
            halves = ([qid for part in others[first::2] for qid in part] for first in (0, 1))
            folds.append(Fold(tuple(test), *map(tuple, halves)))
    return folds


def score_fold(experiment: Experiment, fold: Fold) -> tuple[dict[str, dict[str, float]], float]:
    """The loss of each tested query by system, and the penalty of the chooser."""
    settings, index, titles = experiment.settings, experiment.lists.index, experiment.lists.titles
    learner = Coulomb(settings.M, alpha=settings.alpha, C=settings.C, seed=settings.seed)
    depth, k = settings.depth, settings.k
    stage = CSSVM(experiment.learn(fold.ensemble, learner), index, titles=titles, depth=depth, k=k)
    described, losses = zip(*(member_losses(experiment, stage, qid) for qid in fold.chooser), strict=True)
    chooser = train_chooser(np.array(described), np.array(losses), k=k, queries=fold.chooser)
    best = int(np.argmin(chooser.mean_losses))
    single = {
        name: SVMDiv(experiment.learn(qids, CuttingPlane(C=settings.C)), index, titles=titles, depth=depth, k=k)
        for name, qids in ((SVMDIV, fold.ensemble), (SVMDIV_ALL, fold.ensemble + fold.chooser))
    }
    stages = {CHOSEN: ChosenMember(stage, chooser), FUSED: stage, **single}
    found: dict[str, dict[str, float]] = {name: {} for name in SYSTEMS}
    for qid in fold.test:
        _, own = member_losses(experiment, stage, qid)
        by_system = {BEST: own[best], MEAN: float(np.mean(own)), ORACLE: min(own)}
        by_system |= {name: experiment.loss(qid, make(experiment.rankings[qid])) for name, make in stages.items()}
        for name in SYSTEMS:
            found[name][qid] = by_system[name]
    return found, chooser.penalty


def member_losses(experiment: Experiment, stage: CSSVM, qid: str) -> tuple[FloatArray, list[float]]:
    """The features and the losses of the members on one query."""
    ranking = experiment.rankings[qid]
    members = stage.member_rankings(ranking)
    features = member_features(ranking, members, stage.index, experiment.settings.k)
    return features, [experiment.loss(qid, member) for member in members]


def mean_losses(folds: Sequence[Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """The mean of each query's losses over the folds that test it, by system."""
    qids = list(dict.fromkeys(qid for fold in folds for qid in fold[CHOSEN]))
    return {
        name: {qid: float(np.mean([fold[name][qid] for fold in folds if qid in fold[name]])) for qid in qids}
        for name in SYSTEMS
    }


STUDY = Study(Settings, open_candidates, run)
