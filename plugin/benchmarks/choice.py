"""The choice among rankers that are all alike: how often it is called better or worse, and the error of its mean.

Each trial has topics with relevant documents at random, and eleven rankers of the families of `greylag train` whose
scores are random, too, with a part that they share; no ranker is better than another. `choose` itself averages and
chooses. Of 500 trials, at most .06 may be significant at .05. The same for `diversify`.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.harness import Row
from greylag.evaluation import SIGNIFICANCE_LEVEL, Scores, paired_test, parse_measure, split_folds
from greylag.evaluation.scoring.selection_bias import BestOfMany, best_of_many
from greylag.learning import Objective, RankingData
from greylag.recipes.choice import LISTWISE_PENALTIES, Candidate, Choice, System, choose, cross_folds
from greylag.recipes.diversifiers import TRIED_WEIGHTS, rule_of, tuned_by_fold

TRIALS, DOCUMENTS, RELEVANT = 500, 50, 5
AP, MEASURE = Objective.parse("AP"), parse_measure("alpha-nDCG@10")
SYSTEMS = [
    System("BM25"), System("QL"), System("SDM"), System("RM3"),
    *(System("listwise", f"penalty {penalty:g}") for penalty in LISTWISE_PENALTIES),
    System("greedy"), System("adapted"), System("adapted", "penalty 30"),
]  # fmt: skip


def null_choice(rng: np.random.Generator, topics: int, gain: float = 0.0) -> Choice:
    """The choice among rankers of which none is better; with `gain`, all but the first see relevance a little."""
    n = topics * DOCUMENTS
    grades = (rng.random((topics, DOCUMENTS)).argsort(axis=1) < RELEVANT).astype(np.int64).ravel()
    families = list(dict.fromkeys(system.family for system in SYSTEMS))
    shared = {family: rng.standard_normal(n) for family in families}
    # Rankers of a collection agree in a part, those of a family in more.
    common = rng.standard_normal(n)
    columns = [common + 0.5 * shared[system.family] + 0.5 * rng.standard_normal(n) for system in SYSTEMS]
    columns = [column + gain * grades * (number > 0) for number, column in enumerate(columns)]
    data = RankingData(
        specs=tuple(map(str, SYSTEMS)),
        qids=tuple(f"q{number}" for number in range(topics)),
        offsets=np.arange(0, n + 1, DOCUMENTS),
        docids=tuple(map(str, range(n))),
        features=np.stack(columns, axis=1),
        grades=grades,
        relevant_grades=(np.ones(RELEVANT, dtype=np.int64),) * topics,
    )
    candidates = [Candidate(system, (str(system),), (1.0,)) for system in SYSTEMS]
    return choose(cross_folds(data, split_folds(data.qids, 2, 0)), data.qids, candidates, AP, baselines=SYSTEMS[:4])


def null_diversifier(rng: np.random.Generator, topics: int) -> BestOfMany:
    """The choice among diversifiers that do nothing: five, with thirteen weights each, beside the first stage.

    Scores of a topic are alike, those of one diversifier more so, and each weight is chosen on the other folds.
    """
    qids = tuple(f"q{number}" for number in range(topics))
    common, folds = rng.standard_normal(topics), split_folds(qids, 5, 0)
    tests = [np.isin(qids, part) for part in folds]
    pool = {"none": (common + 0.5 * rng.standard_normal(topics))[None, :, None]}
    for method in range(5):
        own = common + 0.3 * rng.standard_normal(topics)
        pool[str(method)] = (own + 0.4 * rng.standard_normal((len(TRIED_WEIGHTS), topics)))[:, :, None]
    scores = {name: tuned_by_fold(values, tests, 1.0)[0][:, 0] for name, values in pool.items()}
    by_name = {name: Scores.single(MEASURE, dict(zip(qids, of, strict=True))) for name, of in scores.items()}
    return best_of_many(by_name, "none", rule=rule_of(pool, tests, 1.0))


def null_rows(rng: np.random.Generator) -> Iterator[Row]:
    """How often `diversify` recommends one of them, or warns of it."""
    for topics in (24, 50, 200):
        found = [null_diversifier(rng, topics).comparison for _ in range(TRIALS)]
        shown = sum(one is not None and one.significant for one in found) / TRIALS
        covers = sum(one is None or one.interval[0] <= 0 <= one.interval[1] for one in found) / TRIALS
        yield Row(f"diversify, {topics} topics: p < .05, corrected", shown, "", "at most .06")
        yield Row(f"diversify, {topics} topics: the interval covers 0", covers, "", "at least .94")


def null_best(rng: np.random.Generator, systems: int, kind: str) -> bool | None:
    """Whether the best of systems of random scores is called better or worse than the first, None if it is the first.

    Of unlike systems, half are worse than the first.
    """
    scores = rng.exponential(size=(systems, 200)) if kind == "skewed" else rng.standard_normal((systems, 200))
    if kind == "unlike":
        scores[systems // 2 :] -= 0.5
    named = {
        str(n): Scores.single(MEASURE, {str(q): score for q, score in enumerate(row)}) for n, row in enumerate(scores)
    }
    found = best_of_many(named, "0").comparison
    return None if found is None else found.significant


def best_rows() -> Iterator[Row]:
    """The size of `best_of_many` over 200 topics, where another system than the first is chosen."""
    for systems, kind in product((5, 20, 60), ("alike", "unlike", "skewed")):
        rng = np.random.default_rng(2)
        found = [shown for shown in (null_best(rng, systems, kind) for _ in range(1000)) if shown is not None]
        yield Row(f"best of {systems} systems, {kind}: p < .05, corrected", sum(found) / len(found), "", "at most .06")


def rows() -> Iterator[Row]:
    """Shares of trials, and means over them."""
    rng = np.random.default_rng(0)
    yield from null_rows(np.random.default_rng(1))
    yield from best_rows()
    for topics in (24, 50, 200):
        plain, corrected, covers, too_high, before = 0, 0, 0, 0.0, 0.0
        for _ in range(TRIALS):
            choice = null_choice(rng, topics)
            first, found = choice.values[(choice.baseline,)], choice.best.comparison
            too_high += (choice.best.mean - first.mean()) / TRIALS
            gains = choice.values[choice.chosen] - first
            plain += paired_test(gains)[1] < SIGNIFICANCE_LEVEL
            before += gains.mean() / TRIALS
            # If the first one is chosen, it is said to be neither better nor worse.
            corrected += found is not None and found.significant
            covers += found is None or found.interval[0] <= 0 <= found.interval[1]
        yield Row(f"{topics} topics: p < .05, corrected", corrected / TRIALS, "", "at most .06")
        yield Row(f"{topics} topics: p < .05, not corrected", plain / TRIALS, "", "")
        yield Row(f"{topics} topics: the interval covers 0", covers / TRIALS, "", "at least .94")
        yield Row(f"{topics} topics: mean difference, corrected", 1e3 * too_high, "of .001", "")
        yield Row(f"{topics} topics: mean difference, not corrected", 1e3 * before, "of .001", "")
    for topics in (24, 50, 200):
        shown = [null_choice(rng, topics, gain=0.6).best.comparison for _ in range(TRIALS // 5)]
        share = sum(one is not None and one.significant and one.direction > 0 for one in shown) / len(shown)
        yield Row(f"{topics} topics: a real gain is shown", share, "", "")
