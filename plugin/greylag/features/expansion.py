"""Pseudo-relevance feedback: the terms of a relevance model, which the clique set `expansion` consists of.

A model with the features FI/term/LM and FI/expansion/LM (or BM25 instead of LM) is RM3: its two weights interpolate
the query and the relevance model.

References
----------
Lavrenko & Croft, Relevance-based language models, SIGIR 2001 (RM1).
Metzler & Croft, Latent concept expansion using Markov random fields, SIGIR 2007.
"""

from __future__ import annotations

import numpy as np

from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray, Ranking

COMMON = 0.1  # terms in a larger share of the documents are not informative; Anserini leaves them out, too


def relevance_model(
    index: PositionalIndex, ranking: Ranking, parameters: FeatureParameters
) -> tuple[IntArray, FloatArray]:
    """The `fb_terms` most probable terms of RM1 over the top `fb_docs` documents.

    P(w|R) = sum over D of P(w|D) P(Q|D) / sum over D of P(Q|D), where P(w|D) = tf / |D|, and P(Q|D) is the geometric
    mean over the query terms of (tf + mu cf/|C|) / (|D| + mu). The geometric mean, which Indri also uses, keeps a long
    query from giving all weight to one document. The probabilities of the selected terms are normalised to sum to 1.

    Parameters
    ----------
    index : PositionalIndex
    ranking : Ranking
        Documents outside the index are ignored.
    parameters : FeatureParameters
        `fb_docs`, `fb_terms` and `mu` are used.

    Returns
    -------
    terms : int array, shape (t,)
        Ascending term numbers; the lowest numbers win ties. Empty if none of the documents is in the index.
    probabilities : float array, shape (t,)
    """
    documents = index.documents(ranking.docids)
    documents = documents[documents >= 0][: parameters.fb_docs]
    frequencies = index.term_frequencies(documents)
    terms, places = np.unique(frequencies.indices.astype(np.int64), return_inverse=True)
    weights = frequencies.data * np.repeat(
        _document_weights(index, ranking.query, documents, parameters.mu), np.diff(frequencies.indptr)
    )
    probabilities = np.bincount(places, weights=weights, minlength=len(terms))
    rare = index.document_frequencies[terms] <= COMMON * index.n_documents
    terms, probabilities = terms[rare], probabilities[rare]
    best = np.sort(np.argsort(-probabilities, kind="stable")[: parameters.fb_terms])
    return terms[best], probabilities[best] / probabilities[best].sum()


def _document_weights(index: PositionalIndex, query: str, documents: IntArray, mu: float) -> FloatArray:
    """P(Q|D) / |D| of each document, up to a factor."""
    terms = index.query_terms(query)
    terms = terms[terms >= 0]
    lengths = np.maximum(index.document_lengths[documents], 1)
    background = mu * index.collection_frequencies[terms] / index.n_tokens
    smoothed = (index.term_frequencies(documents)[:, terms].toarray() + background) / (lengths[:, None] + mu)
    likelihoods: FloatArray = np.exp(np.log(smoothed).sum(axis=1) / max(1, len(terms)))
    return likelihoods / lengths
