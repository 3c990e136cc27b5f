"""Means corrected by people's judgements of a few topics: how often the 95 % intervals contain the mean.

Scores are normal or exponential. Predictions of either may be good, biased and half as wide, or useless.
"""

from collections.abc import Iterator
from itertools import product

import numpy as np

from benchmarks.harness import Row
from greylag.base import FloatArray
from greylag.evaluation.scoring.predicted import correct_by_people

TRIALS = 4000
PREDICTIONS = {"good": (0.0, 1.0, 0.4), "biased": (2.0, 0.5, 0.5), "useless": (0.0, 0.0, 1.0)}
"""The bias, and the shares of the scores and of other such scores in what is predicted."""


def rows() -> Iterator[Row]:
    """The least and the greatest share of intervals over numbers of topics and kinds of predictions."""
    for scores in ("normal", "exponential"):
        rng, shares, less = np.random.default_rng(0), list[float](), list[float]()
        for topics, more, kind in product((8, 10, 25), (40, 400), PREDICTIONS):
            ends = [intervals(scores, kind, topics, more, rng) for _ in range(TRIALS)]
            corrected, alone = np.mean([[low <= 0 <= high for low, high in pair] for pair in ends], axis=0)
            shares.append(float(corrected))
            less.append(float(alone - corrected))
        yield Row(f"{scores} scores: share of intervals that contain the mean, least", min(shares), "")
        yield Row(f"{scores} scores: share of intervals that contain the mean, greatest", max(shares), "")
        yield Row(f"{scores} scores: less than Student's by people alone, at most", max(less), "", "at most .01")


def intervals(
    scores: str, kind: str, topics: int, more: int, rng: np.random.Generator
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The corrected interval of a mean of 0, and that by people alone."""
    truth, other = drawn(scores, topics + more, rng), drawn(scores, topics + more, rng)
    bias, share, noise = PREDICTIONS[kind]
    predicted = bias + share * truth + noise * other
    found = correct_by_people(truth[:topics], predicted[:topics], predicted[topics:])
    return found.interval, found.people_interval


def drawn(scores: str, size: int, rng: np.random.Generator) -> FloatArray:
    """Scores with mean 0 and variance 1."""
    return rng.standard_normal(size) if scores == "normal" else rng.exponential(size=size) - 1
