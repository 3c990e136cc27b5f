"""xQuAD."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity import XQuAD
from greylag.diversity.xquad import XQuADGain
from greylag.errors import ParameterError
from greylag.greedy import greedy_picks
from tests.greylag.diversity import samples


def test_by_hand() -> None:
    relevance = np.array([[0.8, 0.0], [0.6, 0.0], [0.0, 0.5]])
    gain = XQuADGain(np.array([1.0, 0.5, 0.0]), relevance, 0.5)
    assert gain.gains().tolist() == pytest.approx([0.5 + 0.25 * 0.8, 0.25 + 0.25 * 0.6, 0.25 * 0.5])
    gain.add(0)  # the first aspect is covered to 0.8
    assert gain.gains()[1:].tolist() == pytest.approx([0.25 + 0.25 * 0.2 * 0.6, 0.25 * 0.5])
    assert greedy_picks(XQuADGain(np.array([1.0, 0.5, 0.0]), relevance, 0.0), 3).tolist() == [0, 2, 1]


@pytest.mark.parametrize("seed", range(8))
def test_gains_are_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, relevance, weight = rng.random(7), rng.random((7, 3)), rng.random()
    gain, picked = XQuADGain(scores, relevance, weight), []  # type: ignore[var-annotated]
    for candidate in rng.permutation(7)[:5].tolist():
        expected = [
            weight * scores[d]
            + (1 - weight) * sum(relevance[d, a] * np.prod(1 - relevance[picked, a]) / 3 for a in range(3))
            for d in range(7)
        ]
        assert gain.gains().tolist() == pytest.approx(expected)
        gain.add(candidate)
        picked.append(candidate)


def test_relevance_alone_and_no_aspects_keep_the_order() -> None:
    index, ranking = samples.index(1, 15), samples.ranking(2, 15)
    aspects = {ranking.qid: ["w1x", "w2x"]}
    assert XQuAD(index, aspects, relevance_weight=1.0)(ranking).docids == ranking.docids
    assert XQuAD(index, {})(ranking).docids == ranking.docids
    assert XQuAD(index, aspects, relevance_weight=0.1)(ranking).docids != ranking.docids
    with pytest.raises(ParameterError, match=r"relevance_weight must be in \[0, 1\], not 1.5"):
        XQuAD(index, aspects, relevance_weight=1.5)
