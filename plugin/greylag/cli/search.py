"""``greylag search``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import typer

from greylag.cli.groups import OnlyFor, given
from greylag.cli.options import Index, OutputRun, Reading, Tag, Topics
from greylag.cli.running import Resumable
from greylag.index.rm3 import RM3Search
from greylag.lucene.lucene_index import BM25, LuceneIndex, QueryLikelihood, SearchModel
from greylag.pipeline import Source
from greylag.trec import write_rankings

MODELS: dict[str, Callable[..., BM25 | QueryLikelihood]] = {"bm25": BM25, "ql": QueryLikelihood}
EXPANDED = ("bm25+rm3", "ql+rm3")


@dataclass(frozen=True)
class ModelOptions:
    """The retrieval model and its parameters."""

    model: Annotated[
        SearchModel, typer.Option("--model", help="BM25 or query likelihood; with +rm3, the query is expanded by RM3.")
    ] = "bm25"
    k1: Annotated[float | None, OnlyFor(("bm25", "bm25+rm3"), "--k1", "Term frequency saturation (default 0.9).")] = (
        None
    )
    b: Annotated[float | None, OnlyFor(("bm25", "bm25+rm3"), "--b", "Length normalisation (default 0.4).")] = None
    mu: Annotated[float | None, OnlyFor(("ql", "ql+rm3"), "--mu", "Dirichlet prior (default 1000).")] = None
    fb_terms: Annotated[
        int | None, OnlyFor(EXPANDED, "--fb-terms", "Number of terms to expand the query with (default 10).")
    ] = None
    fb_docs: Annotated[
        int | None, OnlyFor(EXPANDED, "--fb-docs", "Number of top documents that they are from (default 10).")
    ] = None
    original_query_weight: Annotated[
        float | None,
        OnlyFor(EXPANDED, "--original-query-weight", "Weight of the query against the expansion (default 0.5)."),
    ] = None

    def source(self, index: LuceneIndex, hits: int) -> Source:
        """The first stage that retrieves `hits` documents per query."""
        options = given(self, "--model", self.model)
        name, _, expansion = self.model.partition("+")
        feedback = {key: options.pop(key) for key in ("fb_terms", "fb_docs", "original_query_weight") if key in options}
        first = MODELS[name](index, k=hits, **options)
        return RM3Search(first, **feedback) if expansion else first


def search(
    index: Index,
    topics: Topics,
    out: OutputRun,
    model: ModelOptions,
    reading: Reading,
    running: Resumable,
    hits: Annotated[int, typer.Option("--hits", help="Number of documents per query.")] = 1000,
    tag: Tag = None,
) -> None:
    """Search with BM25 or query likelihood, with or without RM3, and write a run."""
    queries = reading.topics(topics)
    write_rankings(model.source(LuceneIndex(index), hits), queries, out, tag=tag or model.model, n_jobs=running.jobs)
