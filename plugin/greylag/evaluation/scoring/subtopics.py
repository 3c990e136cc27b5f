"""Subtopic coverage: the subtopics of a query, their weights, and the loss of a set of documents.

A document covers a subtopic if it is relevant to it (grade 1 or more). Subtopics without a relevant document are
ignored. The weight of a subtopic is proportional to the number of its relevant documents; the weights of a query sum to
1. The loss of a set of documents is the weight it leaves uncovered. Measures count all relevant documents, retrieved or
not; Yue & Joachims (2008, section 6) count those in a given candidate set.

References
----------
Yue and Joachims, Predicting diverse subsets using structural SVMs, ICML 2008.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from greylag.base import BoolArray, FloatArray, IntArray, check_ids

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


def relevant_documents(judgements: Mapping[str, Mapping[str, int]], level: int = 1) -> list[set[str]]:
    """Return the documents with a grade of at least `level` of each subtopic that has any."""
    relevant = ({docid for docid, grade in grades.items() if grade >= level} for grades in judgements.values())
    return [docids for docids in relevant if docids]


def coverage(docids: Sequence[str], relevant: Sequence[set[str]]) -> BoolArray:
    """Return whether each of n documents covers each of S subtopics, shape (n, S)."""
    rows = [[docid in subtopic for subtopic in relevant] for docid in docids]
    return np.array(rows, dtype=bool).reshape(len(docids), len(relevant))


def subtopic_grades(docids: Sequence[str], subtopics: Sequence[Mapping[str, int]]) -> IntArray:
    """Return the grade of each of n documents for each of S subtopics, shape (n, S); 0 if negative or not judged."""
    rows = [[max(grades.get(docid, 0), 0) for grades in subtopics] for docid in docids]
    return np.array(rows, dtype=np.int64).reshape(len(docids), len(subtopics))


@dataclass(frozen=True, eq=False)
class Subtopics:
    """The subtopics that n candidate documents cover, with their weights."""

    coverage: csr_matrix  # shape (n, S), 1 where a document covers a subtopic
    weights: FloatArray  # shape (S,), positive; they sum to 1 if there is a subtopic

    @classmethod
    def from_qrels(
        cls, docids: Sequence[str], judgements: Mapping[str, Mapping[str, int]], *, candidates_only: bool = False
    ) -> Subtopics:
        """Return the subtopics of candidates, from grades of their query by subtopic and docid.

        With `candidates_only`, weights count the candidates alone, and subtopics that none of them covers are ignored.
        """
        from scipy.sparse import csr_matrix

        check_ids(docids=docids)
        relevant = relevant_documents(judgements)
        if candidates_only:
            relevant = [covering for subtopic in relevant if (covering := subtopic.intersection(docids))]
        # By all relevant documents, retrieved or not, unless only candidates count.
        counts = np.array([len(subtopic) for subtopic in relevant], dtype=np.float64)
        covered = coverage(docids, relevant).astype(np.float64)
        return cls(csr_matrix(covered), counts / max(counts.sum(), 1.0))

    def loss(self, picked: IntArray) -> float:
        """Sum the weights of the subtopics that the `picked` candidates do not cover, in [0, 1]."""
        uncovered = np.ones(len(self.weights), dtype=bool)
        uncovered[covered_columns(self.coverage, picked)] = False
        return float(self.weights[uncovered].sum())


def covered_columns(coverage: csr_matrix, rows: IntArray | Sequence[int]) -> IntArray:
    """Return the columns of the entries in some rows, with repetitions; much faster than ``coverage[rows].indices``."""
    # Slices of the CSR arrays, without a matrix of the rows.
    starts, indices = coverage.indptr, coverage.indices
    return np.concatenate([indices[:0], *(indices[starts[row] : starts[row + 1]] for row in rows)])
