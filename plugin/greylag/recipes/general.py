"""The general model, a ranker for which nothing has to be judged."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

import numpy as np

from greylag.base import ParameterError, Ranking, Stage, guided
from greylag.index import PositionalIndex, check_index
from greylag.rankers import LengthSlopes, ModelRanker, RankingModel

_log = logging.getLogger("greylag")


@cache
def general_model(*, texts: bool = True, without: str | None = None) -> RankingModel:
    """Load the model of `GeneralRanker`: weights learned on public collections, for any collection.

    They follow the mean length of an index's documents (`RankingModel.at_length`). The study ``general`` makes the
    model, and says how well it does on each collection by weights of the others.

    Parameters
    ----------
    texts : bool, default True
        Whether the index stores surface words, which one feature needs.
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
    line = LengthSlopes.line([np.array(learned[name]) for name in others], lengths)
    # In the same unit, so that the ratios of weights and slopes are kept.
    weights, slopes = (line / np.abs(line[0]).sum()).round(4).tolist()
    return replace(model, weights=tuple(weights), by_length=LengthSlopes(tuple(slopes)))


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
