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
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import pytrec_eval

from greylag.base import CollectionError, Query, Ranking
from greylag.base.pipeline import run_step
from greylag.index import PositionalIndex, languages
from greylag.index.doctor import diagnose
from greylag.index.lucene import bulk_calls
from greylag.index.lucene.build import build_index
from greylag.index.lucene.jvm import calls_java, java_class
from greylag.index.lucene.lucene_index import LuceneIndex, analyzer_of
from tests.greylag.index.lucene import oracle
from tests.greylag.index.lucene.samples import WORDS, brute_postings, exported, random_documents, write_json
from tests.refusals import refuses


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


TEXTS_BEYOND_ASCII = [
    "harvard physicians ’ study", "the café's geese", "die Straße, die Häuser", "geese 😀", "日本 geese", "مدرسة geese",
]  # fmt: skip


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """The folders of indexes of German texts without greylag's mark, one as a whole and two shards, and of ours."""
    folder = tmp_path_factory.mktemp("german")
    texts = {f"d{n}": f"Die Häuser der Stadt sind nicht das, was der Bürgermeister von {n} mit ein" for n in range(20)}
    stored = {"storePositions": True, "storeContents": True, "optimize": True}
    make = calls_java(partial(oracle.anserini_index, language="de", **stored))
    for name, docids in (("whole", list(texts)), ("first", list(texts)[:9]), ("rest", list(texts)[9:])):
        docs = write_json(folder / name / "docs.jsonl", {docid: texts[docid] for docid in docids}).parent
        make(docs, docs / "index")
    build_index(folder / "whole" / "docs.jsonl", folder / "ours", language="de")
    return folder


def of_path(folders):
    return PositionalIndex.from_lucene(folders)


def of_closed(folders, **language):
    with LuceneIndex(folders, **language) as opened:
        return PositionalIndex.from_lucene(opened)


def of_open(folders, **language):
    return PositionalIndex.from_lucene(LuceneIndex(folders, **language))


@pytest.mark.parametrize("parts", [["whole"], ["first", "rest"]])
@pytest.mark.parametrize("language", [None, "en", "de"])
@pytest.mark.parametrize("opened", [of_path, of_closed, of_open])
def test_an_index_without_a_mark_analyses_any_text(german, opened, language, parts, caplog):
    """As Lucene's own analyzer does; the language that is assumed is warned of once, be the index exported or not."""
    if opened is of_path and language:
        pytest.skip("a path has no language")
    folders, given = [german / part / "index" for part in parts], {"language": language} if language else {}
    for folder in folders:
        shutil.rmtree(folder.with_name("index.greylag"), ignore_errors=True)
    analyzer, java = java_class("io.anserini.analysis.AnalyzerUtils"), calls_java(analyzer_of)(language or "en")
    for _ in ("exports", "opens the export"):
        caplog.clear()
        languages.warn_of.cache_clear()
        index = opened(folders, **given)
        for text in TEXTS_BEYOND_ASCII:
            assert index.analyze(text) == list(analyzer.analyze(java, text).toArray())
        assert caplog.text.count("the texts look German and are analysed as English") == (language is None)


def test_a_closed_index_analyses_text_after_its_folder_is_gone(german, tmp_path, caplog):
    for name in ("ours", "whole/index"):
        languages.warn_of.cache_clear()
        shutil.copytree(german / name, tmp_path / "gone")
        index = of_path(tmp_path / "gone")
        shutil.rmtree(tmp_path / "gone")
        assert index.analyze("die Häuser") == (["haus"] if name == "ours" else ["die", "häuser"])
        assert index.language == ("de" if name == "ours" else "en")


def test_words_of_an_index_that_has_changed_are_refused(tmp_path):
    """Its documents have other numbers, so that the words would be those of others."""
    build_index(write_json(tmp_path / "docs.jsonl", {"a": "grey goose", "b": "snow"}), tmp_path / "index")
    index = PositionalIndex.from_lucene(tmp_path / "index")
    write_json(tmp_path / "docs.jsonl", {"a": "snow", "b": "grey goose"})
    build_index(tmp_path / "docs.jsonl", tmp_path / "index", overwrite=True)
    with pytest.raises(CollectionError, match="index has changed since it was opened: create another PositionalIndex"):
        _ = index.words


def test_a_damaged_record_of_the_language(german, tmp_path):
    shutil.copytree(german / "ours", tmp_path / "ours")
    (commit,) = (tmp_path / "ours").glob("segments_*")
    commit.write_bytes(commit.read_bytes().replace(b"language\x02de", b"language\x02dx"))
    refuses(lambda: LuceneIndex(tmp_path / "ours"), CollectionError, "is damaged: build it again", "|")


def test_the_language_of_an_index_that_another_program_made(german, caplog):
    folder, query = german / "whole" / "index", Query("1", "das Haus des Bürgermeisters")
    named, ours = LuceneIndex(folder, language="German"), LuceneIndex(german / "ours")
    assert (named.language, named.analyze("die Häuser")) == ("de", ["haus"])
    assert named.bm25()(query) == ours.bm25()(query)
    again = pickle.loads(pickle.dumps(named))
    assert (again.language, PositionalIndex.from_lucene(again).analyze("die Häuser")) == ("de", ["haus"])
    languages.warn_of.cache_clear()
    assert not named.is_assumed_english
    assert "look" not in caplog.text
    with LuceneIndex(folder) as unnamed:
        unnamed.bm25()(query)
        PositionalIndex.from_lucene(unnamed)
    assert caplog.text.count("the texts look German and are analysed as English") == 1
    assert "language not recorded, and searched in English; the texts look German" in diagnose(folder)[3].detail
    assert "language de, as recorded" in diagnose(german / "ours")[3].detail


def test_an_index_that_changes_before_it_is_opened(documents, tmp_path):
    docs = write_json(tmp_path / "docs.jsonl", documents)
    build_index(docs, tmp_path / "index")
    index = LuceneIndex(tmp_path / "index")
    shutil.rmtree(index.path)
    build_index(docs, index.path)
    refuses(index.statistics, CollectionError, "changed")


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
    refuses(lambda: next(index.postings_blocks()), CollectionError, "no positions", "|")
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
