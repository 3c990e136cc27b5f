"""The expansion of queries compared with Anserini's RM3, and with the formulas."""

from itertools import islice
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import greylag
from greylag.base import Query
from greylag.base.pipeline import run_step
from greylag.evaluation import PooledSources, read_topics
from greylag.index import PositionalIndex
from greylag.index.expansion import RM3Search, frequent_terms, interpolate, relevance_model
from greylag.index.lucene import build
from greylag.index.lucene.build import build_index
from greylag.index.lucene.jvm import java_class
from greylag.index.lucene.lucene_index import LuceneIndex
from tests.greylag.index.lucene.samples import write_json


def with_document_vectors(documents, index):
    """An index of `documents` that `build_index` makes by an indexer that stores their vectors, too."""

    def indexer(docs, index, collection, threads, language, *, texts):
        arguments = java_class("io.anserini.index.IndexCollection$Args")()
        arguments.input, arguments.index = str(docs), str(index)
        arguments.collectionClass, arguments.generatorClass = collection, "DefaultLuceneDocumentGenerator"
        arguments.threads, arguments.memoryBuffer, arguments.language = threads, 64, language
        arguments.storeContents = texts
        arguments.storePositions = arguments.storeDocvectors = arguments.optimize = arguments.quiet = True
        return java_class("io.anserini.index.IndexCollection")(arguments)

    with patch.object(build, "_indexer", indexer):
        build.build_index(documents, index)
    return LuceneIndex(index)


def odd_documents():
    """Terms of 1 to 24 characters, of which some are two in Java, many with the same frequencies."""
    rng = np.random.default_rng(11)
    words = ["".join(rng.choice([*"abcxyz17", "é", "ﬀ", "\U0001d49c"], rng.integers(1, 25))) for _ in range(250)]
    return {f"d{number}": " ".join(rng.choice(words, rng.integers(1, 40)).tolist()) for number in range(90)}


ODD = odd_documents()
ODD_TOPICS = {
    "none": "", "stop words": "the of", "no hit": "zzz", "odd": "?!",
    **{docid: " ".join(text.split()[:length]) for length, (docid, text) in enumerate(list(ODD.items())[:12], 1)},
    "one hit and none": f"zzz {ODD['d20'].split()[-1]}", "twice": " ".join(ODD["d21"].split()[:2] * 2),
}  # fmt: skip


@pytest.fixture(scope="module")
def collections(data, cacm_topics, tmp_path_factory):
    folder, demo = tmp_path_factory.mktemp("expansion"), Path(greylag.__file__).parent / "demo"
    return {
        "demo": (with_document_vectors(demo / "docs.jsonl", folder / "demo"), read_topics(demo / "topics.tsv")),
        "cacm": (with_document_vectors(data("cacm") / "cacm.tar.gz", folder / "cacm"), cacm_topics),
        "odd": (with_document_vectors(write_json(folder / "odd.jsonl", ODD), folder / "odd-index"), ODD_TOPICS),
    }


@pytest.mark.parametrize("name", ["demo", "cacm", "odd"])
@pytest.mark.parametrize(
    ("model", "parameters"),
    [
        ("bm25", (10, 10, 0.5)), ("bm25", (20, 5, 0.3)), ("ql", (10, 10, 0.5)),
        ("bm25", (50, 30, 0.0)), ("bm25", (1, 1, 1.0)),
    ],
)  # fmt: skip
def test_rankings_equal_anserinis(collections, name, model, parameters):
    index, topics = collections[name]
    first = index.bm25(200) if model == "bm25" else index.ql(200)
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(index.path))
    searcher.set_bm25(0.9, 0.4) if model == "bm25" else searcher.set_qld(1000.0)
    searcher.set_rm3(*parameters)
    source = RM3Search(first, **dict(zip(("fb_terms", "fb_docs", "original_query_weight"), parameters, strict=True)))
    for qid, text in islice(topics.items(), 40):
        ours = source(Query(qid, text))
        hits = searcher.search(text, 200)
        assert ours.docids == tuple(hit.docid for hit in hits)
        # Anserini's searcher rounds scores to 1e-4 and lowers tied ones by 1e-6 per rank.
        np.testing.assert_allclose(ours.scores, [hit.score for hit in hits], atol=2e-4)


def test_feedback_terms_equal_the_formula(small, documents):
    """Terms of the 60 random documents are not rare, so the rule for common ones is seen at work, too."""
    first, query = small.bm25(k1=1.2, b=0.75), Query("1", "w1 w2")
    source, top = RM3Search(first, fb_terms=4, fb_docs=3, original_query_weight=0.25), first(query).head(3)
    texts = {docid: text.split() for docid, text in documents.items()}
    model = {}
    for docid, score in zip(top.docids, top.scores, strict=True):
        words = texts[docid]
        rare = {w for w in words if len(w) > 1 and sum(w in text for text in texts.values()) <= 6}
        kept = sorted(rare, key=lambda w: (-words.count(w), w))[:4]
        for word in kept:
            share = words.count(word) / sum(map(words.count, kept))
            model[word] = model.get(word, 0.0) + share * score
    model = dict(islice(sorted(model.items(), key=lambda pair: (-pair[1], pair[0])), 4))
    expected = {word: 0.75 * weight / sum(model.values()) for word, weight in model.items()}
    expected |= {word: expected.get(word, 0.0) + 0.25 / 2 for word in ("w1", "w2")}
    assert source.expand(query) == pytest.approx(expected, rel=1e-6)


def test_other_documents_are_found_and_unions_take_them(collections):
    index, topics = collections["demo"]
    first, expanded = (run_step(source, topics) for source in (index.bm25(10), RM3Search(index.bm25(10))))
    assert any(set(expanded[qid].docids) - set(first[qid].docids) for qid in topics)
    union = run_step(PooledSources((index.bm25(10), RM3Search(index.bm25(10)))), topics)
    for qid in topics:
        assert set(union[qid].docids) == {*first[qid].docids, *expanded[qid].docids}


def test_feedback_documents_that_all_score_0(tmp_path):
    """The term's share is the same in all documents, and below its smoothed share in the collection."""
    lines = [f'{{"id": "{number}", "contents": "goose unique{number}"}}\n' for number in range(12)]
    (tmp_path / "docs.jsonl").write_text("".join(lines))
    build_index(tmp_path / "docs.jsonl", tmp_path / "index")
    source, query = RM3Search(LuceneIndex(tmp_path / "index").ql()), Query("1", "goose")
    assert not source.first(query).scores.any()
    assert source.expand(query) == {"goos": 0.5}
    assert source(query) == source.first(query)


def test_ties_are_broken_by_term():
    index = PositionalIndex.from_texts({str(number): text for number, text in enumerate(["b c a a d", *"yz" * 20])})
    assert frequent_terms(index, ["0"], 2) == [{}]  # single letters are left out
    index = PositionalIndex.from_texts({str(number): text for number, text in enumerate(["bb cc aa aa", *["yy"] * 30])})
    (terms,) = frequent_terms(index, ["0"], 2)
    assert terms == {"aa": 2.0, "bb": 1.0}
    assert [*relevance_model([{"dd": 1.0, "cc": 1.0, "bb": 1.0}], [1.0], 2)] == ["bb", "cc"]
    assert interpolate(["aa", "aa", "bb"], {"cc": 1.0}, 0.5) == pytest.approx({"aa": 1 / 3, "bb": 1 / 6, "cc": 0.5})
