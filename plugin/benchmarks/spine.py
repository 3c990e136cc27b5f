"""The main pipeline against its peers: Lucene, Anserini's indexing, fastrank, pyversity."""

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from benchmarks.harness import DATA, Row, cpu_seconds, once, seconds
from benchmarks.learners import compared
from greylag.base import Query, Ranking, Run
from greylag.diversity import MMR
from greylag.evaluation import Qrels, read_qrels, read_topics
from greylag.evaluation.scoring.folds import split_folds
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.features.spelling import parse_features
from greylag.index.lucene.build import build_index
from greylag.index.lucene.jvm import java_class
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.positional import PositionalIndex
from greylag.index.tables import drop_empty_columns
from greylag.learning.extraction import training_data

COLLECTIONS = {
    "cacm": ("cacm.tar.gz", "topics.cacm.txt", "qrels.cacm.txt"),
    "vaswani": ("doc-text.trec.gz", "query-text.trec", "qrels"),
    "cranfield": ("docs.jsonl.gz", "topics.tsv", "qrels.txt"),
}
FIVE = "FI/term/BM25,SD/ordered/BM25-O-1,SD/unordered/BM25-U-4,FD/unordered/LM-U-8,FI/term/LM"


def rows() -> Iterator[Row]:
    """All rows of the main pipeline."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (docs, topics, qrels) in COLLECTIONS.items():
            index = Path(folder, name)
            yield from export_rows(name, DATA / name / docs, index)
            queries = read_topics(DATA / name / topics)
            yield from feature_rows(name, LuceneIndex(index), queries)
            if name == "cacm":
                run = LuceneIndex(index).bm25().run(queries)
                yield from selection_rows(PositionalIndex.from_lucene(index), run, read_qrels(DATA / name / qrels))
                full = [ranking for ranking in run.rankings if len(ranking) == 1000][:10]
                yield from mmr_rows(PositionalIndex.from_lucene(index), full)


def export_rows(name: str, docs: Path, index: Path) -> Iterator[Row]:
    """Tokens a second of exporting, against Anserini's indexing with the JVM running."""

    def build() -> None:
        shutil.rmtree(index, ignore_errors=True)
        build_index(docs, index)

    def export() -> None:
        shutil.rmtree(index.with_name(f"{name}.greylag"), ignore_errors=True)
        PositionalIndex.from_lucene(index)

    indexing, exporting = seconds(build, 3), seconds(export, 3)
    tokens = PositionalIndex.from_lucene(index).n_tokens
    yield Row(f"{name}: export", tokens / exporting / 1e6, "million tokens/s")
    yield Row(f"{name}: export's speed / indexing's", indexing / exporting, "x", "at least 1")


def feature_rows(name: str, lucene: LuceneIndex, topics: dict[str, str]) -> Iterator[Row]:
    """CPU time of features of the top 1000, statistics known, against that in which Lucene retrieves these."""
    queries = [Query(qid, text) for qid, text in topics.items()]
    source, index = lucene.bm25(1000), PositionalIndex.from_lucene(lucene)
    rankings = [source(query) for query in queries]
    retrieval = cpu_seconds(lambda: [source(query) for query in queries]) / len(queries)
    peer = pyserini_seconds(lucene.path, queries) / len(queries)
    yield Row(f"{name}: Lucene's top 1000, fetched in bulk", 1e3 * retrieval, "ms/query")
    yield Row(f"{name}: Lucene's top 1000, hit by hit as in Pyserini", 1e3 * peer, "ms/query")
    for label, specs, aim in (("full pool", candidate_pool(), 0.5), ("five features", parse_features(FIVE), 0.1)):
        extractor = FeatureExtractor(index, specs)
        cold = once(lambda: [FeatureExtractor(index, specs)(ranking) for ranking in rankings])  # noqa: B023
        warm = cpu_seconds(lambda: [extractor(ranking) for ranking in rankings]) / len(queries)  # noqa: B023
        yield Row(f"{name}: {label}, statistics counted for the first time", 1e3 * cold / len(queries), "ms/query")
        yield Row(f"{name}: {label}", 1e3 * warm, "ms/query")
        yield Row(f"{name}: {label} / Lucene in bulk", warm / retrieval, "x", f"at most {aim}")
        yield Row(f"{name}: {label} / Lucene hit by hit", warm / peer, "x", f"at most {aim}")
    lengths = [len(index.query_terms(query.text)) for query in queries]
    longest = int(np.argmax(lengths))
    extractor = FeatureExtractor(index, candidate_pool())
    slowest = seconds(lambda: extractor(rankings[longest]))
    yield Row(f"{name}: full pool, the longest query ({lengths[longest]} terms)", 1e3 * slowest, "ms")


def pyserini_seconds(path: Path, queries: list[Query]) -> float:
    """The time in which Anserini's SimpleSearcher retrieves the top 1000 and each hit's docid and score are read."""
    searcher = java_class("io.anserini.search.SimpleSearcher")(str(path))
    searcher.set_bm25(0.9, 0.4)
    return cpu_seconds(
        lambda: [[(h.docid, h.score) for h in searcher.search(query.text, 1000)] for query in queries], 3
    )


def selection_rows(index: PositionalIndex, run: Run, qrels: Qrels) -> Iterator[Row]:
    """Greedy selection and coordinate ascent against fastrank, on one fold's training queries."""
    extractor = FeatureExtractor(index, candidate_pool("sd"))
    data = training_data(run.rankings, qrels, extractor)
    test = split_folds(list(run), 5, seed=1)[0]
    data = data.select_queries([qid for qid in data.qids if qid not in test])
    yield from compared(data, qrels)


def mmr_rows(index: PositionalIndex, rankings: Sequence[Ranking]) -> Iterator[Row]:
    """MMR, 100 of 1000 candidates, against pyversity on dense vectors of the same documents (300 dimensions)."""
    from pyversity import mmr
    from sklearn.decomposition import TruncatedSVD

    reduce = TruncatedSVD(300, random_state=0)
    points = [drop_empty_columns(index.tfidf(index.documents(ranking.docids))) for ranking in rankings]
    vectors = [reduce.fit_transform(own) for own in points]
    stage = MMR(index, relevance_weight=0.7, depth=1000, k=100)
    ours = cpu_seconds(lambda: [stage(ranking) for ranking in rankings]) / len(rankings)
    theirs = cpu_seconds(
        lambda: [mmr(dense, ranking.scores, 100) for dense, ranking in zip(vectors, rankings, strict=True)]
    ) / len(rankings)
    yield Row("MMR, 100 of 1000, from the index", 1e3 * ours, "ms/query")
    yield Row("pyversity's MMR, vectors given", 1e3 * theirs, "ms/query")
    yield Row("MMR / pyversity", ours / theirs, "x", "at most 1")
