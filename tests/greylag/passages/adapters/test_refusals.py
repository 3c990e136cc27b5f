"""Values, data and names that adapters refuse: the call, the error, and what its message has."""

import numpy as np
import pandas as pd
import pytest
from tests.greylag.passages.adapters.samples import SCORED, Searcher, SubtopicQrel, TrecQuery, documents, nodes

from greylag import passages as adapters
from greylag import read_qrels, read_run, read_topics
from greylag.base import CollectionError, DependencyError, Hit, ParameterError, Ranking, Run
from greylag.base.core.tables import imported
from greylag.passages import langchain_compressor, llama_index_postprocessor
from greylag.passages import qrels_from_ir_datasets as irds_qrels
from greylag.passages import run_from_pyserini as run_from
from greylag.passages import subtopic_qrels_from_ir_datasets as subtopics
from greylag.passages import topics_from_ir_datasets as irds_topics
from greylag.passages import topics_from_pyserini as topics_from

TOPICS = {301: {"title": "wing  flow", "description": "What flows?"}}
RUN = {"qid": ["q"], "docno": ["a"], "score": [1.0]}
GRADED = {"qid": ["q"], "docno": ["a"], "label": ["1"]}
CUT = ["\u0100", "1\u4e00", "a\U00010000"]  # of identifiers, which ranx shortens
TWICE = {"qid": ["q"] * 2, "docno": ["a"] * 2}


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    ("read", "columns", "parts"),
    [
        (read_run, {"qid": ["q"], "doc": ["a"]}, "DataFrame"),
        (read_run, RUN | {"qid": [1.5]}, "query|float 1.5"),
        (read_run, RUN | {"qid": [True]}, "query|bool"),
        (read_run, RUN | {"score": [True]}, "score|'a'|bool"),
        (read_run, RUN | {"docno": [None]}, "document's identifier"),
        (read_run, RUN | {"score": ["high"]}, "score|'a'|'high'"),
        (read_run, RUN | {"score": [float("nan")]}, "score|'a'|nan"),
        (read_run, TWICE | {"score": [1, 2]}, "'a' occurs twice"),
        *[(read_run, RUN | {"rank": [value]}, f"rank in row 1|{value}") for value in ("10", None, float("nan"), True)],
        (read_topics, {"qid": ["q", "q"], "query": ["a", "b"]}, "query q|'a' and 'b'"),
        (read_topics, {"qid": ["q"], "title": ["a"]}, "query or text"),
        (read_qrels, GRADED, "grade|'a'|query q|str"),
        (read_qrels, TWICE | {"label": [1, 0]}, "'a' is judged twice"),
    ],
)
def test_frames(read, columns, parts, library):
    frame = pytest.importorskip(library).DataFrame(columns)
    with pytest.raises(ParameterError) as caught:
        read(frame)
    assert all(part in str(caught.value) for part in parts.split("|"))


def twice(column, **more):
    frame = pd.DataFrame(RUN | more)
    return pd.concat([frame, frame[[column]]], axis=1)


def lazy():
    return pytest.importorskip("polars").LazyFrame(RUN)


def irds(name):
    pytest.importorskip("ir_datasets")
    return f"irds:{name}"


def ranked(*docids):
    return Run((Ranking("q", "", docids, np.zeros(len(docids))),), "r")


def terrier():
    return pytest.importorskip("pyterrier")


def opaque():
    return terrier().apply.generic(lambda frame: frame.assign(new=frame["surprise"]))


def compress(given, **options):
    pytest.importorskip("langchain_core")
    return langchain_compressor(**options).compress_documents(given, "cat")


def process(given, query="cat", **options):
    pytest.importorskip("llama_index.core")
    return llama_index_postprocessor(**options).postprocess_nodes(given, query_str=query)


SCORE_MISSING = [None, *SCORED[1:]]


@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        *[(lambda c=c: read_run(twice(c, rank=[1])), ParameterError, f"several columns {c}") for c in (*RUN, "rank")],
        (lambda: read_qrels(twice("label", label=[1])), ParameterError, "several columns label"),
        *[(lambda r=r: r(lazy()), ParameterError, "LazyFrame|collect()") for r in (read_run, read_topics, read_qrels)],
        (lambda: read_run(pd.DataFrame(RUN | {"rank": [pd.NA]})), ParameterError, "rank in row 1|<NA>"),
        (lambda: imported("no_such_package", "no-such-package"), DependencyError, "pip install no-such-package"),
        (lambda: adapters.topics_to_frame({}, "spark"), ParameterError, "'spark'|'pandas' or 'polars'"),
        (lambda: topics_from(TOPICS, field="narrative"), ParameterError, "topic 301|'narrative'|title, desc"),
        (lambda: topics_from({"1": "cat"}), ParameterError, "topic 1|'title'|str 'cat'"),
        (lambda: topics_from(["cat"]), ParameterError, "get_topics"),
        (lambda: topics_from({1: {"title": "a"}, "1": {"title": "b"}}), ParameterError, "'1' occurs twice"),
        (lambda: adapters.qrels_from_pyserini({1: {"d": "high"}}), ParameterError, "'d'|query 1|str 'high'"),
        (lambda: adapters.qrels_from_pyserini({1: {"d": 0.5}}), ParameterError, "'d'|query 1|float 0.5"),
        (lambda: run_from([Hit("a", 1.0)]), ParameterError, "Ranking.from_hits"),
        (lambda: run_from({"1": ["a"]}), ParameterError, "query 1|['a']|docid, score"),
        (lambda: run_from({"1": {Hit("a", 1.0), Hit("b", 1.0)}}), ParameterError, "query 1|set"),
        (lambda: run_from({"1": [Hit("a", 1.0)] * 2}), ParameterError, "duplicate document 'a'"),
        (lambda: run_from({"1": []}, topics={"2": "cat"}), ParameterError, "'1'|'2'"),
        (lambda: adapters.PyseriniSource("index"), ParameterError, "str 'index'|search"),
        (lambda: adapters.PyseriniSource(Searcher(), k=0), ParameterError, "k must be|not 0"),
        (lambda: irds_topics([SubtopicQrel("1", "d", 1, "a")]), ParameterError, "text or title or query|field="),
        (lambda: irds_topics(["cat"]), ParameterError, "str 'cat'|query_id"),
        (lambda: irds_topics({TrecQuery("1", "a", "")}), ParameterError, "queries: set"),
        (lambda: irds_topics(3), ParameterError, "int 3"),
        (lambda: irds_topics([TrecQuery("1", "a", "")] * 2), ParameterError, "'1' occurs twice"),
        (lambda: irds_topics(irds("no-such-data")), CollectionError, "'no-such-data'"),
        (lambda: adapters.named_topics(irds("no-such-data")), CollectionError, "'no-such-data'"),
        (lambda: adapters.named_qrels(irds("no-such-data")), CollectionError, "'no-such-data'"),
        (lambda: irds_qrels([SubtopicQrel("1", "d", "1", "a")]), ParameterError, "grade|'d'|str"),
        (lambda: subtopics([SubtopicQrel("1", "a", 1, "2")] * 2), ParameterError, "2 is judged twice"),
        (lambda: subtopics([TrecQuery("1", "a", "")]), ParameterError, "subtopic_id"),
        *[(lambda n=n: adapters.qrels_to_ranx({"q": {n: 1}}), ParameterError, f"{n!r}|last character") for n in CUT],
        *[(lambda n=n: adapters.run_to_ranx(ranked(n)), ParameterError, f"{n!r}|last character") for n in CUT],
        (lambda: adapters.run_to_ranx(ranked()), ParameterError, "query q|ranx"),
        (lambda: terrier() and adapters.from_pyterrier("bm25"), ParameterError, "str 'bm25'"),
        (lambda: adapters.from_pyterrier(opaque()), ParameterError, "PyTerrierSource"),
        (lambda: adapters.to_pyterrier(3), ParameterError, "int 3"),
        (lambda: compress(documents(SCORE_MISSING)), ParameterError, "passage 0|no score"),
        (lambda: compress(documents(), score="relevance"), ParameterError, "passage 0|relevance|score=None"),
        (lambda: compress(["the cat sat"]), ParameterError, "str 'the cat sat'|greylag.rerank"),
        (lambda: compress(documents(), group="site"), ParameterError, "'mmr'|groups|group-limit"),
        (lambda: compress(documents(), vectors="vector"), ParameterError, "'vector'|a function of texts"),
        (lambda: compress([], vectors=[[1.0, 0.0]] * 5), ParameterError, "vectors, a list|give a function"),
        (lambda: compress([], query_vector=[1.0, 0.0]), ParameterError, "query_vector, a list"),
        (lambda: compress([], method="xquad", aspects=["cats"]), ParameterError, "aspects, a list"),
        (lambda: compress([], relevance_weight=7), ParameterError, "relevance_weight must be in"),
        (lambda: compress([], method="coverage", vectors=len), ParameterError, "'coverage' takes no vectors"),
        (lambda: process(nodes(SCORE_MISSING)), ParameterError, "passage 0|no score"),
        (lambda: process(nodes(), query=None), ParameterError, "query_str="),
        (lambda: process(nodes(), vectors="embedding"), ParameterError, "'embedding'|vectors="),
        (lambda: process([], vectors=np.ones((5, 2))), ParameterError, "would serve every query"),
        (lambda: process([], vectors="embeddings"), ParameterError, "'embeddings'|'embedding'"),
    ],
)  # fmt: skip
def test_values(call, error, parts):
    with pytest.raises(error) as caught:
        call()
    assert all(part in str(caught.value) for part in parts.split("|"))
