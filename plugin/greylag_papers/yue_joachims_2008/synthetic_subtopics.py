"""Synthetic documents over subtopics, after Yue & Joachims (2008), section 7.3: data whose truth is known in full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.errors import ParameterError
from greylag.evaluation import Subtopics
from greylag.ranking import FloatArray


@dataclass(frozen=True)
class SyntheticSubtopics:
    """How candidate sets are drawn. The sizes are the paper's, which does not state the rest.

    Words' frequencies fall as 1, 1/2, 1/3, ... A subtopic's distribution over words is a draw from the Dirichlet
    distribution around these, and common to all sets. A set has from 2 to `n_subtopics` subtopics, each number as
    likely, whose popularities fall likewise. A document covers from 1 to `per_document` of them, each number as likely,
    drawn by popularity, and each of its words comes from one of those, each as likely.

    Parameters
    ----------
    n_sets, n_documents : candidate sets, and documents in each.
    n_subtopics : in all, >= 2.
    n_words, n_vocabulary : words of each document, and different words.
    per_document : subtopics that a document covers at most.
    concentration : > 0, the sum of the Dirichlet distribution's parameters; the larger, the more subtopics are alike.
    seed : of the generator, >= 0.
    """

    n_sets: int = 100
    n_documents: int = 100
    n_subtopics: int = 25
    n_words: int = 300
    n_vocabulary: int = 5000
    per_document: int = 4
    concentration: float = 250.0
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = (
            self.n_sets,
            self.n_documents,
            self.n_subtopics - 1,
            self.n_words,
            self.n_vocabulary,
            self.per_document,
        )
        if min(sizes) < 1 or not 0 < self.concentration < np.inf or self.seed < 0:
            raise ParameterError(f"{self} has a size outside its domain")

    def draw(self) -> list[tuple[csr_matrix, Subtopics]]:
        """The sets: term frequencies, shape (n_documents, n_vocabulary), and the truth."""
        rng = np.random.default_rng(self.seed)
        parameters = self.concentration * falling(self.n_vocabulary)
        cumulative = np.cumsum(rng.dirichlet(parameters, self.n_subtopics), axis=1)
        return [self._draw_set(rng, cumulative) for _ in range(self.n_sets)]

    def _draw_set(self, rng: np.random.Generator, cumulative: FloatArray) -> tuple[csr_matrix, Subtopics]:
        n, n_subtopics = self.n_documents, int(rng.integers(2, self.n_subtopics + 1))
        own = rng.choice(self.n_subtopics, n_subtopics, replace=False)
        covered = np.zeros((n, n_subtopics))
        sources = np.empty((n, self.n_words), dtype=np.int64)
        for document in range(n):
            size = rng.integers(1, min(self.per_document, n_subtopics) + 1)
            subtopics = rng.choice(n_subtopics, size, replace=False, p=falling(n_subtopics))
            covered[document, subtopics] = 1.0
            sources[document] = rng.choice(subtopics, self.n_words)
        points, words = rng.random(sources.shape), np.empty(sources.shape, dtype=np.int64)
        for subtopic in range(n_subtopics):
            at = sources == subtopic
            words[at] = np.searchsorted(cumulative[own[subtopic], :-1], points[at], side="right")
        rows = np.repeat(np.arange(n), self.n_words)
        frequencies = csr_matrix((np.ones(words.size), (rows, words.ravel())), shape=(n, self.n_vocabulary))
        counts = covered.sum(axis=0)
        seen = counts > 0
        return frequencies, Subtopics(csr_matrix(covered[:, seen]), counts[seen] / counts.sum())


def falling(n: int) -> FloatArray:
    """Shares proportional to 1, 1/2, ..., 1/n."""
    shares = 1.0 / np.arange(1, n + 1)
    return np.asarray(shares / shares.sum())
