"""Measures of novelty and diversity over the subtopic coverage of a ranking.

The definitions are those of ndeval, TREC's program for diversity tasks, at any cut-off. M is the number of subtopics
of a query with a relevant document; J(d, s) is 1 if document d is relevant (grade 1 or more) to subtopic s, else 0. The
gain of the document d_r at rank r is

    G_r = sum over s of J(d_r, s) (1 - alpha)^(number of documents above rank r that are relevant to s),  alpha = 0.5.

Every measure takes `covered`, the coverage of the ranked documents, shape (n, M); `pool`, that of all relevant
documents by descending docid, shape (pool size, M); and the cut-off `k`. M must be positive.

References
----------
Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, Novelty and diversity in information retrieval
evaluation, SIGIR 2008. Clarke, Kolla and Vechtomova, An effectiveness measure for ambiguous and underspecified queries,
ICTIR 2009. Clarke, Craswell, Soboroff and Ashkan, A comparative analysis of cascade measures for novelty and diversity,
WSDM 2011. Agrawal, Gollapudi, Halverson and Ieong, Diversifying search results, WSDM 2009. Zhai, Cohen and Lafferty,
Beyond independent relevance, SIGIR 2003. Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008.
"""

from __future__ import annotations

import numpy as np

from greylag.evaluation.subtopics import uncovered_weight
from greylag.ranking import BoolArray, FloatArray, IntArray

ALPHA = 0.5
BETA = 0.5


def novelty_gains(covered: BoolArray) -> FloatArray:
    """The gain G_r at every rank, shape (n,)."""
    before: IntArray = np.cumsum(covered, axis=0) - covered
    return np.asarray((covered * (1 - ALPHA) ** before).sum(axis=1), dtype=np.float64)


def ideal_order(pool: BoolArray, k: int) -> IntArray:
    """The rows of the pool in greedy order of novelty gain, at most k; ties go to the first row.

    The optimal order is NP-hard to find (Clarke et al. 2008). ndeval uses this greedy order and breaks ties by
    descending docid, the order of the pool.
    """
    weights = np.ones(pool.shape[1])
    free = np.ones(len(pool), dtype=bool)
    order = []
    for _ in range(min(k, len(pool))):
        best = int(np.argmax(np.where(free, pool @ weights, -1.0)))
        order.append(best)
        free[best] = False
        weights[pool[best]] *= 1 - ALPHA
    return np.array(order, dtype=np.int64)


def alpha_ndcg(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """alpha-nDCG@k: the sum over r <= k of G_r / log2(r + 1), over its value for `ideal_order` (Clarke et al. 2008)."""

    def dcg(documents: BoolArray) -> float:
        return float((novelty_gains(documents) / np.log2(np.arange(2, len(documents) + 2))).sum())

    return dcg(covered[:k]) / dcg(pool[ideal_order(pool, k)])


def err_ia(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """ERR-IA@k: the sum over r <= k of G_r / r, divided by its value if every document covered every subtopic.

    The divisor is M times the sum over r <= k of (1 - alpha)^(r-1) / r (Clarke et al. 2011). ndeval omits the division
    at k = 1, where its values can exceed 1.
    """
    gains = novelty_gains(covered[:k])
    ranks = np.arange(1, max(len(gains), min(k, 1075)) + 1)  # 0.5^1075 is 0 in float64
    most = pool.shape[1] * ((1 - ALPHA) ** (ranks - 1) / ranks).sum()
    return float((gains / ranks[: len(gains)]).sum() / most)


def nrbp(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """NRBP: (1 - (1 - alpha) beta) / M times the sum over r <= k of beta^(r-1) G_r, beta = 0.5 (Clarke et al. 2009)."""
    gains = novelty_gains(covered[:k])
    decay = BETA ** np.arange(len(gains), dtype=np.float64)
    return float((1 - (1 - ALPHA) * BETA) / pool.shape[1] * (gains @ decay))


def p_ia(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """P-IA@k: precision at k, averaged over subtopics (Agrawal et al. 2009, with equally likely intents)."""
    return float(covered[:k].sum() / (k * pool.shape[1]))


def subtopic_recall(covered: BoolArray, _: BoolArray, k: int) -> float:
    """S-recall@k: the proportion of subtopics that the top k documents cover (Zhai et al. 2003)."""
    return float(covered[:k].any(axis=0).mean())


def subtopic_loss(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """subtopic-loss@k: the weight of the subtopics that the top k documents leave uncovered (Yue and Joachims 2008).

    See `greylag.evaluation.subtopics` for the weights.
    """
    documents = pool.sum(axis=0)
    return float(uncovered_weight(documents, np.asarray(covered[:k].any(axis=0))) / documents.sum())
