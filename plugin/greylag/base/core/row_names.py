"""Names of documents without an identifier, by the values of their features.

Such a name is the same wherever the row stands: in a shuffled file, a concatenation, one of several folds. Rows of a
query that are equal share it, with a number added: ``row-0123456789abcdef``, ``row-0123456789abcdef-2``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

PREFIX = "row-"
_LENGTH = len(PREFIX) + 16  # without the number of an equal row
_NAME = re.compile(rf"{PREFIX}[0-9a-f]{{16}}(-[1-9][0-9]*)?")
# Of splitmix64 (Steele, Lea and Flood 2014).
_STEP, _FIRST, _SECOND = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


def digest_rows(features: NDArray[np.float64], start: int) -> NDArray[np.uint64]:
    """Return digests of rows, shape (n,), from features of shape (n, f) that are numbered from `start`.

    The sum modulo 2^64 over features j of mix(x_j ^ k_j) - mix(k_j), with the bits x_j of the value, a number k_j of
    the feature, and splitmix64's mix: a feature of 0, like one that is missing, has no effect.
    """
    keys = _mixed(np.arange(start + 1, start + 1 + features.shape[1], dtype=np.uint64) * _STEP)
    digests = np.zeros(len(features), np.uint64)
    for column, key in zip(features.T, keys, strict=True):
        digests += _mixed((column + 0.0).view(np.uint64) ^ key)  # -0.0 is 0.0
    digests -= _mixed(keys).sum()
    return digests


def _mixed(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits in place, each number to another one."""
    for shift, factor in ((30, _FIRST), (27, _SECOND)):
        bits ^= bits >> np.uint64(shift)
        bits *= factor
    bits ^= bits >> np.uint64(31)
    return bits


def name_rows(digests: NDArray[np.uint64], queries: NDArray[np.int64]) -> tuple[list[str], list[tuple[int, int]]]:
    """Name rows by digests, within the queries of these numbers, each of shape (n,).

    Returns the pairs of rows, too, that share a digest, whose values are equal unless digests collide.
    """
    names = [f"{PREFIX}{digest:016x}" for digest in digests.tolist()]
    order = np.lexsort((digests, queries))  # stable: equal rows keep the order of lines
    shared = (np.diff(queries[order]) == 0) & (digests[order][1:] == digests[order][:-1])
    pairs, number = list[tuple[int, int]](), dict[int, int]()
    for place in np.flatnonzero(shared).tolist():
        before, row = order[place : place + 2].tolist()
        number[row] = number.get(before, 1) + 1
        names[row] += f"-{number[row]}"
        pairs.append((before, row))
    return names, pairs


def is_row(docid: str) -> bool:
    """Return whether a document is named by its values."""
    return docid.startswith(PREFIX) and _NAME.fullmatch(docid) is not None


def split_grades(grades: Mapping[str, int]) -> dict[str, str]:
    """Return the documents with equal values and different grades, with the name that they share."""
    twins = {docid[:_LENGTH] for docid in grades if len(docid) > _LENGTH and is_row(docid)}
    by_name: dict[str, set[int]] = {}
    equal = [(docid, docid[:_LENGTH]) for docid in grades if docid[:_LENGTH] in twins]
    for docid, name in equal:
        by_name.setdefault(name, set()).add(grades[docid])
    return {docid: name for docid, name in equal if len(by_name[name]) > 1}
