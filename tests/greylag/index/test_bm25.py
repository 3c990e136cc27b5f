"""BM25 without Java, compared with Lucene's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greylag.base import Query
from greylag.evaluation import read_topics
from greylag.index import PositionalIndex
from greylag.index import bm25 as module
from greylag.index.bm25 import stored_lengths
from greylag.index.lucene.build import build_index
from greylag.index.lucene.jvm import java_class
from greylag.index.lucene.lucene_index import LuceneIndex
from tests.greylag.cli.conftest import DEMO
from tests.greylag.index.samples import from_shards

TEXTS = {"b": "goose goose duck", "a": "goose goose duck", "c": "duck " * 30, "d": "the of", "é": "swan"}


@pytest.mark.parametrize("name", ["demo", "cacm", "cranfield"])
def test_rankings_and_scores_are_lucenes(data, tmp_path, name):
    docs, topics = {"cacm": ("cacm.tar.gz", "topics.cacm.txt"), "cranfield": ("docs.jsonl.gz", "topics.tsv")}.get(
        name, ("docs.jsonl", "topics.tsv")
    )
    folder = DEMO if name == "demo" else data(name)
    build_index(folder / docs, tmp_path / "index")
    lucene, queries = LuceneIndex(tmp_path / "index"), read_topics(folder / topics)
    index = PositionalIndex.from_lucene(lucene)
    for k, k1, b in ((1000, 0.9, 0.4), (10, 1.2, 0.75), (50, 0.0, 1.0), (5, 3.0, 0.0)):
        for qid, text in list(queries.items())[:20]:
            query = Query(qid, f"{text} {text.split()[0]}")
            found = lucene.bm25(k, k1=k1, b=b)(query)
            assert index.bm25(k, k1=k1, b=b)(query) == found
            numbers = index.documents(found.docids[::-1])
            assert index.bm25(k1=k1, b=b).score(query.text, numbers).tolist() == found.scores[::-1].tolist()


def test_ties_missing_terms_and_empty_documents():
    bm25 = PositionalIndex.from_texts(TEXTS).bm25()
    assert bm25(Query("1", "goose")).docids == ("a", "b")
    assert bm25(Query("1", "the geese unknown")).docids == ()
    assert PositionalIndex.from_texts(TEXTS).bm25(1)(Query("1", "goose duck")).docids == ("a",)
    assert PositionalIndex.from_texts(TEXTS).bm25(1 << 64)(Query("1", "goose")).docids == ("a", "b")
    assert bm25.score("geese swan", np.arange(5)).tolist() == [0, 0, 0, 0, bm25(Query("1", "swan")).scores[0]]
    assert bm25.score("the unknown", np.arange(5)).tolist() == [0] * 5


@given(st.lists(st.integers(0, 4)), st.integers(1, 40), st.randoms())
def test_the_best_are_those_of_a_sort(scores, k, random):
    places = random.sample(range(len(scores)), len(scores))
    expected = sorted((number for number, score in enumerate(scores) if score), key=lambda n: (-scores[n], places[n]))
    assert module._best(np.array(scores, float), np.array(places, np.int32), k).tolist() == expected[:k]


def test_terms_are_read_at_once_or_alone_from_one_shard_or_several(monkeypatch):
    shards = [{"a": "goose duck goose", "b": "swan"}, {}, {"c": "duck swan swan"}, {"d": "goose"}]
    whole = PositionalIndex.from_texts({docid: text for shard in shards for docid, text in shard.items()})
    expected = whole.bm25().weigh("swan goose swan unknown duck").tolist()
    assert from_shards(shards).bm25().weigh("swan goose swan unknown duck").tolist() == expected
    monkeypatch.setattr(module, "_AT_ONCE", 0)
    assert whole.bm25().weigh("swan goose swan unknown duck").tolist() == expected


def test_lengths_are_those_that_lucene_keeps(index):
    _, small = index, java_class("org.apache.lucene.util.SmallFloat")
    lengths = np.array([*range(300), 1000, 12345, 2**20 - 1, 2**30, 2**31 - 1])
    assert stored_lengths(lengths).tolist() == [small.byte4ToInt(small.intToByte4(n)) for n in lengths.tolist()]
