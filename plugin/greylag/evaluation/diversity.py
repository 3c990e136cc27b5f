"""Measures of novelty and diversity, from judgements by subtopic.

The definitions are those of ndeval, TREC's program for them, at any cut-off. M is the number of a query's subtopics
that have a relevant document; J(d, s) is 1 where document d is relevant (grade 1 or more) to subtopic s, else 0. The
gain of the document d_r at rank r is

    G_r = sum over s of J(d_r, s) (1 - alpha)^(number of documents before rank r that are relevant to s),  alpha = 0.5.

A query without such subtopics scores 0.

References
----------
Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, Novelty and diversity in information retrieval
evaluation, SIGIR 2008. Clarke, Kolla and Vechtomova, An effectiveness measure for ambiguous and underspecified queries,
ICTIR 2009. Clarke, Craswell, Soboroff and Ashkan, A comparative analysis of cascade measures for novelty and diversity,
WSDM 2011. Agrawal, Gollapudi, Halverson and Ieong, Diversifying search results, WSDM 2009. Zhai, Cohen and Lafferty,
Beyond independent relevance, SIGIR 2003. Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from greylag.evaluation.measures import Measure, Scores, assemble, evaluate, parse_measures, ranked
from greylag.ranking import FloatArray, IntArray, Run
from greylag.trec import Qrels, SubtopicQrels

ALPHA = 0.5
BETA = 0.5

Coverage = NDArray[np.bool_]
"""Which documents (rows) are relevant to which subtopics (columns)."""


def evaluate_by_subtopic(run: Run, qrels: SubtopicQrels, measures: Sequence[Measure | str]) -> Scores:
    """Score a run against judgements by subtopic.

    Measures of relevance, such as AP, take a document's highest grade over the subtopics.

    Parameters
    ----------
    measures : measures or their names (`greylag.evaluation.parse_measure`), each computed once.

    Raises
    ------
    ParameterError
        No query in common, or an unknown measure.
    """
    parsed = parse_measures(measures)
    columns: dict[Measure, FloatArray] = {}
    relevance = [measure for measure in parsed if measure.family.source != "subtopics"]
    if relevance:
        values = evaluate(run, highest_grades(qrels), relevance).values
        columns.update(zip(relevance, values.T, strict=True))
    covers = [coverage(docids, qrels[qid]) for qid, docids in ranked(run, qrels)]
    for measure in set(parsed) - set(relevance):
        compute = _MEASURES[measure.family.name]
        cutoffs = [measure.cutoff or len(covered) for covered, _ in covers]
        scores = [compute(*pair, k) if pair[1].size else 0.0 for pair, k in zip(covers, cutoffs, strict=True)]
        columns[measure] = np.array(scores)
    return assemble(run, tuple(qrels), {measure: columns[measure] for measure in parsed})


def highest_grades(qrels: SubtopicQrels) -> Qrels:
    """Judgements of documents: each document's highest grade over a query's subtopics."""
    highest: Qrels = {}
    for qid, subtopics in qrels.items():
        grades = highest.setdefault(qid, {})
        for judged in subtopics.values():
            for docid, grade in judged.items():
                grades[docid] = max(grade, grades.get(docid, grade))
    return highest


def coverage(docids: Sequence[str], subtopics: Mapping[str, Mapping[str, int]]) -> tuple[Coverage, Coverage]:
    """What a query's ranked documents cover, and its pool: all documents relevant to a subtopic, by docid, descending.

    Returns
    -------
    Two arrays of shapes (n, M) and (documents in the pool, M).
    """
    relevant = [{docid for docid, grade in judged.items() if grade > 0} for judged in subtopics.values()]
    relevant = [docs for docs in relevant if docs]
    pool = sorted(set().union(*relevant), reverse=True)

    def covered(documents: Sequence[str]) -> Coverage:
        rows = [[docid in docs for docs in relevant] for docid in documents]
        return np.array(rows, dtype=bool).reshape(len(documents), len(relevant))

    return covered(docids), covered(pool)


def novelty_gains(covered: Coverage) -> FloatArray:
    """G_r of every rank (see the module), shape (n,)."""
    before: IntArray = np.cumsum(covered, axis=0) - covered
    return np.asarray((covered * (1 - ALPHA) ** before).sum(axis=1), dtype=np.float64)


def ideal_order(pool: Coverage, k: int) -> IntArray:
    """The pool's rows in the order of highest novelty gain, greedily, at most k; of equal gains the first row's.

    The true ideal is NP-hard to find (Clarke et al. 2008). ndeval's is this one, and of equal gains takes the docid
    that is last in order, which is why the pool comes by docid, descending.
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


def alpha_ndcg(covered: Coverage, pool: Coverage, k: int) -> float:
    """alpha-nDCG@k: sum over r <= k of G_r / log2(r + 1), divided by that of the ideal order (Clarke et al. 2008)."""

    def dcg(documents: Coverage) -> float:
        return float((novelty_gains(documents) / np.log2(np.arange(2, len(documents) + 2))).sum())

    return dcg(covered[:k]) / dcg(pool[ideal_order(pool, k)])


def err_ia(covered: Coverage, pool: Coverage, k: int) -> float:
    """ERR-IA@k: sum over r <= k of G_r / r, divided by what it would be if every document covered every subtopic.

    The divisor is M times the sum over r <= k of (1 - alpha)^(r-1) / r (Clarke et al. 2011). ndeval leaves the division
    out at k = 1 alone, and so can give figures above 1 there.
    """
    gains = novelty_gains(covered[:k])
    ranks = np.arange(1, max(len(gains), min(k, 1075)) + 1)  # 0.5^1075 is 0 in float64
    most = pool.shape[1] * ((1 - ALPHA) ** (ranks - 1) / ranks).sum()
    return float((gains / ranks[: len(gains)]).sum() / most)


def nrbp(covered: Coverage, pool: Coverage, k: int) -> float:
    """NRBP: (1 - (1 - alpha) beta) / M times the sum over r <= k of beta^(r-1) G_r, beta = 0.5 (Clarke et al. 2009)."""
    gains = novelty_gains(covered[:k])
    decay = BETA ** np.arange(len(gains), dtype=np.float64)
    return float((1 - (1 - ALPHA) * BETA) / pool.shape[1] * (gains @ decay))


def p_ia(covered: Coverage, pool: Coverage, k: int) -> float:
    """P-IA@k: the mean over subtopics of the precision at k (Agrawal et al. 2009, all intents alike)."""
    return float(covered[:k].sum() / (k * pool.shape[1]))


def subtopic_recall(covered: Coverage, _: Coverage, k: int) -> float:
    """S-recall@k: the share of the subtopics that the first k documents cover (Zhai et al. 2003)."""
    return float(covered[:k].any(axis=0).mean())


def subtopic_loss(covered: Coverage, pool: Coverage, k: int) -> float:
    """subtopic-loss@k: the weight of the subtopics that the first k documents do not cover (Yue and Joachims 2008).

    A subtopic's weight is proportional to the number of documents relevant to it; a query's weights sum to 1.
    """
    documents = pool.sum(axis=0)
    return float(documents[~covered[:k].any(axis=0)].sum() / documents.sum())


_MEASURES: dict[str, Callable[[Coverage, Coverage, int], float]] = {
    "alpha-nDCG": alpha_ndcg,
    "ERR-IA": err_ia,
    "NRBP": nrbp,
    "P-IA": p_ia,
    "S-recall": subtopic_recall,
    "subtopic-loss": subtopic_loss,
}
