"""Several collections in one evaluation. Tests `parts`."""

import numpy as np
import pytest

from greylag.base import GreylagError
from greylag.evaluation import Collections, Evaluation, compare, compare_scores, evaluate, holm, paired_test
from tests.refusals import refuses

NAMES = ["AP", "P@5"]
RUNS = ["bm25", "rm3", "mine"]


def collection(seed):
    """Three runs and judgements; the last run is the best."""
    rng = np.random.default_rng(seed)
    qrels = {f"q{q}": {f"d{d}": int(rng.random() < 0.3) for d in range(20)} for q in range(20 + seed)}
    gains = dict(zip(RUNS, (0.0, 0.05, 0.3), strict=True))
    runs = {
        name: {
            qid: {docid: rng.random() + gain * grade for docid, grade in grades.items()}
            for qid, grades in qrels.items()
        }
        for name, gain in gains.items()
    }
    return runs, qrels


COLLECTIONS = {name: collection(seed) for seed, name in enumerate(("cran", "npl", "nf"))}


@pytest.mark.parametrize("baseline", [["bm25"], ["bm25", "rm3"], ["rm3", "mine", "bm25"], []])
def test_p_is_corrected_over_all_collections(baseline):
    """By Holm's correction of t-tests that are made one by one."""
    found = compare(COLLECTIONS, measures=NAMES, baseline=baseline, all_pairs=not baseline).ordered(RUNS)
    order = baseline or RUNS
    pairs = [(a, b) for n, a in enumerate(order) for b in RUNS if b not in order[: n + 1]]
    p, keys = [], []
    for name, (runs, qrels) in COLLECTIONS.items():
        scores = {run: evaluate(ranked, qrels, NAMES).values for run, ranked in runs.items()}
        for before, after in pairs:
            p += [paired_test(column.round(12))[1] for column in (scores[after] - scores[before]).T]
            keys += [(name, after, before, measure) for measure in NAMES]
    corrected = dict(zip(keys, holm(p).tolist(), strict=True))
    assert {
        (name, c.run, c.baseline, str(c.measure)): c.corrected_p
        for name, part in found.parts.items()
        for c in part.significance.comparisons
    } == pytest.approx(corrected)
    assert f"correction over {len(keys)} comparisons" in str(found)
    assert 0 < sum(value < 0.05 for value in corrected.values()) < len(keys)


@pytest.mark.parametrize("margin", [None, 0.1])
def test_exact_p_are_a_table_of_the_collections_with_few_topics(margin):
    runs, qrels = COLLECTIONS["npl"]
    few = {name: dict([*of_one.items()][:9]) for name, of_one in runs.items()}
    collections = {"cran": COLLECTIONS["cran"], "npl": (few, dict([*qrels.items()][:9]))}
    found = compare(collections, measures=["AP"], baseline="bm25", margin=margin)
    tables = {table.caption.partition(":")[0].split()[0]: table for table in found.tables()[1:]}
    assert [*tables] == ["Second", "Third", "Fourth", *["Fifth"] * (margin is not None)]
    expected = [c.exact_p for c in found.parts["npl"].significance.comparisons]
    assert [row[3:] for row in tables["Fourth"].rows] == [(None, p) for p in expected]
    assert "exact p" in tables["Fourth"].caption
    assert "exact p" not in str(compare(COLLECTIONS, measures=["AP"], baseline="bm25"))


def test_collections_keep_their_correction_in_another_order():
    """Of one family over all; those by kinds of judgements have one each."""
    found = compare(COLLECTIONS, measures=NAMES, all_pairs=True, test="wilcoxon")
    for order in (RUNS, RUNS[::-1]):
        turned = found.ordered([*order, "other"])
        assert [[*part.scores] for part in turned.parts.values()] == [order] * 3
        for name, part in turned.parts.items():
            p, before = (
                {(frozenset((c.run, c.baseline)), c.measure): c.corrected_p for c in one.significance.comparisons}
                for one in (part, found.parts[name])
            )
            assert p == pytest.approx(before)
            assert part.significance.together == found.parts[name].significance.together
    alone = {name: compare(*pair, NAMES, all_pairs=True) for name, pair in COLLECTIONS.items()}
    kinds = Collections(alone, "all of them").ordered(RUNS)
    assert [part.to_dict() for part in kinds.parts.values()] == [
        part.ordered(RUNS).to_dict() for part in alone.values()
    ]
    assert str(kinds).endswith("\n\nall of them")


def test_comparisons_of_some_pairs_are_not_made_anew():
    runs, qrels = COLLECTIONS["npl"]
    scores = {name: evaluate(run, qrels, NAMES) for name, run in runs.items()}
    some = Evaluation(scores, compare_scores(scores, pairs=[("bm25", "rm3"), ("rm3", "mine")]))
    refuses(lambda: some.ordered(RUNS), GreylagError, "some pairs")
    refuses(lambda: some.best_of(dict.fromkeys(RUNS, "x")), GreylagError, "some pairs")
