"""``greylag search``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.cli.options import (
    SEARCHED,
    OutputRun,
    Shared,
    Tag,
    Topics,
    listed,
    parameters,
    read_settings,
    settings_option,
)
from greylag.fusion import Union
from greylag.index.rm3 import RM3Search
from greylag.lucene.lucene_index import BM25, LuceneIndex, QueryLikelihood, SearchModel
from greylag.lucene.open_index import folders
from greylag.ranking import Run
from greylag.trec import write_rankings

MODELS: dict[str, Any] = {"bm25": BM25, "ql": QueryLikelihood}
_SETTINGS = f"bm25: {listed(BM25, 'k')}; ql: {listed(QueryLikelihood, 'k')}; with +rm3, also: {listed(RM3Search, 'k')}."


def search(
    context: typer.Context,
    index: Annotated[list[Path], SEARCHED],
    topics: Topics,
    out: OutputRun,
    model: Annotated[
        SearchModel, typer.Option("--model", help="BM25 or query likelihood; with +rm3, the query is expanded by RM3.")
    ] = "bm25",
    settings: Annotated[list[str] | None, settings_option(_SETTINGS)] = None,
    hits: Annotated[int, typer.Option("--hits", help="Number of documents per query.")] = 1000,
    tag: Tag = None,
) -> None:
    """Search with BM25 or query likelihood, with or without RM3, and write a run."""
    shared: Shared = context.obj
    name, _, expansion = model.partition("+")
    of_expansion = parameters(RM3Search, "k") if expansion else {}
    values = read_settings(settings or [], {**parameters(MODELS[name], "k"), **of_expansion}, of=model)
    feedback = {key: values.pop(key) for key in of_expansion.keys() & values.keys()}
    queries = shared.topics(topics)
    source = MODELS[name](LuceneIndex(folders(index, positions=bool(expansion))), k=hits, **values)
    source = RM3Search(source, **feedback) if expansion else source
    tag = model if tag is None else tag
    metadata = shared.metadata({"name": tag, "method": model, "hits": hits, **values, **feedback})
    write_rankings(source, queries, out, tag=tag, n_jobs=shared.jobs, metadata=metadata)


def search_first(index: Sequence[Path], topics: Mapping[str, str], jobs: int, *, stack: bool = False) -> Run:
    """The top 1000 documents of each topic by BM25; for a stack, those of the union of BM25 and BM25+RM3."""
    bm25 = LuceneIndex(index).bm25()
    if not stack:
        return bm25.run(topics, n_jobs=jobs, tag="bm25")
    return Union((bm25, RM3Search(bm25)), k=1000).run(topics, n_jobs=jobs, tag="candidates")
