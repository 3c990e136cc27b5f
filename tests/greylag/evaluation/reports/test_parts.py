"""Several collections in one evaluation. Tests `parts`."""

import numpy as np
import pytest

from greylag.evaluation import compare, evaluate, holm, paired_test

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
    found = compare(COLLECTIONS, measures=NAMES, baseline=baseline, all_pairs=not baseline, order="given")
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
