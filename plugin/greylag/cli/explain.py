"""``greylag explain``."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import typer

from greylag.base import ParameterError, Ranking, Table, as_text, cite, names_of_others, versions
from greylag.cli.model_inputs import load_model
from greylag.cli.options import INDEX, LETOR, MISSING_AS_ZERO, TOPICS, TRANSFER, Rule, Shared, check_rules
from greylag.cli.terminal import write_line
from greylag.index import LuceneIndex, PositionalIndex
from greylag.rankers import (
    Explanation,
    RankingModel,
    comparison_of_documents,
    explain_documents,
    explanation_dict,
    explanation_result,
    explanation_table,
)

if TYPE_CHECKING:
    from greylag.cli.model_inputs import Model

RULES = [
    Rule("--letor", "the file has the documents and features", excluded="--index --topics --run --transfer"),
    Rule("--missing-as-zero", "such a file lacks features", "--letor"),
]
_log = logging.getLogger("greylag")
GENERAL = "general"


def explain(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(
            help="A model from `greylag train`, trees that LightGBM or XGBoost saved, or general, the model of "
            "`greylag rerank` without judgements."
        ),
    ],
    index: Annotated[list[Path] | None, INDEX] = None,
    topics: Annotated[Path | None, TOPICS] = None,
    qid: Annotated[str | None, typer.Option("--qid", help="Query identifier.")] = None,
    docid: Annotated[
        list[str] | None,
        typer.Option("--docid", help="Document identifier; give two to compare them."),
    ] = None,
    top: Annotated[str, typer.Option("--top", help="Number of features to show, or all, with all cliques.")] = "5",
    form: Annotated[
        Literal["text", "json", "html"],
        typer.Option(
            "--format", metavar="[text|json|html]", help="Format of the breakdown. JSON has everything, HTML is a page."
        ),
    ] = "text",
    run: Annotated[
        Path | None,
        typer.Option(
            "--run",
            help="TREC run that is reranked; models with expansion features need it. Leave it out for a model "
            "trained without a run.",
        ),
    ] = None,
    transfer: Annotated[bool, TRANSFER] = False,
    letor: Annotated[
        Path | None, typer.Option("--letor", help=f"{LETOR} with the document, for a model of such a file.")
    ] = None,
    missing_as_zero: Annotated[bool, MISSING_AS_ZERO] = False,
) -> None:
    """Show a model's weights, training data and scores; with --qid and --docid, break down a document's score.

    A model's description ends with references in BibTeX. The breakdown is by features and cliques, with the counts
    behind each.

    A contribution is weight times value. Each feature is followed by its cliques, largest contribution first. A
    clique's weight is that of its feature, times the number of times that the query has the clique or, for a feedback
    term, times the term's probability. tf, cf and df are the frequency in the document, the collection frequency and
    the document frequency. Of trees, contributions are Shapley values, as those of LightGBM and XGBoost, beside
    the mean score in training.
    """
    shared: Shared = context.obj
    check_rules(context, RULES)
    built_in = str(model) == GENERAL and not model.exists()
    inputs = {"--index": index, "--topics": topics} if letor is None else {}
    given = {**inputs, "--qid": qid, "--docid": docid}
    asked = any((topics, qid, docid, run, transfer, letor)) or (form, top) != ("text", "5")
    if not asked and (built_in or index is None):
        shown_model = _general_model(index) if built_in else load_model(model, context.obj.inputs)
        write_line("\n".join([shown_model.summary(), *_references(shown_model)]))
        return
    learned = _general_model(index) if built_in else RankingModel.load(model)
    if learned.runs:
        raise ParameterError(
            f"{model} fuses runs, and its scores are not broken down: `greylag explain {model}` shows its weights"
        )
    if qid is None or not docid or (letor is None and (index is None or topics is None)):
        missing = ", ".join(flag for flag, value in given.items() if not value)
        missing += " (or --letor)" if learned.columns and letor is None else ""
        raise ParameterError(f"to break down a document's score, give {missing}, too; without any, a model is shown")
    if len(docid) > 2:
        raise ParameterError(f"--docid is given {len(docid)} times: a document is compared with one other")
    if top != "all" and not (top.isascii() and top.isdigit() and int(top[:9]) > 0):
        raise ParameterError(f"--top {top!r:.60} is neither a number from 1 on nor all")
    shown = None if top == "all" else int(top[:9])
    positions = None
    if letor is not None:
        from greylag.cli.ranking_inputs import over_columns  # with stages, which texts do without

        learned, listed = over_columns(learned, letor, missing_as_zero=missing_as_zero)
        if qid not in listed:
            raise ParameterError(f"topic {qid!r} is not in {letor}, whose first topic is {next(iter(listed))!r}")
        ranking = listed[qid]
    elif index is not None and topics is not None:
        searches = built_in or learned.searched
        ranking = _ranking(shared, model, learned, index, topics, qid, docid, run, searches=searches)
        positions = PositionalIndex.from_lucene(index)
    explanations = explain_documents(learned, positions, ranking, docid, transfer=transfer)
    if form == "json":
        write_line(json.dumps([explanation_dict(explanation) for explanation in explanations], indent=1))
    elif form == "html":
        write_line(_page(model, ranking, explanations, shown))
    else:
        write_line(as_text(_tables(explanations, shown)[0]))


def _general_model(index: Sequence[Path] | None) -> RankingModel:
    """Return the general model, with the weights of an index if there is one."""
    from greylag.recipes import general_model, general_model_for  # with learning, which no other model needs

    return general_model_for(PositionalIndex.from_lucene(index)) if index else general_model()


def _references(model: Model) -> list[str]:
    """Return the references of a model's methods, which names that users gave to files and functions are not."""
    text = re.sub(r"\b(python|column):\S+", "", model.summary())
    features = model.features if isinstance(model, RankingModel) else ()
    for file in {file for feature in features for file in feature.files()}:
        text = re.sub(rf"(?<=[:(,=]){re.escape(file)}(?![\w.-])", "", text)
    return cite(text, without=names_of_others())


def _tables(explanations: Sequence[Explanation], shown: int | None) -> list[Table]:
    """Make a table for each document, below the comparison if there are two."""
    tables = [explanation_table(explanation, shown) for explanation in explanations]
    return tables if len(tables) == 1 else [comparison_of_documents(explanations[0], explanations[1], shown), *tables]


def _page(model: Path, ranking: Ranking, explanations: Sequence[Explanation], shown: int | None) -> str:
    """Return the page of a document's score, or of two."""
    from greylag.evaluation import Section, report_page  # with figures, which text does without

    first = explanation_result(explanations[0], explanations[1] if len(explanations) > 1 else None, shown)
    parts = [Section(table.caption, "", [table]) for table in _tables(explanations, shown)]
    title = f"Query {ranking.qid}: {ranking.query}".removesuffix(": ")
    return report_page(title, [first, *parts], {"model": str(model), "versions": versions()})


def _ranking(
    shared: Shared,
    path: Path,
    model: RankingModel,
    index: list[Path],
    topics: Path,
    qid: str,
    docids: list[str],
    run: Path | None,
    *,
    searches: bool,
) -> Ranking:
    """Return the query's ranking in the run, or in the index searched as `rerank` does; else the documents alone."""
    queries = shared.topics(topics)
    if qid not in queries:
        raise ParameterError(f"topic {qid!r} is not in {topics}, whose first topic is {next(iter(queries))!r}")
    if run is not None:
        rankings = shared.run(run, topics)
        if qid not in rankings:
            raise ParameterError(f"topic {qid!r} has no documents in {run}")
        if model.searched:
            _log.warning("%s ranks what it finds itself: scores in --run %s may differ", path, run)
        return rankings[qid]
    if searches:
        from greylag.cli.search import search_first  # with all that searches, which a given run does not need

        return search_first(LuceneIndex(index), {qid: queries[qid]}, shared.jobs, union=model.searched)[qid]
    if needs := [feature for feature in model.features if feature.uses_ranking]:
        raise ParameterError(f"{path} has features that depend on the run that is reranked ({needs[0]}): give --run")
    unique = tuple(dict.fromkeys(docids))
    return Ranking(qid, queries[qid], unique, np.zeros(len(unique)))
