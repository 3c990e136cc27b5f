"""A generated collection, with FULL of the size of a newswire test collection: features, manifold stages and MMR.

All in CPU time of one thread, as ratios are then the same on a busy machine.
"""

from collections.abc import Iterator, Sequence

from benchmarks.generated import indexed, queries, without_statistics
from benchmarks.harness import FULL, Row, cpu_seconds
from benchmarks.spine import FIVE, mmr_rows
from greylag.base import Ranking
from greylag.features import Feature, FeatureExtractor, candidate_pool, parse_features
from greylag.index import PositionalIndex
from greylag.rankers import ManifoldRanker

N_DOCUMENTS = 800_000 if FULL else 50_000
N_QUERIES = 40


def rows() -> Iterator[Row]:
    """All rows of the generated collection."""
    with indexed(N_DOCUMENTS) as lucene:
        index, source, asked = PositionalIndex.from_lucene(lucene), lucene.bm25(1000), queries(N_QUERIES)
        rankings = [source(query) for query in asked]
        retrieval = cpu_seconds(lambda: [source(query) for query in asked]) / len(asked)
        yield Row(f"{index.n_documents} documents: Lucene's top 1000, in bulk", 1e3 * retrieval, "ms/query")
        for label, specs, aim in (("full pool", candidate_pool(), 0.3), ("five features", parse_features(FIVE), 0.1)):
            yield from feature_rows(label, specs, aim, index, rankings, retrieval)
        # More than the graphs that manifold ranking keeps
        yield from stage_rows(index, [ranking for ranking in rankings if len(ranking) == 1000][:20])


def feature_rows(
    label: str,
    specs: Sequence[Feature],
    aim: float,
    index: PositionalIndex,
    rankings: Sequence[Ranking],
    retrieval: float,
) -> Iterator[Row]:
    """CPU time of features with statistics known, and what the first count of these adds."""
    alone = without_statistics(index)
    FeatureExtractor(alone, tuple(specs))(rankings[0])  # loads what is compiled
    extractor = FeatureExtractor(alone, tuple(specs))
    first = cpu_seconds(lambda: [FeatureExtractor(alone, tuple(specs))(ranking) for ranking in rankings])
    warm = cpu_seconds(lambda: [extractor(ranking) for ranking in rankings])
    each = 1e3 / len(rankings)
    yield Row(f"{label}", warm * each, "ms/query")
    yield Row(f"{label} / Lucene in bulk", warm / len(rankings) / retrieval, "x", f"at most {aim}")
    yield Row(f"{label}, first count of statistics", (first - warm) * each, "ms/query", "at most 5")


def stage_rows(index: PositionalIndex, rankings: Sequence[Ranking]) -> Iterator[Row]:
    """Manifold ranking and MMR at depth 1000, CPU time."""
    for graph, aim in (("knn", "at most 20"), ("full", "at most 30")):
        stage = ManifoldRanker(index, depth=1000, graph=graph)  # type: ignore[arg-type]
        spent = cpu_seconds(lambda: [stage(ranking) for ranking in rankings], 3)  # noqa: B023
        name = f"manifold stage, {graph} graph, {index.n_terms} terms"
        yield Row(name, 1e3 * spent / len(rankings), "ms/query", aim)
    yield from mmr_rows(index, rankings)
