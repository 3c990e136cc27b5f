"""Judged documents."""

from __future__ import annotations

from greylag.feedback.judged import judged_documents
from tests.greylag.feedback import samples


def test_judged_documents_are_those_of_the_index() -> None:
    feedback = {"q": {"d9": 2, "unknown": 1, "d3": 0, "d1": 1, "d2": -1}, "other": {"d4": 1}}
    assert judged_documents(samples.index(), feedback, "q") == (("d1", "d9"), ("d2", "d3"))
    assert judged_documents(samples.index(), feedback, "missing") == ((), ())
