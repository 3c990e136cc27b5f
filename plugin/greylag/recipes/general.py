"""The general model, a ranker for which nothing has to be judged, and how such a model is learned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from greylag import __version__
from greylag.core.guidance import guided
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature
from greylag.features.written import WrittenForm
from greylag.index.positional import PositionalIndex, check_index
from greylag.learning.data import Judgements, RankingData, spaced
from greylag.learning.extraction import judged_topics, training_data
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.listwise import ListwiseRegression
from greylag.pipeline import Stage
from greylag.rankers.model import LengthSlopes, RankingModel, shares
from greylag.rankers.stages import ModelRanker
from greylag.ranking import FloatArray, Ranking, Run

_log = logging.getLogger("greylag")
DEPTHS: Mapping[int, int] = {100: 500, 1000: 100}
"""Documents per topic that a general model is learned from, and the most topics with as many."""
PENALTY = 100.0
"""The penalty of listwise regression on each collection."""


@cache
def general_model(*, texts: bool = True, without: str | None = None) -> RankingModel:
    """Load the model of `GeneralRanker`: weights learned on public collections, for any collection.

    They follow the mean length of an index's documents (`RankingModel.at_length`). The study ``general`` makes the
    model, and says how well it does on each collection by weights of the others.

    Parameters
    ----------
    texts : bool, default True
        Whether the index has words as they are written, of which one feature is.
    without : str, optional
        A collection of the model's provenance, such as "cacm", which is not learned from, nor are those related to it:
        for studies of it.
    """
    model = RankingModel.load(Path(__file__).with_name("general.json" if texts else "general-positions.json"))
    if without is None:
        return model
    learned, related = model.provenance["weights"], model.provenance["related"]
    if without not in learned:
        raise ParameterError(f"the general model was not learned from {without!r:.60}, but from {', '.join(learned)}")
    others = [name for name in learned if related.get(name, name) != related.get(without, without)]
    lengths = [model.provenance["indexes"][name]["average_length"] for name in others]
    return follow_length(model, [np.array(learned[name]) for name in others], lengths)


def general_model_for(index: PositionalIndex) -> RankingModel:
    """Return the general model for an index; if it was learned from this collection, weights of the others."""
    # Collections are known by the fingerprint of their index: its docids, lengths, terms and frequencies.
    texts, length = index.words is not None, index.average_length
    model = general_model(texts=texts)
    for name, known in model.provenance["indexes"].items():
        # Counted first, since few indexes need a fingerprint, which takes time.
        if known.get("documents") == index.n_documents and known["fingerprint"] == index.fingerprint:
            _log.info("the general model was learned from %s and others: here, the weights of the others rank", name)
            return general_model(texts=texts, without=name).at_length(length)
    return model.at_length(length)


@guided
@dataclass(frozen=True)
class GeneralRanker(Stage):
    """Ranks by `general_model`, a linear model that was learned on other collections; ties keep the incoming order.

    All features are normalised within the ranking, so that a query alone is ranked as it is in a batch.

    Parameters
    ----------
    index : PositionalIndex
        If it has no words as they are written (`PositionalIndex.words`), the model without them ranks. If it is that of
        a collection that the model was learned from, the weights of the other collections rank.
    """

    needs = frozenset({"index"})

    index: PositionalIndex
    _ranker: ModelRanker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_index("GeneralRanker", self.index)
        object.__setattr__(self, "_ranker", ModelRanker(general_model_for(self.index), self.index))

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents by the model; those outside the index keep their ranks, as nothing is known of them."""
        return self.rerank_known(ranking, self.index.knows(ranking.docids), self._ranker)


def learn_general(
    collections: Mapping[str, Sequence[RankingData]],
    objective: Objective | str = "nDCG@10",
    *,
    penalty: float = PENALTY,
) -> RankingModel:
    """Learn a model for any collection from the judgements of several.

    With w(c, k) the weights by `ListwiseRegression` on the k-th data of collection c,

        w(c) = mean over k of w(c, k) / |w(c, k)|.

    So every collection counts the same, however many topics it has: the fewer there are, the shorter are the weights
    that the penalty leaves. The model's weights follow the logarithm of the documents' mean length (`LengthSlopes`), by
    the line of least squares through w(c) with a ridge penalty of 1 on its slope. Without an index, the lengths are not
    known, and the weights are the mean of w(c). They are divided by the sum of their magnitudes.

    Parameters
    ----------
    collections : mapping of str to sequence of RankingData
        The data of each collection, such as those of `general_data`, of the same features. These should be normalised
        within the query (``@z``), as other collections have other scales.
    objective : Objective or str, default "nDCG@10"
        The measure, whose gains are learned from.
    penalty : float > 0, default 100
        See `ListwiseRegression`.

    Raises
    ------
    ParameterError
        If there are no collections, or one has other features, or nothing to learn from.

    Examples
    --------
    >>> model = learn_general({"mine": general_data(run, qrels, index), "other": other})  # doctest: +SKIP
    >>> model.save("general.json")  # doctest: +SKIP
    """
    objective = Objective.parse(objective)
    if not collections:
        raise ParameterError("a general model is learned from collections: none are given")
    features = next((data.specs for parts in collections.values() for data in parts), ())
    if any(isinstance(feature, str) for feature in features):
        raise ParameterError("a general model weighs features that an index has: its data cannot be from LETOR files")
    learned = []
    for name, parts in collections.items():
        if any(data.specs != features for data in parts):
            raise ParameterError(f"collection {name} has other features than the first one: give all the same")
        try:
            learned.append(collection_weights(parts, objective, penalty=penalty))
        except ParameterError as error:
            raise ParameterError(f"collection {name}: {error}") from None
    model = RankingModel(
        tuple(feature for feature in features if isinstance(feature, Feature)),
        (0.0,) * len(features),
        objective=str(objective),
        provenance={
            "greylag": __version__,
            "learner": f"listwise regression with penalty {penalty:g}, in unit length, and a line in the log of length",
            "collections": {name: max(len(data.qids) for data in parts) for name, parts in collections.items()},
            "indexes": {name: _index_of(parts) for name, parts in collections.items()},
            "related": {},
            "weights": {name: weights.round(6).tolist() for name, weights in zip(collections, learned, strict=True)},
        },
    )
    return follow_length(model, learned, [mean_length(parts) for parts in collections.values()])


def _index_of(parts: Sequence[RankingData]) -> dict[str, Any]:
    """Return the number of documents, their mean length and the fingerprint of the index of data."""
    origin = parts[0].origin
    if origin is None:
        return {}
    length = mean_length(parts)
    return {"documents": origin.collection.documents, "average_length": length, "fingerprint": origin.fingerprint}


def mean_length(parts: Sequence[RankingData]) -> float | None:
    """Return the mean length of the documents of data in terms, to two decimals; None without an index."""
    origin = parts[0].origin
    return None if origin is None else round(origin.collection.average_length, 2)


def follow_length(model: RankingModel, learned: Sequence[FloatArray], lengths: Sequence[float | None]) -> RankingModel:
    """Give a model the weights of collections whose documents have these mean lengths."""
    if None in lengths:
        return replace(model, weights=shares(np.mean(learned, axis=0)), by_length=None)
    line = length_line(learned, [length for length in lengths if length is not None])
    # In the same unit, so that the ratios of weights and slopes are kept.
    weights, slopes = (line / np.abs(line[0]).sum()).round(4).tolist()
    return replace(model, weights=tuple(weights), by_length=LengthSlopes(tuple(slopes)))


def length_line(learned: Sequence[FloatArray], lengths: Sequence[float]) -> FloatArray:
    """Fit the weights of collections by a line in the logarithm of their lengths: weight and slope, shape (2, f)."""
    # The slope alone is penalised, by 1: with few collections, weights stay near their mean.
    scale = LengthSlopes(())
    rows = np.array([[1.0, scale.place(length)] for length in lengths])
    return np.asarray(np.linalg.solve(rows.T @ rows + np.diag([0.0, 1.0]), rows.T @ np.array(learned)))


def weights_at(learned: Sequence[FloatArray], lengths: Sequence[float], length: float) -> FloatArray:
    """Return the weights at a length by the line through those of collections, shape (f,)."""
    return np.asarray(np.array([1.0, LengthSlopes(()).place(length)]) @ length_line(learned, lengths))


def collection_weights(
    parts: Sequence[RankingData], objective: Objective | str, *, penalty: float = PENALTY
) -> FloatArray:
    """Average the weights learned on each of a collection's data, in unit length, shape (f,)."""
    if not parts:
        raise ParameterError("no data are given")
    return np.asarray(np.mean([_unit_weights(data, objective, penalty) for data in parts], axis=0))


def _unit_weights(data: RankingData, objective: Objective | str, penalty: float) -> FloatArray:
    """Learn the weights of all features by listwise regression, divided by their length, shape (f,)."""
    weights = ListwiseRegression(objective, penalty=penalty).fit(data).over(data)
    length = float(np.sqrt(np.sum(weights**2)))
    if length == 0:
        raise ParameterError("no feature tells relevant documents from others")
    return weights / length


def general_data(
    run: Run,
    qrels: Judgements,
    index: PositionalIndex,
    features: Sequence[Feature] | None = None,
    *,
    n_jobs: int | None = None,
) -> tuple[RankingData, ...]:
    """Compute a collection's data for `learn_general`: its rankings, cut at 100 documents and at 1000.

    Of more than 500 topics with a relevant document, 500 are used, and 100 of these at 1000 documents.

    Parameters
    ----------
    run : Run
        Rankings, as long as those that the model will be used for.
    qrels : mapping of qid to docid to grade
    index : PositionalIndex
    features : sequence of Feature, optional
        Those of `general_model` for this index by default.
    n_jobs : int, optional
        Number of workers; the data do not depend on it.

    Raises
    ------
    ParameterError
        If no query of the run has a relevant document.
    """
    chosen = general_model(texts=index.words is not None).features if features is None else tuple(features)
    extractor = FeatureExtractor(index, chosen)
    return tuple(
        training_data(part, qrels, extractor, n_jobs=n_jobs) for part in rankings_by_depth(run, qrels).values()
    )


def rankings_by_depth(run: Run, qrels: Judgements) -> dict[int, Run]:
    """Cut, for each of `DEPTHS`, some rankings of topics with a relevant document, at equal distances."""
    # A depth is left out if no ranking is longer than the depth before.
    judged, longest = judged_topics(run, qrels), max((len(ranking) for ranking in run.rankings), default=0)
    depths = [depth for depth, before in zip(DEPTHS, [0, *DEPTHS], strict=False) if longest > before]
    return {depth: Run(tuple(run[qid].head(depth) for qid in spaced(judged, DEPTHS[depth]))) for depth in depths}


def without_texts(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Select the features that an index without texts has."""
    return tuple(feature for feature in features if not isinstance(feature.base, WrittenForm))
