"""What all features share, the operator ``**`` that puts them side by side, and features given by Python code."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, Ranking

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

Values = Callable[[Ranking], FloatArray]
"""From a ranking to the values of its documents in order, shape (n,); NaN where a document has none."""


class Function(Protocol):
    """From a ranking to a value for each of its documents in order (NaN for none), or to a ranking, as stages are."""

    def __call__(self, ranking: Ranking, /) -> Ranking | ArrayLike:
        """The values, or a ranking whose scores are the values."""


class Feature:
    """A feature of a ranked document. ``str`` of it is its one spelling, which `parse_feature` reads.

    ``a ** b`` puts features side by side. The other operand may be a stage or a function, too, which becomes a
    `Supplied` feature of its own name.

    Attributes
    ----------
    uses_ranking : bool
        Whether its values depend on the ranking as well as on query and document.
    needs_index : bool
        Whether only documents of the index have values.
    """

    uses_ranking: ClassVar[bool] = True
    needs_index: ClassVar[bool] = True

    def __pow__(self, other: Any) -> FeatureUnion:
        return _union(self, other)

    def __rpow__(self, other: Any) -> FeatureUnion:
        return _union(other, self)


class FeatureUnion(tuple[Feature, ...]):
    """Features side by side, the columns of a matrix: the tuple that ``feature ** feature`` makes.

    Examples
    --------
    >>> union = Score() ** parse_feature("FI/term/LM") ** ManifoldRanker(index)  # doctest: +SKIP
    >>> FeatureExtractor(index, union)  # doctest: +SKIP
    """

    __slots__ = ()

    def __pow__(self, other: Any) -> FeatureUnion:
        return _union(self, other)

    def __rpow__(self, other: Any) -> FeatureUnion:
        return _union(other, self)


class Evidence(Feature, ABC):
    """A feature that is computed from a ranking rather than from the counts of the index."""

    @abstractmethod
    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Open what the feature needs, and return the function that computes its values.

        Parameters
        ----------
        index : PositionalIndex
        shared : dict
            What the features of one extractor may share, by its spelling.
        """


@dataclass(frozen=True)
class Supplied(Evidence):
    """A feature that a Python function or a stage computes, spelt ``python:NAME``.

    A model file has only the name. Before the model is used, `LinearModel.supply` gives it the function again:
    ``MRFRanker(model.supply({"bert": score_with_bert}), index)``.

    Parameters
    ----------
    name : str
        Of letters, digits, ``_``, ``-`` and ``.``.
    function : callable, optional
        From a `Ranking` to a value for each of its documents (NaN for none), or a stage, whose scores are the values.
        Not part of comparisons.

    Raises
    ------
    ParameterError
        If the name has other characters, as that of a lambda has.

    Examples
    --------
    >>> str(Supplied("words", lambda ranking: [len(docid) for docid in ranking.docids]))
    'python:words'
    """

    needs_index: ClassVar[bool] = False

    name: str
    function: Function | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.-]+", self.name, re.ASCII):
            raise ParameterError(
                f"{self.name!r} cannot name a feature: use letters, digits, _, - and ., as in Supplied('bert', score)"
            )

    def __str__(self) -> str:
        return f"python:{self.name}"

    @classmethod
    def parse(cls, text: str) -> Supplied:
        """Parse ``python:NAME``; the inverse of ``str``, without the function."""
        return cls(text.removeprefix("python:"))

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """The function, whose results are checked.

        Raises
        ------
        ParameterError
            If the function is not given; when called, if it does not give a finite number or NaN for each document.
        """
        if self.function is None:
            raise ParameterError(
                f"feature {self} is computed by a Python function, which is not given: use "
                f"model.supply({{{self.name!r}: function}}), or Supplied({self.name!r}, function)"
            )
        function = self.function

        def values(ranking: Ranking) -> FloatArray:
            result = function(ranking)
            found = scores_of(result, ranking.docids) if isinstance(result, Ranking) else self._numbers(result)
            if found.shape != (len(ranking),) or np.isinf(found).any():
                raise ParameterError(
                    f"feature {self} gave an array of shape {found.shape} for query {ranking.qid}: it must give a "
                    f"finite number, or NaN, for each of the {len(ranking)} documents"
                )
            return found

        return values

    def _numbers(self, result: Any) -> FloatArray:
        try:
            return np.asarray(result, dtype=np.float64)
        except (TypeError, ValueError):
            kind = type(result).__name__
            raise ParameterError(f"feature {self} gave a {kind}: it must give numbers or a Ranking") from None


def scores_of(ranking: Ranking, docids: tuple[str, ...]) -> FloatArray:
    """The scores of documents in a ranking, shape (n,); NaN for those that it lacks."""
    scores = dict(zip(ranking.docids, ranking.scores.tolist(), strict=True))
    return np.array([scores.get(docid, np.nan) for docid in docids], dtype=np.float64)


def complete(values: FloatArray) -> FloatArray:
    """The values, shape (n,), with the least one in place of each NaN; 0 if all are NaN."""
    gaps = np.isnan(values)
    if not gaps.any():
        return values
    return np.where(gaps, 0.0 if gaps.all() else np.nanmin(values), values)


def _union(left: Any, right: Any) -> FeatureUnion:
    parts = _features(left), _features(right)
    return NotImplemented if None in parts else FeatureUnion(sum(filter(None, parts), ()))


def _features(operand: Any) -> tuple[Feature, ...] | None:
    """The features of one side of ``**``; None if it is neither features nor a stage or function."""
    if isinstance(operand, tuple) and all(isinstance(feature, Feature) for feature in operand):
        return operand
    if isinstance(operand, Feature):
        return (operand,)
    if callable(operand):
        return (Supplied(getattr(operand, "__name__", type(operand).__name__), operand),)
    return None
