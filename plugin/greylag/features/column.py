"""Features whose values a file has, such as LETOR text: ``column:25``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar

from greylag.base import ParameterError
from greylag.features.feature import Evidence, Feature, Values

if TYPE_CHECKING:
    from greylag.index import PositionalIndex


@dataclass(frozen=True)
class Column(Evidence):
    """A column of a feature file, spelt ``column:NAME``, or by its number alone."""

    form: ClassVar[str] = "column:{name}"
    uses_ranking: ClassVar[bool] = False
    needs_index: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False

    # A model has only the name; `RankingModel.with_columns` gives it the values of a file at hand.
    name: str
    values: Values | None = field(default=None, compare=False, repr=False)

    def bind(self, index: PositionalIndex | None) -> Values:
        """Bind the function of values; `ParameterError` if there is none."""
        if self.values is None:
            raise ParameterError(
                f"feature {self} is a column of a feature file: rank the documents of one, as greylag rerank --letor "
                "FILE does, or model.with_columns(read_letor(FILE))"
            )
        return self.values


def as_feature(spec: Feature | str) -> Feature:
    """Return the feature of a column of `RankingData`; a bare name is a column of a file."""
    return spec if isinstance(spec, Feature) else Column(spec)
