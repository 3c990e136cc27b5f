"""Cross-fitted columns: a query's values come from parameters learned without its judgements.

A feature that was learned or tuned on judged queries is better on these than on new ones, and a learner would trust it
too much. So a query's values come from the feature that the other parts of the queries make, and the model keeps the
one that all queries make. A learner that is cross-validated over the same parts holds out queries whose values their
judgements have no share in.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from greylag.base import FloatArray, Ranking, parallel_map
from greylag.evaluation import fit_by_fold, without
from greylag.features import FeatureExtractor, Translation, learn_translation, parse_feature
from greylag.learning import RankingData
from greylag.recipes.sources import PreparedSources, TunedRM3


def add_translation(
    data: RankingData,
    features: PreparedSources,
    tuned: TunedRM3,
    parts: Sequence[Sequence[str]],
    *,
    n_jobs: int | None = None,
) -> RankingData:
    """Add to the data, as a last feature, `Translation` learned from its queries and cross-fitted over `parts`."""
    by_qid = {ranking.qid: ranking for ranking in features.rankings}

    def learn(qids: Sequence[str]) -> Translation:
        rankings = [by_qid[qid] for qid in qids]
        return learn_translation(features.index, rankings, features.qrels, mu=tuned.parameters.mu)

    # The last one, which holds out nothing, is the model's.
    *by_others, feature = fit_by_fold(learn, data.qids, [*parts, ()], what="translations", n_jobs=n_jobs)
    column = np.empty(len(data.docids))
    for part, translation in zip(parts, by_others, strict=True):
        values = translation.bind(features.index)
        for qid in part:
            first, end = data.spans[qid]
            docids = data.docids[first:end]
            column[first:end] = values(replace(by_qid[qid], docids=docids, scores=np.zeros(len(docids))))
    return replace(data, specs=(*data.specs, feature), features=np.column_stack([data.features, column]))


def cross_fit_baselines(
    data: RankingData,
    features: PreparedSources,
    tuned: TunedRM3,
    parts: Sequence[Sequence[str]],
    *,
    n_jobs: int | None = None,
) -> RankingData:
    """Replace BM25 and RM3 by values whose parameters the other parts tune; features keep the names of `tuned`."""
    columns = data.columns_of(tuned.features)
    by_qid = {ranking.qid: ranking for ranking in features.rankings}

    def cross_fit(fold: Sequence[str]) -> list[FloatArray]:
        """Compute the columns of each query of the part."""
        by_others = features.tune(without(data.qids, fold))
        # Parts often tune to the same values, whose columns are there.
        if by_others == tuned:
            return [data.features[slice(*data.spans[qid]), columns] for qid in fold]
        extract = FeatureExtractor(features.index, tuple(map(parse_feature, by_others.features)), by_others.parameters)
        return [values_of(by_qid[qid], extract) for qid in fold]

    def values_of(ranking: Ranking, extract: FeatureExtractor) -> FloatArray:
        known = ranking.select(extract.knows(ranking.docids))  # all of it, as RM3 depends on the whole ranking
        numbers = {docid: number for number, docid in enumerate(known.docids)}
        return extract(known)[[numbers[docid] for docid in data.docids[slice(*data.spans[ranking.qid])]]]

    values = data.features.copy()
    fitted = parallel_map(cross_fit, parts, what="baselines", n_jobs=n_jobs, coarse=True)
    for part, part_columns in zip(parts, fitted, strict=True):
        for qid, query_columns in zip(part, part_columns, strict=True):
            values[slice(*data.spans[qid]), columns] = query_columns
    return replace(data, features=values)
