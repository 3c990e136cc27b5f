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
from greylag.index.expansion import EXPANSIONS, RM3Search
from greylag.lucene.lucene_index import BM25, LuceneIndex, QueryLikelihood, SearchModel
from greylag.lucene.open_index import folders
from greylag.ranking import Run
from greylag.trec import write_rankings
from greylag.trec.runs import tell_empty

MODELS: dict[str, Any] = {"bm25": BM25, "ql": QueryLikelihood}
_EXPANSIONS = "; ".join(f"with +{name}, also: {listed(kind)}" for name, kind in EXPANSIONS.items())
_SETTINGS = f"bm25: {listed(BM25, 'k')}; ql: {listed(QueryLikelihood, 'k')}; {_EXPANSIONS}."


def search(
    context: typer.Context,
    index: Annotated[list[Path], SEARCHED],
    topics: Topics,
    out: OutputRun,
    model: Annotated[
        SearchModel,
        typer.Option("--model", help="BM25 or query likelihood; with +rm3 and the like, the query is expanded."),
    ] = "bm25",
    settings: Annotated[list[str] | None, settings_option(_SETTINGS)] = None,
    hits: Annotated[int, typer.Option("--hits", help="Number of documents per query.")] = 1000,
    tag: Tag = None,
) -> None:
    """Search with BM25 or query likelihood, with or without expansion of the query, and write a run."""
    shared: Shared = context.obj
    name, _, expansion = model.partition("+")
    of_expansion = parameters(EXPANSIONS[expansion]) if expansion else {}
    values = read_settings(settings or [], {**parameters(MODELS[name], "k"), **of_expansion}, of=model)
    feedback = {key: values.pop(key) for key in of_expansion.keys() & values.keys()}
    queries = shared.topics(topics)
    source = MODELS[name](LuceneIndex(folders(index, positions=bool(expansion))), k=hits, **values)
    source = EXPANSIONS[expansion](source, **feedback) if expansion else source
    tag = model if tag is None else tag
    metadata = shared.metadata({"name": tag, "method": model, "hits": hits, **values, **feedback})
    write_rankings(source, queries, out, tag=tag, n_jobs=shared.jobs, metadata=metadata)


def search_first(index: Sequence[Path], topics: Mapping[str, str], jobs: int, *, stack: bool = False) -> Run:
    """The top 1000 documents of each topic by BM25; for a stack, those of the union of BM25 and BM25+RM3."""
    bm25 = LuceneIndex(index).bm25()
    source, tag = (Union((bm25, RM3Search(bm25)), k=1000), "candidates") if stack else (bm25, "bm25")
    run = source.run(topics, n_jobs=jobs, tag=tag)
    tell_empty([ranking.qid for ranking in run.rankings if not len(ranking)], len(run))
    return run
