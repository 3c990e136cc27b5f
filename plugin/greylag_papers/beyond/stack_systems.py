"""The systems of the study of the stack, learned in one fold from its training queries alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from greylag.errors import ParameterError
from greylag.evaluation import evaluate
from greylag.features.spec import EXPANSION
from greylag.fusion import FUSIONS
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.learner import Learner
from greylag.ltr.linear import LinearModel
from greylag.ltr.stack import StackCandidates, TunedRM3
from greylag.ltr.training import useful_features
from greylag.manifold.stage import ManifoldRanker
from greylag.ranking import FloatArray, Ranking, Run

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
    if (trees := lambdamart(data, rows, recipe.seed)) is not None:
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
        others = [feature for other, own in groups.items() if other != name for feature in own]
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


def lambdamart(data: RankingData, rows: RankingData, seed: int) -> FloatArray | None:
    """Scores by LightGBM's LambdaMART, with small trees; None if LightGBM is not installed."""
    try:
        from lightgbm import LGBMRanker
    except ImportError:
        return None
    trees = LGBMRanker(
        objective="lambdarank", n_estimators=200, learning_rate=0.05, num_leaves=15, min_child_samples=20,
        random_state=seed, n_jobs=1, deterministic=True, force_row_wise=True, verbose=-1,
    )  # fmt: skip
    trees.fit(rows.features, np.maximum(rows.grades, 0), group=np.diff(rows.offsets))
    return np.asarray(trees.predict(data.features, validate_features=False), dtype=np.float64)


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
