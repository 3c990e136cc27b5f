"""The node postprocessor, in LlamaIndex's own classes."""

import pickle

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.passages import llama_index_postprocessor, rerank
from tests.greylag.adapters.samples import PASSAGES, SCORED

schema = pytest.importorskip("llama_index.core.schema", reason="needs llama-index-core")


def nodes():
    return [
        schema.NodeWithScore(node=schema.TextNode(text=text, id_=f"n{n}"), score=score)
        for n, (text, score) in enumerate(zip(PASSAGES, SCORED, strict=True))
    ]


def test_is_rerank_on_nodes():
    postprocessor = llama_index_postprocessor(top_k=3, relevance_weight=0.4)
    found = postprocessor.postprocess_nodes(nodes(), query_str="cat")
    expected = rerank("cat", PASSAGES, SCORED, relevance_weight=0.4, top_k=3)
    assert [(node.node.node_id, node.score) for node in found] == [(f"n{new.position}", new.score) for new in expected]
    assert postprocessor.class_name() == "GreylagPostprocessor"


def test_groups_are_in_the_metadata():
    retrieved = nodes()
    for scored, file in zip(retrieved, ["a", "a", "a", "b", None], strict=True):
        scored.node.metadata = {"file_name": file} if file else {}
    postprocessor = llama_index_postprocessor(
        method="mmr(relevance_weight=1)>>group-limit(max_per_group=2)", group="file_name"
    )
    found = postprocessor.postprocess_nodes(retrieved, query_str="cat")
    assert [node.node.node_id for node in found] == ["n0", "n1", "n3", "n4", "n2"]


def test_calls_without_a_query_are_refused():
    with pytest.raises(ParameterError, match="give query_str="):
        llama_index_postprocessor().postprocess_nodes(nodes())


def test_the_retrievers_score_is_kept_where_no_model_reads_it():
    before, again = nodes(), nodes()
    found = llama_index_postprocessor().postprocess_nodes(before, query_str="cat")
    assert {node.node_id: node.metadata["retrieval_score"] for node in found} == {
        f"n{n}": score for n, score in enumerate(SCORED)
    }
    for mode in (schema.MetadataMode.LLM, schema.MetadataMode.EMBED):
        assert [node.get_content(mode) for node in found] == [node.text for node in found]
    assert before == again


def test_nodes_without_scores_go_by_their_order():
    bare = [schema.NodeWithScore(node=schema.TextNode(text=text, id_=f"n{n}")) for n, text in enumerate(PASSAGES)]
    found = llama_index_postprocessor().postprocess_nodes(bare, query_str="cat")
    expected = rerank("cat", PASSAGES, [5, 4, 3, 2, 1])
    assert [node.node_id for node in found] == [f"n{new.position}" for new in expected]
    assert not any(node.metadata for node in found)
    bare[3].score = 0.0
    with pytest.raises(ParameterError, match="passage 0 has no score, and others have"):
        llama_index_postprocessor().postprocess_nodes(bare, query_str="cat")


def test_it_can_be_pickled():
    postprocessor = llama_index_postprocessor(method="mmr>>group-limit(max_per_group=1)", group="g", vectors=lengths)
    again = pickle.loads(pickle.dumps(postprocessor))
    found, expected = (one.postprocess_nodes(nodes(), query_str="cat") for one in (again, postprocessor))
    assert found == expected


def lengths(texts):
    return [[len(text), 1.0] for text in texts]


def test_embeddings_of_the_nodes_or_by_a_function():
    rows = np.random.default_rng(0).standard_normal((5, 4)).tolist()
    retrieved = nodes()
    for scored, row in zip(retrieved, rows, strict=True):
        scored.node.embedding = row
    by_text = dict(zip(PASSAGES, rows, strict=True))
    expected = [f"n{new.position}" for new in rerank("cat", PASSAGES, SCORED, vectors=rows)]
    for vectors in ("embedding", lambda texts: [by_text[text] for text in texts]):
        postprocessor = llama_index_postprocessor(vectors=vectors)
        found = postprocessor.postprocess_nodes(retrieved, query_str="cat")
        assert [node.node.node_id for node in found] == expected
        assert postprocessor.postprocess_nodes([], query_str="cat") == []
    with pytest.raises(ParameterError, match="node 'n0' has no embedding: give vectors="):
        llama_index_postprocessor(vectors="embedding").postprocess_nodes(nodes(), query_str="cat")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": np.ones((5, 2))}, "would serve every query: give a function"),
        ({"vectors": "embeddings"}, "vectors is 'embeddings': give 'embedding' or a function"),
    ],
)
def test_options_are_checked_when_it_is_made(options, message):
    with pytest.raises(ParameterError, match=message):
        llama_index_postprocessor(**options)
