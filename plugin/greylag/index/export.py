"""Exporting a Lucene index to the files of a shard, once, and opening them.

The files are in ``INDEX.greylag/FINGERPRINT/`` beside the index, or in the user's cache folder if that is not writable;
see `array_folder`. Surface words are in ``INDEX.words.greylag``, once a feature has asked for them.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from greylag.base import CollectionError, step
from greylag.index.array_folder import ArraySource, Writer, is_made, named, open_arrays, places, verify_arrays
from greylag.index.languages import warn_of
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.lucene.open_index import POSITIONS_REMEDY, TEXTS_REMEDY
from greylag.index.streams import document_bytes, encode_documents, encode_positions, measure, transpose
from greylag.index.tables import DTYPES, join, offsets, ranges
from greylag.index.words import WORD_DTYPES, CollectionWords, Words, write_words

_log = logging.getLogger("greylag")
_BLOCK_DOCUMENTS = 1 << 20  # whose docids are put in order at a time


def open_export(source: LuceneIndex) -> dict[str, Any]:
    """Open the arrays of `Shard` for an index of one folder, mapped from files, which are made first if necessary."""
    arrays = open_arrays(_arrays_of(source))
    likely = arrays.pop("note")  # recorded when Lucene was read, which is closed now
    if source.is_assumed_english:
        warn_of(likely)
    return arrays


def verify_export(source: LuceneIndex) -> str:
    """Compare the files of an index's export, if there is one, with their checksums; return a line about it."""
    return verify_arrays(_arrays_of(source))


def open_words(paths: Sequence[Path], fingerprint: str) -> CollectionWords | None:
    """Open the words of an index's shards, mapped from files that are made first; None if one stores no texts."""
    with LuceneIndex(paths) as source:
        if source.fingerprint != fingerprint:
            raise CollectionError(f"{source.name} has changed since it was opened: create another PositionalIndex")
        sources = [_words_of(shard) for shard in source.shards]
        for arrays, shard in zip(sources, source.shards, strict=True):
            if not (is_made(arrays) or shard.stores_texts):
                _log.warning("%s does not store its texts, so written:* are left out: %s", shard.name, TEXTS_REMEDY)
                return None
        opened = map(open_arrays, sources)
        return CollectionWords(tuple(Words(**{name: arrays[name] for name in WORD_DTYPES}) for arrays in opened))


def verify_words(source: LuceneIndex) -> list[str]:
    """Compare the files of the words of shards, if there are any, with their checksums; return a line about each."""
    return [verify_arrays(arrays) for arrays in map(_words_of, source.shards) if is_made(arrays)]


def _arrays_of(source: LuceneIndex) -> ArraySource:
    return _arrays_beside(
        source,
        "greylag",
        making="exporting positions",
        dtypes=DTYPES,
        write=partial(_write_arrays, source),
        note=lambda: source.likely_language() or "",
    )


def _words_of(source: LuceneIndex) -> ArraySource:
    def write(writer: Writer) -> None:
        write_words(source.texts(), writer.append, writer.read)

    how = {"dtypes": WORD_DTYPES, "write": write, "identity": lambda _: ""}
    return _arrays_beside(source, "words.greylag", making="exporting words", **how)


def _arrays_beside(source: LuceneIndex, suffix: str, **how: Any) -> ArraySource:
    """Describe a folder of arrays beside an index; `how` they are made is as in `ArraySource`."""
    path = named(source.path)
    return ArraySource(
        name=str(path),
        places=places(f"{path.name}.{suffix}", path.parent, str(path.resolve())),
        fingerprint=source.fingerprint,
        files=[path],
        check=source.check_integrity,
        **how,
    )


def _write_arrays(source: LuceneIndex, writer: Writer) -> None:
    _write_docids(source, writer)
    _write_postings(source, writer)
    _check_totals(source, writer)
    _write_forward(writer)


def _write_docids(source: LuceneIndex, writer: Writer) -> None:
    """Write the docids in the order of document numbers, which come in the order of docids."""
    # Lucene lists docids in the order of their bytes, each with its document's number.
    blocks = [(*join(docids), documents) for docids, documents in source.docid_blocks()]
    text = np.concatenate([np.empty(0, dtype=np.uint8), *(text for text, _, _ in blocks)])
    starts = offsets(np.concatenate([np.empty(0, dtype=np.int64), *(np.diff(starts) for _, starts, _ in blocks)]))
    order = np.concatenate([np.empty(0, dtype=np.int32), *(documents for _, _, documents in blocks)])
    ranks = np.empty_like(order)
    ranks[order] = np.arange(len(order), dtype=order.dtype)
    writer.append("docid_order", order)
    writer.append("docid_offsets", offsets(np.diff(starts)[ranks]))
    for first in range(0, len(ranks), _BLOCK_DOCUMENTS):
        block = ranks[first : first + _BLOCK_DOCUMENTS]
        writer.append("docids", text[ranges(starts[block], starts[block + 1] - starts[block])])


def _write_postings(source: LuceneIndex, writer: Writer) -> None:
    """Write the postings block by block, turning counts into cumulative offsets."""
    totals = {"term_offsets": 0, "postings_offsets": 0}
    place, width = 0, document_bytes(len(writer.read("docid_order")))

    def accumulate(name: str, counts: Any) -> None:
        ends = totals[name] + np.cumsum(counts, dtype=np.int64)
        writer.append(name, ends)
        totals[name] = int(ends[-1]) if len(ends) else totals[name]

    for name in totals:
        writer.append(name, [0])
    done, tokens = 0, source.statistics().tokens
    with step("exporting tokens", tokens) as current:
        for block in source.postings_blocks():
            stream, places = encode_positions(totals["postings_offsets"], place, block.tfs, block.positions)
            place += len(stream)
            writer.append("terms", np.frombuffer(b"".join(block.terms), dtype=np.uint8))
            accumulate("term_offsets", [len(term) for term in block.terms])
            accumulate("postings_offsets", block.df)
            # cf is a sum of tfs over the term's postings.
            writer.append("collection_frequencies", np.diff(offsets(block.tfs)[offsets(block.df)]))
            writer.append("postings_docs", encode_documents(block.docs, width))
            writer.append("positions", stream)
            writer.append("block_places", places)
            done += len(block.positions)
            current.reach(done)


def _write_forward(writer: Writer) -> None:
    """Write document lengths and the forward view from the postings."""
    n_documents = len(writer.read("docid_order"))
    docs, positions, postings_offsets = map(writer.read, ("postings_docs", "positions", "postings_offsets"))
    postings = docs, document_bytes(n_documents), positions, postings_offsets
    lengths, sizes = measure(*postings, n_documents)
    # Written into its final size at once: the sizes are known before the content.
    forward_offsets = offsets(sizes)
    writer.append("document_lengths", lengths)
    writer.append("forward_offsets", forward_offsets)
    with writer.mapped("forward", int(forward_offsets[-1])) as forward:
        transpose(*postings, forward_offsets, forward)


def _check_totals(source: LuceneIndex, writer: Writer) -> None:
    """Compare what was written with the totals that Lucene keeps."""
    statistics = source.statistics()
    exported = {
        "documents": len(writer.read("docid_order")),
        "terms": len(writer.read("term_offsets")) - 1,
        "postings": int(writer.read("postings_offsets")[-1]),
        "tokens": int(writer.read("collection_frequencies").sum()),
    }
    for name, count in exported.items():
        if count != getattr(statistics, name):
            raise CollectionError(
                f"{source.path}: exported {count} {name}, but Lucene counts {getattr(statistics, name)}: "
                + POSITIONS_REMEDY
            )
