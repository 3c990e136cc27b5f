"""Models by their spelling: ``mrf(max_features=5,mu=500)``, ``bm25(k1=[0.6,0.9])``, ``svmdiv(C=1,k=5)``.

To add a model, give `MODEL_KINDS` a line: what it is, its options, and the function that makes its recipe of them.
Learners are entry points of the groups ``greylag.learners`` and ``greylag.diversity_learners``, by which other packages
may add theirs; one that has no line there is a model that weights all features, or that diversifies.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, partial
from inspect import cleandoc
from typing import Annotated, Any, NamedTuple, get_type_hints

from greylag.base import (
    Names,
    Parameter,
    ParameterError,
    Value,
    load_entry,
    named_files,
    nearest,
    parameters,
    read_call,
    read_options,
    registered,
    shown,
)
from greylag.evaluation import read_fields
from greylag.features import Feature, FeatureParameters, Pool, candidate_pool, unique_features
from greylag.index import QueryForm, StopWords, read_stop_words
from greylag.learning import EQUAL_WEIGHTS, Learner, MMRPreselection, Objective
from greylag.rankers import RM3Stage
from greylag.recipes.automatic import BASELINE_SYSTEMS, AutomaticRecipe
from greylag.recipes.baselines import BASELINES, GRID, BaselineRecipe, TunedMRFRecipe
from greylag.recipes.diversity import DiversityRecipe
from greylag.recipes.lambdamart import LambdaMART, LambdaMARTRecipe
from greylag.recipes.recipe import MRFRecipe, Recipe
from greylag.recipes.rm3 import RM3Recipe
from greylag.recipes.sources import FeatureSources


@dataclass(frozen=True)
class ModelOptions:
    """Options of models that no recipe, learner or feature has.

    Parameters
    ----------
    tune : bool, default False
        Tune k1 and b as BM25's, and mu as query likelihood's, in each fold.
    preselect : int >= 1, optional
        Number of features to keep, by MMR of their information about relevance; all by default.
    preselect_weight : float in [0, 1], default 0.5
        The weight of relevance in this MMR; 1 keeps the features of highest information gain.
    first_sentence : bool, default False
        Cut queries after their first sentence, once the candidates are found.
    stop_words : str, optional
        Words to remove from queries, once the candidates are found: the list lucene or scikit-learn, or a file with one
        word per line.
    titles : str, optional
        A file of JSON lines with id and title, and with other fields that criteria are on, such as the documents.
    """

    tune: bool = False
    preselect: int | None = None
    preselect_weight: float = EQUAL_WEIGHTS
    first_sentence: bool = False
    stop_words: StopWords | None = None
    titles: Annotated[str, Names(lambda name: (name,))] | None = None

    def __post_init__(self) -> None:
        if self.preselect is None and self.preselect_weight != EQUAL_WEIGHTS:
            raise ParameterError("preselect_weight needs preselect, the number of features to keep")

    @classmethod
    def pop(cls, values: dict[str, Any], *names: str) -> ModelOptions:
        """Remove the options of these names from the values of a model."""
        return cls(**{name: values.pop(name) for name in names if name in values})

    @property
    def preselection(self) -> MMRPreselection | None:
        """The selection of features, if any."""
        return (
            None if self.preselect is None else MMRPreselection(self.preselect, relevance_weight=self.preselect_weight)
        )


@dataclass(frozen=True)
class ModelKind:
    """A model that can be spelt."""

    # Looks up what it is, for which a learner that diversifies is imported
    summary_of: Callable[[], str]
    # Looks up the options, for which a learner is imported
    options_of: Callable[[], Mapping[str, Parameter]]
    # The recipe, from the objective and the values of options, and of features and pool if it takes these
    recipe: Callable[..., Recipe]
    # The default pool; None if it takes no features
    pool: Pool | None = None
    # Whether it has features of its own, so that named ones are added to those and the pool
    own: bool = True
    # Without a run, candidates are searched by BM25 and BM25+RM3, not by BM25 alone
    union: bool = False
    # The baselines that it tunes beside the model
    baselines: tuple[str, ...] = ()
    # Whether users should hear of other measures than the default
    proposes_measure: bool = False
    # Whether it learns from judgements by subtopic, of features that are named alone
    diversifies: bool = False

    @property
    def summary(self) -> str:
        """What it ranks by, or learns."""
        return self.summary_of()

    @property
    def options(self) -> Mapping[str, Parameter]:
        """The options by name."""
        return self.options_of()

    def pool_for(self, features: Sequence[object], pool: Pool | None) -> Pool | None:
        """Return the pool that is ranked by where these features and this pool are asked for; None for none."""
        return pool or (None if features and not self.own else self.pool)


class SpeltModel(NamedTuple):
    """A recipe, and the form of the queries that it is trained on."""

    recipe: Recipe[Any]
    query_form: QueryForm


def parse_model(
    text: str,
    objective: Objective | str = "AP",
    *,
    features: tuple[Feature, ...] = (),
    pool: Pool | None = None,
) -> SpeltModel:
    """Parse the recipe of a spelling, as ``greylag train --model`` takes it.

    Parameters
    ----------
    text : str
        ``NAME`` or ``NAME(OPTION=VALUE,...)``, with a name of `MODEL_KINDS`.
    objective : Objective or str, default "AP"
        What models that rank maximise.
    features : tuple of Feature, default ()
        Instead of the default pool; for ``automatic`` and ``lambdamart``, which have features of their own, besides it.
    pool : "sd", "fd" or "full", optional
        By default "full", and "sd" for ``automatic`` and ``lambdamart``.

    Examples
    --------
    >>> recipe, form = parse_model("mrf(max_features=3,mu=500)", "nDCG@10", pool="sd")
    >>> recipe.learner.max_features, recipe.parameters.mu
    (3, 500.0)
    """
    return spelt_model(*read_call(text), objective, features=features, pool=pool)


def spelt_model(
    name: str,
    options: Mapping[str, Value],
    objective: Objective | str,
    *,
    features: tuple[Feature, ...] = (),
    pool: Pool | None = None,
) -> SpeltModel:
    """Make the recipe of a model's name and options; see `parse_model`."""
    kind = MODEL_KINDS.get(name)
    if kind is None:
        raise ParameterError(f"unknown model {name!r:.60}: {nearest(name, MODEL_KINDS)}")
    if (features and not (kind.pool or kind.diversifies)) or (pool and not kind.pool):
        raise ParameterError(f"{name} takes no {'features' if features else 'pool'}")
    given: dict[str, Any] = {"features": features} if kind.pool or kind.diversifies else {}
    if kind.pool:
        given["pool"] = kind.pool_for(features, pool)
    values = read_options(name, options, kind.options)
    # Options of queries are not the recipe's: it learns from queries that are shortened already.
    queries = ModelOptions.pop(values, *_QUERIES)
    words = frozenset[str]() if queries.stop_words is None else read_stop_words(queries.stop_words)
    recipe = kind.recipe(Objective.parse(objective), values, **given)
    return SpeltModel(recipe, QueryForm(queries.first_sentence, words))


def spelt_learner(
    name: str, options: Mapping[str, Value], objective: Objective | str
) -> tuple[Learner | LambdaMART, MMRPreselection | None]:
    """Make the learner and the preselection of a model without an index."""
    if name not in registered("learner"):
        why = f"{name} needs --index" if name in MODEL_KINDS else f"unknown model {name!r:.60}"
        raise ParameterError(f"{why}: without one, {nearest(name, registered('learner'))}")
    kind, known = find_learner(name), parameters(find_learner(name), "objective")
    known |= {key: option for key, option in _PRESELECTION.items() if key in MODEL_KINDS[name].options}
    for option in options:
        if option in MODEL_KINDS[name].options and option not in known:
            raise ParameterError(f"{name} has the option {option} with --index only")
    values = read_options(name, options, known)
    preselection = ModelOptions.pop(values, *_PRESELECTION).preselection
    return kind(Objective.parse(objective), **values), preselection


@cache
def find_learner(name: str, group: str = "learner") -> Any:
    """Find the class of a learner, or "diversity learner"; `ParameterError` if it cannot be imported or is none."""
    kind, needed = load_entry(group, name), "an objective" if group == "learner" else "a C"
    # By what it has and not by its bases, so that other packages need not import greylag.
    learns = isinstance(kind, type) and any(callable(getattr(kind, method, None)) for method in ("fit", "fit_model"))
    if not (learns and is_dataclass(kind) and needed.split()[1] in {field.name for field in fields(kind)}):
        raise ParameterError(f"{group} {name} is {shown(kind)}, not a dataclass with {needed} and a method fit")
    return kind


def described(name: str) -> str:
    """Describe what a model ranks by; a learner of another package by its docstring's first line, too."""
    summary = MODEL_KINDS[name].summary
    if name in _RANKERS:
        return summary
    kind = find_learner(name)
    own = (kind.__doc__ or "").strip().partition("\n")[0].rstrip(".")
    return summary if own.startswith(f"{kind.__name__}(") or not own else f"{summary} ({own})"


def _weighted_options(name: str) -> dict[str, Parameter]:
    """Return the options of a learner, of features and of queries."""
    own = parameters(find_learner(name), "objective")
    others = {**parameters(FeatureParameters), **parameters(ModelOptions, "titles")}
    if both := sorted(own.keys() & others.keys()):
        raise ParameterError(f"learner {name} has the parameter {both[0]}, which features have, too: rename it")
    return {**own, **others}


def model_files(text: str) -> list[str]:
    """List the files that the spelling of a model names."""
    hints, (_, options) = get_type_hints(ModelOptions, include_extras=True), read_call(text)
    return [file for option, value in options.items() for file in named_files(hints.get(option), value)]


def _weighted(
    name: str,
    objective: Objective,
    values: dict[str, Any],
    *,
    features: tuple[Feature, ...],
    pool: Pool | None,
) -> Recipe:
    options = ModelOptions.pop(values, "tune", *_PRESELECTION)
    if options.tune and (chosen := [key for key in ("mu", "k1", "b") if key in values]):
        raise ParameterError(f"{chosen[0]} and tune=true cannot be combined: tune chooses mu, k1 and b")
    # Learners and features share one list of options; a learner would refuse those of features.
    feature_values = {key: values.pop(key) for key in parameters(FeatureParameters) if key in values}
    recipe = MRFRecipe(
        unique_features([*(() if pool is None else candidate_pool(pool)), *features]),
        find_learner(name)(objective, **values),
        parameters=FeatureParameters(**feature_values),
        preselection=options.preselection,
    )
    return TunedMRFRecipe(recipe) if options.tune else recipe


def _feature_model(name: str, summary: str) -> ModelKind:
    """Make a model of the features themselves, by a registered learner."""
    options, recipe = partial(_weighted_options, name), partial(_weighted, name)
    return ModelKind(lambda: summary, options, recipe, pool="full", own=False)


def _diversifier(name: str) -> ModelKind:
    """Make a model that diversifies, by a registered learner, which says what it is."""
    find = partial(find_learner, name, "diversity learner")

    def options() -> dict[str, Parameter]:
        own = parameters(find())
        if both := sorted(own.keys() & _DIVERSITY.keys()):
            raise ParameterError(f"diversity learner {name} has the parameter {both[0]}, which recipes have: rename it")
        return {**own, **_DIVERSITY}

    def make(objective: Objective, values: dict[str, Any], *, features: tuple[Feature, ...]) -> Recipe[Any]:
        if values.get("validate") and "C" in values:
            raise ParameterError("C and validate=true cannot be combined: validate chooses C")
        titles = values.pop("titles", None)
        learner = find()(**{key: values.pop(key) for key in parameters(find()) if key in values})
        texts = None if titles is None else read_fields(titles)
        return DiversityRecipe(learner, document_features=tuple(map(str, features)), titles=texts, **values)

    return ModelKind(lambda: cleandoc(find().__doc__).partition("\n")[0].rstrip("."), options, make, diversifies=True)


def _source_model(kind: type, recipe: Callable[..., Recipe], summary: str, *without: str, **more: Any) -> ModelKind:
    """Make a model of the features that are tuned, with the options of a class."""

    def make(objective: Objective, values: dict[str, Any], *, features: tuple[Feature, ...], pool: Pool) -> Recipe:
        sources = FeatureSources(
            pool=pool, more=features, **{name: values.pop(name) for name in _SOURCES if name in values}
        )
        return recipe(objective, sources, **values)

    def options() -> dict[str, Parameter]:
        return {**_SOURCES, **parameters(kind, "objective", *without)}

    return ModelKind(lambda: summary, options, make, pool="sd", union=True, **more)


def _tuned_model(summary: str, model: BaselineRecipe | RM3Recipe) -> ModelKind:
    """Describe a model whose options are the values to try for the parameters that it tunes."""
    known = {**parameters(RM3Stage), **parameters(FeatureParameters)}
    grid = {
        name: replace(
            known[name], annotation=tuple.__class_getitem__((known[name].annotation, ...)), default=GRID[name]
        )
        for name in model.tuned
    }

    def make(objective: Objective, values: dict[str, Any]) -> Recipe:
        return replace(model, objective=objective, grid={**GRID, **values})

    tuned = f"{summary}, tuned over the values of its options"
    return ModelKind(lambda: tuned, lambda: {**grid, **_QUERIES}, make)


_OPTIONS = parameters(ModelOptions)
_QUERIES, _PRESELECTION = (
    {name: _OPTIONS[name] for name in names}
    for names in (("first_sentence", "stop_words"), ("preselect", "preselect_weight"))
)
_SOURCES = parameters(FeatureSources, "pool")
_DIVERSITY = {**parameters(DiversityRecipe, "document_features", "picks"), "titles": _OPTIONS["titles"]}
_RANKERS: Mapping[str, ModelKind] = {
    "automatic": _source_model(
        AutomaticRecipe,
        lambda objective, sources, **options: AutomaticRecipe(objective, sources=sources, **options),
        "the best of baselines and learned models, or an average",
        "sources",
        "general",
        baselines=tuple(f"tuned {system}" for system in BASELINE_SYSTEMS),
        proposes_measure=True,
    ),
    "mrf": _feature_model("mrf", "features of term dependence, added one by one, each with its best weight"),
    "listwise": _feature_model("listwise", "all features, weighted by listwise regression"),
    "coordinate-ascent": _feature_model("coordinate-ascent", "all features, weighted by coordinate ascent"),
    "bm25": _tuned_model("BM25", BaselineRecipe(BASELINES["bm25"])),
    "ql": _tuned_model("query likelihood", BaselineRecipe(BASELINES["ql"])),
    "sdm": _tuned_model("the sequential dependence model", BaselineRecipe(BASELINES["sdm"])),
    "mrf-lm": _tuned_model("the full dependence model", BaselineRecipe(BASELINES["mrf-lm"])),
    "mrf-bm25": _tuned_model("full dependence by BM25", BaselineRecipe(BASELINES["mrf-bm25"])),
    "rm3": _tuned_model("RM3 after BM25", RM3Recipe()),
    "lambdamart": _source_model(
        LambdaMART,
        lambda objective, sources, **options: LambdaMARTRecipe(LambdaMART(objective, **options), sources=sources),
        "trees of tuned RM3, MRF and manifold ranking, by LightGBM",
    ),
}
MODEL_KINDS: Mapping[str, ModelKind] = {
    **_RANKERS,
    **{
        name: _feature_model(name, f"all features, weighted by {entry.value}")
        for name, entry in registered("learner").items()
        if name not in _RANKERS
    },
    **{name: _diversifier(name) for name in registered("diversity learner")},
}
"""The models by name: greylag's that rank, one for each learner of other packages, and those that diversify."""
TUNED = (*BASELINES, "rm3")
"""The names of all models whose parameters are tuned, and nothing else."""
