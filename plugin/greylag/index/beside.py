"""The index of a few texts beside a collection, whose statistics they take."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from greylag.index import analysis
from greylag.index.invert import invert
from greylag.index.merge import merge, parts_of
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard
from greylag.index.words import CollectionWords, PlacedWords, Words
from greylag.ranking import IntArray


def index_beside(background: PositionalIndex, texts: Mapping[str, str]) -> PositionalIndex:
    """Index a collection and some texts as two shards with common statistics, and the collection's latent vectors."""
    # ParameterError if the collection is of another language, CollectionError if it has one of the docids
    _, tokens = analysis.analyzer_of(_language(background))
    shard = Shard(**invert(dict(texts), tokens))
    shards = [*(part.shard for part in background.parts), shard]
    tables = merge(shards, [*(f"shard {n}" for n, _ in enumerate(background.parts, 1)), "the texts beside it"])
    parts = parts_of(shards, tables.pop("numbers"))
    words = partial(_words, background, tuple(texts.values()))
    return PositionalIndex(
        **tables, fingerprint="", parts=parts, analyze=background.analyze, read_words=words, background=background
    )


def terms_of_background(index: PositionalIndex, background: PositionalIndex) -> IntArray:
    """Return the numbers in an index of the terms of its background, shape (V,)."""
    numbers = np.empty(background.n_terms, dtype=np.int64)
    for part, of_background in zip(index.parts, background.parts, strict=False):
        assert part.numbers is not None
        numbers[slice(None) if of_background.numbers is None else of_background.numbers] = part.numbers
    return numbers


def _language(index: PositionalIndex) -> str:
    """Return the language of an index of Lucene, or of texts."""
    if isinstance(index.analyze, analysis.LuceneAnalysis):
        return index.analyze.lucene.language
    return "en" if index.analyze is analysis.analyze else "whitespace"


def _words(background: PositionalIndex, texts: tuple[str, ...]) -> CollectionWords | None:
    """Return the words of both; None if the collection's are not known."""
    if background.words is None:
        return None
    return CollectionWords((*background.words.parts, PlacedWords(background.n_documents, Words.of(texts))))
