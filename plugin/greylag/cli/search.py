"""``greylag search``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.base import ParameterError, Run, Source, parameters
from greylag.cli.options import (
    QUERY_VECTORS,
    SEARCHED_INDEX,
    SPELLING,
    Kind,
    OutputRun,
    PartText,
    Rule,
    Shared,
    Tag,
    Topics,
    check_rules,
    completed,
    help_of,
)
from greylag.evaluation import Part, PooledSources, tell_empty, write_rankings
from greylag.index import EXPANSIONS, MODELS, LuceneIndex, PositionalIndex, RM3Search, Search, VectorSearch, folders

SEARCH_KINDS = {
    **{name: Kind(f"search by {name}", parameters(kind, "k")) for name, kind in MODELS.items()},
    **{
        name: Kind(f"expand the query, as in bm25+{name}", parameters(kind), "bm25+")
        for name, kind in EXPANSIONS.items()
    },
}
OF_BOTH = "the documents are found whose vectors are nearest to the topic's"
RULES = [
    Rule("--vectors", OF_BOTH, "--query-vectors", "--model"),
    Rule("--query-vectors", OF_BOTH, "--vectors"),
]


def _searches() -> list[str]:
    return [*MODELS, *(f"{model}+{expansion}" for model in MODELS for expansion in EXPANSIONS)]


def search(
    context: typer.Context,
    topics: Topics,
    out: OutputRun,
    index: Annotated[list[Path] | None, SEARCHED_INDEX] = None,
    search_model: Annotated[
        str,
        typer.Option(
            "--model",
            is_eager=True,
            callback=help_of(SEARCH_KINDS),
            autocompletion=completed(_searches),
            metavar=SPELLING,
            help="bm25 or ql (query likelihood); with +rm3, the query is expanded: "
            'bm25(k1=1.2)+rm3(fb_docs=5). "help" lists all, "bm25(help)" the options of one.',
        ),
    ] = "bm25",
    hits: Annotated[int, typer.Option("--hits", help="Number of documents per query.")] = 1000,
    vectors: Annotated[
        Path | None,
        typer.Option("--vectors", help="Document embeddings (.npz, .npy or JSON lines) to search instead, by cosines."),
    ] = None,
    query_vectors: Annotated[Path | None, typer.Option("--query-vectors", help=f"{QUERY_VECTORS}.")] = None,
    part: PartText = None,
    tag: Tag = None,
) -> None:
    """Search with BM25 or query likelihood, with or without expansion of the query, or by vectors, and write a run.

    Vectors need no index; with one, only its documents are found.
    """
    shared: Shared = context.obj
    check_rules(context, RULES)
    asked, queries = Part.parse(part), shared.topics(topics)
    source: Source
    if vectors is not None and query_vectors is not None:
        from greylag.cli.vector_inputs import open_both, topics_with_vectors  # with stages, which words need not

        embeddings = open_both(vectors, query_vectors)
        queries = topics_with_vectors(queries, embeddings, "they find nothing")
        known = None if index is None else PositionalIndex.from_lucene(folders(index, positions=True))
        source, name, options = VectorSearch(embeddings, known, k=hits), "vectors", dict[str, Any]()
    elif index is None:
        raise ParameterError("give an --index to search, or --vectors and --query-vectors")
    else:
        model = Search.parse(search_model)
        source = model.source(LuceneIndex(folders(index, positions=model.expansion is not None)), hits)
        name, options = model.name, {**model.options, **model.feedback}
    tag = name if tag is None else tag
    metadata = shared.metadata({"name": tag, "method": name, "hits": hits, **options})
    write_rankings(source, queries, out, tag=tag, n_jobs=shared.jobs, metadata=metadata, part=asked)


def search_first(
    lucene: LuceneIndex, topics: Mapping[str, str], jobs: int, *, union: bool = False, k: int = 1000
) -> Run:
    """Search the top `k` documents of each topic by BM25; for a union, by BM25 and BM25+RM3."""
    bm25 = lucene.bm25(k)
    source, tag = (PooledSources((bm25, RM3Search(bm25)), k=k), "candidates") if union else (bm25, "bm25")
    run = source.run(topics, n_jobs=jobs, tag=tag)
    tell_empty([ranking.qid for ranking in run.rankings if not len(ranking)], len(run), searched=True)
    return run
