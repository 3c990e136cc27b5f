"""Rounds of relevance feedback, simulated with judgements and evaluated on residual collections.

In each round a user sees documents that were not shown before and judges them; the judgements improve the ranking of
the rest. Zhou et al. (2003, section 6) propose such "an iterative feedback framework" for manifold ranking. Two kinds
of session answer two questions.

- By default, every method has the same judged documents, those that the first stage ranks highest. Seen documents are
  removed from the rankings and from the judgements (the residual collection), which are then the same for all methods,
  so that their scores can be compared by paired tests.
- In an interactive session, every method shows its own documents. Residual collections then differ between methods, and
  scores on them cannot be compared. The number of relevant documents after the same number of judgements can.

A shown document without a judgement counts as not relevant, as in evaluation.

References
----------
Salton & Buckley, Improving retrieval performance by relevance feedback, JASIS 41(4), 1990 (residual collections).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np

from greylag.core.checks import check_counts
from greylag.manifold.feedback import Feedback
from greylag.pipeline import run_step
from greylag.ranking import Ranking, Run
from greylag.trec import Qrels

MakeStage = Callable[[Feedback], Callable[[Ranking], Ranking]]
"""A stage that uses given judgements, such as ``lambda feedback: Rocchio(index, feedback)``."""
Seen = Mapping[str, Collection[str]]


@dataclass(frozen=True)
class Session:
    """The documents shown in each round."""

    shown: tuple[Mapping[str, tuple[str, ...]], ...]
    # The ranking after each round's feedback, without all documents shown so far
    residuals: tuple[Run, ...]

    def seen(self, rounds: int) -> dict[str, tuple[str, ...]]:
        """Return the documents shown to each query in the first `rounds` rounds, in order."""
        return {qid: tuple(d for shown in self.shown[:rounds] for d in shown[qid]) for qid in self.shown[0]}

    def shown_run(self, first: Run, tag: str) -> Run:
        """Return all documents shown, in the order in which they were shown, as a run of the queries of `first`."""
        # Its R@k after k judgements is the share of the relevant documents that the session found.
        seen = self.seen(len(self.shown))
        return Run(
            tuple(Ranking(r.qid, r.query, seen[r.qid], np.arange(len(seen[r.qid]), 0.0, -1.0)) for r in first.rankings),
            tag,
        )


def residual_run(run: Run, seen: Seen) -> Run:
    """Drop the documents that were seen from a run; the others keep their scores."""

    def unseen(ranking: Ranking) -> Ranking:
        gone = set(seen.get(ranking.qid, ()))
        return ranking.select(np.array([docid not in gone for docid in ranking.docids], dtype=np.bool_))

    return Run(tuple(map(unseen, run.rankings)), run.tag)


def residual_qrels(qrels: Qrels, seen: Seen) -> dict[str, dict[str, int]]:
    """Drop the judgements of documents that were seen, and queries that have no other relevant document."""
    # Queries without other relevant documents would score 0 however the rest is ranked.
    rest = {
        qid: {docid: grade for docid, grade in grades.items() if docid not in seen.get(qid, ())}
        for qid, grades in qrels.items()
    }
    return {qid: grades for qid, grades in rest.items() if any(grade > 0 for grade in grades.values())}


def feedback_session(
    make: MakeStage,
    first: Run,
    qrels: Qrels,
    *,
    interactive: bool = False,
    rounds: int = 3,
    per_round: int = 10,
    n_jobs: int | None = None,
    tag: str,
) -> Session:
    """Simulate rounds of showing documents, judging them, and reranking by all judgements so far.

    Parameters
    ----------
    make : callable
        From the judgements made so far to a stage, which reranks `first`.
    first : Run
        The first stage, whose top `per_round` documents are shown in round 1.
    qrels : mapping of qid to docid to grade
        How shown documents are judged; relevant from grade 1, or another by `greylag.trec.at_level`.
    interactive : bool, default False
        Whether later rounds show the top of what is left of the last round's own ranking, or of `first`.
    rounds, per_round : int >= 1, default 3 and 10
    n_jobs : int, optional
        Number of workers; the result does not depend on it.
    tag : str
        The tag of the residual runs.
    """
    check_counts(rounds=rounds, per_round=per_round)
    session, rest = Session((), ()), first
    for number in range(1, rounds + 1):
        top = {ranking.qid: ranking.docids[:per_round] for ranking in rest.rankings}
        session = Session((*session.shown, top), session.residuals)
        seen = session.seen(number)
        # A document without a judgement is fed back as not relevant: the simulated user looked at it and said no.
        feedback = {qid: {docid: qrels.get(qid, {}).get(docid, 0) for docid in docids} for qid, docids in seen.items()}
        after = residual_run(run_step(make(feedback), first, n_jobs=n_jobs, tag=tag), seen)
        session = Session(session.shown, (*session.residuals, after))
        rest = after if interactive else residual_run(first, seen)
    return session
