"""Ratios to limits: of the index without Java to BM25S, and of n-grams, folding and cosines to copying memory.

The other limits are in the topics of what they limit: pyversity (passages, spine), fastrank (learners, spine), LightGBM
(learning_to_rank), NumPy's sort (line_search), Lucene (spine), and what starts in a process (start). BM25S is measured
where it is installed; as it is called here, it neither stems words nor keeps their positions.
"""

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np

from benchmarks.harness import DATA, Row, cpu_seconds
from greylag.base import Query, Ranking
from greylag.evaluation import read_topics
from greylag.index import ArrayVectors, PositionalIndex
from greylag.index.lucene.documents import read_documents
from greylag.index.vectors.latent import LatentVectors, decomposed

NFCORPUS = DATA / "nfcorpus"
K = 1000
MEMORY = 1 << 28  # bytes, more than caches have


def rows() -> Iterator[Row]:
    """All rows, on NFCorpus."""
    texts = dict(read_documents(NFCORPUS / "docs.jsonl.gz"))
    queries = [Query(qid, text) for qid, text in read_topics(NFCORPUS / "topics.test.tsv").items()]
    index = PositionalIndex.from_texts(texts)
    search = index.bm25(K)
    rankings = [search(query) for query in queries]
    if find_spec("bm25s"):
        yield from bm25s_rows(texts, queries, index)
    yield from bandwidth_rows(index, [ranking.head(100) for ranking in rankings if len(ranking) >= 100])
    yield from cosine_rows()


def bm25s_rows(texts: dict[str, str], queries: list[Query], index: PositionalIndex) -> Iterator[Row]:
    """Indexing texts, and the top 1000 of each query, against BM25S in one thread."""
    import bm25s

    def build() -> bm25s.BM25:
        retriever = bm25s.BM25(k1=0.9, b=0.4)
        retriever.index(bm25s.tokenize(list(texts.values()), show_progress=False), show_progress=False)
        return retriever

    retriever, asked = build(), [query.text for query in queries]

    def retrieve() -> None:
        tokens = bm25s.tokenize(asked, show_progress=False)
        retriever.retrieve(tokens, k=K, n_threads=0, show_progress=False)

    search = index.bm25(K)
    indexing = cpu_seconds(lambda: PositionalIndex.from_texts(texts), 3) / cpu_seconds(build, 3)
    searching = cpu_seconds(lambda: [search(query) for query in queries], 3) / cpu_seconds(retrieve, 3)
    yield Row(f"index of {len(texts)} texts / BM25S's", indexing, "x", "at most 1")
    yield Row(f"{len(queries)} searches of the top {K} / BM25S's", searching, "x", "at most 1")


def bandwidth_rows(index: PositionalIndex, rankings: list[Ranking]) -> Iterator[Row]:
    """N-grams and latent vectors of each query's documents, against copying what these read."""
    words, latent = index.words, LatentVectors(index)
    assert words is not None
    part, (places, projection) = words.parts[0].words, decomposed(index)
    grams = folded = 0
    for documents in (index.documents(ranking.docids) for ranking in rankings):
        bounds = part.document_offsets[documents], part.document_offsets[documents + 1]
        own = np.concatenate([part.words[start:end] for start, end in zip(*bounds, strict=True)])
        different = np.unique(own)  # whose n-grams are read once
        grams += own.nbytes + part.grams.itemsize * int(np.diff(part.gram_offsets)[different].sum())
        folded += projection[0].nbytes * int(np.count_nonzero(places[index.parts.entries(documents)[1]] >= 0))
    each, shape = len(rankings), f"{len(rankings[0])} documents"
    counting = cpu_seconds(lambda: [words.coverage(r.query, "characters", index.documents(r.docids)) for r in rankings])
    folding = cpu_seconds(lambda: [latent.documents(r.docids) for r in rankings])
    for what, spent, size in (("n-grams", counting, grams // each), ("latent semantics", folding, folded // each)):
        ratio = spent / each / copying(size)
        yield Row(f"{what} of {shape} / copying the {size / 1e6:.2g} MB that they read", ratio, "x")


def cosine_rows() -> Iterator[Row]:
    """The search of all vectors of some types, against copying them."""
    rng, (n, m) = np.random.default_rng(0), (200_000, 384)
    rows, query = rng.standard_normal((n, m), np.float32), rng.standard_normal((1, m))
    per_byte = copying(1 << 26) / (1 << 26)
    for kind in ("float32", "float16", "int8"):
        vectors = ArrayVectors(range(n), (rows * 20).astype(kind))
        searching = cpu_seconds(lambda vectors=vectors: vectors.nearest_rows(query, K))
        yield Row(
            f"search of {n} {kind} vectors of {m} / copying them", searching / vectors.array.nbytes / per_byte, "x"
        )


def copying(size: int) -> float:
    """CPU seconds to copy `size` bytes that no cache holds, the mean over many copies."""
    target, starts = np.empty(size, np.uint8), range(0, MEMORY - size, size)
    source = np.ones(MEMORY, np.uint8)
    return cpu_seconds(lambda: [np.copyto(target, source[start : start + size]) for start in starts]) / len(starts)
