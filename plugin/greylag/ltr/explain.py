"""Where a document's score comes from: features, their cliques, and the counts behind each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.features.cliques import ABSENT, distinct_cliques
from greylag.features.expansion import relevance_model
from greylag.features.spec import Feature, FeatureSpec
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.features.weighting import WEIGHTINGS, CollectionStatistics
from greylag.index.arrays import ranges
from greylag.index.positional import PositionalIndex
from greylag.ltr.linear import LinearModel, MRFRanker
from greylag.ranking import FloatArray, IntArray, Ranking


@dataclass(frozen=True, slots=True)
class CliqueShare:
    """A clique's part in a document's score.

    Parameters
    ----------
    terms : the clique's terms as indexed; None for one that the collection lacks.
    multiplicity : how often the query has the clique; for an expansion, the term's probability.
    tf, cf, df : the clique's counts in the document, and its counts over the collection.
    value : what the weighting makes of them.
    contribution : the feature's weight x multiplicity x value.
    """

    terms: tuple[str | None, ...]
    multiplicity: float
    tf: int
    cf: int
    df: int
    value: float
    contribution: float


@dataclass(frozen=True, slots=True)
class FeatureShare:
    """A feature's part in a document's score: contribution = weight x value. A prior has no cliques."""

    feature: Feature
    weight: float
    value: float
    contribution: float
    cliques: tuple[CliqueShare, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """A document's score by a linear model, as the sum of its features' contributions."""

    qid: str
    docid: str
    score: float
    features: tuple[FeatureShare, ...]


def explain(
    model: LinearModel, index: PositionalIndex, ranking: Ranking, docid: str, *, transfer: bool = False
) -> Explanation:
    """Take the score of one of a ranking's documents apart.

    The score is the one that `MRFRanker` gives. The shares are computed clique by clique from the definitions, and so
    add up to it but for rounding.

    Parameters
    ----------
    ranking : what is reranked. It matters to features of the clique set `expansion`; to others the document alone does.
    transfer : allow a model that was trained on another collection.

    Raises
    ------
    ParameterError
        Where the document is not in the ranking or not in the index.
    ModelError
        Where the model was trained on another collection and `transfer` is not set.
    """
    document = int(index.documents([docid])[0])
    if docid not in ranking.docids:
        raise ParameterError(f"document {docid!r} is not ranked for query {ranking.qid}: explain one that is")
    if document < 0:
        raise ParameterError(f"document {docid!r} is not in the index, so that nothing of it is known")
    ranked = MRFRanker(model, index, transfer)(ranking)
    return Explanation(
        qid=ranking.qid,
        docid=docid,
        score=float(ranked.scores[ranked.docids.index(docid)]),
        features=tuple(
            _feature(feature, weight, model, index, ranking, document)
            for feature, weight in zip(model.features, model.weights, strict=True)
        ),
    )


def _feature(
    feature: Feature, weight: float, model: LinearModel, index: PositionalIndex, ranking: Ranking, document: int
) -> FeatureShare:
    if not isinstance(feature, FeatureSpec):
        value = float(feature.values(index)[document])
        return FeatureShare(feature, weight, value, weight * value, ())
    cliques = tuple(_cliques(feature, weight, model, index, ranking, document))
    value = float(sum(clique.multiplicity * clique.value for clique in cliques))
    return FeatureShare(feature, weight, value, weight * value, cliques)


def _cliques(
    feature: FeatureSpec, weight: float, model: LinearModel, index: PositionalIndex, ranking: Ranking, document: int
) -> Iterator[CliqueShare]:
    from greylag.features.windows import FILLER, gain

    terms, multiplicity = _terms(feature, model, index, ranking)
    table = CliqueTable(feature.window.order == "O", terms, (feature.window,), model.parameters.profile == "galago")
    cf, df = WindowStatistics(index).counts(table)[:, :, 0]
    tf = _frequencies(table, index, document)
    collection = CollectionStatistics(index.n_documents, index.n_tokens, index.average_length)
    weighting = WEIGHTINGS[feature.function](collection, model.parameters)
    of_cliques = weighting.clique(cf, df)
    of_document = weighting.document(index.document_lengths[document : document + 1])
    absent = weighting.absent_clique(of_cliques) + weighting.absent_document(of_document)
    for c in range(len(terms)):
        value = float(absent[c])
        if tf[c]:
            value += gain(weighting.code, tf[c], of_cliques[c], of_document[0])
        words = tuple(None if term < 0 else index.term(term) for term in terms[c].tolist() if term != FILLER)
        share = weight * float(multiplicity[c]) * value
        yield CliqueShare(words, float(multiplicity[c]), int(tf[c]), int(cf[c]), int(df[c]), value, share)


def _terms(
    feature: FeatureSpec, model: LinearModel, index: PositionalIndex, ranking: Ranking
) -> tuple[IntArray, FloatArray]:
    """The feature's cliques as `CliqueTable` takes them, shape (cliques, largest), and their multiplicity."""
    from greylag.features.windows import FILLER

    if feature.cliques == "expansion":
        terms, probabilities = relevance_model(index, ranking, model.parameters)
        return terms[:, None], probabilities
    vocabulary, places = np.unique(index.query_terms(ranking.query), return_inverse=True)
    sets = ((feature.dependence, feature.cliques),)
    ordered = feature.window.order == "O"
    rows, multiplicity = distinct_cliques(places, sets, model.parameters.max_clique, ordered=ordered)
    return np.where(rows == ABSENT, FILLER, vocabulary[rows]), multiplicity[:, 0]


def _frequencies(table: CliqueTable, index: PositionalIndex, document: int) -> IntArray:
    """The cliques' tf in the table's one window, shape (cliques,): their cf in a collection of that document alone."""
    from greylag.features.windows import collection_counts

    vocabulary = np.unique(table.cliques[table.cliques >= 0])
    entries = slice(index.forward_offsets[document], index.forward_offsets[document + 1])
    own = np.isin(vocabulary, index.forward_terms[entries])
    postings = index.forward_postings[entries][np.isin(index.forward_terms[entries], vocabulary)]
    starts = index.postings_starts[postings]
    counts = index.postings_starts[postings + 1] - starts
    cliques = np.where(table.cliques >= 0, np.searchsorted(vocabulary, table.cliques), table.cliques)
    alone = (
        np.append(0, np.cumsum(own)),
        np.zeros(len(postings), dtype=np.int32),
        np.append(0, np.cumsum(counts)),
        index.positions[ranges(starts, counts)],
    )
    for array in alone:
        array.flags.writeable = False  # as the index's own are: compiled code is for the one or the other
    tf: IntArray = collection_counts(table.ordered, cliques, *alone, table.widths, table.overlap)[0, :, 0]
    return tf
