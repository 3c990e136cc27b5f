"""The document compressor, in LangChain's own classes."""

import pytest

from greylag.errors import ParameterError
from greylag.interop import langchain_compressor, rerank
from tests.greylag.interop.samples import PASSAGES, SCORED

core = pytest.importorskip("langchain_core.documents", reason="needs langchain-core")


def retrieved():
    return [
        core.Document(page_content=text, metadata={"score": score, "n": n})
        for n, (text, score) in enumerate(zip(PASSAGES, SCORED, strict=True))
    ]


def test_is_rerank_on_documents_that_stay_as_they_were() -> None:
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


def test_without_scores_goes_by_the_order() -> None:
    bare = [core.Document(page_content=text) for text in PASSAGES]
    found = langchain_compressor(score=None).compress_documents(bare, "cat")
    assert [d.page_content for d in found] == [new.text for new in rerank("cat", PASSAGES, [5, 4, 3, 2, 1])]
    with pytest.raises(ParameterError, match=r"no 'score' in its metadata, which has nothing: .*score=None"):
        langchain_compressor().compress_documents(bare, "cat")


def test_groups_are_in_the_metadata() -> None:
    sites = ["a", "a", "a", "b", None]
    documents = retrieved()
    for document, site in zip(documents, sites, strict=True):
        document.metadata |= {"site": site} if site else {}
    found = langchain_compressor(group="site", max_per_group=2, relevance_weight=1.0)
    assert [d.metadata["n"] for d in found.compress_documents(documents, "cat")] == [0, 1, 3, 4, 2]


def test_in_a_chain() -> None:
    from langchain_core.runnables import RunnableLambda

    compressor = langchain_compressor(top_k=2)
    chain = RunnableLambda(lambda query: retrieved()) | (lambda found: compressor.compress_documents(found, "cat"))
    assert len(chain.invoke("cat")) == 2
