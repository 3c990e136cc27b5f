"""``greylag search``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from greylag.base import Run, parameters
from greylag.cli.options import SEARCHED_INDEX, SPELLING, Kind, OutputRun, PartText, Shared, Tag, Topics, help_of
from greylag.evaluation import Part, PooledSources, tell_empty, write_rankings
from greylag.index import EXPANSIONS, MODELS, LuceneIndex, RM3Search, Search, folders

SEARCH_KINDS = {
    **{name: Kind(f"search by {name}", parameters(kind, "k")) for name, kind in MODELS.items()},
    **{
        name: Kind(f"expand the query, as in bm25+{name}", parameters(kind), "bm25+")
        for name, kind in EXPANSIONS.items()
    },
}


def search(
    context: typer.Context,
    index: Annotated[list[Path], SEARCHED_INDEX],
    topics: Topics,
    out: OutputRun,
    search_model: Annotated[
        str,
        typer.Option(
            "--model",
            is_eager=True,
            callback=help_of(SEARCH_KINDS),
            metavar=SPELLING,
            help="bm25 or ql (query likelihood); with +rm3, the query is expanded: "
            'bm25(k1=1.2)+rm3(fb_docs=5). "help" lists all, "bm25(help)" the options of one.',
        ),
    ] = "bm25",
    hits: Annotated[int, typer.Option("--hits", help="Number of documents per query.")] = 1000,
    part: PartText = None,
    tag: Tag = None,
) -> None:
    """Search with BM25 or query likelihood, with or without expansion of the query, and write a run."""
    shared: Shared = context.obj
    asked = Part.parse(part)
    model = Search.parse(search_model)
    queries = shared.topics(topics)
    source = model.source(LuceneIndex(folders(index, positions=model.expansion is not None)), hits)
    tag = model.name if tag is None else tag
    metadata = shared.metadata({"name": tag, "method": model.name, "hits": hits, **model.options, **model.feedback})
    write_rankings(source, queries, out, tag=tag, n_jobs=shared.jobs, metadata=metadata, part=asked)


def search_first(lucene: LuceneIndex, topics: Mapping[str, str], jobs: int, *, union: bool = False) -> Run:
    """Search the top 1000 documents of each topic by BM25; for a union, by BM25 and BM25+RM3."""
    bm25 = lucene.bm25()
    source, tag = (PooledSources((bm25, RM3Search(bm25)), k=1000), "candidates") if union else (bm25, "bm25")
    run = source.run(topics, n_jobs=jobs, tag=tag)
    tell_empty([ranking.qid for ranking in run.rankings if not len(ranking)], len(run), searched=True)
    return run
