"""A stand-in for a Lucene index that needs no JVM, so that a process with it can be forked and killed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.index.export import open_export
from greylag.index.positional import PositionalIndex
from greylag.lucene.lucene_index import Statistics
from greylag.lucene.opening import commit_fingerprint
from greylag.lucene.transfers import PostingsBlock
from greylag.ranking import Ranking

TEXTS = {f"d{n}": f"new york w{n % 7} goose w{n % 3} york city w{n % 5} new york" for n in range(20)}
QUERY = "new york city goose"


@cache
def _inverted(texts: tuple[tuple[str, str], ...]) -> PositionalIndex:
    return PositionalIndex.from_texts(texts)


class MemorySource:
    """The methods of `LuceneIndex` that an export uses, for texts in memory."""

    def __init__(self, path: Path, texts: dict[str, str], *, write: bool = True) -> None:
        if write:
            path.mkdir(exist_ok=True)
            (path / "segments_1").write_text(repr(texts))
        self.path, self.fingerprint = path, commit_fingerprint(path)
        self._index = _inverted(tuple(texts.items()))

    def check_integrity(self) -> None:
        """Find nothing."""

    def docids(self) -> list[str]:
        return [self._index.docid(number) for number in range(self._index.n_documents)]

    def statistics(self) -> Statistics:
        index = self._index
        return Statistics(index.n_documents, index.n_tokens, index.n_terms, len(index.postings_docs))

    def postings_blocks(self) -> Iterator[PostingsBlock]:
        index = self._index
        tfs = np.diff(index.postings_starts).astype(np.int32)
        for first in range(0, index.n_terms, 4):
            last = min(first + 4, index.n_terms)
            begin, end = index.postings_offsets[[first, last]]
            yield PostingsBlock(
                [index.term(term).encode() for term in range(first, last)],
                index.document_frequencies[first:last],
                index.postings_docs[begin:end],
                tfs[begin:end],
                index.positions[index.postings_starts[begin] : index.postings_starts[end]],
            )

    def open(self) -> PositionalIndex:
        """The exported index."""
        folder, arrays = open_export(self)  # type: ignore[arg-type]
        return PositionalIndex(**arrays, analyze=self._index.analyze, folder=folder)


def outcome(index: PositionalIndex) -> list[bytes]:
    """What must not change: features, term frequencies, token streams and docids."""
    docids = sorted(TEXTS)[::2]
    ranking = Ranking("1", QUERY, tuple(docids), np.arange(len(docids), 0.0, -1.0))
    numbers = index.documents(docids)
    streams: list[Any] = [array for number in numbers for array in index.token_stream(int(number))]
    features = FeatureExtractor(index, candidate_pool())(ranking)
    weights = index.tfidf(numbers).toarray()
    return [np.asarray(array).tobytes() for array in (features, weights, *streams)] + [index.fingerprint.encode()]
