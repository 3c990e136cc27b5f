"""The node postprocessor, in LlamaIndex's own classes."""

import numpy as np
import pytest
from tests.greylag.passages.adapters.samples import PASSAGES, SCORED, nodes, positions

from greylag.base import ParameterError
from greylag.passages import llama_index_postprocessor, rerank

schema = pytest.importorskip("llama_index.core.schema", reason="needs llama-index-core")


def processed(given, **options):
    found = llama_index_postprocessor(**options).postprocess_nodes(given, query_str="cat")
    return [int(node.node_id.removeprefix("n")) for node in found]


def test_is_rerank_on_nodes():
    postprocessor = llama_index_postprocessor(k=3, relevance_weight=0.4)
    found = postprocessor.postprocess_nodes(nodes(), query_str="cat")
    expected = rerank("cat", PASSAGES, SCORED, relevance_weight=0.4, k=3)
    assert [(node.node.node_id, node.score) for node in found] == [(f"n{new.position}", new.score) for new in expected]
    assert postprocessor.class_name() == "GreylagPostprocessor"


def test_groups_are_in_the_metadata():
    given = nodes()
    for scored, file in zip(given, "aaab", strict=False):
        scored.node.metadata["file_name"] = file
    method = "mmr(relevance_weight=1)>>group-limit(max_per_group=2)"
    assert processed(given, method=method, group="file_name") == [0, 1, 3, 4, 2]
    with pytest.raises(ParameterError, match="'flie_name'"):
        processed(given, method=method, group="flie_name")


def test_the_retrievers_score_is_kept_where_no_model_reads_it():
    before, again = nodes(), nodes()
    found = llama_index_postprocessor().postprocess_nodes(before, query_str="cat")
    kept = {f"n{n}": score for n, score in enumerate(SCORED)}
    assert {node.node_id: node.metadata["retrieval_score"] for node in found} == kept
    for mode in (schema.MetadataMode.LLM, schema.MetadataMode.EMBED):
        assert [node.get_content(mode) for node in found] == [node.text for node in found]
    assert before == again


def test_nodes_without_scores_go_by_their_order():
    bare = nodes([None] * 5)
    assert processed(bare) == positions(PASSAGES, [5, 4, 3, 2, 1])
    assert not any(node.metadata for node in llama_index_postprocessor().postprocess_nodes(bare, query_str="cat"))


def test_embeddings_of_the_nodes_or_by_a_function():
    rows, given = np.random.default_rng(0).standard_normal((5, 4)).tolist(), nodes()
    for scored, row in zip(given, rows, strict=True):
        scored.node.embedding = row
    by_text = dict(zip(PASSAGES, rows, strict=True))
    for vectors in ("embedding", lambda texts: [by_text[text] for text in texts]):
        assert processed(given, vectors=vectors) == positions(PASSAGES, SCORED, vectors=rows)
        assert processed([], vectors=vectors) == []
