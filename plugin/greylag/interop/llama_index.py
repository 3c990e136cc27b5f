"""LlamaIndex: a node postprocessor, for a query engine or by itself."""

from __future__ import annotations

from typing import Any

from greylag.errors import ParameterError
from greylag.interop import names
from greylag.interop.passages import Method, rerank


def llama_index_postprocessor(*, method: Method = "mmr", top_k: int | None = None, **options: Any) -> Any:
    """A ``BaseNodePostprocessor`` that reranks or diversifies retrieved nodes.

    Parameters
    ----------
    method, **options
        See `greylag.rerank`.
    top_k : int >= 1, optional
        Return only the best ones.

    Returns
    -------
    llama_index.core.postprocessor.types.BaseNodePostprocessor
    """
    types = names.imported("llama_index.core.postprocessor.types", "llama-index-core")
    schema = names.imported("llama_index.core.schema", "llama-index-core")

    class GreylagPostprocessor(types.BaseNodePostprocessor):  # type: ignore[misc, name-defined, unused-ignore]
        """Reranks by `greylag.rerank`."""

        @classmethod
        def class_name(cls) -> str:
            """The name under which LlamaIndex serialises it."""
            return "GreylagPostprocessor"

        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            if query_bundle is None:
                raise ParameterError("reranking needs the query: give query_str= or query_bundle=")
            texts = [node.node.get_content(schema.MetadataMode.NONE) for node in nodes]
            scores = [_score(node) for node in nodes]
            ranked = rerank(query_bundle.query_str, texts, scores, method=method, top_k=top_k, **options)
            return [schema.NodeWithScore(node=nodes[new.position].node, score=new.score) for new in ranked]

    return GreylagPostprocessor()


def _score(node: Any) -> float:
    if node.score is None:
        raise ParameterError(f"node {node.node_id!r} has no score: rerank the nodes that a retriever returns")
    return float(node.score)
