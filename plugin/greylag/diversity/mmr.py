"""Maximal marginal relevance (Carbonell & Goldstein 1998)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greylag.base import guided
from greylag.diversity.vector_gain import CosineGain, VectorStage


class MarginalRelevance(CosineGain):
    """The gain of MMR: the statistic of a candidate is its highest cosine with a pick."""

    combine = np.maximum
    start = -np.inf  # not 0, as all cosines may be negative
    constant = 0.0
    adds_errors = False


@guided
@dataclass(frozen=True)
class MMR(VectorStage):
    """Rerank by relevance and novelty.

    Each pick maximises

        w rel(d) - (1 - w) max over picked s of cos(d, s)

    with w the relevance weight (lambda in the paper), rel the incoming score, by default scaled to [0, 1], and cos the
    cosine of the documents' vectors. That of TF-IDF vectors is in [0, 1], and 0 for a document without terms: both
    terms have the same range, so that w = 0.5 weighs them equally whatever the scores of the ranking. A cosine of
    embeddings may be negative; for the first pick, the maximum is 0.

    Parameters
    ----------
    index : PositionalIndex, optional
        The collection, for its TF-IDF vectors. Give it or `vectors`.
    vectors : Vectors, optional
        Other vectors, such as `greylag.index.ArrayVectors`. A document without a vector keeps its rank.
    latent : bool, default False
        Whether the index's vectors are `greylag.index.LatentVectors` instead of TF-IDF.
    relevance_weight : float in [0, 1], default 0.7
        1 keeps the incoming order; 0 is novelty alone, after the top document.
    scale : {"range", "none"}, default "range"
        "range" maps the candidates' scores linearly to [0, 1] (all to 0.5 if they are equal); "none" takes scores as
        they are, such as cosines of the query and documents, whose range over few candidates says little.
    depth, k : int
        See `greylag.diversity.DiversityStage`.

    References
    ----------
    Carbonell and Goldstein, The use of MMR, diversity-based reranking for reordering documents and producing summaries,
    SIGIR 1998.
    """

    kind = MarginalRelevance
