"""The index of a few texts beside a collection: they take its statistics."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from greylag.base import IntArray, ParameterError
from greylag.index.analysis import LuceneAnalysis
from greylag.index.invert import invert
from greylag.index.merge import merge, parts_of
from greylag.index.multilingual import AS_LUCENE, analysis_of
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard
from greylag.index.words import CollectionWords, Words


def index_beside(background: PositionalIndex, texts: Mapping[str, str]) -> PositionalIndex:
    """Index a collection and some texts as two shards with common statistics, and the collection's latent vectors."""
    # ParameterError if Java alone has the collection's analyzer, CollectionError if it has one of the docids
    language = background.language
    if isinstance(background.analyze, LuceneAnalysis) and language not in AS_LUCENE:
        raise ParameterError(
            f"the background's language is {language!r}, and Lucene's index terms are others than those without Java: "
            f"make the background by PositionalIndex.from_texts(texts, language={language!r})"
        )
    shard = Shard(**invert(dict(texts), analysis_of(language).tokens))
    # The texts come last, so that the collection's documents keep their numbers.
    shards = [*(part.shard for part in background.parts), shard]
    tables = merge(shards, [*(f"shard {n}" for n, _ in enumerate(background.parts, 1)), "the texts beside it"])
    parts = parts_of(shards, tables.pop("numbers"))
    words = partial(_words_of_both, background, tuple(texts.values()))
    return PositionalIndex(
        **tables, fingerprint="", parts=parts, analyze=background.analyze, read_words=words, background=background
    )


def terms_of_background(index: PositionalIndex, background: PositionalIndex) -> IntArray:
    """Return the numbers in an index of the terms of its background, shape (V,)."""
    numbers = np.empty(background.n_terms, dtype=np.int64)
    for part, background_part in zip(index.parts, background.parts, strict=False):
        assert part.numbers is not None
        numbers[slice(None) if background_part.numbers is None else background_part.numbers] = part.numbers
    return numbers


def _words_of_both(background: PositionalIndex, texts: tuple[str, ...]) -> CollectionWords | None:
    """Return the words of both; None if the collection's are not known."""
    if background.words is None:
        return None
    return CollectionWords((*background.words.parts, Words.of(texts)))
