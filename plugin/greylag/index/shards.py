"""Shards: the compressed arrays that one Lucene index or some texts give, and the collection that several make."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np

from greylag.base import BoolArray, CollectionError, IntArray, ParameterError
from greylag.index import streams
from greylag.index.tables import DAMAGE_ERROR, UNKNOWN, Bytes, Int32Array, Tables, offsets, ranges

_BLOCK_DOCUMENTS = 1 << 14  # in memory while a collection is read
_MIN_SCANNED, _MAX_SCANNED = 1 << 14, 1 << 17  # documents that are looked through for a block


class Located(NamedTuple):
    """The occurrences of t terms in n documents, with p postings."""

    postings: IntArray  # the posting of the term in the document, or -1; shape (t, n)
    sole: Int32Array  # the term's position in the document; -1 if there are several, -2 if there is none; shape (t, n)
    # ``having[offsets[i]:offsets[i + 1]]`` are the documents with term i, as indices into the documents, ascending if
    # the documents are given; shapes (p,) and (t + 1,)
    having: IntArray
    offsets: IntArray
    # The positions of posting i are ``positions[starts[i]:starts[i + 1]]``, ascending; stop words leave gaps.
    starts: IntArray  # shape (p + 1,)
    positions: Int32Array


@dataclass(frozen=True, eq=False, kw_only=True)
class Shard(Tables):
    """N documents, V terms, P postings and C tokens, numbered from 0 within the shard; see `streams` for the arrays."""

    postings_docs: Bytes  # the document of each posting, ascending within a term, in a fixed number of bytes
    block_places: IntArray  # of every `streams.BLOCK_POSTINGS`-th posting in `positions`
    positions: Bytes  # the stream of the positions of all postings
    forward_offsets: IntArray  # document d's terms are ``forward[forward_offsets[d]:forward_offsets[d + 1]]``
    forward: Bytes  # the streams of the terms of each document, with tf

    def postings(self, terms: IntArray) -> tuple[IntArray, Int32Array, Int32Array]:
        """Return the documents with each term (-1 for one that the shard lacks), ascending, and its tf in each.

        The first array has the offsets: those of term i are ``offsets[i], ..., offsets[i + 1] - 1``.
        """
        docs = self.bounds(terms), self.postings_docs, self._width
        read = streams.read_frequencies(*docs, self.block_places, self.positions, self.n_documents)
        return cast(tuple[IntArray, Int32Array, Int32Array], read)

    def decode(self, terms: IntArray) -> tuple[IntArray, IntArray, Located]:
        """Return where the postings of each term begin and the last ones end, their documents, and their positions."""
        width, (firsts, ends) = self._width, self.bounds(terms)
        cuts, numbers = offsets(ends - firsts), ranges(firsts, ends - firsts)
        # Little-endian numbers of 1 to 4 bytes, which NumPy has no type for.
        digits = self.postings_docs[: len(self.postings_docs) // width * width].reshape(-1, width)[numbers]
        documents = digits @ 256 ** np.arange(width)
        if (documents >= self.n_documents).any():
            raise CollectionError(DAMAGE_ERROR)
        return cuts, documents, self._read(numbers, np.zeros_like(numbers), cuts, 1)

    def locate(self, terms: IntArray, documents: IntArray) -> Located:
        """Locate terms (-1 for one that the shard lacks) in documents, which have ascending numbers."""
        numbers, having, offsets = streams.find(self.bounds(terms), self.postings_docs, self._width, documents)
        return self._read(numbers, having, offsets, len(documents))

    def locate_jointly(self, terms: IntArray, least: int) -> Iterator[Located]:
        """Find distinct terms in documents with at least `least` of them, in blocks, whose documents are unordered."""
        bounds, read = self.bounds(terms), np.zeros(len(terms), np.int64)
        # A block has about as many matching documents, at most postings / least of the collection's, so that its
        # positions fit in memory.
        postings = max(1, int(self.document_frequencies[terms].sum()))
        step = min(_MAX_SCANNED, max(_MIN_SCANNED, _BLOCK_DOCUMENTS * least * self.n_documents // postings))
        for begin in range(0, self.n_documents, step):
            yield self.joint_block(bounds, least, read, begin, min(begin + step, self.n_documents))

    def joint_block(self, bounds: IntArray, least: int, read: IntArray, begin: int, end: int) -> Located:
        """Locate terms in the documents from `begin` to `end` - 1 that have at least `least` of them."""
        # `read` counts each term's postings in documents before `begin`, and is moved on to `end`: no posting of a term
        # is decoded twice, whatever the number of blocks.
        docs, n = (self.postings_docs, self._width), self.n_documents
        joint, ends = np.zeros(end - begin, np.int32), read.copy()
        count, most = streams.find_joint(bounds, *docs, least, read, begin, end, n, joint, ends)
        # One more: `join` writes a posting before it knows whether to keep it.
        numbers, having = np.empty((2, most + 1), np.int64)
        offsets = np.zeros(len(read) + 1, np.int64)
        streams.join(bounds[0], *docs, least, read, begin, joint, ends, numbers, having, offsets)
        # In place, as the caller passes it on to the next block.
        read[:] = ends
        return self._read(numbers[:most], having[:most], offsets, count)

    def bounds(self, terms: IntArray) -> IntArray:
        """Return the numbers of the terms' first postings, and of those after their last; none of a term -1."""
        size = min(len(self.postings_docs) // self._width, len(self.block_places) * streams.BLOCK_POSTINGS)
        bounds: IntArray = streams.bound(self.postings_offsets, terms, size)
        return bounds

    def _read(self, numbers: IntArray, having: IntArray, offsets: IntArray, n: int) -> Located:
        """Read postings with these numbers, ascending within a term."""
        read = streams.read_postings(self.block_places, self.positions, numbers, having, offsets, n)
        postings, sole, starts, positions = read
        return Located(postings, sole, having, offsets, starts, positions)

    def entries(self, documents: IntArray) -> tuple[IntArray, Int32Array, Int32Array]:
        """Return the terms of documents; see `Parts.entries`."""
        known = documents[documents >= 0]
        begins, ends = self.forward_offsets[known], self.forward_offsets[known + 1]
        if ((begins < 0) | (ends < begins) | (ends > len(self.forward))).any():
            raise CollectionError(DAMAGE_ERROR)
        starts = np.zeros(len(documents) + 1, np.int64)
        terms, tfs = np.empty((2, int((ends - begins).sum())), np.int32)  # each entry has a byte at least
        streams.read_entries(self.forward_offsets, self.forward, documents, self.n_terms, starts, terms, tfs)
        return starts, terms[: starts[-1]].copy(), tfs[: starts[-1]].copy()

    def frequencies(self, terms: IntArray, documents: IntArray) -> Int32Array:
        """Count tf of terms, which have ascending numbers, in documents, shape (len(terms), len(documents))."""
        tfs: Int32Array = streams.frequencies(self.forward_offsets, self.forward, terms, documents)
        return tfs

    @cached_property
    def _width(self) -> int:
        return streams.document_bytes(self.n_documents)


@dataclass(frozen=True, eq=False)
class Part:
    """A shard of a collection, which numbers documents and terms differently."""

    shard: Shard
    first: int = 0  # the collection's number of the shard's document 0; the other documents follow
    numbers: Int32Array | None = None  # the collection's numbers of the shard's terms; None if they are the same

    def shard_terms(self, terms: IntArray) -> IntArray:
        """Return the shard's numbers of the collection's terms, -1 for one that it lacks; negative numbers stay."""
        if self.numbers is None:
            return terms
        # The shard's terms are a sorted subset of the collection's.
        own = np.searchsorted(self.numbers, terms.astype(np.int32))  # of one type, or the numbers would be copied
        present = own < len(self.numbers)
        present[present] = self.numbers[own[present]] == terms[present]
        numbers: IntArray = np.where(present, own, np.minimum(terms, UNKNOWN))
        return numbers

    def has(self, documents: IntArray) -> BoolArray:
        """Return which of the collection's documents are in the shard."""
        return (documents >= self.first) & (documents < self.first + self.shard.n_documents)


class Parts(tuple[Part, ...]):
    """The shards of a collection, in the order of its documents, read as one."""

    def locate(self, terms: IntArray, documents: IntArray) -> Located:
        """Locate terms (-1 for one that the collection lacks) in documents, which have ascending numbers."""
        if len(self) == 1:
            return self[0].shard.locate(terms, documents)
        located = [
            part.shard.locate(part.shard_terms(terms), documents[part.has(documents)] - part.first) for part in self
        ]
        firsts = offsets([len(shard.starts) - 1 for shard in located]).tolist()
        shifted = [
            shard.postings + (shard.postings >= 0) * first for shard, first in zip(located, firsts, strict=False)
        ]
        # Parts hold ascending ranges of documents, so that their columns follow one another.
        postings = np.concatenate(shifted, axis=1)
        term_rows, having = np.nonzero(postings >= 0)
        return Located(
            postings=postings,
            sole=np.concatenate([shard.sole for shard in located], axis=1),
            having=having,
            offsets=offsets(np.bincount(term_rows, minlength=len(terms))),
            starts=offsets(np.concatenate([np.diff(shard.starts) for shard in located])),
            positions=np.concatenate([shard.positions for shard in located]),
        )

    def entries(self, documents: IntArray) -> tuple[IntArray, Int32Array, Int32Array]:
        """Return the terms of documents (-1 for a document without any), ascending within a document, and their tf.

        The first array has the offsets: the entries of document i are ``offsets[i], ..., offsets[i + 1] - 1``.
        """
        self._check_documents(documents)
        if len(self) == 1:
            return self[0].shard.entries(documents)
        rows, counts, terms, tfs = [], [], [], []
        for part in self:
            own_rows = np.flatnonzero(part.has(documents))
            starts, numbers, tf = part.shard.entries(documents[own_rows] - part.first)
            rows.append(own_rows)
            counts.append(np.diff(starts))
            terms.append(numbers if part.numbers is None else part.numbers[numbers])
            tfs.append(tf)
        sizes = np.zeros(len(documents), dtype=np.int64)
        sizes[np.concatenate(rows)] = np.concatenate(counts)
        starts = offsets(sizes)
        places = ranges(starts[:-1][np.concatenate(rows)], np.concatenate(counts))
        joined = np.empty((2, starts[-1]), dtype=np.int32)
        # Rows come shard by shard, and are put back in the order of the documents.
        joined[:, places] = np.concatenate(terms), np.concatenate(tfs)
        return starts, joined[0], joined[1]

    def frequencies(self, terms: IntArray, documents: IntArray) -> Int32Array:
        """Count tf of terms, which have ascending numbers, in documents, shape (len(terms), len(documents))."""
        self._check_documents(documents)
        if len(self) == 1:
            return self[0].shard.frequencies(terms, documents)
        out = np.zeros((len(terms), len(documents)), dtype=np.int32)
        for part in self:
            shard_terms, own_columns = part.shard_terms(terms), part.has(documents)
            known, own_documents = shard_terms >= 0, documents[own_columns] - part.first
            out[np.ix_(known, own_columns)] = part.shard.frequencies(shard_terms[known], own_documents)
        return out

    def _check_documents(self, documents: IntArray) -> None:
        """Raise `ParameterError` if a document number is beyond the last one."""
        n_documents = self[-1].first + self[-1].shard.n_documents
        if (greatest := documents.max(initial=UNKNOWN)) >= n_documents:
            raise ParameterError(f"there is no document {greatest}: {n_documents} documents are numbered from 0")
