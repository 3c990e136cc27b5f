"""Retrievers in LangChain's and LlamaIndex's own classes."""

import pytest

from greylag import HybridRetriever
from greylag.adapters import langchain_retriever, llama_index_retriever
from tests.greylag.adapters.samples import PASSAGES, lengths

RETRIEVER = HybridRetriever([{"text": text, "source": f"{n}.md"} for n, text in enumerate(PASSAGES)], lengths)
FOUND = RETRIEVER.search("a cat", 3)
METADATA = [
    {"source": f"{one.doc_id}.md", "score": one.score, "bm25": one.bm25, "general": one.general, "cosine": one.cosine}
    for one in FOUND
]


def test_langchain():
    pytest.importorskip("langchain_core.retrievers")
    given = langchain_retriever(lambda query: RETRIEVER.search(query, 3)).invoke("a cat")
    assert [(document.id, document.page_content, document.metadata) for document in given] == [
        (one.doc_id, one.text, metadata) for one, metadata in zip(FOUND, METADATA, strict=True)
    ]


def test_llama_index():
    schema = pytest.importorskip("llama_index.core.schema")
    given = llama_index_retriever(lambda query: RETRIEVER.search(query, 3)).retrieve("a cat")
    assert [(one.node.node_id, one.text, one.score, one.metadata) for one in given] == [
        (one.doc_id, one.text, one.score, metadata) for one, metadata in zip(FOUND, METADATA, strict=True)
    ]
    assert given[0].node.get_content(schema.MetadataMode.LLM) == f"source: {FOUND[0].doc_id}.md\n\n{FOUND[0].text}"
