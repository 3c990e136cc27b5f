"""Synthetic documents about known subtopics, after Yue & Joachims (2008), section 6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.base import FloatArray
from greylag.evaluation import Subtopics


@dataclass(frozen=True)
class SyntheticSubtopics:
    """How candidate sets are drawn. The default sizes are the paper's, which leaves the rest open.

    The paper draws the words of a document from a mixture of its subtopics' distributions; how these and the subtopics
    are drawn is open. Here, word frequencies fall as 1, 2^-a, 3^-a, ... with a the `exponent`. The word distribution of
    a subtopic is a draw from a Dirichlet distribution around these, and is shared by all sets. A set has between 2 and
    `n_subtopics` subtopics, uniformly, whose popularities fall in the same way. A document covers between 1 and
    `per_document` of them, uniformly, drawn by popularity. Each of its words comes from one of these, uniformly.
    """

    n_sets: int = 100
    n_documents: int = 100  # documents per set
    n_subtopics: int = 25  # subtopics over all sets
    n_words: int = 300  # words per document
    n_vocabulary: int = 5000  # distinct words
    per_document: int = 4  # maximum number of subtopics of a document
    exponent: float = 1.0  # how fast frequencies and popularities fall; with 0, both are uniform
    concentration: float = 250.0  # sum of the Dirichlet parameters. The larger it is, the more alike the subtopics are
    seed: int = 0

    def draw(self) -> list[tuple[csr_matrix, Subtopics]]:
        """Draw the sets: term frequencies, shape (n_documents, n_vocabulary), and subtopics."""
        rng = np.random.default_rng(self.seed)
        parameters = self.concentration * falling(self.n_vocabulary, self.exponent)
        cumulative = np.cumsum(rng.dirichlet(parameters, self.n_subtopics), axis=1)
        return [self._draw_set(rng, cumulative) for _ in range(self.n_sets)]

    def _draw_set(self, rng: np.random.Generator, cumulative: FloatArray) -> tuple[csr_matrix, Subtopics]:
        n, n_subtopics = self.n_documents, int(rng.integers(2, self.n_subtopics + 1))
        drawn = rng.choice(self.n_subtopics, n_subtopics, replace=False)
        covered = np.zeros((n, n_subtopics))
        sources = np.empty((n, self.n_words), dtype=np.int64)
        for document in range(n):
            size = rng.integers(1, min(self.per_document, n_subtopics) + 1)
            subtopics = rng.choice(n_subtopics, size, replace=False, p=falling(n_subtopics, self.exponent))
            covered[document, subtopics] = 1.0
            sources[document] = rng.choice(subtopics, self.n_words)
        points, words = rng.random(sources.shape), np.empty(sources.shape, dtype=np.int64)
        for subtopic in range(n_subtopics):
            at = sources == subtopic
            # By the inverse of the cumulative distribution: the first word at which it is above a uniform number.
            words[at] = np.searchsorted(cumulative[drawn[subtopic], :-1], points[at], side="right")
        rows = np.repeat(np.arange(n), self.n_words)
        frequencies = csr_matrix((np.ones(words.size), (rows, words.ravel())), shape=(n, self.n_vocabulary))
        counts = covered.sum(axis=0)
        seen = counts > 0
        return frequencies, Subtopics(csr_matrix(covered[:, seen]), counts[seen] / counts.sum())


def falling(n: int, exponent: float) -> FloatArray:
    """Return shares proportional to 1, 2^-exponent, ..., n^-exponent; they sum to 1."""
    shares = 1.0 / np.arange(1, n + 1) ** exponent
    return np.asarray(shares / shares.sum())
