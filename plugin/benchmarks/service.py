"""Latency of a query in an open process, as in a service: 100 and 1,000 candidates, one and four threads.

Wall times are those of a quiet machine only; CPU times of the thread that ranks vary less with what else runs.
"""

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import DATA, Row
from benchmarks.spine import FIVE
from greylag import MMR, GeneralRanker, LuceneIndex, ModelRanker, PositionalIndex, Reranker, build_index
from greylag.base import Query, Ranking
from greylag.evaluation import read_topics
from greylag.features.spelling import parse_features
from greylag.index import ArrayVectors
from greylag.rankers import RankingModel

THREADS = 4
COLLECTIONS = {"cranfield": ("docs.jsonl.gz", "topics.tsv"), "wikiqa": ("docs.jsonl.gz", "topics.test.tsv")}
AIMS = {"general model": (1, 3)}
"""Milliseconds of p50 and p99 at 100 candidates; 2 and 10 for all others over an index."""


def rows() -> Iterator[Row]:
    """For each ranker, percentiles over the queries of a collection; then those that were not asked before."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (docs, topics) in COLLECTIONS.items():
            build_index(DATA / name / docs, Path(folder, name))
            lucene = LuceneIndex(Path(folder, name))
            for depth in (100, 1000):
                yield from of_collection(f"{name}, {depth}", lucene, read_topics(DATA / name / topics), depth)


def of_collection(where: str, lucene: LuceneIndex, topics: dict[str, str], depth: int) -> Iterator[Row]:
    """The rows of a collection at one depth."""
    source = lucene.bm25(depth)
    found = [source(Query(qid, text)) for qid, text in topics.items()]
    rankings = [ranking for ranking in found if len(ranking) == depth]
    for what, ranker, aimed in rankers(lucene, rankings, depth):
        aims = AIMS.get(what, (2, 10)) if aimed and depth == 100 else None
        yield from of_ranker(f"{where}: {what}", ranker, rankings, aims)


def rankers(
    lucene: LuceneIndex, rankings: Sequence[Ranking], depth: int
) -> Iterator[tuple[str, Callable[[Ranking], Any], bool]]:
    """Each ranker with its name, and whether it is one over an index, for which there are aims."""
    index = PositionalIndex.from_lucene(lucene)
    features = parse_features(FIVE)
    model = RankingModel(features, tuple(1.0 / n for n in range(1, len(features) + 1)))
    yield "linear model of five features", ModelRanker(model, index, transfer=True), True
    yield "general model", GeneralRanker(index), True
    yield "BM25 of Lucene and the general model", lucene.bm25(depth) >> GeneralRanker(index), True
    yield "MMR on TF-IDF, 10 picks", MMR(index, depth=depth, k=10), True
    docids = sorted({docid for ranking in rankings for docid in ranking.docids})
    rows = np.random.default_rng(0).standard_normal((len(docids), 256)).astype(np.float32)
    yield "MMR on vectors, 10 picks", MMR(vectors=ArrayVectors(docids, rows), depth=depth, k=10), True
    if depth == 100:
        texts = dict(zip(lucene.docids(), lucene.texts(), strict=True))
        background = PositionalIndex.from_texts(list(texts.items())[:1000])
        for name, reranker in (
            ("mmr", Reranker("mmr")),
            ("general", Reranker("general")),
            ("general, a background of 1,000", Reranker("general", background=background)),
        ):
            yield f"texts by Reranker({name!r})", _of_texts(reranker, texts), False


def _of_texts(reranker: Reranker, texts: dict[str, str]) -> Callable[[Ranking], Any]:
    return lambda ranking: reranker.rank(
        ranking.query, [texts[docid] for docid in ranking.docids], ranking.scores.tolist(), k=10
    )


def of_ranker(
    name: str, ranker: Callable[[Any], Any], rankings: Sequence[Ranking], aims: tuple[int, int] | None
) -> Iterator[Row]:
    """Percentiles of a ranker's times: of queries asked before, in one and four threads, and of new ones."""
    inputs = [Query(ranking.qid, ranking.query) for ranking in rankings] if "Lucene" in name else list(rankings)

    def timed(value: Any) -> tuple[float, float]:
        begun, spent = time.perf_counter(), time.thread_time()
        ranker(value)
        return 1e3 * (time.perf_counter() - begun), 1e3 * (time.thread_time() - spent)

    ranker(inputs[0])
    first = np.array([timed(value) for value in inputs[1:]])
    settled = np.array([timed(value) for value in inputs])
    with ThreadPoolExecutor(THREADS) as pool:
        several = np.array(list(pool.map(timed, inputs)))
    for what, times, of_row in (
        ("", settled[:, 0], aims),
        (", CPU", settled[:, 1], aims),
        (", new queries, CPU", first[:, 1], None),
        (f", {THREADS} threads", several[:, 0], None),
    ):
        for place, share in enumerate((50, 99)):
            aim = f"at most {of_row[place]}" if of_row else ""
            yield Row(f"{name}{what}, p{share}", float(np.percentile(times, share)), "ms", aim)
