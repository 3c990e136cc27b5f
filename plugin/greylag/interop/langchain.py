"""LangChain: a document compressor, for a ``ContextualCompressionRetriever`` or by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from greylag.errors import ParameterError
from greylag.interop import names
from greylag.interop.passages import Method, rerank


def langchain_compressor(
    *, method: Method = "mmr", top_k: int | None = None, score: str | None = "score", **options: Any
) -> Any:
    """A ``BaseDocumentCompressor`` that reranks or diversifies retrieved documents.

    Each returned document has the new score in its metadata, as ``greylag_score``.

    Parameters
    ----------
    method, **options
        See `greylag.rerank`.
    top_k : int >= 1, optional
        Return only the best ones.
    score : str or None, default "score"
        The metadata field with the retriever's score, higher being better. None takes the order of the documents
        instead, as scores n, n - 1, ..., 1; LangChain's own retrievers return no scores.

    Returns
    -------
    langchain_core.documents.BaseDocumentCompressor
    """
    documents = names.imported("langchain_core.documents", "langchain-core")

    class GreylagCompressor(documents.BaseDocumentCompressor):  # type: ignore[misc, name-defined, unused-ignore]
        """Reranks by `greylag.rerank`."""

        def compress_documents(self, documents: Sequence[Any], query: str, callbacks: Any = None) -> list[Any]:
            """The documents in their new order."""
            texts = [document.page_content for document in documents]
            ranked = rerank(query, texts, _scores(documents, score), method=method, top_k=top_k, **options)
            chosen = [(documents[new.position], {"greylag_score": new.score}) for new in ranked]
            return [old.model_copy(update={"metadata": old.metadata | new}) for old, new in chosen]

    return GreylagCompressor()


def _scores(documents: Sequence[Any], score: str | None) -> list[float]:
    if score is None:
        return [float(n) for n in range(len(documents), 0, -1)]
    for document in documents:
        if score not in document.metadata:
            raise ParameterError(
                f"a document has no {score!r} in its metadata, which has {', '.join(document.metadata) or 'nothing'}: "
                "name the field with score=, or give score=None to go by the order of the documents"
            )
    return [document.metadata[score] for document in documents]
