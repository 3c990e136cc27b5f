"""Rounds of feedback: what is shown, what is left, and what it may depend on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greylag.errors import ParameterError
from greylag.evaluation import evaluate
from greylag.feedback import Feedback, feedback_session, residual_qrels, residual_run
from greylag.feedback.sessions import MakeStage
from greylag.ranking import Ranking, Run

DOCIDS = [f"d{i}" for i in range(12)]


def unchanged(_: Feedback) -> Callable[[Ranking], Ranking]:
    return lambda ranking: ranking


def by_likeness(feedback: Feedback) -> Callable[[Ranking], Ranking]:
    """Documents whose number is near that of a relevant one come first."""

    def rerank(ranking: Ranking) -> Ranking:
        relevant = [int(docid[1:]) for docid, grade in feedback[ranking.qid].items() if grade > 0]
        near = [min((abs(int(docid[1:]) - other) for other in relevant), default=0) for docid in ranking.docids]
        return ranking.rescore(-np.array(near, dtype=np.float64))

    return rerank


@st.composite
def collections(draw: st.DrawFn) -> tuple[Run, dict[str, dict[str, int]], int, int]:
    """A run of two queries, judgements, and the number and size of rounds."""
    rankings = []
    for qid in ("1", "2"):
        docids = draw(st.permutations(DOCIDS))[: draw(st.integers(0, len(DOCIDS)))]
        rankings.append(Ranking(qid, "text", tuple(docids), np.arange(len(docids), 0.0, -1.0)))
    judged = st.dictionaries(st.sampled_from(DOCIDS), st.integers(-1, 2))
    qrels = {"1": draw(judged), "2": draw(judged)}
    return Run(tuple(rankings), "first"), qrels, draw(st.integers(1, 4)), draw(st.integers(1, 5))


@given(collections(), st.sampled_from([unchanged, by_likeness]), st.booleans())
def test_rounds_show_new_documents_and_rank_the_rest(
    collection: tuple[Run, Mapping[str, dict[str, int]], int, int], make: MakeStage, interactive: bool
) -> None:
    first, qrels, rounds, per_round = collection
    simulate = partial(feedback_session, make, first, qrels, interactive=interactive, rounds=rounds, tag="x")
    session = simulate(per_round=per_round)
    assert len(session.shown) == len(session.residuals) == rounds
    assert session == simulate(per_round=per_round, n_jobs=3)
    for qid, ranking in first.items():
        for number in range(1, rounds + 1):
            seen = session.seen(number)[qid]
            rest = session.residuals[number - 1][qid].docids
            assert len(set(seen)) == len(seen) == min(number * per_round, len(ranking))
            assert set(seen).isdisjoint(rest)
            assert set(seen) | set(rest) == set(ranking.docids)
        assert session.shown[0][qid] == ranking.docids[:per_round]


@given(collections())
def test_without_effect_both_sessions_read_down_the_first_stage(
    collection: tuple[Run, dict[str, dict[str, int]], int, int],
) -> None:
    first, qrels, rounds, per_round = collection
    sessions = [
        feedback_session(unchanged, first, qrels, interactive=own, rounds=rounds, per_round=per_round, tag="x")
        for own in (False, True)
    ]
    assert sessions[0] == sessions[1]
    shown = sessions[0].shown_run(first, "y")
    assert all(shown[qid].docids == first[qid].docids[: rounds * per_round] for qid in first)


def test_a_round_uses_the_judgements_of_what_was_shown_and_no_others() -> None:
    """Relevant documents that were not shown have no influence on what is shown."""
    first = Run((Ranking("q", "", tuple(DOCIDS), np.arange(12.0, 0, -1)),))
    asked: list[Feedback] = []

    def make(feedback: Feedback) -> Callable[[Ranking], Ranking]:
        asked.append(feedback)
        return by_likeness(feedback)

    grades = {"q": {"d1": 2, "d11": 1, "d0": -1}}
    session = feedback_session(make, first, grades, interactive=True, rounds=2, per_round=2, tag="x")
    assert asked[0] == {"q": {"d0": -1, "d1": 2}}
    assert asked[1] == {"q": {"d0": -1, "d1": 2, "d2": 0, "d3": 0}}
    assert session.shown == ({"q": ("d0", "d1")}, {"q": ("d2", "d3")})
    given = feedback_session(make, first, {"q": {"d9": 1}}, rounds=1, per_round=10, tag="x")
    assert given.residuals[0]["q"].docids == ("d10", "d11")


def test_residual_judgements_lose_what_was_seen_and_queries_without_relevant_documents() -> None:
    qrels = {"1": {"a": 1, "b": 0, "c": 2}, "2": {"a": 1}, "3": {"d": 0}}
    assert residual_qrels(qrels, {"1": ("c", "b"), "2": ("a",)}) == {"1": {"a": 1}}
    run = Run((Ranking("1", "", ("c", "a", "b"), np.array([3.0, 2.0, 1.0])),), "x")
    rest = residual_run(run, {"1": ("c",)})
    assert rest["1"] == Ranking("1", "", ("a", "b"), np.array([2.0, 1.0]))
    assert rest.tag == "x"
    # By hand: the relevant document "a" is first of what is left, although it was second before.
    assert evaluate(rest, residual_qrels(qrels, {"1": ("c",)}), ["AP"]).values[0, 0] == 1.0


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"per_round": 0}])
def test_domains(wrong: dict[str, int]) -> None:
    with pytest.raises(ParameterError, match="at least 1"):
        feedback_session(unchanged, Run(()), {}, tag="x", **wrong)
