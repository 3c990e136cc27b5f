"""BM25 with RM3 against Pyserini's, on an index with document vectors, which only Pyserini's reads."""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.greylag.index.test_expansion import with_document_vectors

from benchmarks.harness import DATA, Row
from greylag.base import Query
from greylag.evaluation import read_topics
from greylag.index import RM3Search
from greylag.index.lucene.jvm import java_class

REPEATS = 5


def rows() -> Iterator[Row]:
    """CPU times for the top 1000; the least of several runs, as the first ones warm up Java."""
    with tempfile.TemporaryDirectory() as folder:
        index = with_document_vectors(DATA / "cacm" / "cacm.tar.gz", Path(folder, "index"))
        queries = [Query(*topic) for topic in read_topics(DATA / "cacm" / "topics.cacm.txt").items()]
        source, searcher = RM3Search(index.bm25(1000)), java_class("io.anserini.search.SimpleSearcher")(str(index.path))
        searcher.set_bm25(0.9, 0.4)
        searcher.set_rm3(10, 10, 0.5)
        ours, theirs = [], []
        for _ in range(REPEATS):
            start = time.thread_time()
            for query in queries:
                source(query)
            middle = time.thread_time()
            for query in queries:
                [(hit.docid, hit.score) for hit in searcher.search(query.text, 1000)]
            ours.append((middle - start) / len(queries))
            theirs.append((time.thread_time() - middle) / len(queries))
        yield Row("cacm: BM25 with RM3", 1e3 * min(ours), "ms/query")
        yield Row("cacm: BM25 with RM3, hit by hit as in Pyserini", 1e3 * min(theirs), "ms/query")
        yield Row("cacm: BM25 with RM3 / Pyserini's", min(ours) / min(theirs), "x", "at most 2")
