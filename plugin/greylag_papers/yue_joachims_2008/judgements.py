"""Figures that follow from the judgements of the paper's collection alone (Yue & Joachims 2008, section 6, Table 3).

Random picks and greedy selection by the true subtopics need no text, so that both can be compared with the paper's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import comb

from greylag import FormatError
from greylag.base import greedy_picks
from greylag.diversity import subtopic_gain
from greylag.evaluation import Section, Subtopics, read_subtopic_qrels
from greylag.studies import Context, Experiment, InputFile, Outcome, Positive, Study, means_table


class Settings(Experiment):
    """The judgements and the topics."""

    subtopic_qrels: InputFile
    """Judgements by subtopic; the candidates of a topic are its documents with a subtopic."""
    queries: tuple[str, ...]
    """The topics."""
    k: Positive = 5
    """Number of documents picked."""


def open_judgements(settings: Settings, context: Context) -> dict[str, Subtopics]:
    """Open the subtopics of each topic's candidates."""
    path = settings.path(settings.subtopic_qrels)
    qrels = read_subtopic_qrels(path)
    if missing := set(settings.queries) - qrels.keys():
        raise FormatError(path, None, f"no judgements of topic {min(missing)}")
    truths = {}
    for qid in settings.queries:
        relevant = {docid for grades in qrels[qid].values() for docid, grade in grades.items() if grade > 0}
        truths[qid] = Subtopics.from_qrels(sorted(relevant), qrels[qid], candidates_only=True)
    return truths


def expected_random_loss(truth: Subtopics, k: int) -> float:
    """Compute the expected loss of k of n documents at random: sum_s w_s C(n - n_s, k) / C(n, k), n_s covering s."""
    n, covering = truth.coverage.shape[0], truth.coverage.getnnz(axis=0)
    return float(truth.weights @ (comb(n - covering, k) / comb(n, k)))


def run(settings: Settings, truths: Mapping[str, Subtopics], context: Context) -> Outcome:
    """Return the sizes of the candidate sets, and the losses of random and of greedy picks."""
    documents, subtopics = np.transpose([truth.coverage.shape for truth in truths.values()])
    greedy = [truth.loss(greedy_picks(subtopic_gain(truth), settings.k)) for truth in truths.values()]
    scores = {
        "documents": {"mean": float(documents.mean()), "least": float(documents.min())},
        "subtopics": {"mean": float(subtopics.mean()), "least": float(subtopics.min())},
        "random": {"loss": float(np.mean([expected_random_loss(truth, settings.k) for truth in truths.values()]))},
        "known-subtopics": {"loss": float(np.mean(greedy))},
    }
    table = means_table(f"Candidates, and weighted subtopic loss of {settings.k} documents", scores)
    return Outcome(
        scores=scores,
        results={"scores": scores},
        title=f"Candidate sets by their judgements: {settings.name}",
        sections=[Section("Losses", parts=[table])],
    )


STUDY = Study(Settings, open_judgements, run)
