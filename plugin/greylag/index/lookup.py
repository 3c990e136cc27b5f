"""Finding texts by binary search in a table of concatenated bytes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from greylag.errors import CollectionError
from greylag.index.arrays import DAMAGED, Int32Array
from greylag.ranking import IntArray
from greylag.runtime.compilation import compiled

Bytes = NDArray[np.uint8]


@compiled(error_model="numpy")
def find(text: Bytes, offsets: IntArray, order: Int32Array, wanted: Bytes, wanted_offsets: IntArray) -> IntArray:
    """The numbers of texts in a table, -1 for one that it lacks.

    Parameters
    ----------
    text, offsets : arrays
        Text i of the table is ``text[offsets[i]:offsets[i + 1]]``.
    order : array
        The numbers of the texts in ascending order of their bytes; empty if they are in this order already.
    wanted, wanted_offsets : arrays
        The texts to find.
    """
    size = len(offsets) - 1
    found = np.full(len(wanted_offsets) - 1, -1, np.int64)
    for i in range(len(found)):
        low, high, mine = 0, size, wanted[wanted_offsets[i] : wanted_offsets[i + 1]]
        while low < high:
            middle = (low + high) // 2
            number = np.int64(order[middle]) if len(order) else np.int64(middle)
            if number < 0 or number >= size:
                raise CollectionError(DAMAGED)
            begin, end = offsets[number], offsets[number + 1]
            if begin < 0 or end < begin or end > len(text):
                raise CollectionError(DAMAGED)
            j, common = 0, min(end - begin, len(mine))
            while j < common and text[begin + j] == mine[j]:
                j += 1
            if j == len(mine) and j == end - begin:
                found[i] = number
                break
            if (j < common and text[begin + j] < mine[j]) or (j == common and j < len(mine)):
                low = middle + 1
            else:
                high = middle
    return found
