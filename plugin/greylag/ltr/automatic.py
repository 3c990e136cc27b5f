"""The automatic choice: baselines and learners, cross-validated on training queries, and the best of their averages.

Everything is chosen on the training queries, so that `greylag.cross_validate` of an `AutomaticRecipe` is nested. All
systems weight the same features with the same parameters of weighting, so that their average is a `LinearModel`, too.

To add evidence, give `StackRecipe.features` a group of features. To add a learner, give `candidates` a line.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from greylag.errors import ParameterError
from greylag.evaluation import SIGNIFICANCE_LEVEL, Scores, compare, evaluate, parse_measure
from greylag.evaluation.folds import split_folds
from greylag.features.feature import Feature
from greylag.features.spec import Pool, candidate_pool
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex
from greylag.ltr import baselines
from greylag.ltr.baselines import Grid
from greylag.ltr.choice import Candidate, Tried, View, average, choose, learners
from greylag.ltr.data import Qrels, RankingData
from greylag.ltr.learner import Selection
from greylag.ltr.linear import LinearModel
from greylag.ltr.objectives import Objective
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.stack import MANY, StackCandidates, StackRecipe, TunedRM3
from greylag.ltr.training import CrossValidation, Recipe, rerank_by_fold, selected_model
from greylag.ltr.translation import FoldTranslations, Translation
from greylag.ranking import Run
from greylag.tables import Marked, Row, Table

BM25 = "BM25"
"""The system that others are compared with, tuned BM25."""
DOCUMENT = tuple(map(parse_feature, ("document:length", "document:entropy", "document:common")))
"""The priors that are features."""


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
        return self.choose(data, n_jobs=n_jobs)[0]

    def choose(self, data: RankingData, *, n_jobs: int | None = None) -> tuple[Selection, Tried]:
        """As `fit`, and what was tried."""
        objective = Objective.parse(self.objective)
        candidates = learners(objective, folds=self.folds, seed=self.seed)
        tried = choose(
            data.qids, lambda qids: View(candidates, data.select_queries(qids), data.select_queries), objective,
            folds=self.folds, seed=self.seed, n_jobs=n_jobs,
        )  # fmt: skip
        return average(tried, candidates, data, objective, n_jobs), tried


@dataclass(frozen=True)
class AutomaticRecipe(Recipe):
    """The best that greylag can do with the topics at hand: tuned baselines, learned models, or an average of these.

    In cross-validation over the training queries, the parameters of BM25, query likelihood and RM3 are tuned, and the
    weights of all features of a `StackRecipe` are learned by several learners. The choice is that of `choose`, and is
    learned again on all training queries. With more than 500 queries, the folds of the choice share parameters that are
    tuned once, on at most 2,000 queries, and systems are compared on the `depth` documents of each query that a stack
    is trained on.

    Parameters
    ----------
    objective : Objective or str, default "AP"
        The measure to maximise.
    pool, more, grid, depth, seed
        As in `StackRecipe`.
    folds : int >= 2, default 5
        The number of folds of the cross-validation that chooses, at most the number of queries.
    translate : bool, default True
        Whether `greylag.ltr.translation.Translation`, learned from the training queries, is one more feature.
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
    translate: bool = True
    seconds: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Automatic(self.objective, folds=self.folds, seed=self.seed).objective)
        object.__setattr__(self, "grid", self.stack.grid)

    @property
    def stack(self) -> StackRecipe:
        """Where the features come from."""
        more = tuple(dict.fromkeys((*DOCUMENT, *self.more)))
        return StackRecipe(
            self.objective, pool=self.pool, more=more, grid=self.grid, depth=self.depth, inner_folds=self.folds,
            seed=self.seed,
        )  # fmt: skip

    def prepare(
        self, rankings: Run, qrels: Qrels, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> PreparedChoice:
        """The judged rankings; features are computed when the first fold has chosen their parameters."""
        return PreparedChoice(self, self.stack.prepare(rankings, qrels, index, n_jobs=n_jobs))

    def candidates(self, tuned: TunedRM3, names: Sequence[str]) -> list[Candidate]:
        """The systems to try on features of these names, in the order in which the time may end."""
        bm25, rm3 = f"stage:{tuned.bm25}", f"stage:{tuned.rm3}"
        sdm = Candidate("SDM", tuple(map(str, baselines.SDM.features)), baselines.SDM.weights)
        pool = (*map(str, candidate_pool(self.pool)), *(name for name in names if name.startswith(Translation.kind)))
        return [
            Candidate(BM25, (bm25,), (1.0,)),
            Candidate("QL", ("FI/term/LM",), (1.0,)),
            *([sdm] if set(sdm.features) <= set(names) else []),  # not those of --pool fd
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
        shared = judged if len(judged) > MANY else None  # with so many, leaving a fold out hardly changes them
        parts = split_folds(judged, min(recipe.folds, len(judged)), recipe.seed)
        translations = FoldTranslations(self.stack.index, self.stack.rankings, self.stack.qrels, parts)

        def view(training: Sequence[str]) -> View:
            tuned = self._tune(shared or tuple(training))

            def complete(data: RankingData) -> RankingData:
                return translations.add(data, training, tuned.parameters.mu) if recipe.translate else data

            rows = complete(self.stack.training(tuned, training))
            candidates = recipe.candidates(tuned, rows.names)
            return View(candidates, rows, lambda qids: complete(self.stack.data(tuned).select_queries(qids)))

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
        """The parameters of weighting that are best for these queries."""
        if qids not in self._tuned:
            self._tuned[qids] = self.stack.tune(qids)
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
    """The table of what was tried, with the choice marked and, if it is an average, what it is the average of."""
    choice = model.provenance["choice"]
    first, chosen = next(iter(choice["tried"])), choice["chosen"]
    marks = {**dict.fromkeys(chosen.split(" + "), "+"), chosen: ">"}
    rows: list[Row] = [
        (
            f"{marks.get(name, ' ')} {'average of +' if ' + ' in name else name}",
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
