"""The clique set `expansion`: the terms of a relevance model, latent concepts of one term each.

Metzler & Croft, Latent concept expansion using Markov random fields, SIGIR 2007, with the relevance model of Lavrenko &
Croft, Relevance-based language models, SIGIR 2001 (RM1). A model with the features FI/term/LM and FI/expansion/LM, or
with BM25 for LM, is RM3: its two weights are the interpolation of query and relevance model.
"""

from __future__ import annotations

import numpy as np

from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray, Ranking

COMMON = 0.1  # terms in a greater part of the documents than this tell nothing, and are left out, as by Anserini


def relevance_model(
    index: PositionalIndex, ranking: Ranking, parameters: FeatureParameters
) -> tuple[IntArray, FloatArray]:
    """The `fb_terms` most probable terms of RM1 over the ranking's first `fb_docs` documents, and their probabilities.

    P(w|R) = sum over D of P(w|D) P(Q|D) / sum over D of P(Q|D), with P(w|D) = tf / |D|, and P(Q|D) the geometric mean
    over the query's terms of (tf + mu cf/|C|) / (|D| + mu), as Indri has it, so that a long query does not leave all
    weight to one document. Of those that are left, probabilities are made to sum to 1.

    Returns
    -------
    terms : shape (t,), ascending term numbers; of equally probable terms the lower ones are taken. None where the index
        has none of the documents.
    probabilities : shape (t,).
    """
    documents = index.documents(ranking.docids[: parameters.fb_docs])
    documents = documents[documents >= 0]
    frequencies = index.term_frequencies(documents)
    terms, places = np.unique(frequencies.indices.astype(np.int64), return_inverse=True)
    weights = frequencies.data * np.repeat(
        _shares(index, ranking.query, documents, parameters.mu), np.diff(frequencies.indptr)
    )
    probabilities = np.bincount(places, weights=weights, minlength=len(terms))
    rare = index.document_frequencies[terms] <= COMMON * index.n_documents
    terms, probabilities = terms[rare], probabilities[rare]
    best = np.sort(np.argsort(-probabilities, kind="stable")[: parameters.fb_terms])
    return terms[best], probabilities[best] / probabilities[best].sum()


def _shares(index: PositionalIndex, query: str, documents: IntArray, mu: float) -> FloatArray:
    """P(Q|D) / |D| of each document, up to a factor."""
    terms = index.query_terms(query)
    terms = terms[terms >= 0]
    lengths = np.maximum(index.document_lengths[documents], 1)
    background = mu * index.collection_frequencies[terms] / index.n_tokens
    smoothed = (index.term_frequencies(documents)[:, terms].toarray() + background) / (lengths[:, None] + mu)
    likelihoods: FloatArray = np.exp(np.log(smoothed).sum(axis=1) / max(1, len(terms)))
    return likelihoods / lengths
