"""Retrievers in LangChain's and LlamaIndex's own classes."""

import pytest
from tests.greylag.passages.adapters.samples import PASSAGES, lengths
from tests.refusals import refuses

from greylag import HybridRetriever
from greylag.base import ParameterError
from greylag.passages import langchain_retriever, llama_index_retriever

RETRIEVER = HybridRetriever([{"text": text, "source": f"{n}.md"} for n, text in enumerate(PASSAGES)], lengths)
FOUND = RETRIEVER.search("a cat", 3)
SCORES = "score", "bm25", "general", "cosine", "confidence"
METADATA = [{"source": f"{one.doc_id}.md", **{name: getattr(one, name) for name in SCORES}} for one in FOUND]


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


def test_fields_of_passages_keep_their_names():
    """A score goes elsewhere, and is left out if that is a field, too; readers see fields and no scores."""
    fields = {"score": "4 stars", "cosine": "none", "retrieval_cosine": "taken"}
    retriever = HybridRetriever([{"text": "a cat", **fields}], lengths)
    (one,) = retriever.search("cat")
    metadata = {**fields, "retrieval_score": one.score, **{name: getattr(one, name) for name in ("bm25", "general")}}
    metadata["confidence"] = one.confidence
    pytest.importorskip("langchain_core.retrievers")
    assert langchain_retriever(retriever.search).invoke("cat")[0].metadata == metadata
    schema = pytest.importorskip("llama_index.core.schema")
    (given,) = llama_index_retriever(retriever.search).retrieve("cat")
    assert (given.score, given.node.metadata) == (one.score, metadata)
    seen = "".join(f"{name}: {value}\n" for name, value in fields.items())
    assert given.node.get_content(schema.MetadataMode.LLM) == f"{seen}\na cat"


@pytest.mark.parametrize(
    ("search", "parts"),
    [
        (RETRIEVER, "HybridRetriever(5 passages|retriever.search"),
        (lambda query: ["a cat"], "str 'a cat'|HybridRetriever.search"),
        (lambda query: None, "None|HybridRetriever.search"),
    ],
)
def test_refuses_what_finds_no_passages(search, parts):
    pytest.importorskip("langchain_core.retrievers")
    refuses(lambda: langchain_retriever(search).invoke("cat"), ParameterError, parts, "|")
    pytest.importorskip("llama_index.core.schema")
    refuses(lambda: llama_index_retriever(search).retrieve("cat"), ParameterError, parts, "|")
