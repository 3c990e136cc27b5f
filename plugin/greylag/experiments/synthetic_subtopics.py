"""Synthetic documents over subtopics, after Yue & Joachims (2008), section 7.3: data whose truth is known in full."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.diversity.coverage import Subtopics
from greylag.errors import ParameterError
from greylag.ranking import FloatArray


@dataclass(frozen=True)
class SyntheticSubtopics:
    """How candidate sets are drawn; the sizes are the paper's, the rest is not stated there.

    The subtopics' distributions over words are common to all sets: each a draw from a Dirichlet distribution with all
    parameters `concentration`. A set has from 2 to `n_subtopics` of them, each number as likely, with popularities
    1, 1/2, 1/3, ... in random order. A document covers from 1 to `per_document` subtopics (at most all), each number as
    likely, drawn without replacement by popularity. Each of its words comes from one of them, each as likely.

    Parameters
    ----------
    n_sets, n_documents, n_subtopics, n_words, n_vocabulary : candidate sets, documents a set, subtopics in all, words a
        document, different words.
    per_document : subtopics of a document at most.
    concentration : > 0; the smaller, the fewer words make up a subtopic.
    seed : of the generator.
    """

    n_sets: int = 100
    n_documents: int = 100
    n_subtopics: int = 25
    n_words: int = 300
    n_vocabulary: int = 5000
    per_document: int = 4
    concentration: float = 0.05
    seed: int = 0

    def draw(self):
        rng = np.random.default_rng(self.seed)
        distributions = np.cumsum(
            rng.dirichlet(np.full(self.n_vocabulary, self.concentration), self.n_subtopics), axis=1
        )
        return [self._set(rng, distributions) for _ in range(self.n_sets)]

    def _set(self, rng, distributions):
        n, S = self.n_documents, int(rng.integers(2, self.n_subtopics + 1))
        own = rng.choice(self.n_subtopics, S, replace=False)
        popularity = 1.0 / np.arange(1, S + 1)
        popularity /= popularity.sum()
        covered = np.zeros((n, S))
        topics = np.empty((n, self.n_words), dtype=np.int64)
        for d in range(n):
            size = rng.integers(1, min(self.per_document, S) + 1)
            mine = rng.choice(S, size, replace=False, p=popularity)
            covered[d, mine] = 1
            topics[d] = rng.choice(mine, self.n_words)
        points = rng.random(topics.shape)
        words = np.empty(topics.shape, dtype=np.int64)
        for s in range(S):
            at = topics == s
            words[at] = np.searchsorted(distributions[own[s]], points[at], side="right")
        words = np.minimum(words, self.n_vocabulary - 1)
        rows = np.repeat(np.arange(n), self.n_words)
        freq = csr_matrix((np.ones(words.size), (rows, words.ravel())), shape=(n, self.n_vocabulary))
        keep = covered.any(axis=0)
        counts = covered[:, keep].sum(axis=0)
        return freq, Subtopics(csr_matrix(covered[:, keep]), counts / counts.sum())
