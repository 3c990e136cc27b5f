"""Queries of the studies of SVM-div: one candidate set each, in the form that each method needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag import FloatArray, Ranking, unit_range
from greylag.diversity import PRESETS, CandidateMaker, Candidates, candidates_from_counts
from greylag.evaluation import Subtopics
from greylag.features import FeatureExtractor, FeatureSpec
from greylag.index import PositionalIndex
from greylag.trec import SubtopicQrels
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
    """The queries of rankings, without those that have no candidate that covers a subtopic."""
    okapi = FeatureExtractor(index, (FeatureSpec.parse("FI/term/BM25"),))
    makers = {name: CandidateMaker(index, features, titles=titles) for name, features in PRESETS.items()}
    queries = []
    for ranking in rankings:
        truth = Subtopics.from_qrels(ranking.docids, qrels.get(ranking.qid, {}), candidates_only=True)
        covering = np.flatnonzero(np.diff(truth.coverage.indptr))
        if not len(covering):
            continue
        if relevant_only:
            docids = tuple(ranking.docids[place] for place in covering)
            ranking = Ranking(ranking.qid, ranking.query, docids, ranking.scores[covering])  # noqa: PLW2901
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
    """Synthetic sets as queries, in arbitrary order and without titles; idf is over each set."""
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
                vectors=weights.multiply(1.0 / np.maximum(lengths, 1e-300)).tocsr(),
                relevance=np.zeros(n),
                candidates={
                    name: candidates_from_counts(features, frequencies, idf, empty, np.zeros((n, 0)))
                    for name, features in PRESETS.items()
                },
            )
        )
    return queries
