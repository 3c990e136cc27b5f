"""Judged documents, and documents outside the index."""

from __future__ import annotations

import numpy as np

from greylag.feedback.judged import judged_documents, rescore_known
from greylag.ranking import Ranking
from tests.greylag.feedback import samples


def test_judged_documents_are_those_of_the_index() -> None:
    feedback = {"q": {"d9": 2, "unknown": 1, "d3": 0, "d1": 1, "d2": -1}, "other": {"d4": 1}}
    assert judged_documents(samples.index(), feedback, "q") == (("d1", "d9"), ("d2", "d3"))
    assert judged_documents(samples.index(), feedback, "missing") == ((), ())


def test_documents_outside_the_index_come_last_in_incoming_order() -> None:
    ranking = Ranking("q", "", ("u1", "a", "u2", "b"), np.arange(4.0, 0, -1))
    found = rescore_known(ranking, np.array([-1, 5, -1, 6]), np.array([9.0, -3.0, 9.0, -1.0]))
    assert found.docids == ("b", "a", "u1", "u2")
    assert found.scores.tolist() == [-1, -3, -4, -5]
    assert rescore_known(ranking, np.full(4, -1), np.zeros(4)).docids == ranking.docids
