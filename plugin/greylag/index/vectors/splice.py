"""The index of texts that came and went: what is known of those that stay is kept, and only new ones are analysed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from greylag.base import IntArray
from greylag.index.invert import Postings, invert, narrow, tables_of
from greylag.index.languages import warn_of_other_language
from greylag.index.merge import merge_sorted, merged_terms
from greylag.index.multilingual import analysis_of
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard
from greylag.index.tables import find, offsets, ranges
from greylag.index.vectors.latent import keep_basis
from greylag.index.words import WORD_DTYPES, CollectionWords, Words, count_grams


class _Rows(NamedTuple):
    """Numbers of different counts by document or word."""

    starts: IntArray  # of row i in `numbers`, and where the last one ends
    numbers: NDArray[Any]

    def of(self, rows: IntArray) -> tuple[IntArray, NDArray[Any]]:
        """Return the sizes and the numbers of rows, one after another."""
        sizes = np.diff(self.starts)[rows]
        return sizes, self.numbers[ranges(self.starts[rows], sizes)]


def spliced(index: PositionalIndex, docids: Sequence[str], sources: IntArray, texts: Sequence[str]) -> PositionalIndex:
    """Return the index of other documents than those N of an index of texts.

    Document n has the text of the index's document ``sources[n]``, or the new text ``texts[sources[n] - N]``. All
    arrays are those of `PositionalIndex.from_texts`, but for the numbers of words as they are written.
    """
    (part,), words, n_documents = index.parts, index.words, index.n_documents
    assert words is not None
    analysis = analysis_of(index.language)
    if 2 * len(texts) > len(sources):
        warn_of_other_language(texts, analysis.language)
    shards = part.shard, Shard(**invert({str(n): text for n, text in enumerate(texts)}, analysis.tokens))
    terms, starts, numbers = merged_terms(shards)
    parts = [_postings(shard) for shard in shards]
    both = Postings(
        np.concatenate([numbers[: index.n_terms][parts[0].terms], numbers[index.n_terms :][parts[1].terms]]),
        np.concatenate([parts[0].documents, parts[1].documents + n_documents]),
        np.concatenate([one.tfs for one in parts]),
        np.concatenate([one.positions for one in parts]),
    )
    by_document = np.argsort(narrow(both.documents, n_documents + len(texts)), kind="stable")
    counts = np.bincount(both.documents, minlength=n_documents + len(texts))
    sizes, entries = _Rows(offsets(counts), by_document).of(sources)
    order = np.argsort(narrow(both.terms[entries], len(starts)), kind="stable")
    entries, documents = entries[order], np.repeat(np.arange(len(sources)), sizes)[order]
    tfs = both.tfs[entries]
    used = np.bincount(both.terms[entries], minlength=len(starts) - 1) > 0
    places = np.cumsum(used) - 1  # of the terms that are left
    lengths = np.diff(starts)[used]
    postings = Postings(
        places[both.terms[entries]], documents, tfs, both.positions[ranges(offsets(both.tfs)[entries], tfs)]
    )
    tables = tables_of(docids, terms[ranges(starts[:-1][used], lengths)], offsets(lengths), postings)
    made = PositionalIndex.of_shard(Shard(**tables), analysis, partial(_words_of, words.parts[0], sources, texts))
    own = numbers[: index.n_terms]
    stay = len(np.unique(sources[sources < n_documents]))
    keep_basis(index, made, np.where(used[own], places[own], -1), n_documents + len(sources) - 2 * stay)
    return made


def _postings(shard: Shard) -> Postings:
    """Read all postings of a shard."""
    cuts, documents, located = shard.decode(np.arange(shard.n_terms))
    terms = np.repeat(np.arange(shard.n_terms), np.diff(cuts))
    return Postings(terms, documents, np.diff(located.starts).astype(np.int32), located.positions)


def _words_of(old: Words, sources: IntArray, texts: Sequence[str]) -> CollectionWords:
    """Return the words of documents that have the texts of `spliced`; they keep their order, and new ones come last."""
    new, n_old, n_documents = Words.of(texts), len(old.document_frequencies), len(old.document_offsets) - 1
    numbers = find(old.terms, old.term_offsets, old.term_order, new.terms, new.term_offsets)
    added = np.flatnonzero(numbers < 0)
    numbers[added] = n_old + np.arange(len(added))
    # All words, texts and n-grams first; those that no document has left are dropped at the end.
    counts = np.diff(new.document_offsets)
    of_new = numbers[new.words]
    of_new = of_new[np.lexsort((of_new, np.repeat(np.arange(len(counts)), counts)))]
    every = _joined(_Rows(old.document_offsets, old.words), _Rows(new.document_offsets, of_new), np.arange(len(counts)))
    hashes, own, theirs = _merged_hashes(old, new)
    grams = _joined(_Rows(old.gram_offsets, own[old.grams]), _Rows(new.gram_offsets, theirs[new.grams]), added)
    terms = _joined(_Rows(old.term_offsets, old.terms), _Rows(new.term_offsets, new.terms), added)
    frequencies = np.zeros(len(hashes), np.int64)
    frequencies[own] = old.gram_frequencies
    times = np.bincount(sources, minlength=n_documents + len(texts))
    times[:n_documents] -= 1
    for more in np.unique(times[times != 0]).tolist():
        sizes, words = every.of(np.flatnonzero(times == more))
        found = np.zeros_like(frequencies)
        count_grams(offsets(sizes), words, grams.starts, grams.numbers, np.full(len(hashes), -1), found)
        frequencies += more * found
    sizes, words = every.of(sources)
    of_words = np.bincount(words, minlength=n_old + len(added))
    kept, has = np.flatnonzero(of_words), frequencies > 0
    places, gram_places = np.cumsum(of_words > 0) - 1, np.cumsum(has) - 1
    new_order = numbers[new.term_order[np.isin(new.term_order, added)]]
    order, _ = merge_sorted(
        terms.numbers, terms.starts, np.concatenate([old.term_order, new_order]), offsets([n_old, len(added)])
    )
    lengths, text = terms.of(kept)
    of_kept, grams_of_kept = grams.of(kept)
    arrays = {
        "terms": text, "term_offsets": offsets(lengths), "term_order": places[order[of_words[order] > 0]],
        "document_frequencies": of_words[kept], "document_offsets": offsets(sizes), "words": places[words],
        "gram_hashes": hashes[has], "gram_frequencies": frequencies[has],
        "gram_offsets": offsets(of_kept), "grams": gram_places[grams_of_kept],
    }  # fmt: skip
    kinds = WORD_DTYPES.items()
    return CollectionWords((Words.holding({name: arrays[name].astype(kind, copy=False) for name, kind in kinds}),))


def _merged_hashes(old: Words, new: Words) -> tuple[NDArray[np.uint64], IntArray, IntArray]:
    """Merge the hashes of n-grams; return them, and the numbers of each side's among them."""
    place = np.searchsorted(old.gram_hashes, new.gram_hashes)
    known = np.zeros(len(place), dtype=bool)
    inside = place < len(old.gram_hashes)
    known[inside] = old.gram_hashes[place[inside]] == new.gram_hashes[inside]
    lacking = new.gram_hashes[~known]
    hashes = np.insert(old.gram_hashes, place[~known], lacking)
    own = np.arange(len(old.gram_hashes)) + np.searchsorted(lacking, old.gram_hashes)
    return hashes, own, np.searchsorted(hashes, new.gram_hashes)


def _joined(old: _Rows, new: _Rows, added: IntArray) -> _Rows:
    """Append the numbers of some documents or words of another table to a table."""
    sizes, more = new.of(added)
    starts = np.concatenate([old.starts, old.starts[-1] + np.cumsum(sizes, dtype=np.int64)])
    return _Rows(starts, np.concatenate([old.numbers, more.astype(old.numbers.dtype)]))
