"""Files of vectors, of documents and of topics."""

from __future__ import annotations

import logging
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from greylag.base import FormatError, ParameterError
from greylag.features import StageStep, registered_stages
from greylag.index import ArrayVectors, open_vectors, read_vectors

_log = logging.getLogger("greylag")


def open_both(path: Path, queries: Path) -> ArrayVectors:
    """Open the vectors of documents with those of queries."""
    documents, (qids, rows) = open_vectors(path), read_vectors(queries)
    if (size := documents.array.shape[1]) != rows.shape[1]:
        raise FormatError(queries, None, f"vectors of {rows.shape[1]} coordinates, but of {size} in {path}")
    return replace(documents, queries=dict(zip(qids, rows, strict=True)))


def open_embeddings(path: Path | None, steps: Sequence[StageStep]) -> ArrayVectors | None:
    """Open the vectors of documents, which at least one of the stages takes."""
    if path is None:
        return None
    if not any("vectors" in step.stage.readers for step in steps):
        taking = ", ".join(name for name in registered_stages() if "vectors" in StageStep(name).stage.readers)
        raise ParameterError(f"--vectors is for {taking}, and none of the stages is one")
    return open_vectors(path)


def topics_with_vectors(topics: Mapping[str, str], vectors: ArrayVectors, then: str) -> dict[str, str]:
    """Return the topics that have a vector; `then` says in a warning what becomes of the others."""
    known: Any = vectors.queries
    warn_of_queries(topics, known, then)
    return {qid: text for qid, text in topics.items() if qid in known}


def warn_of_queries(
    qids: Iterable[str], known: Container[str] | None, then: str = "the general model alone ranks them"
) -> None:
    """Warn of queries that have no vector, if vectors are used; refuse if none has one."""
    names = [*qids] if known is not None else []
    if known is None or not (lacking := [qid for qid in names if qid not in known]):
        return
    if len(lacking) == len(names):
        raise ParameterError(f"--query-vectors has no vector of any topic, such as {lacking[0]}: compare the qids")
    _log.warning(
        f"--query-vectors has no vector of {len(lacking)} of {len(names)} topics, such as {lacking[0]}: {then}"
    )
