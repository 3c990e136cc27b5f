"""What features of position, written form and latent semantics cost, beside all others of `greylag train`.

With FULL, also the decomposition of a million generated documents.
"""

import tempfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from benchmarks.generated import write_documents
from benchmarks.harness import DATA, FULL, Row, cpu_seconds, once
from greylag.evaluation import read_topics
from greylag.features import FeatureExtractor, FeatureParameters
from greylag.index import PositionalIndex
from greylag.index.vectors.latent import decompose
from greylag.recipes.sources import FeatureSources, TunedRM3
from greylag.studies import Context, open_index

ADDED = "position", "written form", "latent"
AIM = "at most 1.4"


def rows() -> Iterator[Row]:
    """All features of CACM's topics, 100 documents each, with counts of windows kept; then each added source alone."""
    with tempfile.TemporaryDirectory() as folder:
        lucene = open_index(DATA / "cacm" / "cacm.tar.gz", "HtmlCollection", Context(Path(folder)))
        index = PositionalIndex.from_lucene(lucene)
        rankings = lucene.bm25(100).run(read_topics(DATA / "cacm" / "topics.cacm.txt")).rankings
        groups = FeatureSources().features(TunedRM3(FeatureParameters(), 0.5), texts=True)

        def spent(*names: str) -> float:
            extract = FeatureExtractor(index, tuple(chain.from_iterable(groups[name] for name in names)))
            return cpu_seconds(lambda: [extract(ranking) for ranking in rankings]) / len(rankings)

        before = spent(*(name for name in groups if name not in ADDED))
        yield Row("features of 100 documents before, a query", 1000 * before, "ms")
        yield Row("features of 100 documents with all sources / before", spent(*groups) / before, "x", AIM)
        for name in ADDED:
            yield Row(f"{name} alone, a query", 1000 * spent(name), "ms")
        yield Row(f"decomposition of CACM's {index.n_documents} documents", once(lambda: decompose(index)), "s")
        if FULL:
            write_documents(Path(folder) / "docs.jsonl", 1_000_000)
            large = PositionalIndex.from_lucene(open_index(Path(folder) / "docs.jsonl", None, Context(Path(folder))))
            yield Row("decomposition of a million documents", once(lambda: decompose(large)), "s", "at most 600")
