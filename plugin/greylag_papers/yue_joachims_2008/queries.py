"""Queries of the studies of SVM-div, each with its candidates in the form that each method needs, and their splits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from greylag import ParameterError, Ranking
from greylag.base import FloatArray, unit_range
from greylag.diversity import PRESETS, CandidateMaker, Candidates, candidates_from_counts
from greylag.evaluation import SubtopicQrels, Subtopics, read_run, read_subtopic_qrels, read_titles, read_topics
from greylag.features import FeatureExtractor, FeatureSpec
from greylag.index import PositionalIndex
from greylag.studies import Context, Experiment, InputFile, Positive, open_index
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics


@dataclass(frozen=True, eq=False)
class StudyQuery:
    """A query with n candidates, best first, over a vocabulary of V words."""

    qid: str
    truth: Subtopics  # the subtopics of the candidates
    frequencies: csr_matrix  # shape (n, V): term frequencies, for coverage and Essential Pages
    vectors: csr_matrix  # shape (n, V): unit vectors, for MMR
    relevance: FloatArray  # shape (n,): for MMR
    candidates: Mapping[str, Candidates]  # for SVM-div
    okapi: FloatArray | None = None  # shape (n,): BM25 scores; None if there is no query to score documents for


def index_queries(
    index: PositionalIndex,
    rankings: Iterable[Ranking],
    qrels: SubtopicQrels,
    *,
    titles: Mapping[str, str] | None = None,
    relevant_only: bool = True,
) -> list[StudyQuery]:
    """Return the queries of rankings, without those that have no candidate that covers a subtopic."""
    okapi = FeatureExtractor(index, (FeatureSpec.parse("FI/term/BM25"),))
    makers = {name: CandidateMaker(index, features, titles=titles) for name, features in PRESETS.items()}
    queries = []
    for ranking in rankings:
        truth = Subtopics.from_qrels(ranking.docids, qrels.get(ranking.qid, {}), candidates_only=True)
        covering = np.diff(truth.coverage.indptr) > 0
        if not covering.any():
            continue
        if relevant_only:
            ranking = ranking.select(covering)  # noqa: PLW2901
            truth = Subtopics(truth.coverage[covering], truth.weights)
        documents = index.documents(ranking.docids)
        queries.append(
            StudyQuery(
                ranking.qid,
                truth,
                frequencies=index.term_frequencies(documents),
                vectors=index.tfidf(documents),
                relevance=unit_range(ranking.scores),
                candidates={name: make(ranking) for name, make in makers.items()},
                okapi=okapi(ranking)[:, 0],
            )
        )
    return queries


def synthetic_queries(data: SyntheticSubtopics) -> list[StudyQuery]:
    """Return synthetic sets as queries, in arbitrary order and without titles; idf is over each set."""
    queries = []
    for number, (frequencies, truth) in enumerate(data.draw()):
        n = frequencies.shape[0]
        idf = np.log(n / np.maximum(np.bincount(frequencies.indices, minlength=frequencies.shape[1]), 1))
        weights = frequencies.multiply(idf).tocsr()
        lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1)))
        empty = csr_matrix(frequencies.shape)
        queries.append(
            StudyQuery(
                str(number),
                truth,
                frequencies=frequencies,
                # A document without rare words has a vector of zeros, and not of NaN.
                vectors=weights.multiply(1.0 / np.maximum(lengths, 1e-300)).tocsr(),
                relevance=np.zeros(n),  # there is no query: MMR is left with novelty alone
                candidates={
                    name: candidates_from_counts(features, frequencies, idf, {"title": empty}, np.zeros((n, 0)))
                    for name, features in PRESETS.items()
                },
            )
        )
    return queries


class Split(NamedTuple):
    """Queries to train on, to choose parameters on, and to test on."""

    training: tuple[StudyQuery, ...]
    validation: tuple[StudyQuery, ...]
    test: tuple[StudyQuery, ...]


def first_split(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> Split:
    """Return the first queries for training, the next ones for validation, and the rest for testing."""
    end = _held_out(queries, n_training, n_validation)
    return Split(tuple(queries[:n_training]), tuple(queries[n_training:end]), tuple(queries[end:]))


def rotations(
    queries: Sequence[StudyQuery], n_training: int = 12, n_validation: int = 4, n_splits: int | None = None
) -> list[Split]:
    """Make splits that together test each query once (Yue & Joachims 2008, section 6)."""
    # Each split tests a block of consecutive queries, trains on the queries after the block and validates on those
    # after the training queries. The first query follows the last.
    end, splits = _held_out(queries, n_training, n_validation), []
    for block in np.array_split(np.arange(len(queries)), n_splits or len(queries)):
        first, after = int(block[0]), int(block[-1]) + 1
        test, rest = tuple(queries[first:after]), [*queries[after:], *queries[:first]]
        if len(rest) < end:
            raise ParameterError(f"{n_splits} splits of {len(queries)} queries leave {len(rest)}, fewer than {end}")
        splits.append(Split(tuple(rest[:n_training]), tuple(rest[n_training:end]), test))
    return splits


def folds(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> list[Split]:
    """Return the smallest number of `rotations`."""
    end = _held_out(queries, n_training, n_validation)
    return rotations(queries, n_training, n_validation, -(-len(queries) // (len(queries) - end)))


def _held_out(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> int:
    """Count the training and validation queries; at least one of each, and one to test, must exist."""
    if min(n_training, n_validation) < 1 or len(queries) <= n_training + n_validation:
        raise ParameterError(
            f"{len(queries)} queries are too few for {n_training} to train on, {n_validation} to validate on "
            "and at least 1 to test"
        )
    return n_training + n_validation


class CandidateSettings(Experiment):
    """A test collection with candidate lists."""

    docs: InputFile
    """JSON lines with id, title and contents."""
    topics: InputFile
    """Paths below the data folder."""
    subtopic_qrels: InputFile
    """Paths below the data folder."""
    run: InputFile | None = None
    """The candidate lists."""
    depth: Positive = 100
    """The top N documents of each list are candidates."""


@dataclass(frozen=True)
class CandidateLists:
    """An index, candidates for each topic, and facts about them."""

    index: PositionalIndex
    rankings: Sequence[Ranking]
    qrels: SubtopicQrels
    titles: Mapping[str, str]

    def queries(self, *, relevant_only: bool = True) -> list[StudyQuery]:
        """Return the lists as queries of a study; see `index_queries`."""
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
