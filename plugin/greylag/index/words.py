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
        return cls.holding({name: np.concatenate(parts[name]).astype(kind) for name, kind in WORD_DTYPES.items()})

    @classmethod
    def holding(cls, arrays: dict[str, Any]) -> Words:
        """Return the words that these arrays have, which nobody changes from here on."""
        for array in arrays.values():
            array.flags.writeable = False  # as those of a file, for which loops are compiled
        return cls(**arrays)

    def units(self, words: Sequence[str], unit: Unit) -> tuple[IntArray, IntArray]:
        """Return the numbers (-1 for a unit that the shard lacks) and df of words, or of their different n-grams."""
        text, starts = join([word.encode() for word in words])
        if unit == "words":
            numbers = find(self.terms, self.term_offsets, self.term_order, text, starts)
            return numbers, _frequencies_of(numbers, self.document_frequencies)
        hashes = hash_grams(text, starts)[1]
        hashes.sort()
        numbers = _find_grams(self.gram_hashes, hashes)
        return numbers, _frequencies_of(numbers, self.gram_frequencies)

    def covered(self, numbers: IntArray, unit: Unit, weights: FloatArray, documents: IntArray) -> FloatArray:
        """Sum the weights of the words or n-grams (-1 for an unknown one) that each document has, shape (n,)."""
        bounds = self.document_offsets[np.array([documents, documents + 1])]
        # Documents of one query share most of their words, so that the n-grams of each different word are read once.
        different, word_of_entry = numbered(len(self.document_frequencies), bounds, self.words)
        if unit == "words":
            one_each = np.arange(len(different) + 1)
            units = len(self.document_frequencies), np.array([one_each[:-1], one_each[1:]]), different
        else:
            units = len(self.gram_hashes), self.gram_offsets[np.array([different, different + 1])], self.grams
        sums = np.zeros(len(documents))
        _add_covered(bounds, word_of_entry, *units, numbers, weights, sums)
        return sums


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
    count_grams(*entries, gram_offsets, grams, np.full(len(hashes), -1), frequencies)
    append("gram_frequencies", frequencies)
    append("gram_offsets", gram_offsets)
    append("grams", grams)


def hash_grams(text: Bytes, starts: IntArray) -> tuple[IntArray, Hashes]:
    """Hash the n-grams of words ``text[starts[i]:starts[i + 1]]``; return offsets, shape (words + 1,), and hashes."""
    # Memory that is not written to costs nothing.
    out_offsets, hashes = np.zeros(len(starts), np.int64), np.empty((LONGEST - SHORTEST + 1) * len(text), np.uint64)
    _hash_grams(text, starts, np.empty(len(text) + 2, np.uint8), np.empty(len(text) + 3, np.int64), out_offsets, hashes)
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
def count_grams(
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


@_jit
def _find_grams(known: Hashes, hashes: Hashes) -> IntArray:
    """Find the different ones of ascending hashes in ascending different hashes; -1 for one that is not known."""
    numbers, n, low = np.empty(len(hashes), np.int64), 0, 0
    for i in range(len(hashes)):
        if i > 0 and hashes[i] == hashes[i - 1]:
            continue
        high = len(known)
        while low < high:
            middle = (low + high) // 2
            if known[middle] < hashes[i]:
                low = middle + 1
            else:
                high = middle
        numbers[n] = low if low < len(known) and known[low] == hashes[i] else -1
        n += 1
    return numbers[:n]


def _frequencies_of(numbers: IntArray, frequencies: IntArray) -> IntArray:
    """Return the frequencies of units with these numbers; 0 for -1."""
    found = np.zeros(len(numbers), np.int64)
    known = numbers >= 0
    found[known] = frequencies[numbers[known]]
    return found


@_jit
def _table_of(numbers: IntArray) -> Int32Array:
    """Make a hash table by the last bits of different numbers, -1 for none: their places from 1, 0 in an empty slot."""
    # A sixteenth full at most: nearly all units that the query lacks end at an empty slot, which can be predicted.
    size = 16
    while size < 16 * len(numbers):
        size *= 2
    table, mask = np.zeros(size, np.int32), np.uint64(size - 1)
    for place in range(len(numbers)):
        if numbers[place] >= 0:
            slot = np.uint64(numbers[place]) & mask
            while table[slot] > 0:
                slot = (slot + np.uint64(1)) & mask
            table[slot] = place + 1
    return table


@_jit
def _add_covered(
    bounds: IntArray, word_of_entry: Int32Array, n_units: int, unit_bounds: IntArray, units: Int32Array,
    numbers: IntArray, weights: FloatArray, sums: FloatArray,
) -> None:  # fmt: skip
    """Add to `sums` what `Words.covered` returns.

    Document i has the next ``bounds[1, i] - bounds[0, i]`` of `word_of_entry`, and word w the units
    ``units[unit_bounds[0, w]:unit_bounds[1, w]]``, which are below `n_units`.
    """
    table = _table_of(numbers)
    mask, blocks = np.uint64(len(table) - 1), (len(numbers) + 63) // 64
    # Bit u of block u // 64: whether a word, and then a document, has unit u of the query.
    word_has = np.zeros((unit_bounds.shape[1], blocks), np.uint64)
    for word in range(unit_bounds.shape[1]):
        if unit_bounds[0, word] < 0 or unit_bounds[1, word] < unit_bounds[0, word] or unit_bounds[1, word] > len(units):
            raise CollectionError(DAMAGE_ERROR)
        for entry in range(unit_bounds[0, word], unit_bounds[1, word]):
            unit = units[np.uint64(entry)]
            if unit < 0 or unit >= n_units:
                raise CollectionError(DAMAGE_ERROR)
            slot = np.uint64(unit) & mask
            while table[slot] > 0:
                place = np.int64(table[slot]) - 1
                if numbers[place] == unit:
                    word_has[word, place >> 6] |= np.uint64(1) << np.uint64(place & 63)
                    break
                slot = (slot + np.uint64(1)) & mask
    # Transposed, so that the last loop runs over neighbouring documents.
    has, entry = np.zeros((blocks, len(sums)), np.uint64), 0
    for i in range(len(sums)):
        for _ in range(bounds[0, i], bounds[1, i]):
            for block in range(blocks):
                has[block, i] |= word_has[np.uint64(word_of_entry[entry]), block]
            entry += 1
    # In the order of the query: in the order of words, last bits would depend on which document was indexed first.
    for u in range(len(weights)):
        block, bit = u >> 6, np.uint64(1) << np.uint64(u & 63)
        for i in range(len(sums)):
            sums[i] += weights[u] if has[block, i] & bit else 0.0
