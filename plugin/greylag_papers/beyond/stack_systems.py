"""The systems of the study of the stack, learned in one fold from its training queries alone.

After the stack come MMR, SVM-div, and from given aspects xQuAD and PM-2. Their weight of relevance is chosen on the
training queries; SVM-div learns it, as the weight of the relevance score beside those of words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from greylag import ParameterError, Ranking, Run
from greylag.diversity import MMR, PM2, PRESETS, CandidateMaker, DiversityStage, SVMDiv, XQuAD, train, training_examples
from greylag.errors import DependencyError
from greylag.evaluation import Scores, evaluate, evaluate_by_subtopic, split_folds
from greylag.experiments import config
from greylag.features import EXPANSION
from greylag.fusion import FUSIONS
from greylag.index import PositionalIndex
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.lambdamart import LambdaMART
from greylag.ltr.learner import Learner
from greylag.ltr.linear import LinearModel
from greylag.ltr.stack import StackCandidates, TunedRM3
from greylag.ltr.training import useful_features
from greylag.manifold import ManifoldRanker
from greylag.ranking import FloatArray
from greylag.structured import CuttingPlane
from greylag.trec import SubtopicQrels

BM25, RM3, SELECTED, EXPANDED = "BM25 tuned", "RM3 tuned", "MRF-FS", "MRF-FS expansion"
SINGLE = (BM25, RM3, SELECTED, EXPANDED)
AFTER = "manifold after "
STACK, ASCENT, TREES = "stack", "stack, coordinate ascent", "stack, LambdaMART"
FUSED = {"rrf": "RRF of all", "combsum": "CombSUM of all", "combmnz": "CombMNZ of all"}
WITHOUT, WITH = "stack without ", "RM3 with "
FIVE = 5  # features; the rule of Metzler (2007)


@dataclass(frozen=True)
class Collected:
    """What the folds share."""

    candidates: StackCandidates  # those of the queries with a relevant document
    alphas: Sequence[float]  # the values to choose from, for manifold ranking after a system
    restarts: int  # of coordinate ascent

    @property
    def n_jobs(self) -> int | None:
        """The number of workers."""
        return self.candidates.n_jobs


@dataclass(frozen=True)
class Fold:
    """What one fold learned."""

    tuned: TunedRM3
    model: LinearModel  # the stack
    # all queries; those of training are ranked by what was learned from them
    rankings: dict[str, dict[str, Ranking]] = field(default_factory=dict)
    # what else was chosen on the training queries: alphas of manifold ranking, weights of diversifiers
    chosen: dict[str, float] = field(default_factory=dict)


def learn(shared: Collected, training: Sequence[str]) -> Fold:
    """Learn every system on the queries `training`, and rank all queries by each."""
    candidates, n_jobs = shared.candidates, shared.n_jobs
    recipe, tuned = candidates.recipe, candidates.tune(training)
    data, rows = candidates.data(tuned), candidates.training(tuned, training)
    groups = {name: list(map(str, part)) for name, part in recipe.features(tuned).items()}
    fold = Fold(tuned, candidates.fit_tuned(tuned, rows, n_jobs=n_jobs))
    rule = GreedySelection(recipe.measure, max_features=FIVE)
    ascent = CoordinateAscent(recipe.measure, restarts=shared.restarts, seed=recipe.seed)
    columns = [data.names.index(str(feature)) for feature in fold.model.features]
    scores: dict[str, FloatArray] = {
        BM25: data.features[:, data.names.index(f"stage:{tuned.bm25}")],
        RM3: data.features[:, data.names.index(f"stage:{tuned.rm3}")],
        SELECTED: fitted(data, rows, groups["MRF"], rule, n_jobs),
        EXPANDED: fitted(data, rows, [*groups["MRF"], *map(str, EXPANSION)], rule, n_jobs),
        STACK: linear_scores(data, columns, np.array(fold.model.weights)),
        ASCENT: fitted(data, rows, data.names, ascent, n_jobs),
    }
    if (trees := lambdamart(data, rows, LambdaMART(recipe.measure, seed=recipe.seed))) is not None:
        scores[TREES] = trees
    for system, features in ablations(groups, tuned).items():
        prior = f"stage:{tuned.rm3}" if f"stage:{tuned.rm3}" in features else f"stage:{tuned.bm25}"
        scores[system] = fitted(data, rows, features, recipe.learner(prior), n_jobs)
    fold.rankings.update({system: ranked(data, candidates.rankings, values) for system, values in scores.items()})
    for system in SINGLE:
        spread(shared, fold, system, rows.qids)
    single = [fold.rankings[system] for system in (*SINGLE, *(f"{AFTER}{system}" for system in SINGLE))]
    for method, name in FUSED.items():
        fold.rankings[name] = {qid: FUSIONS[method]([run[qid] for run in single]) for qid in data.qids}
    return fold


def ablations(groups: Mapping[str, Sequence[str]], tuned: TunedRM3) -> dict[str, list[str]]:
    """The candidates of the stack without each part, and of RM3 with it.

    Without expansion, there is no manifold ranking after RM3 either, and tuned BM25 is the prior.
    """
    rm3, found = f"stage:{tuned.rm3}", {}
    for name, part in groups.items():
        others = [feature for other, features in groups.items() if other != name for feature in features]
        found[f"{WITHOUT}{name}"] = [f for f in others if name != "expansion" or tuned.rm3 not in f]
        found[f"{WITH}{name}"] = list(dict.fromkeys((rm3, *part)))
    return found


def fitted(
    data: RankingData, rows: RankingData, features: Sequence[str], learner: Learner, n_jobs: int | None
) -> FloatArray:
    """Scores of all of `data` by a learner that sees only `rows`, and only these features."""
    useful, _ = useful_features(rows.select_features([rows.names.index(name) for name in features]))
    found = learner.fit(useful, n_jobs=n_jobs)
    columns = [data.names.index(useful.names[column]) for column in found.columns]
    return linear_scores(data, columns, np.array(found.weights))


def lambdamart(data: RankingData, rows: RankingData, learner: LambdaMART) -> FloatArray | None:
    """Scores by LambdaMART; None if LightGBM is not installed."""
    try:
        return learner.grow(rows).scores(data.features)
    except DependencyError:
        return None


def ranked(data: RankingData, rankings: Sequence[Ranking], scores: FloatArray) -> dict[str, Ranking]:
    """The documents of each query by scores, shape (n,)."""
    if len(data.docids) != sum(map(len, rankings)):
        raise ParameterError("some candidates are not in the index: a given run must be of this collection")
    texts = {ranking.qid: ranking.query for ranking in rankings}
    spans = zip(data.qids, data.offsets[:-1], data.offsets[1:], strict=True)
    return {qid: Ranking.sort(qid, texts[qid], data.docids[first:end], scores[first:end]) for qid, first, end in spans}


def spread(shared: Collected, fold: Fold, system: str, training: Sequence[str]) -> None:
    """Add manifold ranking after a system, with the alpha that is best on the training queries."""
    first, best = list(fold.rankings[system].values()), -np.inf
    for alpha in shared.alphas:
        run = ManifoldRanker(shared.candidates.index, alpha=alpha).run(first, n_jobs=shared.n_jobs, tag=system)
        value = mean_measure(shared, {qid: run[qid] for qid in training})
        if value > best:
            best, fold.chosen[f"alpha after {system}"] = value, alpha
            fold.rankings[f"{AFTER}{system}"] = dict(run)


def mean_measure(shared: Collected, rankings: Mapping[str, Ranking]) -> float:
    """The mean of the objective over queries with a relevant document."""
    candidates = shared.candidates
    qrels = {qid: dict(candidates.qrels[qid]) for qid in rankings}
    found = evaluate(Run(tuple(rankings.values()), "training"), qrels, [str(candidates.recipe.measure)])
    return float(found.means[0])


DIVERSIFIED = f"{STACK}, then "
FEATURES = replace(PRESETS["svmdiv2"], document_features=("score",))
VALIDATION = 3  # one of as many parts of the training queries chooses C


class Diversify(config.Settings):
    """Diversity after the stack, with the weight of relevance chosen on training queries."""

    subtopic_qrels: str
    """Path of the judgements."""
    aspects: str | None = None
    """Path of given aspects, for xQuAD and PM-2."""
    weights: Annotated[tuple[float, ...], Field(min_length=1)] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """The weights of relevance (of one aspect for PM-2) to choose from."""
    measure: config.MeasureName = "alpha-nDCG@10"
    """What the weight is chosen by."""
    set_size: config.Positive = 5
    """Size of the sets that SVM-div is trained to pick."""
    depth: config.Positive = 100
    """The candidates: the top documents."""
    k: config.Positive = 20
    """The number of candidates to pick."""


@dataclass(frozen=True)
class Diversifiers:
    """The diversifiers, and what they are learned from."""

    option: Diversify
    subtopics: SubtopicQrels
    aspects: Mapping[str, Any]  # by qid; none are given if it is empty
    index: PositionalIndex
    seed: int  # of the split of training queries that chooses C

    def add(self, fold: Fold, training: Sequence[str]) -> None:
        """Add the diversifiers after the stack to a fold, all of them learned on the queries `training`."""
        first, measure = list(fold.rankings[STACK].values()), self.option.measure
        known = {qid: self.subtopics[qid] for qid in training if qid in self.subtopics}
        for name, tried in self.weighted().items():
            runs = [stage.run(first, tag=name) for stage in tried]
            values = [float(evaluate_by_subtopic(run, known, [measure]).means[0]) for run in runs]
            best = values.index(max(values))
            fold.rankings[f"{DIVERSIFIED}{name}"] = dict(runs[best])
            fold.chosen[f"weight of {name}"] = self.option.weights[best]
        learned = self.learned(fold.rankings[STACK], known)
        fold.rankings[f"{DIVERSIFIED}SVM-div"] = dict(learned.run(first, tag="SVM-div"))

    def weighted(self) -> dict[str, list[DiversityStage]]:
        """The diversifiers that have a weight, with each of the weights."""
        index, weights, depth, k = self.index, self.option.weights, self.option.depth, self.option.k
        stages: dict[str, list[DiversityStage]] = {
            "MMR": [MMR(index, relevance_weight=weight, depth=depth, k=k) for weight in weights]
        }
        if self.aspects:
            stages["xQuAD"] = [
                XQuAD(index, self.aspects, relevance_weight=weight, depth=depth, k=k) for weight in weights
            ]
            stages["PM-2"] = [PM2(index, self.aspects, aspect_weight=weight, depth=depth, k=k) for weight in weights]
        return stages

    def learned(self, first: Mapping[str, Ranking], known: SubtopicQrels) -> SVMDiv:
        """SVM-div, trained on rankings of the queries `known`."""
        option, make = self.option, CandidateMaker(self.index, FEATURES, depth=self.option.depth)
        held_out = split_folds(list(known), VALIDATION, self.seed)[0]
        examples = [
            training_examples([first[qid] for qid in qids], known, make)
            for qids in ([qid for qid in known if qid not in held_out], held_out)
        ]
        model = train(examples[0], make, CuttingPlane(), k=option.set_size, validation=examples[1])
        return SVMDiv(model, self.index, k=option.k)

    def scores(self, runs: Mapping[str, Run]) -> dict[str, Scores]:
        """The scores by subtopic of BM25, the stack, and what follows the stack, on the topics that they rank."""
        shown = ["BM25", STACK, *(system for system in runs if system.startswith(DIVERSIFIED))]
        known = {qid: self.subtopics[qid] for qid in runs[STACK] if qid in self.subtopics}
        return {system: evaluate_by_subtopic(runs[system], known, [self.option.measure]) for system in shown}
