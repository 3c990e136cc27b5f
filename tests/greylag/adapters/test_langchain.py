"""The document compressor, in LangChain's own classes."""

import asyncio
import pickle

import pytest

from greylag.errors import ParameterError
from greylag.passages import langchain_compressor, rerank
from tests.greylag.adapters.samples import PASSAGES, SCORED

core = pytest.importorskip("langchain_core.documents", reason="needs langchain-core")


def retrieved():
    return [
        core.Document(page_content=text, metadata={"score": score, "n": n})
        for n, (text, score) in enumerate(zip(PASSAGES, SCORED, strict=True))
    ]


def test_is_rerank_on_documents_that_stay_as_they_were():
    compressor = langchain_compressor(top_k=3, relevance_weight=0.4)
    assert isinstance(compressor, core.BaseDocumentCompressor)
    documents = retrieved()
    found = compressor.compress_documents(documents, "cat")
    expected = rerank("cat", PASSAGES, SCORED, relevance_weight=0.4, top_k=3)
    assert [document.page_content for document in found] == [new.text for new in expected]
    assert [document.metadata for document in found] == [
        {"score": SCORED[new.position], "n": new.position, "greylag_score": new.score} for new in expected
    ]
    assert documents == retrieved()


def test_without_scores_goes_by_the_order():
    bare = [core.Document(page_content=text) for text in PASSAGES]
    found = langchain_compressor(score=None).compress_documents(bare, "cat")
    assert [d.page_content for d in found] == [new.text for new in rerank("cat", PASSAGES, [5, 4, 3, 2, 1])]
    with pytest.raises(ParameterError, match=r"no 'score' in its metadata, which has nothing: .*score=None"):
        langchain_compressor().compress_documents(bare, "cat")


def test_scores_of_none_are_no_scores():
    documents = retrieved()
    for document in documents:
        document.metadata["score"] = None
    found = langchain_compressor().compress_documents(documents, "cat")
    assert [d.metadata["n"] for d in found] == [new.position for new in rerank("cat", PASSAGES, [5, 4, 3, 2, 1])]
    documents[1].metadata["score"] = 0.5
    with pytest.raises(ParameterError, match="passage 0 has no score, and others have"):
        langchain_compressor().compress_documents(documents, "cat")


def test_it_can_be_pickled():
    compressor = langchain_compressor(method="mmr(relevance_weight=0.4)", top_k=3, vectors=lengths)
    again = pickle.loads(pickle.dumps(compressor))
    assert again.compress_documents(retrieved(), "cat") == compressor.compress_documents(retrieved(), "cat")
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(langchain_compressor(vectors=lambda texts: [[1.0]] * len(texts)))


def lengths(texts):
    return [[len(text), 1.0] for text in texts]


def test_groups_are_in_the_metadata():
    sites = ["a", "a", "a", "b", None]
    documents = retrieved()
    for document, site in zip(documents, sites, strict=True):
        document.metadata |= {"site": site} if site else {}
    found = langchain_compressor(method="mmr(relevance_weight=1)>>group-limit(max_per_group=2)", group="site")
    assert [d.metadata["n"] for d in found.compress_documents(documents, "cat")] == [0, 1, 3, 4, 2]
    with pytest.raises(ParameterError, match=r"'mmr' .*groups.*group-limit"):
        langchain_compressor(group="site")


def test_embeddings_by_a_function_or_in_the_metadata():
    from langchain_core.embeddings import DeterministicFakeEmbedding

    embeddings = DeterministicFakeEmbedding(size=8)
    rows = embeddings.embed_documents(PASSAGES)
    compressor = langchain_compressor(vectors=embeddings.embed_documents)
    expected = [new.position for new in rerank("cat", PASSAGES, SCORED, vectors=rows)]
    assert [d.metadata["n"] for d in compressor.compress_documents(retrieved(), "cat")] == expected
    # The next query has other passages, and their own embeddings.
    expected = [new.position for new in rerank("dog", PASSAGES[:3], SCORED[:3], vectors=rows[:3])]
    assert [d.metadata["n"] for d in compressor.compress_documents(retrieved()[:3], "dog")] == expected
    documents = retrieved()
    for document, row in zip(documents, rows, strict=True):
        document.metadata["vector"] = row
    found = langchain_compressor(vectors="vector").compress_documents(documents[:3], "dog")
    assert [d.metadata["n"] for d in found] == expected
    spread = langchain_compressor(
        method="manifold", vectors=embeddings.embed_documents, query_vector=embeddings.embed_query
    )
    query = embeddings.embed_query("cat")
    expected = [
        new.position for new in rerank("cat", PASSAGES, SCORED, method="manifold", vectors=rows, query_vector=query)
    ]
    assert [d.metadata["n"] for d in spread.compress_documents(retrieved(), "cat")] == expected
    with pytest.raises(ParameterError, match="no 'vector' in its metadata"):
        langchain_compressor(vectors="vector").compress_documents(retrieved(), "cat")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vectors": [[1.0, 0.0]] * 5}, "vectors, a list, would serve every query: give a function"),
        ({"query_vector": [1.0, 0.0]}, "query_vector, a list, would serve every query"),
        ({"method": "xquad", "aspects": ["cats"]}, "aspects, a list, would serve every query"),
        ({"relevance_weight": 7}, "relevance_weight must be in"),
        ({"method": "coverage", "vectors": len}, "method 'coverage' takes no vectors"),
    ],
)
def test_options_are_checked_when_it_is_made(options, message):
    with pytest.raises(ParameterError, match=message):
        langchain_compressor(**options)


def test_in_a_chain():
    from langchain_core.runnables import RunnableLambda, RunnablePassthrough

    compressor = langchain_compressor(top_k=2)
    retriever = RunnableLambda(lambda query: retrieved())
    chain = {"query": RunnablePassthrough(), "documents": retriever} | compressor | len
    assert (chain.invoke("cat"), asyncio.run(chain.ainvoke("cat")), chain.batch(["cat", "dog"])) == (2, 2, [2, 2])
    found = ({"query": RunnablePassthrough(), "documents": retriever} | compressor).invoke("cat")
    assert found == compressor.compress_documents(retrieved(), "cat")
    with pytest.raises(ParameterError, match=r"was given list .*\| compressor"):
        (retriever | compressor).invoke("cat")
