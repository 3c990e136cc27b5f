"""Gates: how often they fail for equal and for worse runs, beside retrieval-eval-gate where it is installed, and what
looking ten times does to a test of level .05.

A run's scores are nDCG@10 of 5 relevant documents among 20, whose normal scores are `SHIFT` higher.
"""

from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise

import numpy as np

from benchmarks.harness import Row
from greylag.base import FloatArray
from greylag.evaluation import paired_test

SHIFT, WORSE = 1.2, 0.7
TRIALS = 500
LOOKS = 10
DISCOUNTS = 1 / np.log2(np.arange(2, 12))


def ndcg(rng: np.random.Generator, size: tuple[int, ...], shift: float = SHIFT) -> FloatArray:
    """Draw scores of topics."""
    scores = rng.standard_normal((*size, 20))
    scores[..., :5] += shift
    top = np.argsort(-scores, axis=-1)[..., :10] < 5
    return np.asarray((top * DISCOUNTS).sum(axis=-1) / DISCOUNTS[:5].sum())


def lost(rng: np.random.Generator, size: tuple[int, ...]) -> FloatArray:
    """Draw scores of which a fifth are 0."""
    return ndcg(rng, size) * (rng.random(size) >= 0.2)


KINDS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], FloatArray]] = {
    "an equal run": ndcg,
    "a worse run": lambda rng, size: ndcg(rng, size, WORSE),
    "a fifth of topics to 0": lost,
}


def worse(new: FloatArray, old: FloatArray) -> float:
    """The p of greylag's rule `worse`."""
    return paired_test(old - new, "t", "greater")[1]


def rows() -> Iterator[Row]:
    """Shares of gates that fail."""
    gates = {"greylag, worse": lambda new, old: worse(new, old) < 0.05}
    if find_spec("rag_eval_gate"):
        peer = import_module("rag_eval_gate.stats")

        def regression(new: FloatArray, old: FloatArray) -> bool:  # its gate's rule
            test = peer.paired_permutation_test([*map(float, new)], [*map(float, old)], iters=2000)
            return bool(test.observed_diff < 0 and test.p_value < 0.05)

        gates["retrieval-eval-gate, paired"] = regression
    rng = np.random.default_rng(0)
    yield Row("mean of the baseline", float(ndcg(rng, (20_000,)).mean()), "nDCG@10")
    yield Row(
        "loss of the worse run", float(ndcg(rng, (20_000,)).mean() - ndcg(rng, (20_000,), WORSE).mean()), "nDCG@10"
    )
    for topics in (8, 20, 50):
        for kind, draw in KINDS.items():
            pairs = [(draw(rng, (topics,)), ndcg(rng, (topics,))) for _ in range(TRIALS)]
            aim = "at most 5, but for chance" if draw is ndcg else ""
            for name, fails in gates.items():
                share = 100 * float(np.mean([fails(*pair) for pair in pairs]))
                yield Row(f"{topics} topics, {kind}: {name} fails", share, "%", aim)
    yield from looks(rng)


def looks(rng: np.random.Generator) -> Iterator[Row]:
    """Ten equal versions against one baseline on the same topics, and one version on topics that grow."""
    trials, topics = 4 * TRIALS, 50
    same, growing = np.empty((trials, LOOKS)), np.empty((trials, LOOKS))
    for trial in range(trials):
        old, new = ndcg(rng, (topics,)), ndcg(rng, (LOOKS, topics))
        same[trial] = [worse(one, old) for one in new]
        first, second = ndcg(rng, (LOOKS * topics,)), ndcg(rng, (LOOKS * topics,))
        growing[trial] = [worse(second[:n], first[:n]) for n in range(topics, LOOKS * topics + 1, topics)]
    for name, p in (("ten equal versions", same), ("one equal version, ten times more topics", growing)):
        yield Row(f"{name}: one look fails", 100 * float((p[:, 0] < 0.05).mean()), "%")
        yield Row(f"{name}: any of ten looks fails", 100 * float((p < 0.05).any(axis=1).mean()), "%")
        twice = ((p[:, 1:] < 0.05) & (p[:, :-1] < 0.05)).any(axis=1)
        yield Row(f"{name}: two looks in a row fail", 100 * float(twice.mean()), "%")
        yield Row(f"{name}: any p of ten below .005", 100 * float((p < 0.005).any(axis=1).mean()), "%", "at most 5")
    for renewed in (True, False):
        weeks = [drift(rng, renewed) for _ in range(TRIALS)]
        label = "renewed after each pass" if renewed else "kept"
        yield Row(f"ten versions, each .01 worse, baseline {label}: all pass", 100 * float(np.mean(weeks)), "%")


def drift(rng: np.random.Generator, renewed: bool = True) -> bool:
    """Whether ten versions, each .01 worse than the one before, all pass on 50 topics."""
    truth = rng.beta(1.2, 1.6, 50)
    versions = [np.clip(truth - 0.01 * k + rng.normal(0, 0.08, 50), 0, 1) for k in range(LOOKS + 1)]
    return all(worse(new, old if renewed else versions[0]) >= 0.05 for old, new in pairwise(versions))
