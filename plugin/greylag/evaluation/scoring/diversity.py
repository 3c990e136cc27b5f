"""Measures of novelty and diversity over the subtopic coverage of a ranking.

Definitions follow ndeval, TREC's program for diversity tasks, at any cut-off. M is the number of subtopics
of a query with a relevant document; J(d, s) is 1 if document d is relevant (grade 1 or more) to subtopic s, else 0. The
gain of the document d_r at rank r is

    G_r = sum over s of J(d_r, s) (1 - alpha)^(number of documents above rank r that are relevant to s),  alpha = 0.5.

Every measure takes `covered`, the coverage of the ranked documents, shape (n, M); `pool`, of all relevant
documents by descending docid, shape (pool size, M); and the cut-off `k`. M must be positive. D-nDCG and D#-nDCG take
grades, 0 or more, instead of coverage. All subtopics are equally likely.

References
----------
Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, Novelty and diversity in information retrieval
evaluation, SIGIR 2008. Clarke, Kolla and Vechtomova, An effectiveness measure for ambiguous and underspecified queries,
ICTIR 2009. Clarke, Craswell, Soboroff and Ashkan, A comparative analysis of cascade measures for novelty and diversity,
WSDM 2011. Agrawal, Gollapudi, Halverson and Ieong, Diversifying search results, WSDM 2009. Zhai, Cohen and Lafferty,
Beyond independent relevance, SIGIR 2003. Sakai and Song, Evaluating diversified search results using per-intent graded
relevance, SIGIR 2011. Thakur et al., FreshStack: building realistic benchmarks for evaluating retrieval on technical
documents, 2025. Pradeep, Thakur, Upadhyay, Campos, Craswell, Soboroff, Dang and Lin, The great nugget recall:
automating fact extraction and RAG evaluation with large language models, SIGIR 2025. Yue and Joachims, Predicting
diverse subsets using structural SVMs, ICML 2008.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from greylag.base import BoolArray, FloatArray, IntArray

ALPHA = 0.5
BETA = 0.5
GAMMA = 0.5  # the weight of I-rec in D#-nDCG
OVER_GREEDY = 1 / (1 - math.exp(-1))
"""The most that a ranking may have of the gain of `ideal_order`, at each rank and so in sums with falling discounts.

Nemhauser, Wolsey and Fisher, Mathematical Programming 14, 1978, on greedy maximisation of submodular functions.
"""
NRBP_RANKS = 100  # ranks beyond it have no influence on NRBP in float64


def novelty_gains(covered: BoolArray) -> FloatArray:
    """Compute the gain G_r at every rank, shape (n,)."""
    # How often each subtopic was covered at better ranks.
    before: IntArray = np.cumsum(covered, axis=0) - covered
    return np.asarray((covered * (1 - ALPHA) ** before).sum(axis=1), dtype=np.float64)


def ideal_order(pool: BoolArray, k: int) -> IntArray:
    """Order rows of the pool greedily by novelty gain, at most k; ties go to the first row."""
    # The optimal order is NP-hard to find (Clarke et al. 2008). ndeval uses this order, with docids descending in the
    # pool.
    weights = np.ones(pool.shape[1])
    free = np.ones(len(pool), dtype=bool)
    order = []
    for _ in range(min(k, len(pool))):
        # A picked document is below any other, whose gain may be 0.
        best = int(np.argmax(np.where(free, pool @ weights, -1.0)))
        order.append(best)
        free[best] = False
        weights[pool[best]] *= 1 - ALPHA
    return np.array(order, dtype=np.int64)


def alpha_ndcg(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute alpha-nDCG@k: sum over r <= k of G_r / log2(r + 1), over its value for `ideal_order` (Clarke 2008)."""
    return _dcg(novelty_gains(covered[:k])) / _dcg(novelty_gains(pool[ideal_order(pool, k)]))


def _dcg(gains: FloatArray) -> float:
    return float((gains / np.log2(np.arange(2, len(gains) + 2))).sum())


def alpha_dcg(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute alpha-DCG@k: the sum over r <= k of G_r / log2(r + 1), divided as ERR-IA is."""
    return _share_of_most(covered, pool, k, lambda ranks: np.log2(ranks + 1))


def err_ia(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute ERR-IA@k: the sum over r <= k of G_r / r, over its value if every document covered every subtopic."""
    # The divisor is M times the sum of (1 - alpha)^(r-1) / r (Clarke et al. 2011). ndeval omits it at k = 1.
    return _share_of_most(covered, pool, k, lambda ranks: ranks)


def _share_of_most(covered: BoolArray, pool: BoolArray, k: int, discount: Callable[[IntArray], Any]) -> float:
    """Divide the discounted sum of gains by its value if every document covered every subtopic."""
    gains = novelty_gains(covered[:k])
    ranks = np.arange(1, max(len(gains), min(k, 1075)) + 1)  # 0.5^1075 is 0 in float64
    most = pool.shape[1] * ((1 - ALPHA) ** (ranks - 1) / discount(ranks)).sum()
    return float((gains / discount(ranks[: len(gains)])).sum() / most)


def nerr_ia(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute nERR-IA@k: ERR-IA@k over its value for `ideal_order`."""
    return err_ia(covered, pool, k) / err_ia(pool[ideal_order(pool, k)], pool, k)


def nrbp(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute NRBP: (1 - (1 - alpha) beta) / M sum over r <= k of beta^(r-1) G_r, beta = 0.5 (Clarke et al. 2009)."""
    gains = novelty_gains(covered[:k])
    decay = BETA ** np.arange(len(gains), dtype=np.float64)
    return float((1 - (1 - ALPHA) * BETA) / pool.shape[1] * (gains @ decay))


def nnrbp(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute nNRBP: NRBP over its value for `ideal_order`."""
    return nrbp(covered, pool, k) / nrbp(pool[ideal_order(pool, NRBP_RANKS)], pool, NRBP_RANKS)


def map_ia(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute MAP-IA: average precision, averaged over subtopics (Agrawal et al. 2009)."""
    precision = covered[:k].cumsum(axis=0) / np.arange(1, len(covered[:k]) + 1)[:, None]
    return float(((precision * covered[:k]).sum(axis=0) / pool.sum(axis=0)).mean())


def p_ia(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute P-IA@k: precision at k, averaged over equally likely subtopics (Agrawal et al. 2009)."""
    return float(covered[:k].sum() / (k * pool.shape[1]))


def subtopic_recall(covered: BoolArray, _: BoolArray, k: int) -> float:
    """Compute S-recall@k: the share of subtopics that the top k cover (Zhai et al. 2003); NTCIR's I-rec@k."""
    return float(covered[:k].any(axis=0).mean())


def nugget_coverage(credit: FloatArray, weights: FloatArray, k: int) -> float:
    """Compute Coverage@k: the weighted mean over nuggets of the highest credit in the top k; 0 if no nugget counts.

    Unlike other measures, it takes the credit, shape (n, S), of documents for all S subtopics of the query, also those
    without a relevant document, and their weights, shape (S,). With credit 1 or 0 and equal weights, it is that of
    Thakur et al. (2025). With those of Pradeep et al. (2025), it is TREC RAG's score of an answer that has exactly what
    each nugget's best document of the top k supports.
    """
    whole = float(weights.sum())
    return float(credit[:k].max(axis=0, initial=0.0) @ weights) / whole if whole else 0.0


def d_ndcg(grades: IntArray, pool: IntArray, k: int) -> float:
    """Compute D-nDCG@k: the nDCG of the mean grade over subtopics, with discount log2(r + 1) (Sakai and Song 2011)."""
    ideal = np.sort(pool.mean(axis=1))[::-1][:k]
    return _dcg(grades[:k].mean(axis=1)) / _dcg(ideal)


def d_sharp_ndcg(grades: IntArray, pool: IntArray, k: int) -> float:
    """Compute D#-nDCG@k: the mean of I-rec@k and D-nDCG@k (Sakai and Song 2011, with gamma = 0.5)."""
    return GAMMA * subtopic_recall(grades > 0, pool > 0, k) + (1 - GAMMA) * d_ndcg(grades, pool, k)


def subtopic_loss(covered: BoolArray, pool: BoolArray, k: int) -> float:
    """Compute subtopic-loss@k: the weight of subtopics that the top k leave uncovered (Yue and Joachims 2008)."""
    # Weighted as in `greylag.evaluation.scoring.subtopics`.
    documents = pool.sum(axis=0)
    return float(documents[~covered[:k].any(axis=0)].sum() / documents.sum())
