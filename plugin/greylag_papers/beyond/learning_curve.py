"""The base of the learning curves: systems learn from the first topics of a random order, and are tested on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from greylag.base import parallel_map
from greylag.evaluation import Measure, Scores, split_folds
from greylag.studies import Context

Split = tuple[Sequence[str], list[str]]  # the topics that are held out, and those to learn from in random order


@dataclass(frozen=True)
class Learned:
    """The models that all systems learned from some topics."""

    values: dict[str, list[float]]  # the measure of each test topic, by system
    chosen: str  # by the automatic choice


def splits(training: Sequence[str], test: Sequence[str] | None, folds: int, seed: int) -> list[Split]:
    """The given test topics and all training topics; without test topics, those of each fold and the others."""
    parts = split_folds(training, folds, seed) if test is None else [test]
    return [(part, training_order(training, part, seed)) for part in parts]


def training_order(qids: Sequence[str], part: Sequence[str], seed: int) -> list[str]:
    """The topics outside a part in random order. More training topics include the fewer."""
    held_out = frozenset(part)
    others = [qid for qid in qids if qid not in held_out]
    return [others[place] for place in np.random.default_rng(seed).permutation(len(others))]


def learn_points(
    parts: Sequence[Split],
    sizes: Sequence[int],
    learn: Callable[[Sequence[str], Sequence[str]], Learned],
    context: Context,
) -> dict[int, list[Learned]]:
    """For each size, what `learn` makes of `size` training topics, and the test topics, of each split.

    A size above the number of topics that there are stands for all of them.
    """
    most = min(len(order) for _, order in parts)  # so that a size is the same in all folds
    wanted = list(dict.fromkeys(min(size, most) for size in sorted(sizes)))
    items = [(test, order[:size]) for size in wanted for test, order in parts]
    work = parallel_map(lambda item: learn(item[1], item[0]), items, what="points", n_jobs=context.n_jobs, coarse=True)
    points: dict[int, list[Learned]] = {size: [] for size in wanted}
    for (_, training), learned in zip(items, work, strict=True):
        points[len(training)].append(learned)
        context.progress(f"{len(training)} topics: {learned.chosen}")
    return points


def pooled(
    measure: Measure, parts: Sequence[Split], values: Sequence[Mapping[str, Sequence[float]]]
) -> dict[str, Scores]:
    """The scores of each system over the test topics of all splits; `values` has those of each split."""
    qids = [qid for test, _ in parts for qid in test]
    return {
        system: Scores.single(
            measure, dict(zip(qids, (value for split in values for value in split[system]), strict=True))
        )
        for system in values[0]
    }
