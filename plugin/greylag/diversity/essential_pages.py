"""Essential Pages (Swaminathan, Mathew & Kirovski, 2008), in the form of Yue & Joachims (2008), section 7.1.

A document covers a word the better, the more often it has it and the fewer candidates do; a set covers it as well as
its best document does. Documents are chosen greedily for the sum over all words.
"""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

from greylag.ranking import FloatArray


class EssentialPagesGain:
    """The rise of the sum over words v of the largest C(v, d) of the picked d, with

        C(v, d) = TF(v, d) log(1 / DF(v)),

    TF the number of times that the document has the word, DF the share of the candidates that have it.

    Parameters
    ----------
    frequencies : tf, shape (n, V), each entry once; an empty row is an empty document, which gains nothing.
    """

    def __init__(self, frequencies: csr_matrix) -> None:
        n = frequencies.shape[0]
        used, self._words = np.unique(frequencies.indices, return_inverse=True)
        self._starts = frequencies.indptr
        self._rows = np.repeat(np.arange(n), np.diff(self._starts))
        inverse_df = n / np.bincount(self._words, minlength=len(used))
        self._benefits = frequencies.data * np.log(inverse_df)[self._words]
        self._best = np.zeros(len(used))

    def gains(self) -> FloatArray:
        """Shape (n,)."""
        rises = np.maximum(self._benefits - self._best[self._words], 0.0)
        return np.asarray(np.bincount(self._rows, weights=rises, minlength=len(self._starts) - 1), dtype=np.float64)

    def add(self, candidate: int) -> None:
        """The set covers each of this document's words as well as it does, or better."""
        entries = slice(self._starts[candidate], self._starts[candidate + 1])
        words = self._words[entries]
        self._best[words] = np.maximum(self._best[words], self._benefits[entries])
