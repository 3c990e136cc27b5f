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
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature
from greylag.features.written import WrittenForm
from greylag.index.positional import PositionalIndex
from greylag.learning.data import Judgements, RankingData, spaced
from greylag.learning.extraction import judged_topics, training_data
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.listwise import ListwiseRegression
from greylag.pipeline import Stage
from greylag.rankers.model import RankingModel
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

    The study ``general`` makes it, and says how well it does on each collection by weights of the others.

    Parameters
    ----------
    texts : bool, default True
        Whether the index has words as they are written, of which one feature is.
    without : str, optional
        A collection of the model's provenance, such as "cacm", which is not learned from: for studies of it.
    """
    model = RankingModel.load(Path(__file__).with_name("general.json" if texts else "general-positions.json"))
    if without is None:
        return model
    learned = model.provenance["weights"]
    if without not in learned:
        raise ParameterError(f"the general model was not learned from {without!r:.60}, but from {', '.join(learned)}")
    shares = mean_shares([np.array(weights) for name, weights in learned.items() if name != without])
    return replace(model, weights=tuple(shares.tolist()))


def general_model_for(index: PositionalIndex) -> RankingModel:
    """Return the general model for an index; if it was learned from this collection, weights of the others."""
    # Collections are known by the fingerprint of their index: its docids, lengths, terms and frequencies.
    model = general_model(texts=index.words is not None)
    for name, known in model.provenance["indexes"].items():
        # Counted first, since few indexes need a fingerprint, which takes time.
        if known.get("documents") == index.n_documents and known["fingerprint"] == index.fingerprint:
            _log.info("the general model was learned from %s, among others: its weights are those of the others", name)
            return general_model(texts=index.words is not None, without=name)
    return model


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

        w = mean over c of mean over k of w(c, k) / |w(c, k)|.

    So every collection counts the same, however many topics it has: the fewer there are, the shorter are the weights
    that the penalty leaves. The model's weights are w divided by the sum of its magnitudes.

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
    shares = mean_shares(learned)
    return RankingModel(
        tuple(feature for feature in features if isinstance(feature, Feature)),
        tuple(shares.tolist()),
        objective=str(objective),
        provenance={
            "greylag": __version__,
            "learner": f"listwise regression with penalty {penalty:g}, in unit length, averaged over collections",
            "collections": {name: max(len(data.qids) for data in parts) for name, parts in collections.items()},
            "indexes": {name: _index_of(parts) for name, parts in collections.items()},
            "weights": {name: weights.round(6).tolist() for name, weights in zip(collections, learned, strict=True)},
        },
    )


def _index_of(parts: Sequence[RankingData]) -> dict[str, Any]:
    """Return the number of documents and the fingerprint of the index of data."""
    origin = parts[0].origin
    return {} if origin is None else {"documents": origin.collection.documents, "fingerprint": origin.fingerprint}


def mean_shares(learned: Sequence[FloatArray]) -> FloatArray:
    """Average the collections' weights, divided by the sum of magnitudes, to four decimals."""
    # Only ratios count: as shares, weights can be compared and read. Four decimals are beyond what judgements tell.
    weights = np.mean(learned, axis=0)
    return np.asarray((weights / np.abs(weights).sum()).round(4))


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
