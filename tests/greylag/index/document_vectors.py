"""Indexes with document vectors, which Anserini's RM3 reads and greylag's does not need."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

from greylag.lucene import build
from greylag.lucene.jvm import java_class
from greylag.lucene.lucene_index import LuceneIndex


def with_document_vectors(documents: Path, index: Path) -> LuceneIndex:
    """An index of `documents` that `build_index` makes by an indexer that stores their vectors, too."""

    def indexer(docs: Path, index: Path, collection: str, threads: int) -> Any:
        arguments = java_class("io.anserini.index.IndexCollection$Args")()
        arguments.input, arguments.index = str(docs), str(index)
        arguments.collectionClass, arguments.generatorClass = collection, "DefaultLuceneDocumentGenerator"
        arguments.threads, arguments.memoryBuffer = threads, 64
        arguments.storePositions = arguments.storeDocvectors = arguments.optimize = arguments.quiet = True
        return java_class("io.anserini.index.IndexCollection")(arguments)

    with patch.object(build, "_indexer", indexer):
        build.build_index(documents, index)
    return LuceneIndex(index)
