"""Benchmarks can be imported: no type checker reads them, and names change. Figures that one keeps are its own."""

import math
from importlib import import_module
from itertools import product

import numpy as np
import pytest
import yaml
from scipy import stats

from benchmarks import significance
from benchmarks.__main__ import TOPICS


@pytest.mark.parametrize("topic", [*TOPICS, "growth"])
def test_a_benchmark_has_what_it_imports(topic):
    import_module(f"benchmarks.{topic}")


KEPT = yaml.safe_load(significance.KEPT.read_text())


def test_kept_errors_of_tests_are_what_is_enumerated_and_simulated():
    trials = 100
    found = significance.errors(trials)
    assert KEPT.keys() == found.keys()
    for name, row in found.items():
        for test, error in row.items():
            band = 5e-5 if "Success" in name else 4 * math.sqrt(max(KEPT[name][test], 0.01) / trials)
            assert error == pytest.approx(KEPT[name][test], abs=band), (name, test)


@pytest.mark.parametrize("n", [2, 3, 5, 7])
def test_errors_by_success_are_those_of_all_outcomes(n):
    """Of SciPy's t-test of each of 3^n, unless all are equal, and by counting flips."""
    outcomes = np.array([*product((1, 0, -1), repeat=n)])
    changed, total, varies = np.count_nonzero(outcomes, axis=1), abs(outcomes.sum(axis=1)), np.ptp(outcomes, axis=1) > 0
    sums = [abs(np.array([*product((1, -1), repeat=k)]).sum(axis=1)) for k in range(n + 1)]
    exact = np.array([(sums[k] >= own).mean() for k, own in zip(changed, total, strict=True)])
    t = exact.copy()
    t[varies] = stats.ttest_1samp(outcomes[varies], 0, axis=1).pvalue
    probabilities = 0.25**changed * 0.5 ** (n - changed)
    found = {name: probabilities[p < 0.05].sum() for name, p in (("t", t), ("exact", exact))}
    found["worst"] = max((t[changed == k] < 0.05).mean() for k in range(n + 1))
    assert KEPT[f"Success@1, {n} topics"] == pytest.approx(found, abs=5e-5)


@pytest.mark.parametrize("n", [2, 3])
def test_errors_by_reciprocal_rank_are_near_those_of_all_outcomes(n):
    ranks = np.arange(1, 11)
    values = np.append(1 / ranks, 0.0)
    shares = np.append(0.3 * 0.7 ** (ranks - 1), 0.7**10)
    differences, of_one = np.unique(np.round(np.subtract.outer(values, values), 12), return_inverse=True)
    probabilities = np.bincount(of_one.ravel(), np.multiply.outer(shares, shares).ravel())
    every = np.array([*product(range(len(differences)), repeat=n)])
    outcomes, weights = differences[every], probabilities[every].prod(axis=1)
    assert weights.sum() == pytest.approx(1)
    varies = np.ptp(outcomes, axis=1) > 0  # of equal ones, the exact p is .25 and more
    found = weights[varies][stats.ttest_1samp(outcomes[varies], 0, axis=1).pvalue < 0.05].sum()
    assert KEPT[f"RR, {n} topics"]["t"] == pytest.approx(found, abs=4 * math.sqrt(found / significance.TRIALS))
    assert KEPT[f"RR, {n} topics"]["exact"] == 0
