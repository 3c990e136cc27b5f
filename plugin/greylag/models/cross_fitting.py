"""Columns of training data without values that a query's own judgements have shaped.

A feature that was learned or tuned on judged queries is better on these than on new ones, and a learner would trust it
too much. So the values of a query are those of the feature as the other parts of the queries make it:

    part                          1        2        3
    learned or tuned on parts     2, 3     1, 3     1, 2

The model keeps the feature that all queries make. A learner that is cross-validated over the same parts holds out
queries whose values their judgements have no share in; those of its training queries know the held-out judgements
through a table or a few parameters alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from greylag.features.extract import FeatureExtractor
from greylag.features.learned.translation import learn_translation
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex
from greylag.linesearch.data import Qrels, RankingData
from greylag.models.sources import PreparedSources, TunedRM3
from greylag.ranking import FloatArray, Ranking
from greylag.runtime.parallel import parallel_map
from greylag.runtime.progress import each


def add_translation(
    data: RankingData,
    index: PositionalIndex,
    rankings: Sequence[Ranking],
    qrels: Qrels,
    parts: Sequence[Sequence[str]],
    mu: float,
    *,
    n_jobs: int | None = None,
) -> RankingData:
    """The data with `Translation`, learned from its queries, as a last feature.

    Parameters
    ----------
    data : RankingData
        Rows of some documents of `rankings`.
    rankings : sequence of Ranking
        They include the queries of `data`.
    parts : sequence of sequences of str
        All queries of `data`, in at least two parts.
    mu : float
        The smoothing of `Translation`.
    """
    by_qid = {ranking.qid: ranking for ranking in rankings}

    def values(held_out: Sequence[str]) -> list[FloatArray]:
        own = frozenset(held_out)
        others = [by_qid[qid] for qid in data.qids if qid not in own]
        translated = learn_translation(index, others, qrels, mu=mu).bind(index, {})
        return [translated(documents(qid)) for qid in held_out]

    def documents(qid: str) -> Ranking:
        number = numbers[qid]
        docids = data.docids[data.offsets[number] : data.offsets[number + 1]]
        return replace(by_qid[qid], docids=docids, scores=np.zeros(len(docids)))

    numbers = {qid: number for number, qid in enumerate(data.qids)}
    columns = dict[str, FloatArray]()
    for part, of_part in zip(
        parts, parallel_map(values, parts, what="translations", n_jobs=n_jobs, coarse=True), strict=True
    ):
        columns |= zip(part, of_part, strict=True)
    feature = learn_translation(index, [by_qid[qid] for qid in data.qids], qrels, mu=mu)
    column = np.concatenate([np.empty(0), *(columns[qid] for qid in data.qids)])
    return replace(data, specs=(*data.specs, feature), features=np.column_stack([data.features, column]))


def cross_fit_baselines(
    data: RankingData, features: PreparedSources, tuned: TunedRM3, parts: Sequence[Sequence[str]]
) -> RankingData:
    """The data with BM25 and RM3 by parameters that the other parts tune; the names of features are those of `tuned`.

    Parameters
    ----------
    data : RankingData
        Rows of `features` with the parameters `tuned`.
    parts : sequence of sequences of str
        All queries of `data`, in at least two parts.
    """
    columns = [data.names.index(name) for name in tuned.features]
    values, numbers = data.features.copy(), {qid: number for number, qid in enumerate(data.qids)}
    for part in each(parts, "parameters"):
        own = frozenset(part)
        by_others = features.tune([qid for qid in data.qids if qid not in own])
        if by_others == tuned:
            continue
        extract = FeatureExtractor(features.index, tuple(map(parse_feature, by_others.features)), by_others.parameters)
        for ranking in features.rankings:
            if ranking.qid in own:
                known = ranking.select(extract.knows(ranking.docids))
                rows = slice(*data.offsets[numbers[ranking.qid] : numbers[ranking.qid] + 2])
                place = {docid: number for number, docid in enumerate(known.docids)}
                kept = [place[docid] for docid in data.docids[rows]]
                values[rows, columns] = extract(known)[kept]
    return replace(data, features=values)
