"""Features with parameters learned from judged queries, stored in the model's file."""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self

from greylag.base import ModelError
from greylag.features.feature import Evidence, Feature, Normalised, split_method
from greylag.features.spelling import parse_feature


class LearnedFeature(Evidence):
    """Evidence with parameters that were learned; two are equal if their parameters are.

    It is spelt ``KIND:DIGEST``, and is read from the file of a model, which has the parameters under this name.
    """

    form: ClassVar[str] = "{kind}:{digest}"
    kind: ClassVar[str]

    def __str__(self) -> str:
        return f"{self.kind}:{self.digest}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LearnedFeature) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    @cached_property
    def digest(self) -> str:
        """The beginning of the SHA-256 of the parameters."""
        # It is the feature's spelling: with other parameters it is another feature, for caches, too.
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()[:12]

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Return the parameters as JSON values."""

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Any, parse: Callable[[str], Feature]) -> Self:
        """Make the feature of these parameters; `parse` reads the features that it combines."""

    @abstractmethod
    def outline(self) -> list[str]:
        """Describe the learned parameters in a few lines."""

    def parts(self) -> tuple[Feature, ...]:
        """Return the features that it combines."""
        return ()


def learned_features(features: Iterable[Feature]) -> dict[str, LearnedFeature]:
    """Return the learned features among these and what they combine, by name; inner ones come first."""
    by_name: dict[str, LearnedFeature] = {}
    for feature in features:
        base = feature.base
        if isinstance(base, LearnedFeature):
            # Inner ones first, so that a reader of the file knows the parts of what it makes.
            by_name |= {**learned_features(base.parts()), str(base): base}
    return by_name


def read_learned(content: Mapping[str, Any], kinds: Iterable[type[LearnedFeature]]) -> Callable[[str], Feature]:
    """Return a parser of features that knows the learned features of a model's file."""
    known: dict[str, Feature] = {}

    def parse(text: str) -> Feature:
        base, method = split_method(text)
        if base not in known:
            return parse_feature(text)
        return known[base] if method is None else Normalised(known[base], method)  # type: ignore[arg-type]

    by_kind = {kind.kind: kind for kind in kinds}
    for name, entries in content.items():
        kind = name.partition(":")[0]
        if kind not in by_kind:
            raise ModelError(f"unknown learned feature {name!r:.60}: use {' or '.join(by_kind)}")
        try:
            known[name] = by_kind[kind].from_dict(entries, parse)
        except LookupError as error:  # it has the entries of another kind
            raise ModelError(f"learned feature {name!r:.60} lacks {error}") from None
    return parse
