"""The systems of the study of the stack, learned in one fold from its training queries alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from greylag.errors import ParameterError
from greylag.features.spec import EXPANSION
from greylag.fusion import FUSIONS
from greylag.index.positional import PositionalIndex
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.data import RankingData, linear_scores
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.learner import Learner
from greylag.ltr.linear import LinearModel
from greylag.ltr.stack import StackRecipe, Tuned, select, stack_data, training_rows, tune_rm3
from greylag.ltr.training import useful_features
from greylag.manifold.stage import ManifoldRanker
from greylag.ranking import FloatArray, Ranking, run_step
from greylag.trec import Qrels

BM25, RM3, SELECTED, EXPANDED = "BM25 tuned", "RM3 tuned", "MRF-FS", "MRF-FS expansion"
SINGLE = (BM25, RM3, SELECTED, EXPANDED)
AFTER = "manifold after "
STACK, ASCENT, TREES = "stack", "stack, coordinate ascent", "stack, LambdaMART"
FUSED = {"rrf": "RRF of all", "combsum": "CombSUM of all", "combmnz": "CombMNZ of all"}
FIVE = 5  # features; the rule of Metzler (2007)


@dataclass(frozen=True)
class Collected:
    """What the folds share: the candidates of the queries with a relevant document, and how systems are learned."""

    recipe: StackRecipe
    rankings: tuple[Ranking, ...]
    qrels: Qrels
    index: PositionalIndex
    alphas: Sequence[float]
    restarts: int
    n_jobs: int | None = None


@dataclass
class Fold:
    """What one fold learned.

    Parameters
    ----------
    tuned : Tuned
    model : LinearModel
        The stack.
    rankings : dict of system to dict of qid to Ranking
        All queries; those of training are ranked by what was learned from them.
    alphas : dict of system to float
        Of manifold ranking after it.
    """

    tuned: Tuned
    model: LinearModel
    rankings: dict[str, dict[str, Ranking]] = field(default_factory=dict)
    alphas: dict[str, float] = field(default_factory=dict)


def learn(shared: Collected, training: Sequence[str]) -> Fold:
    """Learn every system on the queries `training`, and rank all queries by each."""
    recipe, index = shared.recipe, shared.index
    own = [ranking for ranking in shared.rankings if ranking.qid in set(training)]
    tuned = tune_rm3(recipe, own, shared.qrels, index, n_jobs=shared.n_jobs)
    data = stack_data(recipe, tuned, shared.rankings, shared.qrels, index)
    rows = training_rows(recipe, tuned, data.select_queries(training))
    groups = {name: tuple(map(str, part)) for name, part in recipe.features(tuned).items()}
    fold = Fold(tuned, select(recipe, rows, {}, n_jobs=shared.n_jobs))
    rule = GreedySelection(recipe.measure, max_features=FIVE)
    ascent = CoordinateAscent(recipe.measure, restarts=shared.restarts, seed=recipe.seed)
    scores: dict[str, FloatArray] = {
        BM25: data.features[:, data.names.index("FI/term/BM25")],
        RM3: data.features[:, data.names.index(f"stage:{tuned.rm3}")],
        SELECTED: fitted(data, rows, groups["MRF"], rule, shared.n_jobs),
        EXPANDED: fitted(data, rows, (*groups["MRF"], *map(str, EXPANSION)), rule, shared.n_jobs),
        STACK: linear_scores(
            data, [data.names.index(str(f)) for f in fold.model.features], np.array(fold.model.weights)
        ),
        ASCENT: fitted(data, rows, data.names, ascent, shared.n_jobs),
    }
    if (trees := lambdamart(data, rows, recipe.seed)) is not None:
        scores[TREES] = trees
    learner = replace(rule, max_features=max(1, len(fold.model.features)))
    for name, part in groups.items():
        others = [feature for feature in data.names if feature not in part]
        scores[f"stack without {name}"] = fitted(data, rows, others, learner, shared.n_jobs)
        added = (f"stage:{tuned.rm3}", *part)
        scores[f"RM3 with {name}"] = fitted(data, rows, tuple(dict.fromkeys(added)), learner, shared.n_jobs)
    fold.rankings = {system: ranked(data, shared.rankings, values) for system, values in scores.items()}
    for system in SINGLE:
        spread(shared, fold, system, rows)
    single = [fold.rankings[system] for system in (*SINGLE, *(f"{AFTER}{system}" for system in SINGLE))]
    for method, name in FUSED.items():
        fold.rankings[name] = {qid: FUSIONS[method]([run[qid] for run in single]) for qid in data.qids}
    return fold


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


def spread(shared: Collected, fold: Fold, system: str, rows: RankingData) -> None:
    """Add manifold ranking after a system, with the alpha that is best on the training queries."""
    first, best = fold.rankings[system], -np.inf
    for alpha in shared.alphas:
        stage = ManifoldRanker(shared.index, alpha=alpha)
        run = run_step(stage, list(first.values()), n_jobs=shared.n_jobs, tag=system)
        value = mean_measure(shared, {qid: run[qid] for qid in rows.qids})
        if value > best:
            best, fold.alphas[system] = value, alpha
            fold.rankings[f"{AFTER}{system}"] = dict(run)


def mean_measure(shared: Collected, rankings: Mapping[str, Ranking]) -> float:
    """The mean of the objective over queries with a relevant document."""
    from greylag.evaluation import Scores, evaluate
    from greylag.ranking import Run

    qrels = {qid: shared.qrels[qid] for qid in rankings}
    found: Scores = evaluate(Run(tuple(rankings.values()), "training"), qrels, [str(shared.recipe.measure)])
    return float(found.means[0])
