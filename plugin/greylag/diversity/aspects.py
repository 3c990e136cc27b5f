"""Given aspects of queries, such as the sub-questions of a topic or query suggestions, for xQuAD and PM-2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from greylag.diversity.stage import GreedyStage
from greylag.errors import FormatError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.index.positional import PositionalIndex
from greylag.ranking import BoolArray, FloatArray, Ranking
from greylag.runtime.files import Faults, read_text

Aspects = Mapping[str, Sequence[str]]
"""The texts of a query's aspects, by qid."""


def read_aspects(path: str | Path) -> dict[str, tuple[str, ...]]:
    """Read aspects, a line ``QID TAB NAME TAB TEXT`` for each, in the file's order.

    Raises
    ------
    FormatError
        If a line does not have three fields, a field is empty, an aspect is given twice, or there are none.
    """
    with Faults(path, lenient=None) as faults:
        lines = read_text(path, faults).decode().splitlines()
    aspects: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split("\t")]
        if len(fields) != 3 or not all(fields):
            raise FormatError(path, number, f"not of the form QID TAB NAME TAB TEXT: {line!r:.60}")
        qid, name, text = fields
        if name in aspects.setdefault(qid, {}):
            raise FormatError(path, number, f"query {qid!r} has the aspect {name!r} twice; keep one")
        aspects[qid][name] = text
    if not aspects:
        raise FormatError(path, None, "no aspects; a line is QID TAB NAME TAB TEXT")
    return {qid: tuple(named.values()) for qid, named in aspects.items()}


@dataclass(frozen=True)
class AspectStage(GreedyStage):
    """A greedy stage that diversifies by the given aspects of a query.

    Parameters
    ----------
    index : PositionalIndex
        The collection. A document that it lacks keeps its rank.
    aspects : mapping of qid to sequence of str
        The texts of the aspects, as `read_aspects` reads them.
    """

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
