"""Aspects of queries, such as the sub-questions of a topic or query suggestions, for xQuAD and PM-2."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from greylag.base import (
    BoolArray,
    FloatArray,
    ParameterError,
    Ranking,
    RunLike,
    as_run,
    by_label,
    check_sequences,
    has_labels,
    report_missing,
)
from greylag.diversity.stage import DiversityStage
from greylag.evaluation import AspectScores, read_aspects
from greylag.features import FeatureExtractor, FeatureSpec
from greylag.index import PositionalIndex

Aspects = Mapping[str, Sequence[str]] | AspectScores | Sequence[RunLike] | Callable[[Ranking], Any]
"""Texts of aspects by qid; scores by qid, aspect and docid; a run for each aspect; or a function from the candidates to
scores of shape (n, aspects).
"""
Scale = Literal["none", "max", "sigmoid"]


@dataclass(frozen=True)
class AspectStage(DiversityStage):
    """A greedy stage that diversifies by the given aspects of a query."""

    needs = frozenset({"aspects"})
    readers: ClassVar = {"aspects": read_aspects}
    by_query = ("aspects",)

    index: PositionalIndex | None = None
    aspects: Aspects | None = None
    _: KW_ONLY
    scale: Scale | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.aspects is None:
            raise ParameterError("aspects=FILE is missing")
        if self._has_texts and self.index is None:
            raise ParameterError("aspects that are texts are scored by BM25, which needs an index")

    @property
    def reads_query(self) -> bool:  # type: ignore[override]
        """True if a function scores the aspects: it may read the query."""
        return callable(self.aspects)

    @cached_property
    def _by_query(self) -> Mapping[str, Any]:
        """Texts of aspects, or scores by aspect and docid, by qid."""
        given: Any = self.aspects
        if not has_labels(given):
            check_sequences(aspects=given)
            by_query: dict[str, dict[int, dict[str, float]]] = {}
            for number, run in enumerate(map(as_run, given)):
                for qid, scores in run.to_dict().items():
                    by_query.setdefault(qid, {})[number] = scores
            return by_query
        aspects = by_label(given, "query")
        for texts in (value for value in aspects.values() if not has_labels(value)):
            check_sequences(aspects=texts)
        return {
            qid: {name: by_label(scores, "document") for name, scores in value.items()} if has_labels(value) else value
            for qid, value in aspects.items()
        }

    @cached_property
    def _has_texts(self) -> bool:
        return not callable(self.aspects) and not any(map(has_labels, self._by_query.values()))

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents can be scored: all, or the index's if aspects are texts."""
        return self.index.knows(docids) if self.index and self._has_texts else super().knows(docids)

    def relevance(self, candidates: Ranking) -> FloatArray:
        """Compute P(d|a) of each candidate and aspect, shape (n, aspects); 0 where there is no score."""
        # By aspect, "max" divides scores by the candidates' highest, "sigmoid" is 1 / (1 + exp(-s)), "none" leaves
        # them.
        assert self.aspects is not None
        if callable(self.aspects):
            scores = np.asarray(self.aspects(candidates), dtype=np.float64)
            # NaN is no score, and counts as 0 below; infinity could not be scaled.
            if scores.ndim != 2 or len(scores) != len(candidates) or np.isinf(scores).any():
                raise ParameterError(
                    f"query {candidates.qid}: aspects gave an array of shape {scores.shape} for {len(candidates)} "
                    "candidates: it must give one row of finite numbers for each, and NaN for no score"
                )
        else:
            aspects = self._by_query.get(candidates.qid, ())
            columns = _looked_up(aspects, candidates) if has_labels(aspects) else self._bm25(aspects, candidates)
            scores = np.array(columns, dtype=np.float64).reshape(len(columns), len(candidates)).T
        return _scaled(scores, self.scale or ("max" if self._has_texts else "none"), candidates.qid)

    def _bm25(self, texts: Sequence[str], candidates: Ranking) -> list[FloatArray]:
        """Score each text by BM25."""
        assert self.index is not None
        # One extractor for all texts, which share what it has read of the index.
        bm25 = FeatureExtractor(self.index, (FeatureSpec("FI", "term", "BM25"),))
        known = (" " if text == "" else text for text in texts)  # "" would be a text that is unknown
        return [bm25(Ranking(candidates.qid, text, candidates.docids, candidates.scores))[:, 0] for text in known]


def _looked_up(by_aspect: Mapping[Any, Mapping[str, float]], candidates: Ranking) -> list[list[float]]:
    """Look up the scores of each aspect, NaN where there is none; documents without any score are reported."""
    lost = [docid for docid in candidates.docids if not any(docid in scores for scores in by_aspect.values())]
    consequence = "they are relevant to none"
    report_missing(consequence, candidates.qid, lost, len(candidates), what="without a score of an aspect")
    return [[scores.get(docid, np.nan) for docid in candidates.docids] for scores in by_aspect.values()]


def _scaled(scores: FloatArray, scale: Scale, qid: str) -> FloatArray:
    """Scale scores as `AspectStage.relevance` requires."""
    # Checked before scaling: a negative score under "max", or a logit taken for a probability, would rank without an
    # error.
    low, high = (float(bound(scores, initial=0.0, where=~np.isnan(scores))) for bound in (np.min, np.max))
    if scale == "sigmoid":
        with np.errstate(over="ignore"):
            scores = 1.0 / (1.0 + np.exp(-scores))
    elif low < 0 or (scale == "none" and high > 1):
        needed = "at least 0 for scale=max" if scale == "max" else "probabilities without a scale"
        raise ParameterError(
            f"query {qid}: an aspect's score is {low if low < 0 else high:g}: scores must be {needed}; scale=max is "
            "for scores from 0 up, such as BM25's, and scale=sigmoid for logits, such as a cross-encoder's"
        )
    relevance = np.where(np.isnan(scores), 0.0, scores)
    if scale == "max":
        # By aspect, so that an aspect with long texts, whose BM25 is higher, does not outweigh the others.
        highest = relevance.max(axis=0, initial=0.0)
        relevance = relevance / np.where(highest > 0, highest, 1.0)
    return relevance
