"""The area under the ROC curve of rankings by example: the measure of Zhou et al. (2003), section 5."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from greylag.ranking import FloatArray, IntArray


def roc_areas(scores: FloatArray, classes: IntArray, queries: Sequence[int | IntArray]) -> FloatArray:
    """How well each column of scores puts the points of its queries' class above all others; the queries don't count.

    Parameters
    ----------
    scores : shape (n, q).
    classes : shape (n,).
    queries : for each column one or more points, all of one class.

    Returns
    -------
    ndarray, shape (q,)
        The chance that a point of the class scores higher than another one, a tie counting as half.
    """
    from sklearn.metrics import roc_auc_score

    areas = np.empty(len(queries))
    for i, (column, own) in enumerate(zip(scores.T, queries, strict=True)):
        others = np.ones(len(classes), dtype=bool)
        others[own] = False
        areas[i] = roc_auc_score(classes[others] == classes[np.ravel(own)[0]], column[others])
    return areas
