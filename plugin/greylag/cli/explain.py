"""``greylag explain``."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from greylag.citations import cite
from greylag.cli.model_inputs import load_model
from greylag.cli.options import INDEX, TOPICS, Shared
from greylag.cli.search import search_first
from greylag.cli.terminal import tell
from greylag.errors import ParameterError
from greylag.experiments.explanation_tables import (
    comparison_of_documents,
    explanation_dict,
    explanation_result,
    explanation_table,
)
from greylag.experiments.report import Section, write_report
from greylag.index.positional import PositionalIndex
from greylag.models.explanation import explain_documents
from greylag.models.model import RankingModel
from greylag.ranking import Ranking
from greylag.runtime.software import versions
from greylag.tables import as_text

_log = logging.getLogger("greylag")


def explain(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="A model from `greylag train`.")],
    index: Annotated[list[Path] | None, INDEX] = None,
    topics: Annotated[Path | None, TOPICS] = None,
    qid: Annotated[str | None, typer.Option("--qid", help="Query identifier.")] = None,
    docid: Annotated[str | None, typer.Option("--docid", help="Document identifier.")] = None,
    against: Annotated[
        str | None, typer.Option("--against", metavar="DOCID", help="Compare with the score of another document.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Number of features shown.")] = 5,
    everything: Annotated[bool, typer.Option("--all", help="Show all features and cliques.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with everything.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Page to write, instead of printing.")] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="TREC run that is reranked; needed by models with expansion features.")
    ] = None,
    transfer: Annotated[bool, typer.Option("--transfer", help="Allow a model trained on another collection.")] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="ENGINE",
            help="Print feature definitions and weights for opensearch, elasticsearch, solr or vespa.",
        ),
    ] = None,
    text_field: Annotated[
        str, typer.Option("--text-field", help="The engine's field of the text, for --format.")
    ] = "contents",
) -> None:
    """Show what a model learned, from what, and how well; with --qid and --docid, break down a document's score.

    A model ends with what to cite, as BibTeX. The breakdown is by features and cliques, with the counts behind each.

    A contribution is weight times value. Below each feature are its cliques, by contribution. A clique's weight is its
    feature's, times the number of times that the query has the clique or, for a feedback term, times the term's
    probability. tf, cf and df are the frequency in the document, the collection frequency and the document frequency.

    With --format, a model of features that a search engine computes to the same value is printed as the engine takes
    it.
    """
    shared: Shared = context.obj
    if engine is not None:
        from greylag.interop.engines import engine_model

        tell(engine_model(RankingModel.load(model), engine, text_field))
        return
    given = {"--index": index, "--topics": topics, "--qid": qid, "--docid": docid}
    if not any((*given.values(), against, run, html, as_json, everything, transfer)):
        summary = load_model(model).summary()
        tell("\n".join([summary, *cite(summary)]))
        return
    if index is None or topics is None or qid is None or docid is None:
        missing = ", ".join(flag for flag, value in given.items() if value is None)
        raise ParameterError(f"to break down a document's score, give {missing}, too; without any, a model is shown")
    learned = RankingModel.load(model)
    docids = [docid] if against is None else [docid, against]
    searched = run is None and bool(learned.provenance.get("searched"))
    ranking = _ranking(shared, topics, qid, docids, run, index if searched else None)
    if run is not None and learned.provenance.get("searched"):
        _log.warning("%s ranks what it searches: its scores in --run %s may be others", model, run)
    if run is None and not searched and (needs := [feature for feature in learned.features if feature.uses_ranking]):
        raise ParameterError(f"{model} has features that depend on the run that is reranked ({needs[0]}): give --run")
    explanations = explain_documents(learned, PositionalIndex.from_lucene(index), ranking, docids, transfer=transfer)
    if as_json:
        tell(json.dumps([explanation_dict(explanation) for explanation in explanations], indent=1))
        return
    shown = None if everything else top
    tables = [explanation_table(explanation, shown) for explanation in explanations]
    if against is not None:
        tables = [comparison_of_documents(explanations[0], explanations[1], shown), *tables]
    if html is not None:
        title = f"Query {qid}: {ranking.query}"
        first = explanation_result(explanations[0], None if against is None else explanations[1], shown)
        parts = [Section(table.caption, "", [table]) for table in tables]
        write_report(html, title, [first, *parts], {"model": str(model), "versions": versions()})
        tell(f"The page is {html}")
        return
    tell(as_text(tables[0]))


def _ranking(
    shared: Shared, topics: Path, qid: str, docids: list[str], run: Path | None, searched: list[Path] | None
) -> Ranking:
    """The query's ranking in the run, or in the index searched as `rerank` does; else one of the documents alone."""
    queries = shared.topics(topics)
    if qid not in queries:
        raise ParameterError(f"topic {qid!r} is not in {topics}, whose first topic is {next(iter(queries))!r}")
    if searched is not None:
        return search_first(searched, {qid: queries[qid]}, shared.jobs, stack=True)[qid]
    if run is None:
        unique = tuple(dict.fromkeys(docids))
        return Ranking(qid, queries[qid], unique, np.zeros(len(unique)))
    rankings = shared.run(run, topics)
    if qid not in rankings:
        raise ParameterError(f"topic {qid!r} has no documents in {run}")
    return rankings[qid]
