"""PM-2."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.diversity import PM2
from greylag.diversity.pm2 import PM2Gain
from greylag.errors import ParameterError
from greylag.greedy import greedy_picks
from tests.greylag.diversity import samples


def test_by_hand() -> None:
    relevance = np.array([[1.0, 0.0], [0.9, 0.0], [0.2, 0.6], [0.0, 0.5]])
    gain = PM2Gain(relevance, 0.75)
    assert gain.gains().tolist() == pytest.approx([0.75, 0.675, 0.75 * 0.2 + 0.25 * 0.6, 0.125])
    gain.add(0)  # the first aspect has a seat: its quotient is 1/3, and the second aspect is next
    first = 0.25 / 3
    assert gain.gains()[1:].tolist() == pytest.approx([first * 0.9, first * 0.2 + 0.75 * 0.6, 0.75 * 0.5])
    gain.add(2)  # its seat is divided 1 : 3
    quotients = 1 / (2 * 1.25 + 1), 1 / (2 * 0.75 + 1)
    assert gain.gains()[[1, 3]].tolist() == pytest.approx([0.25 * quotients[0] * 0.9, 0.75 * quotients[1] * 0.5])


def test_seats_are_proportional() -> None:
    """With one aspect a document and equal weights, aspects take turns."""
    relevance = np.repeat(np.eye(3), 4, axis=0)
    picked = greedy_picks(PM2Gain(relevance, 1.0), 9)
    assert [int(pick) // 4 for pick in picked] == [0, 1, 2] * 3


def test_documents_of_no_aspect_follow_in_order() -> None:
    index, ranking = samples.index(1, 15), samples.ranking(2, 15)
    assert PM2(index, {})(ranking).docids == ranking.docids
    assert PM2(index, {ranking.qid: ["nowhere"]})(ranking).docids == ranking.docids
    with pytest.raises(ParameterError, match=r"aspect_weight must be in \[0, 1\], not -1"):
        PM2(index, {}, aspect_weight=-1)
