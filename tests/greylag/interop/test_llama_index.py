"""The node postprocessor, in LlamaIndex's own classes."""

import pytest

from greylag.errors import ParameterError
from greylag.interop import llama_index_postprocessor, rerank
from tests.greylag.interop.samples import PASSAGES, SCORED

schema = pytest.importorskip("llama_index.core.schema", reason="needs llama-index-core")


def nodes():
    return [
        schema.NodeWithScore(node=schema.TextNode(text=text, id_=f"n{n}"), score=score)
        for n, (text, score) in enumerate(zip(PASSAGES, SCORED, strict=True))
    ]


def test_is_rerank_on_nodes() -> None:
    postprocessor = llama_index_postprocessor(top_k=3, relevance_weight=0.4)
    found = postprocessor.postprocess_nodes(nodes(), query_str="cat")
    expected = rerank("cat", PASSAGES, SCORED, relevance_weight=0.4, top_k=3)
    assert [(node.node.node_id, node.score) for node in found] == [(f"n{new.position}", new.score) for new in expected]
    assert postprocessor.class_name() == "GreylagPostprocessor"


def test_groups_are_in_the_metadata() -> None:
    retrieved = nodes()
    for scored, file in zip(retrieved, ["a", "a", "a", "b", None], strict=True):
        scored.node.metadata = {"file_name": file} if file else {}
    postprocessor = llama_index_postprocessor(group="file_name", max_per_group=2, relevance_weight=1.0)
    found = postprocessor.postprocess_nodes(retrieved, query_str="cat")
    assert [node.node.node_id for node in found] == ["n0", "n1", "n3", "n4", "n2"]


def test_refuses_nodes_without_a_score_and_calls_without_a_query() -> None:
    with pytest.raises(ParameterError, match="give query_str="):
        llama_index_postprocessor().postprocess_nodes(nodes())
    bare = [schema.NodeWithScore(node=schema.TextNode(text="cat", id_="n0"))]
    with pytest.raises(ParameterError, match="node 'n0' has no score"):
        llama_index_postprocessor().postprocess_nodes(bare, query_str="cat")
