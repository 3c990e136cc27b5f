"""``greylag search``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from greylag.cli.groups import OnlyFor, given
from greylag.cli.options import Index, Jobs, OutputRun, Reading, Tag, Topics
from greylag.lucene.lucene_index import BM25, LuceneIndex, QueryLikelihood
from greylag.ranking import Source
from greylag.trec import write_run

MODELS: dict[str, Callable[..., Source]] = {"bm25": BM25, "ql": QueryLikelihood}


@dataclass(frozen=True)
class ModelOptions:
    """The retrieval model and its parameters."""

    model: Annotated[Literal["bm25", "ql"], typer.Option("--model", help="BM25 or query likelihood.")] = "bm25"
    k1: Annotated[float | None, OnlyFor("bm25", "--k1", "Term frequency saturation (default 0.9).")] = None
    b: Annotated[float | None, OnlyFor("bm25", "--b", "Length normalisation (default 0.4).")] = None
    mu: Annotated[float | None, OnlyFor("ql", "--mu", "Dirichlet prior (default 1000).")] = None

    def source(self, index: LuceneIndex, hits: int) -> Source:
        """The first stage that retrieves `hits` documents per query."""
        return MODELS[self.model](index, k=hits, **given(self, "--model", self.model))


def search(
    index: Index,
    topics: Topics,
    out: OutputRun,
    model: ModelOptions,
    reading: Reading,
    hits: Annotated[int, typer.Option("--hits", help="Number of documents per query.")] = 1000,
    tag: Tag = None,
    jobs: Jobs = -1,
) -> None:
    """Search with BM25 or query likelihood, and write a run."""
    queries = reading.topics(topics)
    run = model.source(LuceneIndex(index), hits).run(queries, n_jobs=jobs, tag=tag or model.model)
    write_run(run, out)
