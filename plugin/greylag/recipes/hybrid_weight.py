"""The weight of hybrid search as a model that is trained, held out and kept as others are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from functools import partial
from typing import Any, ClassVar, Self, TypedDict

import numpy as np

from greylag import __version__
from greylag.base import FloatArray, ParameterError, Run, check_positive, parallel_map
from greylag.index import PositionalIndex, Vectors
from greylag.learning import Provenance, SavedModel, check_collection, judged_topics
from greylag.recipes.fitted import Fitted
from greylag.recipes.hybrid import MEASURE, HybridSearch, shrunk_weight, values_by_weight
from greylag.recipes.recipe import Fit, Recipe


class _Layout(TypedDict):
    weight: float
    fingerprint: str
    provenance: Provenance


@dataclass(frozen=True)
class HybridModel(SavedModel):
    """The weight of `HybridSearch` that was learned on a collection, by an encoder."""

    kind = "greylag hybrid weight"
    schema = 1
    command = "greylag train --vectors"
    layout = _Layout
    runs: ClassVar[tuple[str, ...]] = ()  # it fuses none

    weight: float
    fingerprint: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_positive(weight=self.weight)

    def on(self, index: PositionalIndex, *, transfer: bool = False) -> float:
        """Return the weight for an index; `ModelError` if it is of another collection, unless `transfer` allows it."""
        check_collection(self.fingerprint, index, transfer=transfer)
        return self.weight

    def as_dict(self) -> dict[str, Any]:
        """Return the entries of the file, as JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Make the model of these entries, whose types are those of the layout."""
        return cls(**{name: content[name] for name in _Layout.__annotations__})


@dataclass(frozen=True)
class HybridRecipe(Recipe[HybridModel]):
    """Learns the weight from judged rankings, such as BM25's, which `HybridSearch.extend` ranks with those nearest."""

    objective = MEASURE

    vectors: Vectors
    _: KW_ONLY
    k: int = 1000

    def prepare(
        self, rankings: Run, qrels: Any, index: PositionalIndex, *, n_jobs: int | None = None
    ) -> Fit[HybridModel]:
        """Rank each query's candidates by all weights."""
        search, kept = HybridSearch(index, self.vectors, k=self.k), judged_topics(rankings, qrels)
        hits = [*parallel_map(search.rank, [rankings[qid] for qid in kept], what="search", n_jobs=n_jobs)]
        values = dict(zip(kept, values_by_weight(hits, qrels), strict=True))
        return partial(_fit, values, index.fingerprint)

    def stage(self, fitted: Fitted[HybridModel], index: PositionalIndex | None) -> Any:
        """Return the stage that ranks a query's candidates by the weight."""
        return HybridSearch(index, self.vectors, k=self.k, weight=fitted.model.weight).extend  # type: ignore[arg-type]


def _fit(
    values: Mapping[str, FloatArray], fingerprint: str, qids: Sequence[str], *, n_jobs: int | None = None
) -> Fitted[HybridModel]:
    """Learn the weight from these queries."""
    queries = tuple(qid for qid in qids if qid in values)
    if not queries:
        raise ParameterError(
            f"none of {len(qids)} training topics has a relevant document: judge more, or ask for more folds"
        )
    weight = shrunk_weight(np.array([values[qid] for qid in queries]))
    model = HybridModel(weight, fingerprint, {"greylag": __version__, "queries": [*queries]})
    topics = f"{len(queries)} topic{'s' * (len(queries) != 1)}"
    outcome = f"The cosines weigh {weight:.3g} times what they do without judgements ({topics})."
    return Fitted(model, queries, float("nan"), (), outcome=outcome)
