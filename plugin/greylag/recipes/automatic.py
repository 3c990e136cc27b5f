"""The automatic choice: baselines and learners, cross-validated on training queries, and the best of their averages.

Everything is chosen on the training queries, so that `cross_validate` of an `AutomaticRecipe` is nested. All
systems weight the same features with the same parameters of weighting, so that their average is a `RankingModel`, too.

To add evidence, give `PreparedSources.groups` a group of features. To add a learner, give `candidates` a line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

from greylag.base import ParameterError, Run, check_non_negative
from greylag.evaluation import split_folds
from greylag.features import parse_feature
from greylag.index import PositionalIndex
from greylag.learning import Judgements, ListwiseRegression, Objective, RankingData, Selection
from greylag.rankers import RankingModel
from greylag.recipes import baselines
from greylag.recipes.choice import (
    Candidate,
    Choice,
    System,
    average,
    choose,
    cross_folds,
    learners,
    listwise,
    title,
)
from greylag.recipes.cross_fitting import add_translation, cross_fit_baselines
from greylag.recipes.fitted import Fitted, alone
from greylag.recipes.general import general_model_for
from greylag.recipes.recipe import Fit, Recipe, selected_model
from greylag.recipes.source_gains import source_gains
from greylag.recipes.sources import FeatureSources, PreparedSources, TunedRM3

BASELINE_SYSTEMS: tuple[System, ...] = tuple(map(System, ("BM25", "QL", "SDM", "RM3")))
"""The tuned baselines that models are held against."""
BM25, QL, SDM, RM3 = BASELINE_SYSTEMS
GENERAL = System("general")
"""The general model, with weights that were learned on other collections."""
ADAPTED, REFITTED = "adapted", "refitted"
"""Listwise regression around the general model's weights: of all features, and of the general model's alone."""
ADAPTED_PENALTIES = (300.0, 30.0, 3.0)
"""Penalties of the regressions around the general model."""
INCUMBENT = System(ADAPTED, "penalty 30"), System(REFITTED, "penalty 30")
"""The choice, unless another system leads clearly."""
DOCUMENT_FEATURES = tuple(map(parse_feature, ("document:length", "document:entropy", "document:common")))
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
        check_non_negative(seed=self.seed)
        if self.folds < 2:
            raise ParameterError(f"folds is {self.folds}; it must be at least 2")

    def fit(self, data: RankingData, *, n_jobs: int | None = None) -> Selection:
        """Choose on `data`; the result does not depend on `n_jobs`."""
        return self.choose(data, n_jobs=n_jobs)[0]

    def choose(
        self,
        data: RankingData,
        *,
        baselines: Sequence[Candidate] = (),
        validation: RankingData | None = None,
        n_jobs: int | None = None,
    ) -> tuple[Selection, Choice]:
        """Fit as `fit`, or by validation queries instead of folds; return the scores of all that was tried, too."""
        objective = Objective.parse(self.objective)
        candidates = [*baselines, *learners(objective)]
        folds = cross_folds(data, self.parts(data.qids)) if validation is None else [(data, validation)]
        alone = [candidate.system for candidate in baselines]
        qids = (validation or data).qids
        choice = choose(folds, qids, candidates, objective, baselines=alone, n_jobs=n_jobs)
        if validation is not None:
            choice = replace(choice, by="Chosen by {} topics for validation")
        return average(choice.chosen, candidates, data, objective, n_jobs), choice

    def fit_model(
        self,
        data: RankingData,
        systems: Sequence[Candidate] = (),
        *,
        validation: RankingData | None = None,
        n_jobs: int | None = None,
    ) -> Fitted:
        """Fit the model of the choice, which is compared with the systems that need no learning."""
        selection, choice = self.choose(data, baselines=systems, validation=validation, n_jobs=n_jobs)
        model = selected_model(selection, data, self, {"set_aside": []})
        return Fitted.of(model, data.qids, (title(choice.chosen),), choice=choice)

    def parts(self, qids: Sequence[str]) -> list[list[str]]:
        """Return the queries that each fold holds out."""
        return split_folds(qids, min(self.folds, len(qids)), self.seed)


@dataclass(frozen=True)
class AutomaticRecipe(Recipe):
    """The best that greylag can do with the topics at hand: tuned baselines, learned models, or an average of these.

    BM25, query likelihood and RM3 are tuned on the training queries, and weights are learned by listwise regression,
    around 0 and around `general_model`'s weights, with several penalties. All are compared in cross-validation on the
    documents that are trained on, and the choice is learned again on all training queries. It is the average of
    regressions around the general model, of all features and of the general model's, unless another system or average
    leads by two standard errors.

    Parameters
    ----------
    objective : Objective or str, default "AP"
        The measure to maximise.
    sources : FeatureSources, default ``FeatureSources()``
        The features. The general model's, and priors of documents, are added.
    general : RankingModel, optional
        Instead of `general_model`, such as one of collections of your own. All features end in ``@z``.
    folds : int >= 2, default 5
        The number of folds of the cross-validation that chooses, at most the number of queries.
    seed : int >= 0, default 0
        The seed of the assignment of queries to folds.
    translate : bool, default True
        Whether translations of words into words of queries, learned from the training queries, are a feature.
    """

    objective: Objective | str = "AP"
    _: KW_ONLY
    sources: FeatureSources = FeatureSources()
    general: RankingModel | None = None
    folds: int = 5
    seed: int = 0
    translate: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Automatic(self.objective, folds=self.folds, seed=self.seed).objective)

    def unjudged(self, index: PositionalIndex) -> RankingModel:
        """Return the general model with the weights of this index."""
        return (self.general or general_model_for(index)).at_length(index.average_length)

    def prepare(self, rankings: Run, qrels: Judgements, index: PositionalIndex, *, n_jobs: int | None = None) -> Fit:
        """Prepare the judged rankings; features are computed once their parameters are tuned."""
        return partial(self.choose, self.features(rankings, qrels, index, n_jobs=n_jobs))

    def features(
        self, rankings: Run, qrels: Judgements, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> PreparedSources:
        """Prepare the features of the judged rankings."""
        # As keys, since the general model has some of the same features.
        more = dict.fromkeys((*DOCUMENT_FEATURES, *self.unjudged(index).features, *self.sources.more))
        sources = replace(self.sources, more=tuple(more))
        return sources.prepare(rankings, qrels, index, self.measure, n_jobs=n_jobs)

    def candidates(self, tuned: TunedRM3, general: RankingModel, names: Sequence[str]) -> list[Candidate]:
        """List the systems to try on features of these names."""
        bm25, rm3 = f"stage:{tuned.bm25}", f"stage:{tuned.rm3}"
        centre = dict(zip(map(str, general.features), general.weights, strict=True))
        around = ListwiseRegression(self.measure, centre=centre)
        sdm = Candidate(SDM, tuple(map(str, baselines.SDM.features)), baselines.SDM.weights)
        return [
            Candidate(BM25, (bm25,), (1.0,)),
            Candidate(QL, ("FI/term/LM",), (1.0,)),
            *([sdm] if set(sdm.features) <= set(names) else []),  # --pool fd lacks them
            Candidate(RM3, (rm3,), (1.0,)),
            Candidate(GENERAL, tuple(centre), general.weights),
            Candidate(System(ADAPTED), learner=around, penalties=ADAPTED_PENALTIES),
            Candidate(System(REFITTED), tuple(centre), learner=around, penalties=ADAPTED_PENALTIES),
            listwise(self.measure),
        ]

    def choose(self, features: PreparedSources, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Choose on these training queries; of a single one, there is no choice."""
        training, measure = frozenset(qids), self.measure
        judged = [ranking.qid for ranking in features.rankings if ranking.qid in training]
        tuned = features.tune(judged)
        rows = features.training(tuned, judged)
        learner = Automatic(self.objective, folds=self.folds, seed=self.seed)
        candidates = self.candidates(tuned, self.unjudged(features.index), rows.names)
        if len(judged) == 1:  # nothing can be held out
            noted = {"set_aside": [], "adapted": list(map(str, INCUMBENT))}
            selection = average(INCUMBENT, candidates, rows, measure, n_jobs)
            model = selected_model(selection, rows, learner, noted)
            return Fitted.of(model, judged, (title(INCUMBENT),), adapted=True)
        parts = learner.parts(judged)
        # The parts of the cross-validation that chooses: a part's values know nothing of its judgements.
        rows = cross_fit_baselines(rows, features, tuned, parts, n_jobs=n_jobs)
        if self.translate:
            rows = add_translation(rows, features, tuned, parts, n_jobs=n_jobs)
        folds = cross_folds(rows, parts)
        choice = choose(
            folds, judged, candidates, measure, baselines=BASELINE_SYSTEMS, incumbent=INCUMBENT, n_jobs=n_jobs
        )  # fmt: skip
        selection = average(choice.chosen, candidates, rows, measure, n_jobs)
        model = selected_model(selection, rows, learner, {"set_aside": []})
        others: Any = {
            "document statistics": DOCUMENT_FEATURES,
            "translation": rows.specs[-1:] if self.translate else (),
        }
        groups = {**features.groups(tuned), **others}
        return Fitted.of(
            model,
            judged,
            (title(choice.chosen),),
            choice=choice,
            adapted=choice.chosen == INCUMBENT,
            baselines={
                f"tuned {candidate.system}": alone(candidate, rows, model)
                for candidate in candidates
                if candidate.system in BASELINE_SYSTEMS
            },
            # Whoever adds features wants to know which are worth their trouble.
            gains=source_gains(cross_folds(rows, parts), measure, groups) if self.sources.more else {},
        )
