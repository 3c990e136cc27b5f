"""What some questions gain for hybrid search: a weight from judged ones, and a limit below which nothing is found.

For the weight, some of a collection's questions are drawn, `greylag.recipes.HybridSearch.learn_weight` learns from
them, and the others are ranked by what it learned. A question's gain over the weight 1 is the mean over the draws that
it is not in; tests are over questions.

For the limit, each question is asked of its collection, of the collection without its relevant documents, and of
another collection. The highest value of a number among the candidates is what
`greylag.passages.HybridRetriever.threshold` goes by: the first question's should be above the other two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.metrics import roc_auc_score

from greylag.base import FloatArray, IntArray, Query, Ranking, Run, parallel_map
from greylag.evaluation import SIGNIFICANCE_LEVEL, Qrels, Section, evaluate, holm, paired_test
from greylag.recipes import HybridRecipe, HybridScores, HybridSearch
from greylag.studies import Context, means_table
from greylag_papers.beyond.general import over_collections
from greylag_papers.texts import read_texts

CONFIDENCE, COSINE, LEARNED = "confidence", "cosine", "learned weight"
LEFT = 5
"""The questions that a draw leaves at least, to be ranked by what it learned."""
GRID = tuple((2.0 ** (np.arange(-4, 9) / 2)).tolist())
"""The weights that are learned from, and compared with what is learned."""
LIMITED, KEPT = 20, 0.9
"""The questions that a limit is found from, and their share that it keeps."""
RELEVANT, ANSWERABLE, OWN = "relevant", "answerable", "own"
_TEXTS = read_texts(__file__)


def _with(factor: float) -> Callable[[HybridScores], FloatArray]:
    """The confidence with another weight of the cosine, in units of its own."""

    def confidence(hits: HybridScores) -> FloatArray:
        general = hits.general / np.log(max(len(hits.general), 2))
        return np.asarray(general + factor * (hits.confidence - general))

    return confidence


NUMBERS: Mapping[str, Callable[[HybridScores], FloatArray]] = {
    "BM25": lambda hits: hits.bm25,
    "general": lambda hits: hits.general,
    COSINE: lambda hits: hits.cosines,
    "hybrid": lambda hits: hits.scores,
    CONFIDENCE: lambda hits: hits.confidence,
    f"{CONFIDENCE}, 2": _with(0.5),
    f"{CONFIDENCE}, 8": _with(2.0),
}
"""The numbers of a candidate that could say whether it answers the question; 2 and 8 in the place of 4."""


@dataclass(frozen=True)
class Answers:
    """What the questions of a collection gain."""

    gains: Mapping[int, FloatArray]  # by number of judged questions: of each question that some draw leaves
    best: float  # the mean gain of the weight of the grid that is best for all
    limits: Mapping[str, Mapping[str, float]]  # areas and shares by number


def ask(
    search: HybridSearch,
    topics: Mapping[str, str],
    qrels: Qrels,
    foreign: Sequence[Query],
    sizes: Sequence[int],
    draws: int,
    seed: int,
    context: Context,
) -> Answers:
    """Ask judged questions and those of other collections, of which `search` has the vectors, too."""
    queries = [Query(qid, text) for qid, text in topics.items()]

    def without(query: Query) -> HybridScores:
        relevant = search.index.documents([docid for docid, grade in qrels[query.qid].items() if grade > 0])
        others = np.ones(search.index.n_documents, dtype=bool)
        others[relevant[relevant >= 0]] = False
        return search.scores(query, others)

    found, lost, strange = (
        [*parallel_map(find, asked, what="search", n_jobs=context.n_jobs)]
        for find, asked in ((search.scores, queries), (without, queries), (search.scores, foreign))
    )
    rng = np.random.default_rng(seed)
    orders = [rng.permutation(len(queries)) for _ in range(draws)]  # more questions include the fewer
    first = search.index.bm25(search.k).run(topics, n_jobs=context.n_jobs)
    fit = HybridRecipe(search.vectors, k=search.k).prepare(first, qrels, search.index, n_jobs=context.n_jobs)
    qids, values = [*topics], cache(lambda weight: values_by(weight, found, qrels))
    gains = {
        size: held_out_gains(
            [values(fit([qids[place] for place in order[:size]]).model.weight) for order in orders],
            *(values(1.0), [order[:size] for order in orders]),
        )
        for size in sizes
        if size + LEFT <= len(queries)
    }
    best = max(float((values(weight) - values(1.0)).mean()) for weight in GRID)
    relevant = np.array([qrels[hits.query.qid].get(hits.docids[0], 0) > 0 for hits in found])
    drawn = [order[:LIMITED] for order in orders if len(queries) >= LIMITED + LEFT]
    limits = {}
    for name, number in NUMBERS.items():
        top = np.array([number(hits)[0] for hits in found])
        own, without_answer, others = (
            np.array([number(hits).max() for hits in asked]) for asked in (found, lost, strange)
        )
        areas = {RELEVANT: area(top[relevant], top[~relevant])}
        limits[name] = areas | limits_of(own, without_answer, others, drawn)
    return Answers(gains, best, limits)


def values_by(weight: float, found: Sequence[HybridScores], qrels: Qrels) -> FloatArray:
    """The nDCG@10 of queries' candidates by a weight, shape (queries,)."""

    def ranked(hits: HybridScores) -> Ranking:
        scores = hits.general + weight * hits.weight * (hits.cosines - hits.mean)
        docids = tuple(hits.docids[place] for place in np.argsort(-scores, kind="stable")[:10])
        return Ranking(hits.query.qid, hits.query.text, docids, np.arange(len(docids), 0.0, -1.0))

    scores = evaluate(
        Run(tuple(map(ranked, found))), {hits.query.qid: qrels[hits.query.qid] for hits in found}, ["nDCG@10"]
    )
    values: FloatArray = scores.values[[scores.qids.index(hits.query.qid) for hits in found], 0]
    return values


def held_out_gains(values: Sequence[FloatArray], before: FloatArray, draws: Sequence[IntArray]) -> FloatArray:
    """The mean gain of each question over the draws that leave it; `values` has each draw's, by what it learned."""
    left = np.ones((len(draws), len(before)), dtype=bool)
    for row, drawn in zip(left, draws, strict=True):
        row[drawn] = False
    some = left.any(axis=0)
    gains: FloatArray = ((values - before) * left).sum(axis=0)[some] / left.sum(axis=0)[some]
    return gains


def area(above: FloatArray, below: FloatArray) -> float:
    """The area under the ROC curve: the share of pairs that are in order; half of them if there are none."""
    if not (len(above) and len(below)):
        return 0.5
    return float(roc_auc_score([1] * len(above) + [0] * len(below), [*above, *below]))


def limits_of(found: FloatArray, lost: FloatArray, strange: FloatArray, draws: Sequence[IntArray]) -> dict[str, float]:
    """The areas of questions with an answer over those without, and of own ones over others; what a limit refuses.

    `found` has each question's value, and `lost` its value without its relevant documents. A limit is the quantile of
    the questions of a draw, and decides on those that the draw leaves and on all `strange` ones.
    """
    areas = {ANSWERABLE: area(found, lost), OWN: area(found, strange)}
    shares = []
    for drawn in draws:
        limit = np.quantile(found[drawn], 1 - KEPT)
        left = np.delete(np.arange(len(found)), drawn)
        shares.append([np.mean(found[left] >= limit), np.mean(lost[left] < limit), np.mean(strange < limit)])
    names = "kept", "unanswerable refused", "others refused"
    return areas | dict(zip(names, np.mean(shares, axis=0).tolist() if shares else [], strict=False))


def rows_of(answers: Mapping[str, Answers], related: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """The figures: gains of each collection by number of questions, the areas and shares, and both over collections."""
    rows: dict[str, dict[str, float]] = {}
    for size in dict.fromkeys(size for one in answers.values() for size in one.gains):
        by_name = {name: one.gains[size] for name, one in answers.items() if size in one.gains}
        means = {name: float(gains.mean()) for name, gains in by_name.items()}
        for name, mean in means.items():
            rows.setdefault(f"{name}, {LEARNED}", {})[f"{size} questions"] = mean
        surely = holm([paired_test(gains)[1] for gains in by_name.values()]) < SIGNIFICANCE_LEVEL
        signs = np.sign([*means.values()])[surely]
        counts = {"significant": float(np.sum(signs > 0)), "significantly below": float(np.sum(signs < 0))}
        rows[f"all, {LEARNED}, {size} questions"] = over_collections(means, related) | counts
    best = {name: one.best for name, one in answers.items()}
    for name, gain in best.items():
        rows.setdefault(f"{name}, {LEARNED}", {})["the best"] = gain
    rows[f"all, {LEARNED}, the best"] = over_collections(best, related)
    rows |= {f"{name}, {CONFIDENCE}": dict(one.limits[CONFIDENCE]) for name, one in answers.items()}
    for number in NUMBERS:
        found = [one.limits[number] for one in answers.values()]
        columns = dict.fromkeys(column for row in found for column in row)
        rows[f"all, {number}"] = {
            column: float(np.mean([row[column] for row in found if column in row])) for column in columns
        }
    for told in (RELEVANT, ANSWERABLE, OWN):
        gained = {name: one.limits[CONFIDENCE][told] - one.limits[COSINE][told] for name, one in answers.items()}
        rows[f"all, {CONFIDENCE} less {COSINE}, {told}"] = over_collections(gained, related)
    return rows


def section(rows: Mapping[str, Mapping[str, float]]) -> Section:
    """The figures as tables."""
    of_weight = {name: row for name, row in rows.items() if f", {LEARNED}" in name}
    tables = [
        means_table("Gain of nDCG@10 by a learned weight", of_weight),
        means_table("Areas, and shares by a limit", {name: row for name, row in rows.items() if name not in of_weight}),
    ]
    return Section("A weight and a limit from questions", _TEXTS["questions: collections"], tables)
