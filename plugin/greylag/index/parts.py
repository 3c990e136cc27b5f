"""Parts: the shards of a collection, read by the collection's numbers of documents and terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from greylag.index.arrays import Int32Array, offsets, ranges
from greylag.index.shard import Located, Shard
from greylag.index.tables import UNKNOWN
from greylag.ranking import BoolArray, IntArray


@dataclass(frozen=True, eq=False)
class Part:
    """A shard of a collection.

    Parameters
    ----------
    shard : Shard
    first : int
        The collection's number of the shard's document 0. The other documents follow.
    numbers : int32 array, shape (V,), optional
        The collection's numbers of the shard's terms, ascending. None if they are the shard's own.
    """

    shard: Shard
    first: int = 0
    numbers: Int32Array | None = None

    def own_terms(self, terms: IntArray) -> IntArray:
        """The shard's numbers of the collection's terms, -1 for one that it lacks; negative numbers stay."""
        if self.numbers is None:
            return terms
        places = np.searchsorted(self.numbers, terms.astype(np.int32))  # of one type, or the numbers would be copied
        found = places < len(self.numbers)
        found[found] = self.numbers[places[found]] == terms[found]
        own: IntArray = np.where(found, places, np.minimum(terms, UNKNOWN))
        return own

    def has(self, documents: IntArray) -> BoolArray:
        """Which of the collection's documents are in the shard."""
        return (documents >= self.first) & (documents < self.first + self.shard.n_documents)


def locate(parts: Sequence[Part], terms: IntArray, documents: IntArray) -> Located:
    """Where terms occur in documents; see `Shard.locate`."""
    if len(parts) == 1:
        return parts[0].shard.locate(terms, documents)
    found = [part.shard.locate(part.own_terms(terms), documents[part.has(documents)] - part.first) for part in parts]
    firsts = offsets([len(own.starts) - 1 for own in found]).tolist()
    shifted = [own.postings + (own.postings >= 0) * first for own, first in zip(found, firsts, strict=False)]
    postings = np.concatenate(shifted, axis=1)
    of_terms, having = np.nonzero(postings >= 0)
    return Located(
        postings=postings,
        sole=np.concatenate([own.sole for own in found], axis=1),
        having=having,
        offsets=offsets(np.bincount(of_terms, minlength=len(terms))),
        starts=offsets(np.concatenate([np.diff(own.starts) for own in found])),
        positions=np.concatenate([own.positions for own in found]),
    )


def entries(parts: Sequence[Part], documents: IntArray) -> tuple[IntArray, Int32Array, Int32Array]:
    """The terms of documents and their tf; see `Shard.entries`."""
    if len(parts) == 1:
        return parts[0].shard.entries(documents)
    rows, counts, terms, tfs = [], [], [], []
    for part in parts:
        own = np.flatnonzero(part.has(documents))
        starts, numbers, tf = part.shard.entries(documents[own] - part.first)
        rows.append(own)
        counts.append(np.diff(starts))
        terms.append(numbers if part.numbers is None else part.numbers[numbers])
        tfs.append(tf)
    sizes = np.zeros(len(documents), dtype=np.int64)
    sizes[np.concatenate(rows)] = np.concatenate(counts)
    starts = offsets(sizes)
    places = ranges(starts[:-1][np.concatenate(rows)], np.concatenate(counts))
    joined = np.empty((2, starts[-1]), dtype=np.int32)
    joined[:, places] = np.concatenate(terms), np.concatenate(tfs)
    return starts, joined[0], joined[1]


def frequencies(parts: Sequence[Part], terms: IntArray, documents: IntArray) -> Int32Array:
    """Tf of terms in documents; see `Shard.frequencies`."""
    if len(parts) == 1:
        return parts[0].shard.frequencies(terms, documents)
    out = np.zeros((len(terms), len(documents)), dtype=np.int32)
    for part in parts:
        own_terms, own_documents = part.own_terms(terms), part.has(documents)
        known = own_terms >= 0
        found = part.shard.frequencies(own_terms[known], documents[own_documents] - part.first)
        out[np.ix_(known, own_documents)] = found
    return out
