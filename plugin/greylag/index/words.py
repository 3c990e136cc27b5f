"""Surface words: the unstemmed words of documents, and their character n-grams.

A stem joins the forms of a word. A table of stems has lost what different words share, such as "hydroxy", and how the
query wrote them. The tables here have the different words of each document, in lower case and otherwise
unchanged, and their character n-grams of 3 to 5 characters, with "_" at both ends of a word. An n-gram is known by a
64-bit hash (FNV-1a) of its UTF-8; two of ten million agree with a probability of 3 in a million.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.base import CollectionError, FloatArray, IntArray, compiled
from greylag.index.analysis import Unit, written_words
from greylag.index.tables import DAMAGE_ERROR, Bytes, Int32Array, find, join, numbered, offsets

SHORTEST, LONGEST = 3, 5
WORD_DTYPES = {
    "terms": "uint8",
    "term_offsets": "int64",
    "term_order": "int32",
    "document_frequencies": "int64",
    "document_offsets": "int64",
    "words": "int32",
    "gram_hashes": "uint64",
    "gram_frequencies": "int64",
    "gram_offsets": "int64",
    "grams": "int32",
}
"""The arrays' types by name; see `Words`."""

_BLOCK_DOCUMENTS = 1 << 14  # documents in memory while texts are read
Hashes = NDArray[np.uint64]
Bits = NDArray[np.uint64]
_jit = compiled(error_model="numpy")


@dataclass(frozen=True, eq=False, kw_only=True)
class Words:
    """The words of the N documents of a shard, of V words with G n-grams, numbered from 0."""

    terms: Bytes  # concatenated, in UTF-8
    term_offsets: IntArray  # word w is ``terms[term_offsets[w]:term_offsets[w + 1]]``, shape (V + 1,)
    term_order: Int32Array  # the words' numbers in ascending order of their bytes, shape (V,)
    document_frequencies: IntArray  # documents with each word, shape (V,)
    document_offsets: IntArray  # document d's words are ``words[document_offsets[d]:document_offsets[d + 1]]``
    words: Int32Array  # ascending within a document
    gram_hashes: Hashes  # of each n-gram, ascending, shape (G,)
    gram_frequencies: IntArray  # documents with each n-gram, shape (G,)
    gram_offsets: IntArray  # word w's n-grams are ``grams[gram_offsets[w]:gram_offsets[w + 1]]``, shape (V + 1,)
    grams: Int32Array

    @classmethod
    def of(cls, texts: Iterable[str]) -> Words:
        """Return the words of texts, in memory."""
        parts: defaultdict[str, list[Any]] = defaultdict(list)
        write_words(texts, lambda name, array: parts[name].append(array), lambda name: np.concatenate(parts[name]))
        arrays = {name: np.concatenate(parts[name]).astype(kind) for name, kind in WORD_DTYPES.items()}
        for array in arrays.values():
            array.flags.writeable = False  # as those of a file, for which loops are compiled
        return cls(**arrays)

    def units(self, words: Sequence[str], unit: Unit) -> tuple[IntArray, IntArray]:
        """Return the numbers (-1 for a unit that the shard lacks) and df of words, or of their different n-grams."""
        text, starts = join([word.encode() for word in words])
        if unit == "words":
            numbers, df = find(self.terms, self.term_offsets, self.term_order, text, starts), self.document_frequencies
        else:
            hashes = np.unique(hash_grams(text, starts)[1])
            own = np.searchsorted(self.gram_hashes, hashes)
            present = own < len(self.gram_hashes)
            present[present] = self.gram_hashes[own[present]] == hashes[present]
            numbers, df = np.where(present, own, -1), self.gram_frequencies
        frequencies = np.zeros(len(numbers), dtype=np.int64)
        frequencies[numbers >= 0] = df[numbers[numbers >= 0]]
        return numbers, frequencies

    def covered(self, numbers: IntArray, unit: Unit, weights: FloatArray, documents: IntArray) -> FloatArray:
        """Sum the weights of the words or n-grams with these numbers that each document has, shape (n,)."""
        numbers, weights = numbers[numbers >= 0], weights[numbers >= 0]
        bounds, size = _ranges_of(self.document_offsets, self.words, documents)
        if unit == "words":
            return _sums_of(weights, _units_of(len(self.document_frequencies), bounds, self.words, numbers))
        # Documents of one query share most of their words, so that the n-grams of each different word are read once.
        different, word_of_entry = numbered(len(self.gram_offsets) - 1, bounds, size, self.words)
        gram_bounds = _ranges_of(self.gram_offsets, self.grams, different)[0]
        word_units = _units_of(len(self.gram_hashes), gram_bounds, self.grams, numbers)
        # A document has an n-gram if any of its words has it.
        document_units = np.zeros((len(documents), word_units.shape[1]), np.uint64)
        _join_units(bounds, word_of_entry, word_units, document_units)
        return _sums_of(weights, document_units)


@dataclass(frozen=True, eq=False)
class CollectionWords:
    """The surface words of a collection's documents, which are those of its shards one after another."""

    parts: tuple[Words, ...]

    def coverage(self, query: str, unit: Unit, documents: IntArray) -> FloatArray:
        """Compute the share of the query's idf that documents with these numbers cover, shape (len(documents),)."""
        # sum of idf(u) over the units u of the query that the document has / sum over all units, which are the query's
        # different words or n-grams, with idf(u) = log(1 + (N - df + 0.5) / (df + 0.5)); 0 for a query without words
        words = list(dict.fromkeys(written_words(query)))
        units = [part.units(words, unit) for part in self.parts]
        df = sum((frequencies for _, frequencies in units), start=np.zeros(len(units[0][1]), dtype=np.int64))
        bounds = offsets([len(part.document_offsets) - 1 for part in self.parts]).tolist()
        idf = np.log1p((bounds[-1] - df + 0.5) / (df + 0.5))
        out = np.zeros(len(documents))
        for part, (numbers, _), (first, end) in zip(self.parts, units, pairwise(bounds), strict=True):
            here = (documents >= first) & (documents < end)
            out[here] = part.covered(numbers, unit, idf, documents[here] - first)
        return out / np.cumsum(idf)[-1] if len(idf) else out  # added in the same order, so that all of it is 1


def write_words(texts: Iterable[str], append: Callable[[str, Any], Any], read: Callable[[str], Any]) -> None:
    """Append the arrays of `Words`, by name and a block of texts at a time; `read` returns what was appended before."""
    numbers: defaultdict[str, int] = defaultdict()
    # A word gets the next number when it is looked up.
    numbers.default_factory = numbers.__len__
    append("document_offsets", np.zeros(1, dtype=np.int64))
    append("words", np.empty(0, dtype=np.int32))
    left, total = iter(texts), 0
    while block := list(islice(left, _BLOCK_DOCUMENTS)):
        documents = [sorted({numbers[word] for word in written_words(text)}) if text else [] for text in block]
        ends = total + np.cumsum([len(words) for words in documents], dtype=np.int64)
        append("document_offsets", ends)
        append("words", np.fromiter(chain.from_iterable(documents), np.int32))
        total = int(ends[-1])
    encoded = [word.encode() for word in numbers]
    text, starts = join(encoded)
    append("terms", text)
    append("term_offsets", starts)
    append("term_order", np.array(sorted(range(len(encoded)), key=encoded.__getitem__), dtype=np.int32))
    gram_offsets, gram_hashes = hash_grams(text, starts)
    hashes, numbers_of_grams = np.unique(gram_hashes, return_inverse=True)
    grams = numbers_of_grams.astype(np.int32)
    entries = read("document_offsets"), read("words")
    append("document_frequencies", np.bincount(entries[1], minlength=len(encoded)))
    append("gram_hashes", hashes)
    frequencies = np.zeros(len(hashes), np.int64)
    _count_grams(*entries, gram_offsets, grams, np.full(len(hashes), -1), frequencies)
    append("gram_frequencies", frequencies)
    append("gram_offsets", gram_offsets)
    append("grams", grams)


def hash_grams(text: Bytes, starts: IntArray) -> tuple[IntArray, Hashes]:
    """Hash the n-grams of words ``text[starts[i]:starts[i + 1]]``; return offsets, shape (words + 1,), and hashes."""
    sizes, out_offsets = np.diff(starts), np.zeros(len(starts), np.int64)
    longest, hashes = int(sizes.max(initial=0)), np.empty((LONGEST - SHORTEST + 1) * int(sizes.sum()), np.uint64)
    _hash_grams(text, starts, np.empty(longest + 2, np.uint8), np.empty(longest + 3, np.int64), out_offsets, hashes)
    return out_offsets, hashes[: out_offsets[-1]].copy()


@_jit
def _hash_grams(
    text: Bytes, starts: IntArray, padded: Bytes, characters: IntArray, out_offsets: IntArray, hashes: Hashes
) -> None:
    """Fill in what `hash_grams` returns; the others have room for a word and for where its characters begin."""
    n = 0
    for i in range(len(starts) - 1):
        size = starts[i + 1] - starts[i] + 2
        padded[0] = padded[size - 1] = 95  # _
        for j in range(starts[i], starts[i + 1]):
            padded[j - starts[i] + 1] = text[j]
        count = 0
        for j in range(size):
            if padded[j] & 192 != 128:  # where a character begins
                characters[count] = j
                count += 1
        characters[count] = size
        for begin in range(count):
            for end in range(begin + SHORTEST, min(begin + LONGEST, count) + 1):
                # FNV-1a: every byte is mixed in by an exclusive or and a product.
                value = np.uint64(14695981039346656037)
                for j in range(characters[begin], characters[end]):
                    value = (value ^ np.uint64(padded[j])) * np.uint64(1099511628211)
                hashes[n] = value
                n += 1
        out_offsets[i + 1] = n


@_jit
def _count_grams(
    document_offsets: IntArray, words: Int32Array, gram_offsets: IntArray, grams: Int32Array, last: IntArray,
    frequencies: IntArray,
) -> None:  # fmt: skip
    """Add to the documents with each n-gram; `last` becomes the last document that has it."""
    for d in range(len(document_offsets) - 1):
        for entry in range(document_offsets[d], document_offsets[d + 1]):
            word = words[entry]
            for place in range(gram_offsets[word], gram_offsets[word + 1]):
                # Several words of a document may have the n-gram: it counts once.
                gram = grams[place]
                frequencies[gram] += last[gram] != d
                last[gram] = d


def _ranges_of(document_offsets: IntArray, words: Int32Array, documents: IntArray | Int32Array) -> tuple[IntArray, int]:
    """Return where the words of documents begin and end, shape (2, documents), and how many there are."""
    bounds = document_offsets[np.array([documents, documents + 1])]
    if ((bounds[0] < 0) | (bounds[1] < bounds[0]) | (bounds[1] > len(words))).any():
        raise CollectionError(DAMAGE_ERROR)
    return bounds, int((bounds[1] - bounds[0]).sum())


def _table_of(numbers: IntArray) -> Int32Array:
    """Make a hash table of n different numbers by their last bits: indices, n in an empty slot, n + 1 for several."""
    # A sixteenth full at most: nearly all units that the query lacks end at an empty slot, which can be predicted.
    n = len(numbers)
    size = max(16, 1 << (16 * n - 1).bit_length())
    slots = numbers & (size - 1)
    table = np.full(size, n, np.int32)
    table[slots] = np.where(np.bincount(slots, minlength=size)[slots] > 1, n + 1, np.arange(n))
    return table


def _units_of(n_units: int, bounds: IntArray, units: Int32Array, numbers: IntArray) -> Bits:
    """Mark which units with some numbers each range of `units` has: bit u of row i, in blocks of 64 bits."""
    has = np.zeros((bounds.shape[1], -(-len(numbers) // 64)), np.uint64)
    _mark_units(n_units, bounds, units, numbers, _table_of(numbers), has)
    return has


@_jit
def _mark_units(
    n_units: int, bounds: IntArray, units: Int32Array, numbers: IntArray, table: Int32Array, has: Bits
) -> None:
    """Set the bits of `_units_of`."""
    n, mask = len(numbers), np.uint64(len(table) - 1)
    for i in range(bounds.shape[1]):
        for entry in range(bounds[0, i], bounds[1, i]):
            unit = units[np.uint64(entry)]
            if unit < 0 or unit >= n_units:
                raise CollectionError(DAMAGE_ERROR)
            place = table[np.uint64(unit) & mask]
            # Several units share the slot: look through all of them, which is rare.
            if place > n:
                place = 0
                while place < n and numbers[place] != unit:
                    place += 1
            if place < n and numbers[place] == unit:
                has[i, place >> 6] |= np.uint64(1) << np.uint64(place & 63)


@_jit
def _join_units(bounds: IntArray, word_of_entry: Int32Array, word_units: Bits, document_units: Bits) -> None:
    """Set the bits of a document that any of its words has."""
    entry = 0
    for i in range(bounds.shape[1]):
        for _ in range(bounds[0, i], bounds[1, i]):
            word = np.uint64(word_of_entry[entry])
            for block in range(word_units.shape[1]):
                document_units[i, block] |= word_units[word, block]
            entry += 1


def _sums_of(weights: FloatArray, has: Bits) -> FloatArray:
    """Sum the weights of the units that each document has, shape (documents,)."""
    # In the order of the query: in the order of words, last bits would depend on which document was indexed first.
    sums = np.zeros(len(has))
    # Transposed, so that the inner loop runs over neighbouring documents.
    _add_weights(weights, np.ascontiguousarray(has.T), sums)
    return sums


@_jit
def _add_weights(weights: FloatArray, has: Bits, sums: FloatArray) -> None:
    """Add to `sums` what `_sums_of` returns; `has` has a column for each document."""
    for u in range(len(weights)):
        block, bit = u >> 6, np.uint64(1) << np.uint64(u & 63)
        for i in range(len(sums)):
            sums[i] += weights[u] if has[block, i] & bit else 0.0
