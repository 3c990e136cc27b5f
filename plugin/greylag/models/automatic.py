"""The automatic choice: baselines and learners, cross-validated on training queries, and the best of their averages.

Everything is chosen on the training queries, so that `greylag.cross_validate` of an `AutomaticRecipe` is nested. All
systems weight the same features with the same parameters of weighting, so that their average is a `RankingModel`, too.

To add evidence, give `StackRecipe.features` a group of features. To add a learner, give `candidates` a line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace

from greylag.checks import check_non_negative
from greylag.errors import ParameterError
from greylag.evaluation.folds import split_folds
from greylag.features.feature import Feature
from greylag.features.learned.translation import Translation
from greylag.features.spec import Pool, candidate_pool
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex
from greylag.learning.learner import Selection
from greylag.linesearch.data import Qrels, RankingData
from greylag.linesearch.objectives import Objective
from greylag.models import baselines
from greylag.models.baselines import Grid
from greylag.models.choice import Candidate, Choice, Fold, System, average, choose, learners
from greylag.models.fold_translations import FoldTranslations
from greylag.models.model import RankingModel
from greylag.models.recipes import Recipe, selected_model
from greylag.models.sources import SourceGains
from greylag.models.stack import MANY, POSITION, WRITTEN, StackCandidates, StackRecipe, TunedRM3
from greylag.ranking import Run
from greylag.runtime.progress import each

BM25, RM3 = System("BM25"), System("RM3")
"""The tuned baselines that models are held against. The first is what others are compared with."""
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
        seconds: float | None = None,
        gains: SourceGains | None = None,
        n_jobs: int | None = None,
    ) -> tuple[Selection, Choice]:
        """As `fit`, with the scores of all that was tried: `baselines`, and learners.

        It is chosen by the validation queries, in place of cross-validation, if there are any. `gains` see the folds.
        """
        objective = Objective.parse(self.objective)
        candidates = [*baselines, *learners(objective, folds=self.folds, seed=self.seed)]
        if validation is None:
            parts = split_folds(data.qids, min(self.folds, len(data.qids)), self.seed)
            qids, count = data.qids, len(parts)
            folds: Iterator[Fold] = (
                Fold(candidates, data.select_queries(without(data.qids, part)), data.select_queries(part))
                for part in each(parts, "inner folds")
            )
        else:
            qids, count, folds = validation.qids, 1, (Fold(candidates, data, held_out) for held_out in (validation,))
        if gains is not None:
            folds = gains.gathered(folds)
        choice = choose(folds, qids, objective, n_folds=count, seconds=seconds, n_jobs=n_jobs)
        if validation is not None:
            choice = replace(choice, by="Chosen by {} topics for validation")
        return average(choice.chosen, candidates, data, objective, n_jobs), choice


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
        Whether `greylag.features.learned.translation.Translation`, learned from the training queries, is a feature.
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
        sdm = Candidate(System("SDM"), tuple(map(str, baselines.SDM.features)), baselines.SDM.weights)
        known = {*map(str, (*candidate_pool(self.pool), *POSITION, *WRITTEN))}
        pool = tuple(name for name in names if name in known or name.startswith(Translation.kind))
        return [
            Candidate(BM25, (bm25,), (1.0,)),
            Candidate(System("QL"), ("FI/term/LM",), (1.0,)),
            *([sdm] if set(sdm.features) <= set(names) else []),  # not those of --pool fd
            Candidate(RM3, (rm3,), (1.0,)),
            *learners(self.measure, folds=self.folds, seed=self.seed, pool=pool, prior=rm3),
        ]


@dataclass(frozen=True, eq=False)
class PreparedChoice:
    """An `AutomaticRecipe` and its features; what does not depend on the training queries is computed once."""

    recipe: AutomaticRecipe
    stack: StackCandidates
    _tuned: dict[tuple[str, ...], TunedRM3] = field(init=False, repr=False, default_factory=dict)

    def fit(self, qids: Sequence[str], *, n_jobs: int | None = None) -> RankingModel:
        """The choice for these training queries."""
        return self.choose(qids, n_jobs=n_jobs)[0]

    def choose(self, qids: Sequence[str], *, n_jobs: int | None = None) -> tuple[RankingModel, Choice]:
        """As `fit`, with the scores of all that was tried."""
        recipe, given = self.recipe, frozenset(qids)
        judged = tuple(ranking.qid for ranking in self.stack.rankings if ranking.qid in given)
        if len(judged) < 2:
            raise ParameterError(
                f"the automatic choice needs two topics with a relevant document, not {len(judged)}: force one with "
                "--model rm3, or tune nothing with greylag search"
            )
        parts = split_folds(judged, min(recipe.folds, len(judged)), recipe.seed)
        translations = FoldTranslations(self.stack.index, self.stack.rankings, self.stack.qrels, parts)
        folds: Iterator[Fold] = (self._fold(judged, part, translations) for part in each(parts, "inner folds"))
        gains = SourceGains(recipe.measure)
        if recipe.more:  # whoever adds features wants to know which are worth their trouble
            folds = gains.gathered(folds)
        choice = choose(folds, judged, recipe.measure, n_folds=len(parts), seconds=recipe.seconds, n_jobs=n_jobs)
        tuned = self._tune(judged)
        rows = self._complete(self.stack.training(tuned, judged), judged, tuned, translations)
        candidates = recipe.candidates(tuned, rows.names)
        selection = average(choice.chosen, candidates, rows, recipe.measure, n_jobs)
        tuned_baselines = {str(c.system): c.features[0] for c in candidates if c.system in (BM25, RM3)}
        made = {"set_aside": [], "baselines": tuned_baselines, "choice": choice.to_dict()}
        made |= {"sources": told} if (told := gains.to_dict()) else {}
        learner = Automatic(recipe.objective, folds=recipe.folds, seed=recipe.seed)
        return selected_model(selection, rows, learner, made), choice

    def _fold(self, judged: Sequence[str], part: Sequence[str], translations: FoldTranslations) -> Fold:
        """A fold that holds out a part of the judged queries."""
        training = without(judged, part)
        # With so many queries, leaving a fold out hardly changes parameters.
        tuned = self._tune(tuple(judged) if len(judged) > MANY else training)
        rows = self._complete(self.stack.training(tuned, training), training, tuned, translations)
        held_out = self._complete(self.stack.data(tuned).select_queries(part), training, tuned, translations)
        return Fold(self.recipe.candidates(tuned, rows.names), rows, held_out)

    def _complete(
        self, data: RankingData, training: Sequence[str], tuned: TunedRM3, translations: FoldTranslations
    ) -> RankingData:
        """The data with translation, learned from the training queries, if the recipe has it."""
        return translations.add(data, training, tuned.parameters.mu) if self.recipe.translate else data

    def _tune(self, qids: tuple[str, ...]) -> TunedRM3:
        """The parameters of weighting that are best for these queries."""
        if qids not in self._tuned:
            self._tuned[qids] = self.stack.tune(qids)
        return self._tuned[qids]


def without(qids: Sequence[str], part: Sequence[str]) -> tuple[str, ...]:
    """The queries that are not in the part, in their order."""
    held_out = frozenset(part)
    return tuple(qid for qid in qids if qid not in held_out)
