"""Translation as a feature of training data, without values that a query's own judgements have shaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from greylag.features.feature import Values
from greylag.features.learned.translation import Translation, learn_translation
from greylag.index.positional import PositionalIndex
from greylag.linesearch.data import Qrels, RankingData
from greylag.ranking import FloatArray, Ranking


@dataclass(frozen=True, eq=False)
class FoldTranslations:
    """Translation as a feature of training data, in which no query has values of a table that was learned from it.

    Otherwise the feature would seem better than it is, and learners would trust it. A query of one of the parts has
    values of the table that is learned from the other parts of the training queries.
    """

    index: PositionalIndex
    rankings: Sequence[Ranking]
    qrels: Qrels
    parts: Sequence[Sequence[str]]
    _learned: dict[tuple[float, frozenset[str]], tuple[Translation, Values]] = field(
        init=False, repr=False, default_factory=dict
    )
    _columns: dict[tuple[object, ...], FloatArray] = field(init=False, repr=False, default_factory=dict)

    def add(self, data: RankingData, training: Sequence[str], mu: float) -> RankingData:
        """The data, with the table learned from the queries `training` as a last feature."""
        # The table of all training queries is for everybody else, and is the one that a model keeps.
        feature, of_others = self._learn(mu, frozenset(training))
        key = mu, tuple(training), data.qids, len(data.docids)
        # Learners ask for the same rows again and again, such as for each candidate and fold.
        if key not in self._columns:
            by_query = self._by_query(training, mu)
            values = [np.empty(0)]
            for qid, first, end in zip(data.qids, data.offsets[:-1], data.offsets[1:], strict=True):
                ranking = replace(self._by_qid[qid], docids=data.docids[first:end], scores=np.zeros(end - first))
                values.append(by_query.get(qid, of_others)(ranking))
            self._columns[key] = np.concatenate(values)
        return replace(
            data, specs=(*data.specs, feature), features=np.column_stack([data.features, self._columns[key]])
        )

    # With three parts, and a query of the second held out for a test ("|" is learned from, "." is not):
    #
    #     values for          learned from part 1   part 2    part 3
    #     training, part 1            ......        |||.||    ||||||
    #     training, part 2            ||||||        ......    ||||||
    #     training, part 3            ||||||        |||.||    ......
    #     the held-out query          ||||||        |||.||    ||||||
    #
    # So a training query sees a table as far from its own judgements as the held-out query does, and the weight that
    # learners give the feature in training is right in the test.
    def _by_query(self, training: Sequence[str], mu: float) -> dict[str, Values]:
        """For each training query, the values of the table that is learned from the other parts."""
        known, found = frozenset(training), dict[str, Values]()
        # Training queries that lie in one part have no other part to learn from: two halves take turns.
        inside = [held for part in self.parts if (held := known & frozenset(part))]
        for held in inside if len(inside) > 1 else map(frozenset, (training[::2], training[1::2])):
            found |= dict.fromkeys(held, self._learn(mu, known - held)[1])
        return found

    def _learn(self, mu: float, qids: frozenset[str]) -> tuple[Translation, Values]:
        """The feature that is learned from these queries, and its values."""
        key = mu, qids
        if key not in self._learned:
            feature = learn_translation(self.index, [r for r in self.rankings if r.qid in qids], self.qrels, mu=mu)
            self._learned[key] = feature, feature.bind(self.index, {})
        return self._learned[key]

    @cached_property
    def _by_qid(self) -> dict[str, Ranking]:
        return {ranking.qid: ranking for ranking in self.rankings}
