"""Essential Pages (Swaminathan, Mathew & Kirovski 2008), in the form of Yue & Joachims (2008), section 6."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_matrix

from greylag.base import FloatArray, Ranking
from greylag.diversity.stage import DiversityStage
from greylag.index import PositionalIndex


@dataclass(frozen=True)
class EssentialPages(DiversityStage):
    """Pick documents that best cover words: frequent in the document, rare among the candidates.

    The picked set maximises the sum over words v of max over picked d of C(v, d), with

        C(v, d) = TF(v, d) log(1 / DF(v)),

    where TF is the number of occurrences of the word in the document and DF the proportion of candidates that contain
    the word.

    Parameters
    ----------
    index : PositionalIndex
        The collection. A document that it lacks keeps its rank.
    depth, k : int
        See `greylag.diversity.DiversityStage`.

    References
    ----------
    Swaminathan, Mathew and Kirovski, Essential pages, Microsoft Research technical report, 2008. Yue and Joachims,
    Predicting diverse subsets using structural SVMs, ICML 2008, section 6.
    """

    needs = frozenset({"index"})

    index: PositionalIndex

    def gain(self, candidates: Ranking) -> EssentialPagesGain:
        """Return the rise of the sum of the best C(v, d)."""
        return EssentialPagesGain(self.index.term_frequencies(self.index.documents(candidates.docids)))


class EssentialPagesGain:
    """The gain of `EssentialPages`, from term frequencies without duplicate entries; empty documents gain nothing."""

    def __init__(self, frequencies: csr_matrix) -> None:
        n = frequencies.shape[0]
        # Words of the candidates alone, renumbered.
        used, self._words = np.unique(frequencies.indices, return_inverse=True)
        self._starts = frequencies.indptr
        self._rows = np.repeat(np.arange(n), np.diff(self._starts))
        # DF is over the candidates, as in the paper: a word that all of them have tells none from another.
        inverse_df = n / np.bincount(self._words, minlength=len(used))
        self._benefits = frequencies.data * np.log(inverse_df)[self._words]
        self._best = np.zeros(len(used))

    def gains(self) -> FloatArray:
        """Compute the gains, shape (n,)."""
        rises = np.maximum(self._benefits - self._best[self._words], 0.0)
        return np.asarray(np.bincount(self._rows, weights=rises, minlength=len(self._starts) - 1), dtype=np.float64)

    def add(self, candidate: int) -> None:
        """Raise the best C(v, d) of the words of this document."""
        entries = slice(self._starts[candidate], self._starts[candidate + 1])
        words = self._words[entries]
        self._best[words] = np.maximum(self._best[words], self._benefits[entries])
