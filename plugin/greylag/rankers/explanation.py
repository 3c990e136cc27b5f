"""Score explanations: the contributions of features and cliques, and the counts behind them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from greylag.base import ParameterError, Printed, Ranking, Run, Table, check_ids
from greylag.evaluation import Why
from greylag.features import (
    FILLER,
    WEIGHTINGS,
    CliqueTable,
    CollectionStatistics,
    Feature,
    FeatureExtractor,
    FeatureSpec,
    QueryTerms,
    Translation,
    Trees,
    WindowStatistics,
    gain,
    query_cliques,
)
from greylag.index import PositionalIndex
from greylag.rankers.model import RankingModel
from greylag.rankers.stages import ModelRanker

MEAN = "mean score in training"
"""The share of trees themselves, which is no feature's."""
MIN_DIFFERENCE_SHARE = 0.01
"""A summary leaves out features whose difference is at most this fraction of the largest."""


@dataclass(frozen=True, slots=True)
class CliqueShare:
    """The contribution of a clique to the score of a document: feature weight x multiplicity x value."""

    # None for a term that the collection lacks
    terms: tuple[str | None, ...]
    # How often the query has the clique; the probability of an expansion term
    multiplicity: float
    # With a fraction if it is translated; for the weighting `early`, the position of the first match, from 1
    tf: float
    cf: int
    df: int
    value: float
    contribution: float

    @property
    def name(self) -> str:
        """The terms, separated by spaces."""
        return " ".join("(not in the collection)" if term is None else term for term in self.terms)


@dataclass(frozen=True, slots=True)
class FeatureShare:
    """The contribution of a feature to the score of a document, weight x value."""

    # Only a `FeatureSpec` or `Translation` that is not normalised has cliques. A feature that trees split by has no
    # weight (None), and the trees themselves have their mean in training, which is the same for all documents.
    feature: Feature
    weight: float | None
    value: float
    contribution: float
    cliques: tuple[CliqueShare, ...]

    @property
    def name(self) -> str:
        """The feature's spelling; of trees themselves, what their share is."""
        return MEAN if isinstance(self.feature, Trees) else str(self.feature)


@dataclass(frozen=True, slots=True, repr=False)
class Explanation(Printed):
    """The score of a document by a linear model, broken down by feature and clique."""

    qid: str
    docid: str
    score: float
    features: tuple[FeatureShare, ...]

    def _table(self) -> Table:
        rows = [(share.name, share.contribution, share.weight, share.value) for share in largest(self.features)]
        caption = f"document {self.docid} for query {self.qid}, score {self.score:.4f}"
        return Table(caption, ("feature", "contribution", "weight", "value"), rows)

    def summary(self, average: Sequence[float], features: int = 3, cliques: int = 3) -> str:
        """Name the features by which the score differs most from `average` contributions, with their top cliques."""
        differences = [share.contribution - mean for share, mean in zip(self.features, average, strict=True)]
        order = sorted(range(len(differences)), key=lambda number: -abs(differences[number]))
        parts = []
        for number in order[:features]:
            if abs(differences[number]) <= MIN_DIFFERENCE_SHARE * abs(differences[order[0]]):
                break
            share = self.features[number]
            occurring = largest([clique for clique in share.cliques if clique.tf])[:cliques]
            names = f" ({', '.join(clique.name for clique in occurring)})" if occurring else ""
            parts.append(f"{differences[number]:+.3g} {share.name}{names}")
        return "; ".join(parts)


Share = TypeVar("Share", CliqueShare, FeatureShare)


def largest(shares: Iterable[Share]) -> list[Share]:
    """Sort shares by decreasing size of their contributions."""
    return sorted(shares, key=lambda share: -abs(share.contribution))


def explain(
    model: RankingModel, index: PositionalIndex | None, ranking: Ranking, docid: str, *, transfer: bool = False
) -> Explanation:
    """Break down the score of a ranked document into contributions that add up to it.

    A feature's is weight times value; by trees, it is `Trees.contributions`, Shapley values. Of a feature file, the
    arguments are ``model.with_columns(data)``, None and ``listed_run(data, "")[qid]``; `transfer` as in `ModelRanker`.
    """
    return explain_documents(model, index, ranking, [docid], transfer=transfer)[0]


def explain_documents(
    model: RankingModel,
    index: PositionalIndex | None,
    ranking: Ranking,
    docids: Sequence[str],
    *,
    transfer: bool = False,
) -> list[Explanation]:
    """Break down `ModelRanker`'s scores of some of a ranking's documents."""
    check_ids(docids=docids)
    documents = [0] * len(docids) if index is None else index.documents(docids).tolist()
    for docid, document in zip(docids, documents, strict=True):
        if docid not in ranking.docids:
            raise ParameterError(f"document {docid!r} is not ranked for query {ranking.qid}: explain one that is")
        if document < 0:
            raise ParameterError(f"document {docid!r} is not in the index: it has no features to explain")
    # Scores are those of the ranker itself; contributions are computed by other code, clique by clique from the
    # definitions, and have to add up to them.
    ranker = ModelRanker(model, index, transfer=transfer)
    model, ranked = ranker.model, ranker(ranking)
    ranking = model.query_form.apply(ranking)
    # The relevance model is estimated on the whole ranking, as in extraction, and only if a feature needs it.
    expands = any(isinstance(feature, FeatureSpec) and feature.expands for feature in model.features)
    query = None if index is None else QueryTerms.of(index, ranking, [model.parameters], expand=expands)
    others = tuple(feature for feature in model.features if not isinstance(feature, FeatureSpec))
    values = FeatureExtractor(index, others, model.parameters)(ranking) if others else np.empty((len(ranking), 0))

    explanations = []
    for docid, document in zip(docids, documents, strict=True):
        shares, row = [], ranking.docids.index(docid)
        for feature, weight in zip(model.features, model.weights, strict=True):
            if isinstance(feature, Trees):
                shares += _tree_shares(feature, weight, index, ranking, row)
                continue
            if index is not None and query is not None and isinstance(feature, FeatureSpec):
                cliques = _clique_shares(feature, weight, model, index, query, document)
                value = float(sum(clique.multiplicity * clique.value for clique in cliques))
            else:
                cliques, value = (), float(values[row, others.index(feature)])
                if index is not None and isinstance(feature, Translation):
                    cliques = _translated(feature, weight, index, ranking.query, document)
            shares.append(FeatureShare(feature, weight, value, weight * value, cliques))
        score = float(ranked.scores[ranked.docids.index(docid)])
        explanations.append(Explanation(ranking.qid, docid, score, tuple(shares)))
    return explanations


def _tree_shares(
    trees: Trees, weight: float, index: PositionalIndex | None, ranking: Ranking, row: int
) -> list[FeatureShare]:
    """Find the contributions of the features that trees split by, and of the trees' mean in training."""
    values = trees.bind_values(index)(ranking)[row : row + 1]
    *parts, mean = (weight * trees.contributions(values)[0]).tolist()
    used = np.unique(trees.split[trees.split >= 0]).tolist()
    shares = [FeatureShare(trees.features[f], None, float(values[0, f]), parts[f], ()) for f in used]
    return [*shares, FeatureShare(trees, None, mean, mean, ())]


def _translated(
    feature: Translation, weight: float, index: PositionalIndex, query: str, document: int
) -> tuple[CliqueShare, ...]:
    """Find the terms of the query with translated frequencies by going through the words of the document."""
    tf, length = index.term_frequencies([document]), float(index.document_lengths[document])
    counts = dict(zip(index.terms_of(tf.indices), tf.data.tolist(), strict=True))
    # A word with translations keeps only a share of its own occurrences.
    changing = {word for words in feature.table.values() for word in words}
    shares = []
    for term, times in sorted(Counter(index.query_terms(query).tolist()).items()):
        name = "" if term < 0 else index.terms_of(np.array([term]))[0]
        frequency = counts.get(name, 0.0) * (feature.own if name in changing else 1.0)
        for word, share in feature.table.get(name, {}).items():
            frequency += (1 - feature.own) * share * counts.get(word, 0.0)
        cf, df = (0, 0) if term < 0 else (index.collection_frequencies[term], index.document_frequencies[term])
        background = feature.mu * (cf or 0.5) / max(1, index.n_tokens)
        value = math.log((frequency + background) / (length + feature.mu))
        shares.append(CliqueShare((name or None,), times, frequency, int(cf), int(df), value, weight * times * value))
    return tuple(shares)


def _clique_shares(
    feature: FeatureSpec, weight: float, model: RankingModel, index: PositionalIndex, query: QueryTerms, document: int
) -> tuple[CliqueShare, ...]:
    ordered, sets = feature.window.order != "U", ((feature.dependence, feature.cliques),)
    _, multiplicity, terms = query_cliques(query, sets, model.parameters.max_clique, ordered=ordered)
    table = CliqueTable(ordered, terms, (feature.window,), model.parameters.profile)
    cf, df = WindowStatistics(index).counts(table)[0][:, :, 0]
    vocabulary = np.unique(terms[terms != FILLER])
    located, rows = index.parts.locate(vocabulary, np.array([document])), table.rows(vocabulary, np.arange(len(terms)))
    offsets, _, codes, several = table.occurrences(located, rows, first=feature.positional, lead=feature.lead)
    tf, occurring = np.zeros(len(terms), dtype=np.int64), np.flatnonzero(np.diff(offsets))
    # A code is the least width that matches; below 0, it is -1 less the row of counts, as terms occur several times.
    tf[occurring] = [code <= table.widths[0] if code >= 0 else several[-1 - code, 0] for code in codes]
    weighting = WEIGHTINGS[feature.function](CollectionStatistics.of(index, feature.lead), model.parameters)
    clique_values = weighting.clique(cf, df)
    lengths = index.document_lengths[document : document + 1]
    document_value = weighting.document(lengths if feature.lead is None else np.minimum(lengths, feature.lead))
    absent = weighting.absent_clique(clique_values) + weighting.absent_document(document_value)
    known = vocabulary[vocabulary >= 0]
    names, shares = dict(zip(known.tolist(), index.terms_of(known), strict=True)), []
    for c in range(len(terms)):
        value = float(absent[c])
        if tf[c]:
            value += gain(weighting.code, tf[c], clique_values[c], document_value[0])
        words = tuple(names.get(term) for term in terms[c].tolist() if term != FILLER)
        times = float(multiplicity[c, 0])
        shares.append(CliqueShare(words, times, int(tf[c]), int(cf[c]), int(df[c]), value, weight * times * value))
    return tuple(shares)


def reasons(first: Run, models: Mapping[str, RankingModel], index: PositionalIndex) -> Why:
    """Make a function that explains why documents are where they are, by the linear model that ranked each query.

    A reason names the features by which the document's score differs most from the average of the top documents before.
    The models, by qid, rerank the run `first`.
    """

    def why(qid: str, before: Sequence[str], after: Sequence[str]) -> list[str]:
        shown = list(dict.fromkeys([*before, *after]))
        explained = dict(zip(shown, explain_documents(models[qid], index, first[qid], shown), strict=True))
        # What all top documents have in common explains no move.
        average = np.mean([[share.contribution for share in explained[docid].features] for docid in before], axis=0)
        return [explained[docid].summary(average.tolist()) for docid in after]

    return why
