"""The subtopic oracle: greedy coverage of the judged subtopics, an upper bound for methods that do not know them."""

from __future__ import annotations

from dataclasses import dataclass

from greylag.diversity.coverage import CoverageGain
from greylag.diversity.stage import GreedyStage
from greylag.evaluation.subtopics import Subtopics
from greylag.ranking import Ranking
from greylag.trec import SubtopicQrels


@dataclass(frozen=True)
class SubtopicOracle(GreedyStage):
    """Pick the documents that cover the largest weight of subtopics not yet covered.

    Parameters
    ----------
    qrels : mapping
        Grades by qid, subtopic and docid. A query without relevant documents keeps its order.
    depth, k : int
        See `greylag.diversity.DiversityStage`.
    """

    diversifies = False  # it knows the answer

    qrels: SubtopicQrels

    def gain(self, candidates: Ranking) -> CoverageGain:
        """Return the weight of newly covered subtopics."""
        return subtopic_gain(Subtopics.from_qrels(candidates.docids, self.qrels.get(candidates.qid, {})))


def subtopic_gain(subtopics: Subtopics) -> CoverageGain:
    """Make the gain in the weight of covered subtopics."""
    return CoverageGain(subtopics.coverage, subtopics.weights)
