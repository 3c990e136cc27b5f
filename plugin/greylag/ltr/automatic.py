"""The automatic choice: baselines and learners, cross-validated on training queries, and the best of their averages.

Everything is chosen on the training queries, so that `greylag.cross_validate` of an `AutomaticRecipe` is nested. All
systems weight the same features with the same parameters of weighting, so that their average is a `LinearModel`, too.

To add evidence, give `StackRecipe.features` a group of features. To add a learner, give `candidates` a line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from greylag.errors import ParameterError
from greylag.evaluation import SIGNIFICANCE_LEVEL, Scores, compare, evaluate, parse_measure
from greylag.evaluation.folds import split_folds
from greylag.features.feature import Feature
from greylag.features.spec import Pool, candidate_pool
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex
from greylag.ltr import baselines
from greylag.ltr.baselines import Grid
from greylag.ltr.data import Qrels, RankingData, linear_scores
from greylag.ltr.greedy import GreedyCommittee, GreedySelection
from greylag.ltr.learner import Learner, Selection
from greylag.ltr.linear import LinearModel
from greylag.ltr.listwise import ListwiseRegression
from greylag.ltr.objectives import Objective
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.stack import StackCandidates, StackRecipe, TunedRM3
from greylag.ltr.training import CrossValidation, Recipe, rerank_by_fold, selected_model, useful_features
from greylag.ranking import FloatArray, Run
from greylag.runtime.parallel import parallel_map
from greylag.tables import Marked, Row, Table

BM25 = "BM25"
"""The system that others are compared with, tuned BM25."""
PENALTIES = (1.0, 10.0, 100.0, 1000.0)
"""Of listwise regression, to choose from."""
MANY = 500
"""So many training queries tell the parameters of weighting: of more, as many are looked at, and inner folds share what
all of them tell."""
SEARCHED = 2000
"""Greedy selections, whose line searches take long, learn from at most so many training queries."""


@dataclass(frozen=True)
class Candidate:
    """A system to try: features with fixed weights, or a learner of some features, or of all if none are named."""

    name: str  # up to a comma, that of its family, of which the best one takes part
    features: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()
    learner: Learner | None = None
    most: int | None = None  # queries that it learns from, at equal distances

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> FloatArray:
        """The weights of the columns, shape (f,), for scores with a standard deviation of 1 around query means."""
        named = data.select_features([data.names.index(name) for name in self.features or data.names])
        weights = np.zeros(len(data.specs))
        if self.learner is None:
            columns, found = named.names, self.weights
        else:
            seen = named if self.most is None else named.select_queries(spaced(named.qids, self.most))
            useful, _ = useful_features(seen)
            selection = self.learner.fit(useful, n_jobs=n_jobs)
            columns, found = tuple(useful.names[column] for column in selection.columns), selection.weights
        weights[[data.names.index(name) for name in columns]] = found
        return weights / (_spread(data, weights) or 1.0)

    @property
    def family(self) -> str:
        """The name without what differs within the family."""
        return self.name.partition(",")[0]


def learners(
    objective: Objective, *, folds: int, seed: int, pool: tuple[str, ...] = (), prior: str = ""
) -> list[Candidate]:
    """The learners that are tried, quickest first: of all features, but greedy selection of a pool if one is given."""
    regressions = [
        Candidate(f"listwise, penalty {penalty:g}", learner=ListwiseRegression(objective, penalty=penalty))
        for penalty in PENALTIES
    ]
    committee = GreedyCommittee(objective, folds=folds, seed=seed, prior=prior)
    return [
        *regressions,
        Candidate("greedy", pool, learner=GreedySelection(objective), most=SEARCHED),
        Candidate("stack" if prior else "committee", learner=committee, most=SEARCHED),
    ]


class Tried(NamedTuple):
    """What cross-validation on the training queries found."""

    qids: tuple[str, ...]
    values: Mapping[str, FloatArray]  # the measure of each query when it was held out, by system
    left_out: Mapping[str, str]  # reasons, by system
    chosen: tuple[str, ...]  # the systems whose average is best

    @property
    def best(self) -> str:
        """The name of the choice."""
        return " + ".join(self.chosen)


class View(NamedTuple):
    """What the queries without some fold say: the systems to try, the rows to learn from, and the data of all."""

    candidates: Sequence[Candidate]
    rows: RankingData
    data: RankingData


def choose(
    qids: Sequence[str],
    view: Callable[[Sequence[str]], View],
    objective: Objective,
    *,
    folds: int,
    seed: int,
    seconds: float | None = None,
    n_jobs: int | None = None,
) -> Tried:
    """Cross-validate all candidates and averages of the best ones over the training queries `qids`.

    Of each family of candidates, the best one takes part. Averages are those of the best two, three, ... families by
    their held-out mean, with equal weights. The best one is chosen, of equally good ones the smallest.

    Parameters
    ----------
    qids : sequence of str
        At least two.
    view : callable
        From the training queries of a fold to what is tried on them.
    objective : Objective
    folds, seed : int
        See `split_folds`.
    seconds : float, optional
        Candidates with a `most` that would be begun later than their fold's share of these are left out, in all folds.
    n_jobs : int, optional
        Number of workers; the result does not depend on it.
    """
    parts = split_folds(qids, min(folds, len(qids)), seed)
    begun, left_out = time.time(), dict[str, str]()

    def learn(number: int) -> dict[str, Any]:
        """The weights of each candidate, and the reasons of those that are left out."""
        training, found, failed = _others(qids, parts[number]), dict[str, Any](), dict[str, str]()
        candidates, rows, _ = view(training)
        for candidate in candidates:
            late = seconds is not None and time.time() - begun > seconds * (number + 1) / (len(parts) + 1)
            if candidate.name in left_out or (late and candidate.most is not None):
                failed[candidate.name] = left_out.get(candidate.name, "the time was over")
                continue
            try:
                found[candidate.name] = candidate.fit(rows, n_jobs=n_jobs)
            except ParameterError as error:
                failed[candidate.name] = str(error)
        left_out.update(failed)
        return {"weights": found, "left out": failed}

    results = list(parallel_map(learn, range(len(parts)), what="inner folds", n_jobs=n_jobs, coarse=True))
    for result in results:
        left_out.update(result["left out"])
    weights = [
        {name: of_one for name, of_one in result["weights"].items() if name not in left_out} for result in results
    ]

    def held_out(systems: Mapping[str, Sequence[str]]) -> dict[str, FloatArray]:
        """The measure of each query by averages of candidates."""
        values = {name: np.empty(len(qids)) for name in systems}
        for part, of_fold in zip(parts, weights, strict=True):
            data = view(_others(qids, part)).data.select_queries(part)
            rows = [list(qids).index(qid) for qid in part]
            for name, members in systems.items():
                total = np.sum([of_fold[member] for member in members], axis=0)
                values[name][rows] = objective.evaluate(data, linear_scores(data, range(len(total)), total))
        return values

    singles = {name: (name,) for name in weights[0]}
    if not singles:
        raise ParameterError(f"nothing could be learned: {'; '.join(dict.fromkeys(left_out.values()))}")
    values = held_out(singles)
    families: dict[str, str] = {}
    for name in sorted(values, key=lambda name: -values[name].mean()):
        families.setdefault(name.partition(",")[0], name)
    order = tuple(families.values())
    averages = {" + ".join(order[:size]): order[:size] for size in range(2, len(order) + 1)}
    values |= held_out(averages)
    best = max([order[:1], *averages.values()], key=lambda members: round(values[" + ".join(members)].mean(), 12))
    return Tried(tuple(qids), values, left_out, best)


def spaced(qids: Sequence[str], most: int) -> list[str]:
    """At most so many of the queries, at equal distances."""
    places = np.linspace(0, len(qids) - 1, min(most, len(qids))).round().astype(int)
    return [qids[place] for place in places]


def _others(qids: Sequence[str], part: Sequence[str]) -> tuple[str, ...]:
    held = frozenset(part)
    return tuple(qid for qid in qids if qid not in held)


def _spread(data: RankingData, weights: FloatArray) -> float:
    """The standard deviation of scores around their query means."""
    scores = linear_scores(data, range(len(weights)), weights)
    for first, end in zip(data.offsets[:-1], data.offsets[1:], strict=True):
        if end > first:
            scores[first:end] -= scores[first:end].mean()
    return float(scores.std())


def average(
    tried: Tried, candidates: Sequence[Candidate], rows: RankingData, objective: Objective, n_jobs: int | None
) -> Selection:
    """The average of the chosen candidates, learned on all training queries; largest spread of scores first."""
    chosen = [candidate for candidate in candidates if candidate.name in tried.chosen]
    weights = np.sum([candidate.fit(rows, n_jobs=n_jobs) for candidate in chosen], axis=0) / len(chosen)
    spreads = [_spread(rows.select_features([column]), weights[[column]]) for column in range(len(weights))]
    columns = [int(column) for column in np.argsort(-np.array(spreads), kind="stable") if weights[column]]
    value = float(objective.evaluate(rows, linear_scores(rows, columns, weights[columns])).mean())
    return Selection(tuple(columns), (tuple(weights[columns].tolist()),), (value,))


@dataclass(frozen=True)
class Automatic:
    """The learner that is best on held-out training queries, or an average of the best ones.

    Parameters
    ----------
    objective : Objective or str
        The measure to maximise.
    folds : int >= 2, default 5
        The number of folds of the cross-validation that chooses, at most the number of queries.
    seed : int >= 0, default 0
        The seed of the assignment of queries to folds.
    """

    objective: Objective | str
    _: KW_ONLY
    folds: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        if self.folds < 2:
            raise ParameterError(f"folds is {self.folds}; it must be at least 2")

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Choose on `data`; the result does not depend on `n_jobs`."""
        objective = Objective.parse(self.objective)
        candidates = learners(objective, folds=self.folds, seed=self.seed)
        tried = choose(
            data.qids, lambda qids: View(candidates, data.select_queries(qids), data), objective,
            folds=self.folds, seed=self.seed, n_jobs=n_jobs,
        )  # fmt: skip
        return average(tried, candidates, data, objective, n_jobs)


@dataclass(frozen=True)
class AutomaticRecipe(Recipe):
    """The best that greylag can do with the topics at hand: tuned baselines, learned models, or an average of these.

    In cross-validation over the training queries, the parameters of BM25, query likelihood and RM3 are tuned, and the
    weights of all features of a `StackRecipe` are learned by several learners. The choice is that of `choose`, and is
    learned again on all training queries.

    Parameters
    ----------
    objective : Objective or str, default "AP"
        The measure to maximise.
    pool, more, grid, depth, seed
        As in `StackRecipe`.
    folds : int >= 2, default 5
        The number of folds of the cross-validation that chooses, at most the number of queries.
    seconds : float, optional
        The time after which no more learners are tried. The choice then depends on the machine; the model's provenance
        tells what was left out. Baselines and listwise regressions are always tried, since they take less than their
        features; then greedy selection of MRF features, and the stack.

    Examples
    --------
    >>> AutomaticRecipe("nDCG@10").fit(candidates, qrels, index).save("model.json")  # doctest: +SKIP
    """

    objective: Objective | str = "AP"
    _: KW_ONLY
    pool: Pool = "sd"
    more: tuple[Feature, ...] = ()
    grid: Grid = None  # type: ignore[assignment]
    depth: int = 200
    folds: int = 5
    seed: int = 0
    seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Automatic(self.objective, folds=self.folds, seed=self.seed).objective)
        object.__setattr__(self, "grid", self.stack.grid)

    @property
    def measure(self) -> Objective:
        """The objective."""
        return Objective.parse(self.objective)

    @property
    def stack(self) -> StackRecipe:
        """Where the features come from."""
        return StackRecipe(
            self.objective, pool=self.pool, more=self.more, grid=self.grid, depth=self.depth,
            inner_folds=self.folds, seed=self.seed,
        )  # fmt: skip

    def prepare(
        self, rankings: Run, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> PreparedChoice:
        """The judged rankings; features are computed when the first fold has chosen their parameters."""
        return PreparedChoice(self, self.stack.prepare(rankings, qrels, index, n_jobs=n_jobs))

    def candidates(self, tuned: TunedRM3) -> list[Candidate]:
        """The systems to try, in the order in which the time may end."""
        bm25, rm3 = f"stage:{tuned.bm25}", f"stage:{tuned.rm3}"
        sdm = baselines.SDM
        pool = tuple(map(str, candidate_pool(self.pool)))
        return [
            Candidate(BM25, (bm25,), (1.0,)),
            Candidate("QL", ("FI/term/LM",), (1.0,)),
            Candidate("SDM", tuple(map(str, sdm.features)), sdm.weights),
            Candidate("RM3", (rm3,), (1.0,)),
            *learners(self.measure, folds=self.folds, seed=self.seed, pool=pool, prior=rm3),
        ]


@dataclass(frozen=True, eq=False)
class PreparedChoice:
    """An `AutomaticRecipe` and its features; what does not depend on the training queries is computed once."""

    recipe: AutomaticRecipe
    stack: StackCandidates
    _tuned: dict[tuple[str, ...], TunedRM3] = field(init=False, repr=False, default_factory=dict)

    def fit(self, qids: Sequence[str], *, n_jobs: int | None = None) -> LinearModel:
        """The choice for these training queries."""
        recipe, given = self.recipe, frozenset(qids)
        judged = tuple(ranking.qid for ranking in self.stack.rankings if ranking.qid in given)
        if len(judged) < 2:
            raise ParameterError(
                f"the automatic choice needs two topics with a relevant document, not {len(judged)}: force one with "
                "--model rm3, or tune nothing with greylag search"
            )
        shared = judged if len(judged) > MANY else None

        def view(training: Sequence[str]) -> View:
            tuned = self._tune(shared or tuple(training))
            return View(recipe.candidates(tuned), self.stack.training(tuned, training), self.stack.data(tuned))

        tried = choose(
            judged, view, recipe.measure, folds=recipe.folds, seed=recipe.seed, seconds=recipe.seconds, n_jobs=n_jobs
        )
        candidates, rows, _ = view(judged)
        selection = average(tried, candidates, rows, recipe.measure, n_jobs)
        baseline = {c.name: c.features[0] for c in candidates if c.name in (BM25, "RM3")}
        made = {"set_aside": [], "baselines": baseline, "choice": outline(tried, recipe.measure)}
        learner = Automatic(recipe.objective, folds=recipe.folds, seed=recipe.seed)
        return selected_model(selection, rows, learner, made)

    def _tune(self, qids: tuple[str, ...]) -> TunedRM3:
        """The parameters of weighting that are best for these queries, or for `MANY` of them at equal distances."""
        if qids not in self._tuned:
            self._tuned[qids] = self.stack.tune(spaced(qids, MANY))
        return self._tuned[qids]


def outline(tried: Tried, objective: Objective) -> dict[str, Any]:
    """What was tried and chosen, as it stands in a model's provenance: means, and differences from the first system."""
    measure, (first, *_) = parse_measure(str(objective)), tried.values
    shown = [*dict.fromkeys([*_best_of_families(tried), tried.best])]
    scores = {
        name: Scores.single(measure, dict(zip(tried.qids, tried.values[name].tolist(), strict=True))) for name in shown
    }
    found: dict[str, Any] = {name: {"mean": float(of_one.means[0])} for name, of_one in scores.items()}
    for one in compare(scores, first).comparisons if len(scores) > 1 else ():
        found[one.run] |= {"difference": one.difference, "interval": list(one.interval), "p": one.p}
    return {"queries": len(tried.qids), "tried": found, "left_out": dict(tried.left_out), "chosen": tried.best}


def _best_of_families(tried: Tried) -> list[str]:
    best: dict[str, str] = {}
    for name, values in tried.values.items():
        family = name.partition(",")[0]
        if " + " not in name and (family not in best or values.mean() > tried.values[best[family]].mean()):
            best[family] = name
    return list(best.values())


def choice_table(model: LinearModel) -> Table:
    """The table of what was tried, the choice marked."""
    choice = model.provenance["choice"]
    first = next(iter(choice["tried"]))
    rows: list[Row] = [
        (
            f"> {name}" if name == choice["chosen"] else f"  {name}",
            one["mean"],
            *(
                (Marked(x, "+.4f") for x in (one["difference"], *one["interval"]))
                if "difference" in one
                else 3 * (None,)
            ),
        )
        for name, one in choice["tried"].items()
    ]
    caption = f"Cross-validated on {choice['queries']} training topics (>: the choice; low, high: 95 % interval)"
    return Table(caption, ("", model.objective, f"less {first}", "low", "high"), rows)


def held_out_baselines(
    held_out: CrossValidation, first: Run, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
) -> dict[str, Scores]:
    """The scores of the baselines that each fold tuned on its training queries."""
    scores = {}
    for name in held_out.models[0].provenance["baselines"]:
        stages = [
            MRFRanker(
                replace(model, features=(parse_feature(model.provenance["baselines"][name]),), weights=(1.0,)), index
            )
            for model in held_out.models
        ]
        run = rerank_by_fold(stages, held_out.folds, first, n_jobs=n_jobs)
        scores[f"tuned {name}"] = evaluate(
            run, {qid: dict(qrels[qid]) for qid in qrels}, [held_out.models[0].objective]
        )
    return scores


def conclusion(model: LinearModel, scores: Mapping[str, Scores]) -> str:
    """How much better the choice is than tuned BM25, in a sentence to quote: by held-out `scores` if there are any."""
    choice, baseline = model.provenance["choice"], f"tuned {BM25}"
    if scores:
        (one,) = compare({name: scores[name] for name in (baseline, "held out")}, baseline).comparisons
        mean, queries = float(scores["held out"].means[0]), len(scores["held out"].qids)
        found = {"mean": mean, "difference": one.difference, "interval": one.interval, "p": one.p}
        return sentence("The automatic choice", baseline, model.objective, found, queries, "each held out")
    found = choice["tried"][choice["chosen"]]
    if "difference" not in found:
        return f"The choice is {baseline}: on {choice['queries']} topics, nothing else was better."
    how = "in the cross-validation that chose it; --folds holds topics out"
    return sentence(choice["chosen"], baseline, model.objective, found, choice["queries"], how)


def sentence(name: str, baseline: str, measure: str, one: Mapping[str, Any], queries: int, how: str) -> str:
    """By how much a system is better than a baseline, how sure that is, and over what."""
    low, high = one["interval"]
    verdict = "is not better than"
    if one["difference"] > 0:
        verdict = "is better than" if one["p"] < SIGNIFICANCE_LEVEL else "is not significantly better than"
    p = "<0.001" if one["p"] < 0.001 else f"{one['p']:.3f}"
    return (
        f"{name} {verdict} {baseline}: {measure} {one['mean']:.4f}, {one['difference']:+.4f} "
        f"(95 % interval {low:+.4f} to {high:+.4f}, p {p}),\non {queries} topics, {how}."
    )
