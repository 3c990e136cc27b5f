"""The results of rerankers."""

import pytest

from greylag.errors import ParameterError
from greylag.passages import rerank, rerank_results
from tests.greylag.adapters.samples import PASSAGES, SCORED

results = pytest.importorskip("rerankers.results", reason="needs rerankers")
documents = pytest.importorskip("rerankers.documents")


def ranked(with_scores: bool):
    found = [
        results.Result(documents.Document(text, f"p{i}", {"n": i}), SCORED[i] if with_scores else None, i + 1)
        for i, text in enumerate(PASSAGES)
    ]
    return results.RankedResults(found, "cat", has_scores=with_scores)


@pytest.mark.parametrize("with_scores", [True, False])
def test_is_rerank_on_its_documents(with_scores: bool) -> None:
    again = rerank_results(ranked(with_scores), method="mmr", relevance_weight=0.4, top_k=3)
    scores = SCORED if with_scores else [4, 3, 2, 1, 0]
    expected = rerank("cat", PASSAGES, scores, relevance_weight=0.4, top_k=3)
    assert [(new.document.doc_id, new.document.metadata, new.score, new.rank) for new in again] == [
        (f"p{new.position}", {"n": new.position}, new.score, new.rank) for new in expected
    ]
    assert (again.query, again.has_scores) == ("cat", True)
    assert again.top_k(3) == again.results


def test_refuses_other_results() -> None:
    with pytest.raises(ParameterError, match="RankedResults"):
        rerank_results([("a", 1.0)])
    image = results.Result(documents.Document(document_type="image", image_path="a.png"), 1.0, 1)
    with pytest.raises(ParameterError, match="the text of passage 0 is NoneType"):
        rerank_results(results.RankedResults([image], "cat", has_scores=True))
