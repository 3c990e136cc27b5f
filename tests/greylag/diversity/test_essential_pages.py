"""The gain of Essential Pages against its definition."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity import EssentialPages, EssentialPagesGain
from greylag.greedy import greedy
from tests.greylag.diversity import samples


def value(tf: np.ndarray, picked: list[int]) -> float:
    """The sum over words of the best C(v, d) of the picked documents."""
    df = (tf > 0).mean(axis=0)
    benefits = tf * np.log(1 / np.where(df > 0, df, 1.0))
    return float(benefits[picked].max(axis=0, initial=0.0).sum())


@pytest.mark.parametrize("seed", range(15))
def test_gains_are_rises_of_the_value(seed: int) -> None:
    tf = samples.frequencies(seed)
    gain, dense, picked = EssentialPagesGain(tf), tf.toarray(), []  # type: ignore[var-annotated]
    for candidate in np.random.default_rng(seed).permutation(8)[:5].tolist():
        rises = [value(dense, [*picked, i]) - value(dense, picked) for i in range(8)]
        np.testing.assert_allclose(gain.gains(), rises, atol=1e-12)
        gain.add(candidate)
        picked.append(candidate)


def test_stage_is_the_greedy_choice() -> None:
    index, ranking = samples.index(1, 15), samples.ranking(2, 15)
    tf = index.term_frequencies(index.documents(ranking.docids))
    picked = greedy(EssentialPagesGain(tf), 4)
    assert EssentialPages(index, k=4)(ranking).docids[:4] == tuple(ranking.docids[i] for i in picked)
