"""The base classes of features, the operator ``**``, features computed by Python code, and normalised features."""

from __future__ import annotations

import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from greylag.base import (
    FloatArray,
    FormatError,
    ParameterError,
    Ranking,
    check_sequences,
    file_digest,
    is_file,
    naming,
    near_one,
    parameters,
    shown,
    spell,
    unit_range,
)

if TYPE_CHECKING:
    from greylag.index import PositionalIndex

Values = Callable[[Ranking], FloatArray]
"""From a ranking to the values of its documents in order, shape (n,); NaN where a document has none."""


Function = Callable[[Ranking], Any]
"""From a ranking to a value for each of its documents in order (NaN for none), or to a ranking, as stages are."""


class _Joins:
    """Has the operator ``**``."""

    __slots__ = ()

    def __pow__(self, other: Any) -> FeatureUnion:
        return _union(self, other)

    def __rpow__(self, other: Any) -> FeatureUnion:
        return _union(other, self)


class Feature(_Joins):
    """A feature of a ranked document: a frozen dataclass. ``str`` gives its only spelling, which `parse_feature` reads.

    ``a ** b`` puts features side by side. The other operand may be a stage or a function, too, which becomes a
    `PythonFeature` of its own name.

    Attributes
    ----------
    form : str
        The spelling, with the names of its fields in braces.
    file_fields : tuple of str
        The fields that are names of files.
    uses_ranking : bool
        Whether its values depend on the ranking as well as on query and document.
    needs_index : bool
        Whether only documents of the index have values. A feature that does not may be bound to no index, None.
    reads_query : bool
        Whether its values depend on the text of the query.
    """

    form: ClassVar[str]
    file_fields: ClassVar[tuple[str, ...]] = ()
    uses_ranking: ClassVar[bool] = True
    needs_index: ClassVar[bool] = True
    reads_query: ClassVar[bool] = True

    def __str__(self) -> str:
        return re.sub(r"{(\w+)}", lambda name: spell(getattr(self, name[1])), self.form)

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters, and digests of the files, since another machine may have other files."""
        # A model that is sent to a cluster names files; a worker there may see other content under the same name.
        sent = {file: file_digest(file) for file in self.files() if is_file(file)}
        return {**vars(self), **({"_sent": sent} if sent else {})}

    def check_files(self) -> None:
        """Raise `FormatError` if a file is not that of the process that sent the feature here."""
        for file, digest in vars(self).get("_sent", {}).items():
            if not is_file(file) or file_digest(file) != digest:
                reason = f"is another file on {platform.node()}, or none: give a whole name on a shared disk"
                raise FormatError(file, None, reason)

    @property
    def base(self) -> Feature:
        """The feature without its normalisation, if it has one."""
        return self

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse a text of the class's form, whose fields are read by their types; the inverse of ``str``."""
        match = re.fullmatch(re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(cls.form)), text)
        if match is None:
            form = re.sub(r"{(\w+)}", lambda name: name[1].upper(), cls.form)
            raise ParameterError(f"feature {text!r:.200} is not of the form {form}")
        known = parameters(cls)
        with naming(f"feature {text:.200}"):
            return cls(**{name: known[name].read_text(part) for name, part in match.groupdict().items()})

    def files(self) -> list[str]:
        """Return the names of the files that the feature is read from."""
        return [getattr(self, name) for name in self.file_fields]

    def place_files(self, place: Callable[[str], str]) -> Self:
        """Return the feature with each file replaced by ``place(file)``."""
        files = {name: place(getattr(self, name)) for name in self.file_fields}
        return replace(self, **files) if files else self  # type: ignore[type-var]


class FeatureUnion(_Joins, tuple[Feature, ...]):
    """Features side by side, the columns of a matrix: the tuple that ``feature ** feature`` makes."""

    __slots__ = ()


class Evidence(Feature, ABC):
    """A feature that is not a sum over cliques: a function of the ranking computes it."""

    @abstractmethod
    def bind(self, index: PositionalIndex) -> Values:
        """Load the feature's data; return its function from a ranking to values."""

    def bind_beside(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Bind, and share with the other features of an extractor what `shared` has by name; by default, nothing."""
        return self.bind(index)


@dataclass(frozen=True)
class PythonFeature(Evidence):
    """A feature that a Python function or a stage computes, spelt ``python:NAME``.

    A model file has only the name. Before the model is used, `RankingModel.supply` gives it the function again:
    ``ModelRanker(model.supply({"bert": score_with_bert}), index)``.

    Parameters
    ----------
    name : str
        Of letters, digits, ``_``, ``-`` and ``.``.
    function : callable, optional
        From a `Ranking` to a value for each of its documents (NaN for none), or a stage, whose scores are the values.
        Not compared.

    Examples
    --------
    >>> str(PythonFeature("words", lambda ranking: [len(docid) for docid in ranking.docids]))
    'python:words'
    """

    form: ClassVar[str] = "python:{name}"
    needs_index: ClassVar[bool] = False

    name: str
    function: Function | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not re.fullmatch(r"[\w.-]+", self.name, re.ASCII):
            raise ParameterError(
                f"{shown(self.name)} cannot name a feature: use letters, digits, _, - and ., as in "
                "PythonFeature('bert', score)"
            )

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the function, with a check of its results."""
        if self.function is None:
            raise ParameterError(
                f"feature {self} is computed by a Python function, which is not given: use "
                f"model.supply({{{self.name!r}: function}}), or PythonFeature({self.name!r}, function)"
            )
        function = self.function

        def values(ranking: Ranking) -> FloatArray:
            # Checked every time: a wrong shape would be broadcast to all documents without an error.
            result = function(ranking)
            if isinstance(result, Ranking):
                return scores_of(result, ranking.docids)
            try:
                numbers: FloatArray = np.asarray(result, dtype=np.float64)
            except (TypeError, ValueError):
                kind = type(result).__name__
                raise ParameterError(f"feature {self} gave a {kind}: it must give numbers or a Ranking") from None
            if numbers.shape != (len(ranking),) or np.isinf(numbers).any():
                raise ParameterError(
                    f"feature {self} gave an array of shape {numbers.shape} for query {ranking.qid}: it must give a "
                    f"finite number, or NaN, for each of the {len(ranking)} documents"
                )
            return numbers

        return values


def unique_features(features: Sequence[Feature]) -> tuple[Feature, ...]:
    """Return `features` as a tuple; `ParameterError` if it is empty or has a duplicate or anything else."""
    if isinstance(features, Feature):
        raise ParameterError(f"{features} is one feature: give a tuple of features, ({features},)")
    check_sequences(features=features)
    if not features:
        raise ParameterError("no features are given")
    for feature in features:
        if not isinstance(feature, Feature):
            how = "read texts with parse_features('FI/term/LM,SD/ordered/LM-O-4')"
            how = "name it, as in PythonFeature('mine', function)" if callable(feature) else how
            raise ParameterError(f"{shown(feature)} is not a feature: {how}")
    if len(set(features)) < len(features):
        twice = next(feature for feature in features if list(features).count(feature) > 1)
        raise ParameterError(f"feature {twice} is given twice")
    return tuple(features)


def scores_of(ranking: Ranking, docids: tuple[str, ...]) -> FloatArray:
    """Return the scores of documents in a ranking, shape (n,); NaN for those that it lacks."""
    scores = dict(zip(ranking.docids, ranking.scores.tolist(), strict=True))
    return np.fromiter(map(scores.get, docids, repeat(np.nan)), np.float64, len(docids))


def _union(left: Any, right: Any) -> FeatureUnion:
    operands = _features(left), _features(right)
    return NotImplemented if None in operands else FeatureUnion(sum(filter(None, operands), ()))


def _features(operand: Any) -> tuple[Feature, ...] | None:
    """Return the features of one side of ``**``; None if it is neither features nor a stage or function."""
    if isinstance(operand, tuple) and all(isinstance(feature, Feature) for feature in operand):
        return operand
    if isinstance(operand, Feature):
        return (operand,)
    if callable(operand):
        return (PythonFeature(getattr(operand, "__name__", type(operand).__name__), operand),)
    return None


Normalisation = Literal["minmax", "z", "rank"]


def z_scores(values: FloatArray) -> FloatArray:
    """Standardise each row, shape (..., n): (x - mean) / population standard deviation; 0 if its values are equal."""
    values = near_one(values)
    differences = values - values.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(differences).mean(axis=-1, keepdims=True))
    # The mean of equal values may be off by a rounding, which a division would turn into scores of 1.
    spread[np.ptp(values, axis=-1, keepdims=True) == 0] = 0.0
    return np.asarray(np.divide(differences, spread, out=np.zeros(values.shape), where=spread > 0))


def rank_scores(values: FloatArray) -> FloatArray:
    """Return the share of a row's other values that are lower, ties counting half, shape (..., n); 0.5 if alone."""
    from scipy.stats import rankdata  # slow to import

    if (n := values.shape[-1]) < 2:
        return np.full(values.shape, 0.5)
    return np.asarray((rankdata(values, axis=-1) - 1) / (n - 1))


NORMALISATIONS = {"minmax": unit_range, "z": z_scores, "rank": rank_scores}
"""The functions by name, from values of a query's documents, shape (..., n) with n >= 1, to as many others."""


@dataclass(frozen=True)
class Normalised(Feature):
    """A feature that is normalised over the documents ranked for the query, spelt ``FEATURE@METHOD``.

    Documents without a value are left out.

    Parameters
    ----------
    feature : Feature
        Any feature that is not normalised yet.
    method : "minmax", "z" or "rank"
        "minmax": (x - min) / (max - min); 0.5 if all values are equal. "z": less the mean and divided by the standard
        deviation (of the population); 0 if all values are equal. "rank": the share of the other documents with a lower
        value, an equal value counting as half.
    """

    form: ClassVar[str] = "{feature}@{method}"

    feature: Feature
    method: Normalisation

    def __post_init__(self) -> None:
        known = ", ".join(NORMALISATIONS)
        if self.method not in NORMALISATIONS:
            raise ParameterError(f"unknown normalisation {self.method!r} in feature {self}: use {known}")
        if isinstance(self.feature, Normalised):
            raise ParameterError(f"feature {self} is normalised twice: use one of {known}")

    @property
    def base(self) -> Feature:
        """The feature without its normalisation."""
        return self.feature

    @property
    def reads_query(self) -> bool:  # type: ignore[override]
        """Whether the feature's do."""
        return self.feature.reads_query

    def files(self) -> list[str]:
        """Return the files of the feature."""
        return self.feature.files()

    def place_files(self, place: Callable[[str], str]) -> Normalised:
        """Normalise the placed feature in the same way."""
        return replace(self, feature=self.feature.place_files(place))


def split_method(text: str) -> tuple[str, str | None]:
    """Split the normalisation off a spelling; None if it has none."""
    base, _, method = text.rpartition("@")
    return (base, method) if base and method in NORMALISATIONS else (text, None)


def derive(feature: Feature, values: FloatArray) -> FloatArray:
    """Derive a feature of one query's documents, shape (n,), from its `base`; NaN becomes the least value, or 0."""
    known, out = ~np.isnan(values), np.zeros(len(values))
    if known.any():
        method = feature.method if isinstance(feature, Normalised) else None
        out[known] = NORMALISATIONS[method](values[known]) if method else values[known]
        # A run's only hit is halfway, and the documents that the run lacks are at the lower end.
        out[~known] = 0.0 if method == "minmax" else out[known].min()
    return out


def supply(features: tuple[Feature, ...], functions: Mapping[str, Function]) -> tuple[Feature, ...]:
    """Return the features, with the functions for those of type `PythonFeature`, by name."""
    names = {feature.base.name for feature in features if isinstance(feature.base, PythonFeature)}
    for name in functions:
        if name not in names:
            known = ", ".join(sorted(names)) or "none"
            raise ParameterError(f"there is no feature python:{name}; the names of functions needed: {known}")

    def supplied(feature: Feature) -> Feature:
        if isinstance(feature, Normalised):
            return replace(feature, feature=supplied(feature.feature))
        if isinstance(feature, PythonFeature) and feature.name in functions:
            return PythonFeature(feature.name, functions[feature.name])
        return feature

    return tuple(map(supplied, features))
