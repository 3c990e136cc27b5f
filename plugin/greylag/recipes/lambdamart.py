"""LambdaMART by LightGBM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np

from greylag.base import FloatArray, ParameterError, Run, check_choice, check_sequences, nearest
from greylag.evaluation import first_best, split_folds
from greylag.features import FeatureParameters, Trees, as_feature, lightgbm
from greylag.index import PositionalIndex
from greylag.learning import Judgements, Objective, RankingData, Selection, useful_features
from greylag.rankers import span
from greylag.recipes.choice import Candidate
from greylag.recipes.fitted import Fitted
from greylag.recipes.recipe import Fit, Recipe, selected_model
from greylag.recipes.sources import FeatureSources, PreparedSources

VALIDATE_EVERY = 4  # training queries; see `LambdaMART.validate`
PARAMS = tuple(
    "bagging_by_query bagging_fraction bagging_freq data_sample_strategy extra_trees feature_fraction "
    "feature_fraction_bynode lambda_l1 lambda_l2 lambdarank_norm lambdarank_truncation_level max_bin max_delta_step "
    "max_depth min_data_in_bin min_gain_to_split min_sum_hessian_in_leaf monotone_constraints_method monotone_penalty "
    "other_rate path_smooth sigmoid top_rate".split()
)
"""What `LambdaMART.params` may have: nothing that others set, or that numbers columns, as some are left out."""
METHOD = "monotone_constraints_method"
NEEDS = {
    **dict.fromkeys(("bagging_fraction", "bagging_by_query"), "bagging_freq"), "bagging_freq": "bagging_fraction",
    **dict.fromkeys(("top_rate", "other_rate"), "data_sample_strategy"),
    **dict.fromkeys((METHOD, "monotone_penalty"), "monotone_constraints"),
}  # fmt: skip
"""Parameters that LightGBM ignores, in silence, without another one."""


@dataclass(frozen=True)
class LambdaMART:
    """Learns regression trees by LambdaMART (Wu et al. 2010), as LightGBM implements it, in one thread.

    Documents have the objective's gains. LightGBM always maximises nDCG, with them. A missing value (NaN) goes to the
    side of a split that is better for training, or counts as 0 if training has the feature for all documents.

    Parameters
    ----------
    objective : Objective or str
        The measure, whose gains are used. Stored as an `Objective`.
    trees : int >= 1, default 200
        The number of trees.
    leaves : int >= 2, default 15
        The largest number of leaves of a tree.
    learning_rate : float > 0, default 0.05
        The factor of the values of each tree.
    min_documents : int >= 1, default 20
        The least number of training documents in a leaf.
    seed : int >= 0, default 0
        LightGBM's seed, and that of the draw of `validate`.
    validate : bool, default False
        Whether a fourth of the training queries, drawn at random, are not learned from: as many of the first trees are
        kept as are best for them.
    increasing, decreasing : tuple of str, default ()
        Features with which scores may only rise, or only fall, all others being equal.
    params : mapping, default {}
        Other parameters of LightGBM's by their main names, such as ``{"lambda_l2": 5, "feature_fraction": 0.7}``; none
        that numbers columns.
    """

    objective: Objective | str
    _: KW_ONLY
    trees: int = 200
    leaves: int = 15
    learning_rate: float = 0.05
    min_documents: int = 20
    seed: int = 0
    validate: bool = False
    increasing: tuple[str, ...] = ()
    decreasing: tuple[str, ...] = ()
    params: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "objective", Objective.parse(self.objective))
        for name, least in (("trees", 1), ("leaves", 2), ("min_documents", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise ParameterError(f"{name} is {getattr(self, name)}; it must be at least {least}")
        if not 0 < self.learning_rate < np.inf:
            raise ParameterError(f"learning_rate is {self.learning_rate}; it must be a finite number above 0")
        if not isinstance(self.validate, bool):
            raise ParameterError(f"validate is {self.validate!r:.60}; it must be True or False")
        check_sequences(increasing=self.increasing, decreasing=self.decreasing)
        if both := {*self.increasing} & {*self.decreasing}:
            raise ParameterError(f"scores are to rise and to fall with {min(both)}: name it once")
        if not isinstance(self.params, Mapping):
            raise ParameterError(f"params is {self.params!r:.60}: give values by LightGBM's names")
        given = {*self.params, *(["monotone_constraints"] if self.increasing or self.decreasing else [])}
        check_choice(METHOD, self.params.get(METHOD, "basic"), ("basic", "intermediate", "advanced"))  # else "basic"
        for name in self.params:
            if name not in PARAMS:
                raise ParameterError(f"params has {name!r:.60}: {nearest(str(name), PARAMS)}")
            if (needed := NEEDS.get(name, name)) not in given:
                how = "increasing or decreasing" if needed == "monotone_constraints" else needed
                raise ParameterError(f"params has {name}, which LightGBM ignores without {how}: give both")

    def grow(self, data: RankingData, validation: RankingData | None = None) -> Trees:
        """Grow the trees for `data`; as many of the first as are best for the validation queries, if there are any."""
        if self.validate:
            if validation is not None:
                raise ParameterError("there are queries for validation: leave out validate=true, which draws others")
            if len(data.qids) < VALIDATE_EVERY:
                n = len(data.qids)
                raise ParameterError(f"validate=true needs {VALIDATE_EVERY} training queries, not {n}: leave it out")
            held_out = split_folds(data.qids, VALIDATE_EVERY, self.seed)[0]
            validation = data.select_queries(held_out)
            data = data.select_queries([qid for qid in data.qids if qid not in validation.spans])
        # LightGBM's labels are small whole numbers: gains are numbered, and `label_gain` gives them back.
        gains, labels = np.unique(Objective.parse(self.objective).gains(data), return_inverse=True)
        if len(gains) < 2:
            raise ParameterError("no document that is ranked is relevant: there is nothing to learn from")
        if validation is not None and not Objective.parse(self.objective).gains(validation).any():
            n = len(validation.qids)
            raise ParameterError(
                f"none of {n} queries for validation has a relevant document in its ranking: use others"
            )
        engine = lightgbm()
        settings = {
            "objective": "lambdarank", "learning_rate": self.learning_rate, "num_leaves": self.leaves,
            "min_data_in_leaf": self.min_documents, "label_gain": gains.tolist(), "seed": self.seed, "num_threads": 1,
            "deterministic": True, "force_row_wise": True, "verbosity": -1, **self.params,
        }  # fmt: skip
        if self.increasing or self.decreasing:
            settings["monotone_constraints"] = self._constraints(data)
        # A query without documents is no group of LightGBM's.
        sizes = [size for size in np.diff(data.offsets).tolist() if size]
        training = engine.Dataset(_rounded(data.features), label=labels, group=sizes, params=settings)
        try:
            booster = engine.train(settings, training, num_boost_round=self.trees)
        except engine.basic.LightGBMError as error:
            raise ParameterError(f"LightGBM refuses {self.params}: {error}") from None
        grown = self.trees if validation is None else self._best(booster, validation)
        features = tuple(map(as_feature, data.specs))
        parameters = FeatureParameters() if data.origin is None else data.origin.parameters
        return Trees.from_lightgbm(booster.model_to_string(num_iteration=grown), features, parameters)

    def fit_model(
        self,
        data: RankingData,
        systems: Sequence[Candidate] = (),
        *,
        validation: RankingData | None = None,
        n_jobs: int | None = None,
    ) -> Fitted:
        """Fit a model of one feature, the trees; see `grow`. Systems without learning are not compared with."""
        useful, set_aside = useful_features(data, missing=True)
        if validation is not None:
            validation = validation.select_features(validation.columns_of(useful.names))
        trees = self.grow(useful, validation)
        # The model weighs one feature, the trees; it is scored as a column, as any other feature is.
        grown = replace(useful, specs=(trees,), features=trees.scores(useful.features)[:, None])
        noted = {"set_aside": set_aside, "candidates": len(useful.specs)}
        selection = Selection.of([1.0], grown, self.objective)
        return Fitted.of(selected_model(selection, grown, cast(Any, self), noted), data.qids)

    def _constraints(self, data: RankingData) -> list[int]:
        """Return 1, 0 or -1 for each feature."""
        names = [name.removeprefix("column:") for name in data.names]
        signs = {name.removeprefix("column:"): 1 for name in self.increasing}
        signs |= {name.removeprefix("column:"): -1 for name in self.decreasing}
        if unknown := signs.keys() - {*names}:
            why = "no feature, or constant or equal to another within queries"
            raise ParameterError(f"{min(unknown)} is to be monotone, and is {why}: use {span(names)}")
        return [signs.get(name, 0) for name in names]

    def _best(self, booster: Any, validation: RankingData) -> int:
        """Find the number of trees that is best for the validation queries."""
        score, scores = Objective.parse(self.objective).scorer(validation), np.zeros(len(validation.docids))
        means = list[float]()
        # Tree by tree: the scores of the first n trees are not computed n times.
        for tree in range(booster.num_trees()):
            scores += booster.predict(validation.features, start_iteration=tree, num_iteration=1, num_threads=1)
            means.append(float(score(scores).mean()))
        return first_best(np.array(means)) + 1


@dataclass(frozen=True)
class LambdaMARTRecipe(Recipe):
    """LambdaMART over features whose parameters are tuned on training queries; the model's one feature is the trees."""

    learner: LambdaMART
    _: KW_ONLY
    sources: FeatureSources = FeatureSources()

    def __post_init__(self) -> None:
        lightgbm()  # before features are computed

    def prepare(self, rankings: Run, qrels: Judgements, index: PositionalIndex, *, n_jobs: int | None = None) -> Fit:
        """Prepare the judged rankings; features are computed when the first fold has chosen their parameters."""
        return partial(self.learn, self.sources.prepare(rankings, qrels, index, self.measure, n_jobs=n_jobs))

    def learn(self, features: PreparedSources, qids: Sequence[str], *, n_jobs: int | None = None) -> Fitted:
        """Tune the features and learn the trees on these training queries; trees grow in one thread."""
        return self.learner.fit_model(features.training(features.tune(qids), qids))


def _rounded(values: FloatArray) -> FloatArray:
    """Round to 32 bits of the mantissa: BLAS gives documents of one text values that differ in the last of its 53.

    Which of them is larger depends on the processor, and a split between them would, too.
    """
    mantissas, exponents = np.frexp(values)
    return np.asarray(np.ldexp(np.rint(np.ldexp(mantissas, 32)), exponents - 32))
