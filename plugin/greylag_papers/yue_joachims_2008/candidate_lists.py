"""Candidate lists of a test collection with judgements by subtopic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from greylag import Ranking
from greylag.experiments import Context, Experiment, Positive, open_index
from greylag.index import PositionalIndex
from greylag.trec import SubtopicQrels, read_run, read_subtopic_qrels, read_titles, read_topics
from greylag_papers.yue_joachims_2008.queries import StudyQuery, index_queries


class CandidateSettings(Experiment):
    """A test collection with candidate lists."""

    docs: str
    """JSON lines with id, title and contents."""
    topics: str
    """Paths below the data folder."""
    subtopic_qrels: str
    """Paths below the data folder."""
    run: str | None = None
    """The candidate lists."""
    depth: Positive = 100
    """The top N documents of each list are candidates."""


@dataclass(frozen=True)
class CandidateLists:
    """An index, candidates for each topic, and what is known about them."""

    index: PositionalIndex
    rankings: Sequence[Ranking]
    qrels: SubtopicQrels
    titles: Mapping[str, str]

    def queries(self, *, relevant_only: bool = True) -> list[StudyQuery]:
        """The lists as queries of a study; see `index_queries`."""
        return index_queries(self.index, self.rankings, self.qrels, titles=self.titles, relevant_only=relevant_only)


def open_candidates(settings: CandidateSettings, context: Context) -> CandidateLists:
    """Open the index, and read the candidate lists or search for them."""
    topics, docs = read_topics(settings.path(settings.topics)), settings.path(settings.docs)
    qrels, titles = read_subtopic_qrels(settings.path(settings.subtopic_qrels)), read_titles(docs)
    lucene = open_index(docs, "JsonCollection", context)
    if settings.run is None:
        run = lucene.bm25(settings.depth).run(topics, n_jobs=context.n_jobs, tag="bm25")
    else:
        run = read_run(settings.path(settings.run), topics)
    rankings = [ranking.head(settings.depth) for ranking in run.rankings]
    return CandidateLists(PositionalIndex.from_lucene(lucene), rankings, qrels, titles)
