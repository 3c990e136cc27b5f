"""Given aspects of queries, such as the sub-questions of a topic or query suggestions, for xQuAD and PM-2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from greylag.diversity.stage import GreedyStage
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.index.positional import PositionalIndex
from greylag.ranking import BoolArray, FloatArray, Ranking
from greylag.trec import read_aspects

Aspects = Mapping[str, Sequence[str]]
"""The texts of a query's aspects, by qid."""


@dataclass(frozen=True)
class AspectStage(GreedyStage):
    """A greedy stage that diversifies by the given aspects of a query."""

    readers: ClassVar = {"aspects": read_aspects}

    index: PositionalIndex
    aspects: Aspects

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which documents are in the index."""
        return self.index.knows(docids)

    def relevance(self, candidates: Ranking) -> FloatArray:
        """P(d|a) of each candidate and aspect; see `aspect_relevance`."""
        return aspect_relevance(self.index, candidates, self.aspects.get(candidates.qid, ()))


def aspect_relevance(index: PositionalIndex, candidates: Ranking, texts: Sequence[str]) -> FloatArray:
    """How relevant each candidate is to each aspect, in [0, 1], shape (n, aspects).

    It is BM25 of the aspect's text, divided by the candidates' highest; 0 for an aspect that no candidate matches.
    """
    bm25 = FeatureExtractor(index, (FeatureSpec("FI", "term", "BM25"),))
    columns = [bm25(Ranking(candidates.qid, text, candidates.docids, candidates.scores))[:, 0] for text in texts]
    scores = np.array(columns, dtype=np.float64).reshape(len(columns), len(candidates)).T
    highest = scores.max(axis=0, initial=0.0)
    relevance: FloatArray = scores / np.where(highest > 0, highest, 1.0)
    return relevance
