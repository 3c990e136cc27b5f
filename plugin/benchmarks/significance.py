"""How often tests on few topics call one of two systems better that are alike: the share of p < .05, two-sided.

Both systems score each topic independently, by one distribution:

- Success@1: 1 or 0, each with probability .5;
- RR: 1/r with probability .3 x .7^(r-1) for the ranks r to 10, else 0;
- nDCG@10: of 5 relevant documents among 20, ranked at random.

Errors by Success@1 are enumerated, over the numbers of topics on which one and the other is better; those by RR and
nDCG@10 are shares of trials. ``python -m benchmarks.significance`` writes what the page of evidence shows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import yaml

from benchmarks.harness import Row
from greylag.base import FloatArray
from greylag.evaluation import SIGNIFICANCE_LEVEL, paired_test

KEPT = Path(__file__).with_suffix(".yaml")
"""The figures of the page."""
TRIALS = 50_000
TOPICS = range(2, 21)
TESTS = {"t": "t", "exact": "randomization"}
SUCCESS = "Success@1"


def reciprocal_ranks(rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    """RR of a first relevant document whose rank is geometric."""
    ranks = rng.geometric(0.3, size)
    return np.where(ranks <= 10, 1 / ranks, 0.0)


def random_ndcg(rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    """NDCG@10 of 5 relevant documents among 20."""
    discounts = 1 / np.log2(np.arange(2, 22))
    discounts[10:] = 0.0
    ranks = rng.random((*size, 20)).argsort(axis=-1)[..., :5]
    return np.asarray(discounts[ranks].sum(axis=-1) / discounts[:5].sum())


DRAWN: dict[str, Callable[[np.random.Generator, tuple[int, ...]], FloatArray]] = {
    "RR": reciprocal_ranks,
    "nDCG@10": random_ndcg,
}


def shown(differences: FloatArray) -> dict[str, bool]:
    """Whether each test finds a difference."""
    return {name: paired_test(differences, test)[1] < SIGNIFICANCE_LEVEL for name, test in TESTS.items()}  # type: ignore[arg-type]


def enumerated(n: int) -> dict[str, float]:
    """The errors by Success@1; `worst` is t's where it is greatest, given the number of topics that differ."""
    found, by_changed = dict.fromkeys(TESTS, 0.0), dict[int, float]()
    for wins, losses in product(range(n + 1), repeat=2):
        changed = wins + losses
        if changed <= n:
            tests = shown(np.repeat([1.0, -1.0, 0.0], [wins, losses, n - changed]))
            share = math.comb(changed, wins) / 2**changed
            for name in TESTS:
                found[name] += tests[name] * share * math.comb(n, changed) / 2**n
            by_changed[changed] = by_changed.get(changed, 0.0) + share * tests["t"]
    return {**found, "worst": max(by_changed.values())}


def simulated(measure: str, n: int, trials: int) -> dict[str, float]:
    """The errors by another measure."""
    scores = DRAWN[measure](np.random.default_rng(n), (2, trials, n))
    found = [[*shown(differences).values()] for differences in np.round(scores[0] - scores[1], 12)]
    return dict(zip(TESTS, np.mean(found, axis=0).tolist(), strict=True))


def errors(trials: int) -> dict[str, dict[str, float]]:
    """The errors of both tests, by measure and number of topics."""
    found = {f"{SUCCESS}, {n} topics": enumerated(n) for n in TOPICS}
    return found | {f"{measure}, {n} topics": simulated(measure, n, trials) for measure, n in product(DRAWN, TOPICS)}


def rows() -> Iterator[Row]:
    """The greatest errors over numbers of topics."""
    found = errors(TRIALS)
    for measure, test in (*product((SUCCESS, *DRAWN), TESTS), (SUCCESS, "worst")):
        most = max(row[test] for name, row in found.items() if name.startswith(measure))
        yield Row(f"{measure}, 2 to 20 topics: p < .05, {test}", most, "", "at most .05" if test == "exact" else "")


if __name__ == "__main__":
    rounded = {name: {test: round(error, 4) for test, error in row.items()} for name, row in errors(TRIALS).items()}
    KEPT.write_text(yaml.safe_dump(rounded, default_flow_style=None, sort_keys=False, width=120), encoding="utf-8")
