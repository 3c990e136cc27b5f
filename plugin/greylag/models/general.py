"""The general model: a ranker for which nothing has to be judged."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from greylag.index.positional import PositionalIndex
from greylag.models.model import RankingModel
from greylag.models.rankers import ModelRanker
from greylag.pipeline import Stage
from greylag.ranking import Ranking


@cache
def general_model(*, texts: bool = True) -> RankingModel:
    """The model of `GeneralRanker`: weights that were learned on public collections, for any collection.

    The study ``general`` makes it, and says how well it does on each collection by weights of the others.

    Parameters
    ----------
    texts : bool, default True
        Whether the index has words as they are written, of which one feature is.
    """
    return RankingModel.load(Path(__file__).with_name("general.json" if texts else "general-positions.json"))


@dataclass(frozen=True)
class GeneralRanker(Stage):
    """Ranks by `general_model`, a linear model that was learned on other collections; ties keep the incoming order.

    All features are normalised within the ranking, so that a query alone is ranked as it is in a batch.

    Parameters
    ----------
    index : PositionalIndex
        If it has no words as they are written (`PositionalIndex.words`), the model without them ranks.
    """

    needs = frozenset({"index"})

    index: PositionalIndex
    _ranker: ModelRanker = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        model = general_model(texts=self.index.words is not None)
        object.__setattr__(self, "_ranker", ModelRanker(model, self.index))

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rank the documents by the model; those outside the index keep their ranks, as nothing is known of them."""
        return self.rerank_known(ranking, self.index.knows(ranking.docids), self._ranker)
