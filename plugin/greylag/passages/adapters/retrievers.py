"""Retrievers of LangChain and LlamaIndex that find passages by greylag."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from greylag.base import ParameterError, imported, shown

_SCORES = "score", "bm25", "general", "cosine", "confidence"
_READ = "doc_id", "text", "fields", *_SCORES


def langchain_retriever(search: Callable[[str], Iterable[Any]]) -> Any:
    """Return a ``BaseRetriever`` of LangChain, whose documents have a passage's fields and scores in their metadata.

    A score whose name is a field of the passage, as may be ``score``, is in ``retrieval_score``, if that is no field.

    Parameters
    ----------
    search : callable
        From a query to passages, such as `greylag.HybridRetriever.search`. ``lambda query: current.search(query, k=5)``
        follows a variable to which another retriever is assigned.
    """
    _check_search(search)
    documents = imported("langchain_core.documents", "langchain-core")
    retrievers = imported("langchain_core.retrievers", "langchain-core")

    class GreylagRetriever(retrievers.BaseRetriever):  # type: ignore[misc, name-defined, unused-ignore]
        """Retrieves by a function."""

        def _get_relevant_documents(self, query: str, *, run_manager: Any = None) -> list[Any]:
            return [
                documents.Document(passage.text, id=passage.doc_id, metadata={**passage.fields, **scores})
                for passage, scores in _scored_passages(search, query)
            ]

    return GreylagRetriever()


def llama_index_retriever(search: Callable[[str], Iterable[Any]]) -> Any:
    """Return a ``BaseRetriever`` of LlamaIndex of a `search`, as `langchain_retriever`, with nodes for documents."""
    _check_search(search)
    retrievers = imported("llama_index.core.base.base_retriever", "llama-index-core")
    schema = imported("llama_index.core.schema", "llama-index-core")

    class GreylagRetriever(retrievers.BaseRetriever):  # type: ignore[misc, name-defined, unused-ignore]
        """Retrieves by a function."""

        def _retrieve(self, query_bundle: Any) -> list[Any]:
            nodes = []
            for passage, scores in _scored_passages(search, query_bundle.query_str):
                # Scores are for programs: models would read them as words of the passage.
                unseen = {f"excluded_{reader}_metadata_keys": [*scores] for reader in ("llm", "embed")}
                node = schema.TextNode(
                    text=passage.text, id_=passage.doc_id, metadata={**passage.fields, **scores}, **unseen
                )
                nodes.append(schema.NodeWithScore(node=node, score=passage.score))
            return nodes

    return GreylagRetriever()


def _check_search(search: Any) -> None:
    """Raise `ParameterError` if a value is no function."""
    if not callable(search):
        raise ParameterError(f"search is {shown(search)}: give a function of a query, such as retriever.search")


def _scored_passages(search: Callable[[str], Iterable[Any]], query: str) -> list[tuple[Any, dict[str, float]]]:
    """Return the passages that a function finds, each with its scores by names that are none of its fields."""
    answer = search(query)
    pairs = []
    for passage in answer if isinstance(answer, Iterable) else [answer]:
        if not all(hasattr(passage, name) for name in _READ):
            raise ParameterError(f"search returned {shown(passage)}: return passages as HybridRetriever.search does")
        names = {name: f"retrieval_{name}" if name in passage.fields else name for name in _SCORES}
        pairs.append(
            (passage, {new: getattr(passage, name) for name, new in names.items() if new not in passage.fields})
        )
    return pairs
