"""Searches by their spelling: ``bm25``, ``ql(mu=500)``, ``bm25(k1=0.9)+rm3(fb_docs=5)``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from greylag.base import ParameterError, Source, nearest, parameters, read_call, read_options
from greylag.index.expansion import RM3Search
from greylag.index.lucene.lucene_index import BM25, LuceneIndex, QueryLikelihood
from greylag.index.positional import PositionalIndex

MODELS: Mapping[str, type[BM25 | QueryLikelihood]] = {"bm25": BM25, "ql": QueryLikelihood}
EXPANSIONS: Mapping[str, type[RM3Search]] = {"rm3": RM3Search}
"""Expansions of queries, which follow the plus."""
_PLUS = re.compile(r"\+(?![^()]*\))")  # outside parentheses


@dataclass(frozen=True)
class Search:
    """A search with its parameters, before an index is opened."""

    model: str
    options: Mapping[str, Any]
    expansion: str | None
    feedback: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The search without its parameters, such as bm25+rm3."""
        return self.model if self.expansion is None else f"{self.model}+{self.expansion}"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the model and of the expansion by name, those that are not given with their defaults."""
        kinds: list[tuple[type, Mapping[str, Any]]] = [(MODELS[self.model], self.options)]
        if self.expansion is not None:
            kinds.append((EXPANSIONS[self.expansion], self.feedback))
        return {
            name: given.get(name, parameter.default)
            for kind, given in kinds
            for name, parameter in parameters(kind, "k").items()
        }

    @classmethod
    def parse(cls, text: str) -> Search:
        """Parse a model, such as ``bm25(k1=0.9)``, or a model and an expansion, such as ``ql+rm3(fb_docs=5)``."""
        first, *rest = map(read_call, _PLUS.split(text))
        (model, options), (expansion, feedback) = first, rest[0] if rest else (None, {})
        if model not in MODELS:
            raise ParameterError(f"unknown search {model!r:.60}: {nearest(model, MODELS)}")
        if len(rest) > 1:
            raise ParameterError(f"{text!r:.100} expands the query twice: keep one expansion")
        options = read_options(model, options, parameters(MODELS[model], "k"))
        if expansion is None:
            return cls(model, options, None, {})
        if expansion not in EXPANSIONS:
            raise ParameterError(f"unknown expansion {expansion!r:.60}: {nearest(expansion, EXPANSIONS)}")
        return cls(model, options, expansion, read_options(expansion, feedback, parameters(EXPANSIONS[expansion])))

    def source(self, index: LuceneIndex | PositionalIndex, k: int = 1000) -> Source:
        """Make the search of an index for the top `k` documents; `ParameterError` if it needs Lucene and has none."""
        if isinstance(index, PositionalIndex):
            if self.name != "bm25":
                raise ParameterError(f"{self.name} needs Java, without which bm25 alone searches")
            return index.bm25(k, **self.options)
        search = MODELS[self.model](index, k=k, **self.options)
        return search if self.expansion is None else EXPANSIONS[self.expansion](search, **self.feedback)
