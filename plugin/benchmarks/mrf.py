"""The study of feature selection as a whole, and queries of many terms under full dependence.

With FULL, also the study on generated text: 100 queries of 10 terms, with 48 relevant documents each.
"""

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import stats

from benchmarks.generated import queries, write_documents
from benchmarks.harness import DATA, FULL, Row, once, seconds
from greylag.base import Query
from greylag.evaluation import read_qrels, read_topics
from greylag.features import FeatureExtractor, FeatureParameters, candidate_pool, parse_features
from greylag.index import LuceneIndex, PositionalIndex
from greylag.index.shards import Parts
from greylag.learning import CountedRankings, training_data
from greylag.recipes import baselines
from greylag.recipes.baselines import Baseline, parameter_grid
from greylag.studies import Context, load, open_index
from greylag.studies.runner import run_study
from greylag_papers.metzler_2007.learning import Grid

CACM = DATA / "cacm"
GENERATED = """
name: generated.mrf
study: mrf
data: .
collection: {docs: docs.jsonl}
topics: topics.tsv
qrels: qrels.txt
features: {pool: full, max_clique: 2}
training: {objective: AP, max_features: 7, folds: 5, inner_folds: 3}
"""
CONFIG = Path(__file__).parents[2] / "configs" / "cacm.mrf.yaml"


def rows() -> Iterator[Row]:
    """The study on CACM with two threads and a prebuilt index; then the time per query by length."""
    study, settings = load(CONFIG)
    settings = settings.model_copy(update={"data_folder": DATA})
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        lucene = open_index(DATA / "cacm" / "cacm.tar.gz", "HtmlCollection", Context(out))
        whole = once(lambda: run_study(study, settings, out, n_jobs=2))
        yield Row("CACM, the whole study, 5 folds", whole, "s", "at most 25")
        for step, spent in json.loads((out / "times.json").read_text()).items():
            yield Row(f"of it, {step}", spent, "s")
        yield from query_rows(lucene)
        yield from grid_rows(lucene)
    if FULL:
        yield from generated_rows()


def generated_rows() -> Iterator[Row]:
    """The study on generated text, where words, words near each other, and chance make a document relevant."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_documents(folder / "docs.jsonl", 20_000)
        topics = queries(100, lengths=(10,))
        (folder / "topics.tsv").write_text("".join(f"{topic.qid}\t{topic.text}\n" for topic in topics))
        (folder / "qrels.txt").write_text(judgements(open_index(folder / "docs.jsonl", None, Context(folder)), topics))
        (folder / "study.yaml").write_text(GENERATED)
        study, settings = load(folder / "study.yaml")
        spent = once(lambda: run_study(study, settings, folder, n_jobs=2))
        yield Row("generated, 100 queries of 10 terms with 48 relevant documents each", spent, "s", "at most 180")
        for step, seconds_spent in json.loads((folder / "times.json").read_text()).items():
            yield Row(f"of it, {step}", seconds_spent, "s")


def judgements(lucene: LuceneIndex, topics: Sequence[Query]) -> str:
    """48 of the top 1000 documents of each topic, as TREC judgements."""
    rng, lines = np.random.default_rng(0), []
    extract = FeatureExtractor(
        PositionalIndex.from_lucene(lucene), parse_features("FI/term/BM25,SD/unordered/BM25-U-8")
    )
    for ranking in lucene.bm25(1000).run(topics).rankings:
        terms, near = stats.zscore(extract(ranking), axis=0).T
        order = np.argsort(-(terms + 0.5 * near + rng.standard_normal(len(ranking))))
        lines += [f"{ranking.qid} 0 {ranking.docids[place]} 1\n" for place in order[:48].tolist()]
    return "".join(lines)


def grid_rows(lucene: LuceneIndex) -> Iterator[Row]:
    """The data of a grid of parameters against one extraction with statistics known."""
    run, qrels = lucene.bm25().run(read_topics(CACM / "topics.cacm.txt")), read_qrels(CACM / "qrels.cacm.txt")
    index, base = PositionalIndex.from_lucene(lucene), FeatureParameters(max_clique=2)
    for model in (baselines.LM, baselines.BM25, baselines.MRF_LM, baselines.MRF_BM25):
        grid = parameter_grid(Grid().model_dump(), model.tuned, base)
        extractor = FeatureExtractor(index, model.features, base)
        single = seconds(lambda: training_data(run.rankings, qrels, extractor), 3)  # noqa: B023

        def all_of_grid(model: Baseline = model, grid: list[FeatureParameters] = grid) -> None:
            counted = CountedRankings(run.rankings, qrels, index, model.features)
            for parameters in grid:
                counted.data(parameters)

        name = f"{model.name}: {len(grid)} parameters / one extraction"
        yield Row(name, seconds(all_of_grid, 3) / single, "x", "at most 2")


def query_rows(lucene: LuceneIndex) -> Iterator[Row]:
    """The full pool for the top 1000 documents by query length, with statistics counted anew and with stored ones."""
    topics = read_topics(DATA / "cacm" / "topics.cacm.txt")
    rankings = lucene.bm25().run(topics).rankings
    for limit in (2, 3):
        kept = PositionalIndex.from_lucene(lucene)
        parts = Parts(replace(part, shard=replace(part.shard, folder=None)) for part in kept.parts)
        index = replace(kept, parts=parts)  # keeps no statistics between runs
        extract = FeatureExtractor(index, candidate_pool(), FeatureParameters(max_clique=limit))
        lengths = np.array([len(index.query_terms(ranking.query)) for ranking in rankings])
        FeatureExtractor(kept, extract.specs)(rankings[0])  # loads what is compiled
        times = np.array([[once(lambda: extract(ranking)) for _ in range(2)] for ranking in rankings])  # noqa: B023
        for low, high in ((1, 9), (10, 19), (20, 39), (40, 99)):
            own = times[(low <= lengths) & (lengths <= high)]
            label = f"full pool, cliques of at most {limit} terms, {len(own)} queries of {low} to {high} terms"
            yield Row(f"{label}, first time", 1e3 * float(own[:, 0].mean()), "ms/query")
            yield Row(label, 1e3 * float(own[:, 1].mean()), "ms/query")
