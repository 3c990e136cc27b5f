"""LuceneIndex compared with Anserini's published figures, Lucene's own answers and brute force.

Tests `greylag.index.searches`.
"""

import math
import pickle
import re
import resource
import shutil
import tempfile
import threading
from collections import Counter, defaultdict
from types import SimpleNamespace

import numpy as np
import pytest
import pytrec_eval

from greylag.errors import CollectionError
from greylag.index import PositionalIndex, languages
from greylag.index.lucene import bulk_calls
from greylag.index.lucene.build import _indexer, build_index
from greylag.index.lucene.doctor import diagnose
from greylag.index.lucene.jvm import calls_java, java_class
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.pipeline import run_step
from greylag.ranking import Query, Ranking
from tests.greylag.index.lucene import oracle
from tests.greylag.index.lucene.samples import WORDS, brute_postings, exported, random_documents, write_json


@pytest.fixture(scope="module")
def cacm_qrels(data):
    with (data("cacm") / "qrels.cacm.txt").open() as file:
        return pytrec_eval.parse_qrel(file)


def mean(run, qrels, measure):
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {measure})
    # Ranks as scores, because trec_eval breaks ties differently.
    results = evaluator.evaluate({
        qid: {docid: float(-rank) for rank, docid in enumerate(ranking.docids)} for qid, ranking in run.items()
    })  # fmt: skip
    return round(float(np.mean([result[measure] for result in results.values()])), 4)


def test_published_figures(cacm, cacm_topics, cacm_qrels):
    bm25, ql = (run_step(source, cacm_topics) for source in (cacm.bm25(), cacm.ql()))
    assert mean(bm25, cacm_qrels, "map") == 0.3123
    assert mean(bm25, cacm_qrels, "P_30") == 0.1942
    assert mean(ql, cacm_qrels, "map") == 0.3265


def test_rankings_equal_anserinis(cacm, cacm_topics):
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(cacm.path))
    for source, model, parameters in ((cacm.bm25(200), "bm25", (0.9, 0.4)), (cacm.ql(200), "qld", (1000.0,))):
        getattr(searcher, f"set_{model}")(*parameters)
        for qid, text in list(cacm_topics.items())[::8]:
            theirs = Ranking.from_hits(qid, text, searcher.search(text, 200))
            ours = source(Query(qid, text))
            assert ours.docids == theirs.docids
            # Anserini lowers tied scores by 1e-6 per rank.
            np.testing.assert_allclose(ours.scores, theirs.scores, atol=2e-4)


def test_bm25_and_ql_equal_their_formulas(documents, small):
    query, k1, b, mu = ["w1", "w2", "w3", "w3"], 1.3, 0.6, 17.0
    counts = {docid: Counter(text.split()) for docid, text in documents.items()}
    lengths = {docid: sum(count.values()) for docid, count in counts.items()}
    total, n = sum(lengths.values()), len(documents)
    bm25 = defaultdict(float)
    ql = defaultdict(float)
    for term in query:
        df, cf = sum(term in count for count in counts.values()), sum(count[term] for count in counts.values())
        for docid, count in counts.items():
            tf, length = count[term], lengths[docid]
            if tf:
                idf = math.log(1 + (n - df + 0.5) / (df + 0.5))
                bm25[docid] += idf * tf / (tf + k1 * (1 - b + b * length * n / total))
                # Lucene estimates p(t|C) as (cf + 1) / (|C| + 1), and bounds scores below by 0.
                ql[docid] += max(0.0, math.log(1 + tf / (mu * (cf + 1) / (total + 1))) + math.log(mu / (length + mu)))
    for source, expected in ((small.bm25(k1=k1, b=b), bm25), (small.ql(mu=mu), ql)):
        ranking = source(Query("1", " ".join(query)))
        assert set(ranking.docids) == set(expected)
        np.testing.assert_allclose(ranking.scores, [expected[docid] for docid in ranking.docids], rtol=1e-5)
        assert (ranking.scores == ranking.scores.astype(np.float32)).all()


def test_ties_are_broken_by_docid(tmp_path):
    documents = dict.fromkeys("cadb", "goose")
    build_index(write_json(tmp_path / "docs.jsonl", documents), tmp_path / "index")
    assert LuceneIndex(tmp_path / "index").bm25(k=3)(Query("1", "goose")).docids == ("a", "b", "c")


@pytest.mark.parametrize("text", ["", "the of", "zzz", "?!"])
def test_a_query_without_index_terms_finds_nothing(small, text):
    ranking = small.bm25()(Query("9", text))
    assert (ranking.qid, ranking.query, ranking.docids) == ("9", text, ())


@pytest.mark.parametrize("first", ["\ufeff", "\ufffe"])
def test_docids_that_begin_like_utf16_are_kept(tmp_path, first):
    build_index(write_json(tmp_path / "docs.jsonl", {f"{first}a": "red", "b": "blue"}), tmp_path / "index")
    assert LuceneIndex(tmp_path / "index").bm25()(Query("1", "red")).docids == (f"{first}a",)


def test_k_limits_the_ranking(small):
    query = Query("1", " ".join(WORDS))
    assert len(small.bm25(k=10**6)(query)) == 60
    assert small.bm25(k=1)(query) == small.bm25()(query).head(1)


def test_results_do_not_depend_on_threads_and_none_stays_attached(small):
    threads = java_class("java.lang.management.ManagementFactory").getThreadMXBean()
    topics = {str(number): f"w{number % 40} w{number % 7} w3" for number in range(200)}
    sources = small.bm25(), small.ql()
    alone = [run_step(source, topics) for source in sources]
    before = threads.getThreadCount()
    together = [run_step(source, topics, n_jobs=4) for _ in range(3) for source in sources]
    assert [run.rankings for run in together] == 3 * [run.rankings for run in alone]
    assert threads.getThreadCount() <= before + 2


def test_a_query_may_have_more_terms_than_lucene_allows_by_default(small, documents):
    text = " ".join(documents.values())
    words = " ".join(f"x{number}" for number in range(2000))
    longer, plain = (small.bm25()(Query("7", query)) for query in (f"{text} {words}", text))
    assert longer.docids == plain.docids
    assert longer.scores.tolist() == plain.scores.tolist()


def test_analyze(small):
    assert small.analyze("The Geese of New York's parks, naïve Öl") == ["gees", "new", "york", "park", "naïv", "öl"]
    assert small.analyze("the") == small.analyze("") == []


def test_a_searcher_stands_for_its_folder_and_analyzer(small):
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(small.path))
    searcher.set_language("de")
    index = LuceneIndex(SimpleNamespace(index_dir=str(small.path), object=searcher))
    assert (index.path, index.fingerprint) == (small.path, small.fingerprint)
    assert index.analyze("die Häuser") == ["haus"] != small.analyze("die Häuser")


def test_the_language_of_an_index_that_another_program_made(tmp_path, caplog):
    texts = {f"d{n}": f"Die Häuser der Stadt sind nicht das, was der Bürgermeister von {n} mit ein" for n in range(9)}
    docs = write_json(tmp_path / "docs" / "docs.jsonl", texts)
    folder = tmp_path / "anserini"
    calls_java(lambda: _indexer(docs.parent, folder, "JsonCollection", 1, "de", texts=True).run())()
    german = LuceneIndex(folder, language="German")
    build_index(docs, tmp_path / "ours", language="de")
    ours = LuceneIndex(tmp_path / "ours")
    query = Query("1", "das Haus des Bürgermeisters")
    assert (german.language, german.analyze("die Häuser")) == ("de", ["haus"])
    assert german.bm25()(query) == ours.bm25()(query)
    again = pickle.loads(pickle.dumps(german))
    assert (again.language, PositionalIndex.from_lucene(again).analyze("die Häuser")) == ("de", ["haus"])
    languages._warn_of.cache_clear()
    assert not german.is_assumed_english
    assert not caplog.messages
    with LuceneIndex(folder) as unnamed:
        unnamed.bm25()(query)
        PositionalIndex.from_lucene(unnamed)
    assert [message.partition(":")[0] for message in caplog.messages] == [
        "the texts look German and are analysed as English"
    ]
    assert "language not recorded, and searched in English; the texts look German" in diagnose(folder)[3].detail
    assert "language de, as recorded" in diagnose(tmp_path / "ours")[3].detail


def test_an_index_that_changes_before_it_is_opened(documents, tmp_path):
    docs = write_json(tmp_path / "docs.jsonl", documents)
    build_index(docs, tmp_path / "index")
    index = LuceneIndex(tmp_path / "index")
    shutil.rmtree(index.path)
    build_index(docs, index.path)
    with pytest.raises(CollectionError, match="changed"):
        index.statistics()


def test_statistics_equal_anserinis(cacm):
    theirs = java_class("io.anserini.index.IndexReaderUtils").getIndexStats(oracle.reader(cacm.path))
    found = cacm.statistics()
    assert found[:3] == tuple(theirs.get(name) for name in ("documents", "total_terms", "unique_terms"))
    assert found.postings == sum(len(block.docs) for block in cacm.postings_blocks())


def test_docids_are_in_the_order_of_lucene(cacm):
    reader, utilities = oracle.reader(cacm.path), java_class("io.anserini.index.IndexReaderUtils")
    docids = cacm.docids()
    assert len(docids) == 3204
    for number in range(0, 3204, 17):
        assert docids[number] == utilities.convertLuceneDocidToDocid(reader, number)


@pytest.fixture
def index_in_parts(tmp_path):
    def build(*parts, positions=True, delete=None):
        for number, documents in enumerate(parts):
            write_json(tmp_path / f"docs{number}" / "docs.jsonl", documents)
            oracle.anserini_index(tmp_path / f"docs{number}", tmp_path / f"part{number}", storePositions=positions)
        oracle.join([tmp_path / f"part{number}" for number in range(len(parts))], tmp_path / "index", delete)
        return LuceneIndex(tmp_path / "index")

    return build


def test_several_segments_are_merged(index_in_parts):
    parts = [random_documents(seed, count=30 + seed, prefix=f"{seed}-") for seed in range(3)]
    index = index_in_parts(*parts)
    assert oracle.segments(index.path) == 3
    postings = brute_postings(parts[0] | parts[1] | parts[2])
    assert exported(index.postings_blocks(), index.docids()) == postings
    entries = [positions for entry in postings.values() for positions in entry.values()]
    assert index.statistics() == (93, sum(map(len, entries)), len(postings), len(entries))
    assert set(index.bm25()(Query("1", "w5")).docids) == set(postings["w5"])


def test_deleted_documents_are_refused(documents, index_in_parts):
    index = index_in_parts(documents, delete="d3")
    for export in (index.docids, lambda: list(index.postings_blocks())):
        with pytest.raises(CollectionError, match="deleted"):
            export()
    assert "d3" not in index.bm25()(Query("1", " ".join(WORDS))).docids


def test_an_index_without_positions(documents, index_in_parts):
    index = index_in_parts(documents, positions=False)
    with pytest.raises(CollectionError, match="no positions"):
        next(index.postings_blocks())
    assert [check.name for check in diagnose(index.path) if not check.ok] == ["index"]


def test_a_duplicate_docid(index_in_parts, small):
    index = index_in_parts({"a": "x", "b": "x"}, {"b": "y", "c": "y"})
    for opened in (index, LuceneIndex([small.path, index.path])):
        with pytest.raises(CollectionError, match=f"^{index.path}: 2 documents have the id 'b'$"):
            opened.docids()


def test_closing_does_not_keep_the_lock_while_another_thread_calls_java(small):
    index = LuceneIndex(small.path)
    index.statistics()
    closing = threading.Thread(target=index.close)

    @calls_java
    def search():
        closing.start()
        closing.join(0.2)  # it waits for Java
        assert closing.is_alive()
        free = index._lock.acquire(timeout=5)
        if free:
            index._lock.release()
        return free

    assert search()
    closing.join()


def test_a_closed_index(documents, tmp_path):
    build_index(write_json(tmp_path / "docs.jsonl", documents), tmp_path / "index")
    with LuceneIndex(tmp_path / "index") as index:
        source = index.bm25()
        assert len(source(Query("1", "w1")))
        reader = index._reader()
    assert reader.getRefCount() == 0
    for use in (index.statistics, index.docids, lambda: source(Query("1", "w1"))):
        with pytest.raises(CollectionError):
            use()
    index.close()
    assert index.analyze("geese") == ["gees"]


@pytest.mark.parametrize("limit", [1, 13, 100, 10**6])
def test_blocks_have_whole_terms_and_bounded_size(small, limit):
    blocks, whole = list(bulk_calls.postings_blocks(small._terms("contents"), limit)), next(small.postings_blocks())
    assert all(len(block.terms) == 1 or len(block.positions) <= limit for block in blocks)
    assert [term for block in blocks for term in block.terms] == whole.terms
    for name in ("df", "docs", "tfs", "positions"):
        np.testing.assert_array_equal(np.concatenate([getattr(b, name) for b in blocks]), getattr(whole, name))


def test_blocks_are_as_large_as_possible():
    assert list(bulk_calls._runs(np.array([2, 2, 5, 1, 1, 1, 1]), 4)) == [(0, 2), (2, 3), (3, 7)]
    assert list(bulk_calls._runs(np.array([], dtype=np.int64), 4)) == []


def test_postings_equal_counting_in_the_texts(documents, small):
    assert exported(small.postings_blocks(), small.docids()) == brute_postings(documents)


def test_unicode_is_preserved(tmp_path):
    documents = {"ü": "goose naïve\0日本", "𝔘😀": "goose 😀 𝔘nicode"}
    build_index(write_json(tmp_path / "docs.jsonl", documents), tmp_path / "index")
    index = LuceneIndex(tmp_path / "index")
    assert index.bm25()(Query("1", "😀 goose")).docids == ("𝔘😀", "ü")
    assert sorted(index.docids()) == sorted(documents)
    terms = {term for text in documents.values() for term in index.analyze(text)}
    assert terms == {"goos", "naïv", "日", "本", "😀", "𝔘nicod"}
    assert next(index.postings_blocks()).terms == sorted(term.encode() for term in terms)


def test_a_full_folder_for_temporary_files_is_one_line_and_stays_empty(small, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    terms = small._terms("contents")
    expected = next(bulk_calls.postings_blocks(terms)).terms
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, hard))  # of this process, whatever library writes
    try:
        with pytest.raises(CollectionError) as caught:
            next(bulk_calls.postings_blocks(terms))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert re.fullmatch(rf".*written to {tmp_path}/.*is the disk full\? \(IOException.*", str(caught.value))
    assert not any(tmp_path.iterdir())
    assert next(bulk_calls.postings_blocks(terms)).terms == expected
