"""The document compressor, in LangChain's own classes."""

import asyncio
import pickle

import pytest
from tests.greylag.passages.adapters.samples import PASSAGES, SCORED, documents, lengths, positions

from greylag.base import ParameterError
from greylag.passages import langchain_compressor, rerank

core = pytest.importorskip("langchain_core.documents", reason="needs langchain-core")


def compressed(given, query="cat", **options):
    return [document.metadata["n"] for document in langchain_compressor(**options).compress_documents(given, query)]


def test_is_rerank_on_documents_that_stay_as_they_were():
    compressor, given = langchain_compressor(k=3, relevance_weight=0.4), documents()
    assert isinstance(compressor, core.BaseDocumentCompressor)
    found = compressor.compress_documents(given, "cat")
    expected = rerank("cat", PASSAGES, SCORED, relevance_weight=0.4, k=3)
    assert [document.page_content for document in found] == [new.text for new in expected]
    assert [document.metadata for document in found] == [
        {"score": SCORED[new.position], "n": new.position, "greylag_score": new.score} for new in expected
    ]
    assert given == documents()


def test_without_scores_goes_by_the_order():
    expected = positions(PASSAGES, [5, 4, 3, 2, 1])
    for given in (documents([None] * 5), documents(key="other")):
        assert compressed(given) == compressed(given, score=None) == expected


def test_it_can_be_pickled():
    compressor = langchain_compressor("mmr(relevance_weight=0.4)", k=3, vectors=lengths)
    again = pickle.loads(pickle.dumps(compressor))
    assert again.compress_documents(documents(), "cat") == compressor.compress_documents(documents(), "cat")
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(langchain_compressor(vectors=lambda texts: [[1.0]] * len(texts)))


def test_groups_are_in_the_metadata():
    given = documents()
    for document, site in zip(given, "aaab", strict=False):
        document.metadata["site"] = site
    assert compressed(given, method="mmr(relevance_weight=1)>>group-limit(max_per_group=2)", group="site") == [
        0, 1, 3, 4, 2,
    ]  # fmt: skip
    for group, part in (("siet", "'siet': did you mean site"), (["site"], "field .'site'.: use"), (3, "field 3: did")):
        with pytest.raises(ParameterError, match=part):
            compressed(given, method="group-limit", group=group)


def test_embeddings_by_a_function_or_in_the_metadata():
    from langchain_core.embeddings import DeterministicFakeEmbedding

    embeddings = DeterministicFakeEmbedding(size=8)
    encode, encode_query = embeddings.embed_documents, embeddings.embed_query
    rows, given = encode(PASSAGES), documents()
    assert compressed(given, vectors=encode) == positions(PASSAGES, SCORED, vectors=rows)
    # The next query has other passages, and their own embeddings.
    expected = positions(PASSAGES[:3], SCORED[:3], query="dog", vectors=rows[:3])
    assert compressed(given[:3], "dog", vectors=encode) == expected
    for document, row in zip(given, rows, strict=True):
        document.metadata["vector"] = row
    assert compressed(given[:3], "dog", vectors="vector") == expected
    spread = {"method": "manifold", "vectors": rows, "query_vector": encode_query("cat")}
    found = compressed(documents(), method="manifold", vectors=encode, query_vector=encode_query)
    assert found == positions(PASSAGES, SCORED, **spread)


def test_in_a_chain():
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    compressor = langchain_compressor(k=2)
    retriever = RunnableLambda(lambda query: documents())
    whole = {"query": RunnablePassthrough(), "documents": retriever} | compressor
    chain = whole | len
    assert (chain.invoke("cat"), asyncio.run(chain.ainvoke("cat")), chain.batch(["cat", "dog"])) == (2, 2, [2, 2])
    assert whole.invoke("cat") == compressor.compress_documents(documents(), "cat")
    with pytest.raises(ParameterError, match=r"was given list .*\| compressor"):
        (retriever | compressor).invoke("cat")
