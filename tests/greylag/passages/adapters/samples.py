"""Runs, topics and judgements, random and fixed."""

from types import SimpleNamespace
from typing import NamedTuple

import pytest
from hypothesis import strategies as st

from greylag.base import Ranking, Run
from greylag.passages import rerank

NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, blacklist_categories=("Z", "C")), min_size=1, max_size=6
)
SCORES = st.floats(-1e6, 1e6).map(lambda x: x + 0.0)
TOPICS = st.dictionaries(NAMES, st.text(max_size=20), min_size=1, max_size=4)
QRELS = st.dictionaries(
    NAMES, st.dictionaries(NAMES, st.integers(-2, 4), min_size=1, max_size=6), min_size=1, max_size=4
)


@st.composite
def runs(draw):
    """Runs with texts, ties, and at least one document for each query."""
    rankings = []
    for qid, query in draw(TOPICS).items():
        scored = draw(st.dictionaries(NAMES, SCORES, min_size=1, max_size=8))
        rankings.append(Ranking.sort(qid, query, list(scored), list(scored.values())))
    return Run(tuple(rankings), "random")


PASSAGES = ["the cat sat", "the cat sat down", "a dog ran", "a dog ran away", "wing flow"]
SCORED = [0.9, 0.8, 0.7, 0.6, 0.5]


class TrecQuery(NamedTuple):
    query_id: str
    title: str
    description: str


class SubtopicQrel(NamedTuple):
    query_id: str
    doc_id: str
    relevance: int
    subtopic_id: str


class Searcher:
    """As ``LuceneSearcher`` and ``FaissSearcher`` are called."""

    def search(self, query, k=10):
        return [SimpleNamespace(docid=f"{query}{rank}", score=-rank) for rank in range(k)]


def documents(scores=SCORED, key="score"):
    """Documents of LangChain."""
    make = pytest.importorskip("langchain_core.documents").Document
    given = enumerate(zip(PASSAGES, scores, strict=True))
    return [make(text, metadata={key: score, "n": n} if key else {}) for n, (text, score) in given]


def nodes(scores=SCORED):
    """Nodes of LlamaIndex."""
    schema = pytest.importorskip("llama_index.core.schema")
    given = enumerate(zip(PASSAGES, scores, strict=True))
    texts = [(schema.TextNode(text=text, id_=f"n{n}"), score) for n, (text, score) in given]
    return [schema.NodeWithScore(node=node, score=score) for node, score in texts]


def lengths(texts):
    return [[len(text), 1.0] for text in texts]


def positions(passages, scores, query="cat", **options):
    """The passages' positions as `rerank` orders them."""
    return [new.position for new in rerank(query, passages, scores, **options)]
