"""The clique set `expansion`: the terms of a relevance model, latent concepts of one term each.

Metzler & Croft, Latent concept expansion using Markov random fields, SIGIR 2007, with the relevance model of Lavrenko &
Croft, Relevance-based language models, SIGIR 2001 (RM1). A model with the features FI/term/LM and FI/expansion/LM, or
with BM25 for LM, is RM3: its two weights are the interpolation of query and relevance model.
"""

from __future__ import annotations

import numpy as np

from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray

COMMON = 0.1  # terms in a greater part of the documents than this tell nothing, and are left out, as by Anserini


def relevance_model(
    index: PositionalIndex, query: IntArray, documents: IntArray, parameters: FeatureParameters
) -> tuple[IntArray, FloatArray]:
    """The `fb_terms` most probable terms of RM1, and their probabilities, which are made to sum to 1.

    P(w|R) = sum over D of P(w|D) P(Q|D) / sum over D of P(Q|D), with P(w|D) = tf / |D|, and P(Q|D) the geometric mean
    over the query's terms of (tf + mu cf/|C|) / (|D| + mu), as Indri has it, so that a long query does not leave all
    weight to one document.

    Parameters
    ----------
    query : term numbers, -1 for a term that the collection lacks.
    documents : the feedback documents' numbers.

    Returns
    -------
    terms : shape (t,), ascending term numbers.
    probabilities : shape (t,). Of equally probable terms the lower numbers are taken.
    """
    frequencies = index.term_frequencies(documents)
    lengths = np.maximum(index.document_lengths[documents], 1)
    known = query[query >= 0]
    background = parameters.mu * index.collection_frequencies[known] / index.n_tokens
    smoothed = (frequencies[:, known].toarray() + background) / (lengths[:, None] + parameters.mu)
    likelihoods = np.exp(np.log(smoothed).sum(axis=1) / max(1, len(known)))
    shares = likelihoods / likelihoods.sum() / lengths if len(documents) else likelihoods
    terms, places = np.unique(frequencies.indices, return_inverse=True)
    weights = frequencies.data * np.repeat(shares, np.diff(frequencies.indptr))
    probabilities = np.bincount(places, weights=weights, minlength=len(terms))
    rare = index.document_frequencies[terms] <= COMMON * index.n_documents
    terms, probabilities = terms[rare].astype(np.int64), probabilities[rare]
    best = np.sort(np.argsort(-probabilities, kind="stable")[: parameters.fb_terms])
    return terms[best], probabilities[best] / max(probabilities[best].sum(), 1e-300)
