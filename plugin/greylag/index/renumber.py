"""Renumbering the used terms of a vocabulary."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from greylag.runtime.compilation import compiled

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

_jit = compiled(error_model="numpy")
_EVERY_2ND, _EVERY_4TH = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333)  # bits
_EVERY_8TH, _BYTES = np.uint64(0x0F0F0F0F0F0F0F0F), np.uint64(0x0101010101010101)


def drop_empty_columns(matrix: csr_matrix) -> csr_matrix:
    """Keep the columns of a matrix that have entries, in their order; one empty column if there are none."""
    # The entries are shared. The time hardly depends on the number of columns.
    from scipy.sparse import csr_matrix

    columns, n_used = renumber(matrix.indices, matrix.shape[1])
    return csr_matrix((matrix.data, columns, matrix.indptr), shape=(matrix.shape[0], max(1, n_used)))


@_jit
def _count_bits(word: Any) -> Any:
    """Count the bits that are set in a word."""
    # Sums in parallel of pairs, then fours, then bytes; the product adds all bytes into the highest one.
    word -= word >> np.uint64(1) & _EVERY_2ND
    word = (word & _EVERY_4TH) + (word >> np.uint64(2) & _EVERY_4TH)
    return (word + (word >> np.uint64(4)) & _EVERY_8TH) * _BYTES >> np.uint64(56)


@_jit
def renumber(numbers: Any, n: int) -> tuple[NDArray[np.int32], int]:
    """Renumber values from 0 to n - 1 by their ranks among the distinct ones, and count these."""
    # `numpy.unique` sorts, which takes 1.3 ms for the 80,000 entries of a thousand documents. This takes 0.1 ms with a
    # million terms; manifold ranking takes 3 ms in all.
    used = np.zeros(n // 64 + 1, np.uint64)  # a bit for each number
    before = np.zeros(len(used) + 1, np.int64)
    for number in numbers:
        used[number >> 6] |= np.uint64(1) << np.uint64(number & 63)
    for word in range(len(used)):
        # The rank of a number: the bits set in all words before its own, and below it in its own.
        before[word + 1] = before[word] + np.int64(_count_bits(used[word]))
    out = np.empty(len(numbers), np.int32)
    for i in range(len(numbers)):
        word, below = numbers[i] >> 6, (np.uint64(1) << np.uint64(numbers[i] & 63)) - np.uint64(1)
        out[i] = before[word] + np.int64(_count_bits(used[word] & below))
    return out, before[-1]
