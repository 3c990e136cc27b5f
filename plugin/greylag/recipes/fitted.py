"""The result of fitting a recipe: a model, and what was tried, tuned and chosen on its training queries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Generic, Self, cast

from typing_extensions import TypeVar

from greylag.base import html_text, visible
from greylag.evaluation import Scores
from greylag.features import as_feature
from greylag.learning import RankingData, SavedModel
from greylag.rankers import RankingModel
from greylag.recipes.choice import Candidate, Choice

M = TypeVar("M", bound=SavedModel, default=RankingModel)
"""The kind of model that a recipe makes."""


@dataclass(frozen=True, repr=False)
class Fitted(Generic[M]):
    """A model and how it was fitted; ``str`` is the training score with what was chosen.

    The model's provenance repeats the other fields for whoever reads its file.
    """

    model: M
    # To train on, all with a relevant document
    queries: tuple[str, ...]
    # The mean of the model's objective on them; NaN if it has none
    score: float
    # Features, systems, or parameters with their values
    chosen: tuple[str, ...]
    _: KW_ONLY
    # Of the automatic choice
    choice: Choice | None = field(default=None, compare=False)
    # Whether the model is the average of weights that were learned elsewhere and adapted, and of nothing else
    adapted: bool = False
    # What was tuned or picked on the same queries, to compare the model with
    baselines: Mapping[str, RankingModel] = field(default_factory=dict)
    # See `greylag.recipes.source_gains`; empty if that was not measured
    gains: Mapping[str, Any] = field(default_factory=dict)
    # The parameters whose tuned value is the lowest or highest that was tried, with both
    ends: Mapping[str, tuple[Any, Any]] = field(default_factory=dict)
    validation: Scores | None = field(default=None, compare=False)
    # Queries that chose among models, and were not trained on, without scores as in `validation`
    chosen_on: tuple[str, ...] = ()
    # The sentence of ``str`` for a model that diversifies
    outcome: str = ""

    @staticmethod
    def of(model: RankingModel, queries: Sequence[str], chosen: tuple[str, ...] = (), **more: Any) -> Fitted:
        """Make the result of learning weights on these queries; `chosen` are the model's features by default."""
        names = tuple(map(str, model.features))
        return Fitted(model, tuple(queries), model.training_scores[-1], chosen or names, **more)

    def __post_init__(self) -> None:
        weights = {
            name: dict(zip(map(str, model.features), model.weights, strict=True))
            for name, model in self.baselines.items()
        }
        entries: dict[str, Any] = {"baselines": weights} if weights else {}
        if self.choice is not None:
            entries["choice"] = self.choice.to_dict()
        if self.gains:
            entries["sources"] = self.gains
        if self.validation is not None:
            mean = float(self.validation.means[0])
            entries |= {"validation": list(self.validation.qids), "validation_score": mean}
        object.__setattr__(self, "model", _noted(self.model, entries))

    def __repr__(self) -> str:
        return visible(f"<{type(self).__name__}: {self}>")

    def __str__(self) -> str:
        if not isinstance(self.model, RankingModel):
            return self.outcome
        queries = "query" if len(self.queries) == 1 else "queries"
        measured = f"{self.model.objective} {self.score:.4f} on {len(self.queries)} training {queries}"
        return f"{measured} with {', '.join(self.chosen)}"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def noted(self, entries: Mapping[str, Any]) -> Self:
        """Add entries to the model's provenance."""
        return replace(self, model=_noted(self.model, entries))


def alone(candidate: Candidate, data: RankingData, model: RankingModel) -> RankingModel:
    """Make the model of a candidate with fixed weights for columns of the data, otherwise as `model`."""
    # Baselines have the model's collection, parameters and query form, so that only features and weights differ.
    features = tuple(as_feature(data.specs[column]) for column in data.columns_of(candidate.features))
    return replace(model, features=features, weights=candidate.weights, training_scores=(), provenance={})


def _noted(model: M, entries: Mapping[str, Any]) -> M:
    return cast(M, replace(cast(Any, model), provenance={**model.provenance, **entries}))
