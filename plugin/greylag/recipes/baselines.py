"""Baselines, which learned models have to beat: fixed features, with parameters tuned over a grid.

Sources: Metzler & Croft, A Markov random field model for term dependencies, SIGIR 2005 (SDM and MRF-LM); Metzler 2007,
section 5 (MRF-LM and MRF-BM25). RM3 is in `greylag.recipes.rm3`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from greylag import __version__
from greylag.base import FloatArray, ParameterError, Ranking, Run, each, parallel_map, shown
from greylag.evaluation import at_level, first_best
from greylag.features import FeatureParameters, FeatureSpec, Profile
from greylag.index import PositionalIndex
from greylag.learning import CountedRankings, Judgements, Objective, RankingData, ascend, linear_scores
from greylag.rankers import RankingModel
from greylag.recipes.fitted import Fitted
from greylag.recipes.recipe import Fit, MRFRecipe, Recipe

Grid = Mapping[str, Sequence[Any]]
"""The values to try for each parameter, by its name in `FeatureParameters`; original_weight is RM3's."""
GRID: Grid = {
    "k1": (0.4, 0.6, 0.9, 1.2, 1.6, 2.2, 3.0, 4.0),
    "b": (0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1.0),
    "mu": (50, 100, 250, 500, 1000, 2000, 4000),
    "fb_docs": (5, 10, 20),
    "fb_terms": (10, 30, 100),
    "original_weight": (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9),
}
# Ends of the domain, beyond which there is nothing to try.
_LIMITS = ("b", 0.0), ("b", 1.0), ("k1", 0.0), ("original_weight", 0.0), ("original_weight", 1.0)
SDM_WEIGHTS = (0.85, 0.10, 0.05)


@dataclass(frozen=True)
class Baseline:
    """A linear model with fixed features."""

    # As in the literature
    name: str
    features: tuple[FeatureSpec, ...]
    # The weights, or the start of the search for them
    weights: tuple[float, ...]
    # The feature parameters to be tuned, by their names in `FeatureParameters`
    tuned: tuple[str, ...]
    # Whether the weights are learned, by coordinate ascent
    trained: bool = False

    def in_profile(self, profile: Profile) -> Baseline:
        """Use the literature's windows of eight tokens where U-4 would be four: U-8 under "inquery"."""
        if profile != "inquery":
            return self
        widened = (str(feature).replace("-U-4", "-U-8") for feature in self.features)
        return replace(self, features=tuple(map(FeatureSpec.parse, widened)))

    def fit(self, data: RankingData, objective: Objective) -> tuple[tuple[float, ...], float]:
        """Return the weights for `data`, which has exactly these features, and the mean of the objective."""
        weights = self.weights
        if self.trained:
            ascended = ascend(np.array(weights), data, objective, range(len(weights)))
            weights = tuple(ascended.tolist())
        return weights, float(np.mean(replace(self, weights=weights).evaluate(data, objective)))

    def fit_setting(
        self, rankings: CountedRankings, qids: Sequence[str], objective: Objective, parameters: FeatureParameters
    ) -> tuple[tuple[float, ...], float]:
        """Fit with these parameters to these queries."""
        return self.fit(rankings.data(parameters).select_queries(qids), objective)

    def evaluate(self, data: RankingData, objective: Objective) -> FloatArray:
        """Evaluate the objective of each query by the fixed weights, shape (q,); `data` as for `fit`."""
        return objective.evaluate(data, linear_scores(data, range(len(self.weights)), np.array(self.weights)))


def _features(text: str) -> tuple[FeatureSpec, ...]:
    return tuple(FeatureSpec.parse(part) for part in text.split())


LM = Baseline("LM", _features("FI/term/LM"), (1.0,), ("mu",))
"""Query likelihood with Dirichlet smoothing."""
BM25 = Baseline("BM25", _features("FI/term/BM25"), (1.0,), ("k1", "b"))
"""BM25 (Robertson et al. 1994)."""
SDM = Baseline("SDM", _features("FI/term/LM SD/ordered/LM-O-1 SD/unordered/LM-U-4"), SDM_WEIGHTS, ("mu",))
"""The sequential dependence model with its usual fixed weights."""
_FD_LM, _FD_BM25 = (_features(f"FI/term/{w} FD/ordered/{w}-O-1 FD/unordered/{w}-U-4") for w in ("LM", "BM25"))
MRF_LM = Baseline("MRF-LM", _FD_LM, SDM_WEIGHTS, ("mu",), trained=True)
"""The full dependence model with learned weights."""
MRF_BM25 = Baseline("MRF-BM25", _FD_BM25, SDM_WEIGHTS, ("k1", "b"), trained=True)
"""The full dependence model with BM25 weighting and learned weights."""

BASELINES: Mapping[str, Baseline] = {
    "bm25": BM25, "ql": LM, "sdm": SDM, "mrf-lm": MRF_LM, "mrf-bm25": MRF_BM25
}  # fmt: skip
"""The baselines by the names of commands and experiment files."""


def parameter_grid(grid: Grid, names: Sequence[str], base: FeatureParameters) -> list[FeatureParameters]:
    """List combinations of the grid's values of `names`, the last varying fastest, and otherwise `base`."""
    for name in names:
        if name not in grid:
            raise ParameterError(f"the grid has no values for {name}: it has {', '.join(grid) or 'none'}")
    values = product(*(grid[name] for name in names))
    return [replace(base, **dict(zip(names, chosen, strict=True))) for chosen in values]


@dataclass(frozen=True)
class BaselineRecipe(Recipe):
    """A baseline with the values of a grid that are best on training queries, and weights if it learns any.

    Parameters
    ----------
    baseline : Baseline
        Such as `greylag.recipes.baselines.BM25`.
    objective : Objective or str, default "AP"
        The measure to maximise.
    grid : mapping of str to sequence, default `greylag.recipes.baselines.GRID`
        The values to try for each of the parameters ``baseline.tuned``.
    base : FeatureParameters, default ``FeatureParameters()``
    before : tuple of Baseline, default ()
        Baselines that are tuned before, in turn, each with the parameters of the one before.
    """

    baseline: Baseline
    _: KW_ONLY
    objective: Objective | str = "AP"
    grid: Grid = field(default_factory=lambda: GRID)
    base: FeatureParameters = FeatureParameters()
    before: tuple[Baseline, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        if not isinstance(self.baseline, Baseline):
            raise ParameterError(f"baseline is {shown(self.baseline)}: give one such as greylag.recipes.baselines.BM25")
        for step in self.steps:
            parameter_grid(self.grid, step.tuned, self.base)  # checks the values

    @property
    def tuned(self) -> tuple[str, ...]:
        """The parameters that are tuned."""
        return self.baseline.tuned

    @property
    def steps(self) -> tuple[Baseline, ...]:
        """The baselines to tune, one after the other, in the profile of `base`."""
        return tuple(step.in_profile(self.base.profile) for step in (*self.before, self.baseline))

    def prepare(self, rankings: Run, qrels: Judgements, index: PositionalIndex, *, n_jobs: int | None = None) -> Fit:
        """Count windows when they are first needed, once for all folds and values."""
        judged = at_level(qrels, self.measure.rel)
        counted = [CountedRankings(rankings.rankings, judged, index, step.features) for step in self.steps]
        return partial(self._tune, counted)

    def _tune(self, counted: Sequence[CountedRankings], qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Tune the model on these training queries; of equally good values, the first wins."""
        parameters = self.base
        for step, rankings in each([*zip(self.steps, counted, strict=True)], "baselines"):
            settings = parameter_grid(self.grid, step.tuned, parameters)  # beside what was tuned before
            # Weights that are learned depend on the training queries, so that each fold tries the grid anew.
            fit = partial(step.fit_setting, rankings, qids, self.measure)
            tried = [*parallel_map(fit, settings, what=f"grid of {step.name}", n_jobs=n_jobs)]
            best = first_best(np.array([score for _, score in tried]))
            parameters, (weights, score) = settings[best], tried[best]
        tuned, last = {name: getattr(parameters, name) for step in self.steps for name in step.tuned}, counted[-1]
        noted = {"baseline": self.baseline.name, "tuned": [*tuned], "trained": self.baseline.trained}
        model = RankingModel(self.steps[-1].features, weights, parameters, str(self.measure), provenance=noted)
        model = model.for_collection(last.index)
        return tuned_fit(model, tuned, self.grid, score, last.rankings, qids)


def tuned_fit(
    model: RankingModel,
    tuned: Mapping[str, Any],
    grid: Grid,
    score: float,
    rankings: Iterable[Ranking],
    qids: Sequence[str],
) -> Fitted:
    """Make the result of tuning: the values of a grid with the best mean score on those queries that are judged."""
    judged = {ranking.qid for ranking in rankings}
    queries = [qid for qid in qids if qid in judged]
    noted = {"greylag": __version__, **model.provenance, "training_score": score, "queries": queries}
    chosen = tuple(f"{name} {value:g}" for name, value in tuned.items())
    return Fitted(replace(model, provenance=noted), tuple(queries), score, chosen, ends=values_at_ends(grid, tuned))


def values_at_ends(grid: Grid, chosen: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """List the parameters whose chosen value is the lowest or highest that was tried, with both."""
    # A grid of one value was chosen by the user, and the ends of a parameter's domain have nothing beyond them.
    ends = {name: (min(grid[name]), max(grid[name])) for name in chosen if len(grid[name]) > 1}
    return {name: both for name, both in ends.items() if chosen[name] in both and (name, chosen[name]) not in _LIMITS}


@dataclass(frozen=True)
class TunedMRFRecipe(Recipe):
    """An `MRFRecipe` with the k1 and b of BM25 and the mu of LM tuned on the training queries, as a baseline's are."""

    recipe: MRFRecipe
    grid: Grid = field(default_factory=lambda: GRID)

    @property
    def measure(self) -> Objective:
        """The objective, of tuning, too."""
        return self.recipe.measure

    def prepare(self, rankings: Run, qrels: Judgements, index: PositionalIndex, *, n_jobs: int | None = None) -> Fit:
        """Count windows when they are first needed, once for all folds and values."""
        base = self.recipe.parameters
        tuning = BaselineRecipe(LM, objective=self.measure, grid=self.grid, base=base, before=(BM25,))
        judged = at_level(qrels, self.measure.rel)
        counted = CountedRankings(rankings.rankings, judged, index, tuple(self.recipe.features))
        return partial(self._learn, tuning.prepare(rankings, qrels, index, n_jobs=n_jobs), counted)

    def _learn(self, tune: Fit, counted: CountedRankings, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Tune on these training queries, and learn from them."""
        parameters = tune(qids, n_jobs=n_jobs).model.parameters
        return self.recipe.learn(counted.data(parameters), qids, n_jobs=n_jobs)
