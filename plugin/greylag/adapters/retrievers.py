"""Retrievers of LangChain and LlamaIndex that find passages by greylag."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from greylag.core.tables import imported

_SCORES = "score", "bm25", "general", "cosine"


def langchain_retriever(search: Callable[[str], Iterable[Any]]) -> Any:
    """Return a ``BaseRetriever`` of LangChain, whose documents have a passage's fields and scores in their metadata.

    Parameters
    ----------
    search : callable
        From a query to passages, such as `greylag.HybridRetriever.search`. ``lambda query: current.search(query, k=5)``
        follows a variable to which another retriever is assigned.
    """
    documents = imported("langchain_core.documents", "langchain-core")
    retrievers = imported("langchain_core.retrievers", "langchain-core")

    class GreylagRetriever(retrievers.BaseRetriever):  # type: ignore[misc, name-defined, unused-ignore]
        """Retrieves by a function."""

        def _get_relevant_documents(self, query: str, *, run_manager: Any = None) -> list[Any]:
            return [documents.Document(one.text, id=one.doc_id, metadata=_metadata(one)) for one in search(query)]

    return GreylagRetriever()


def llama_index_retriever(search: Callable[[str], Iterable[Any]]) -> Any:
    """Return a ``BaseRetriever`` of LlamaIndex of a `search`, as `langchain_retriever`, with nodes for documents."""
    retrievers = imported("llama_index.core.base.base_retriever", "llama-index-core")
    schema = imported("llama_index.core.schema", "llama-index-core")
    unseen = {f"excluded_{reader}_metadata_keys": [*_SCORES] for reader in ("llm", "embed")}

    class GreylagRetriever(retrievers.BaseRetriever):  # type: ignore[misc, name-defined, unused-ignore]
        """Retrieves by a function."""

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            found = list(search(query_bundle.query_str))
            nodes = [schema.TextNode(text=one.text, id_=one.doc_id, metadata=_metadata(one), **unseen) for one in found]
            return [schema.NodeWithScore(node=node, score=one.score) for node, one in zip(nodes, found, strict=True)]

    return GreylagRetriever()


def _metadata(passage: Any) -> dict[str, Any]:
    return {**passage.fields, **{name: getattr(passage, name) for name in _SCORES}}
