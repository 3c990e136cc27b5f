"""``greylag explain``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from greylag.cli.options import Index, Reading, Topics, Transfer
from greylag.errors import ParameterError
from greylag.features.feature import Feature
from greylag.index.positional import PositionalIndex
from greylag.ltr import explanation as explanations
from greylag.ltr.explanation import CliqueShare, Explanation
from greylag.ltr.linear import LinearModel
from greylag.ranking import Ranking


def explain(
    index: Index,
    topics: Topics,
    model: Annotated[Path, typer.Option("--model", help="A model from `greylag train`.")],
    qid: Annotated[str, typer.Option("--qid", help="Query identifier.")],
    docid: Annotated[str, typer.Option("--docid", help="Document identifier.")],
    reading: Reading,
    run: Annotated[
        Path | None, typer.Option("--run", help="TREC run that is reranked; needed by models with expansion features.")
    ] = None,
    transfer: Transfer = False,
) -> None:
    """Break down a document's score into features and cliques, with the counts behind each.

    Below each feature are its cliques, by contribution. A clique's weight is its feature's, times the number of times
    that the query has the clique or, for a feedback term, times the term's probability.
    """
    linear = LinearModel.load(model)
    ranking = _ranking(reading, topics, qid, docid, run)
    if run is None and (needs := [feature for feature in linear.features if feature.uses_ranking]):
        raise ParameterError(f"{model} has features that depend on the run that is reranked ({needs[0]}): give --run")
    explanation = explanations.explain(linear, PositionalIndex.from_lucene(index), ranking, docid, transfer=transfer)
    for line in _lines(explanation):
        typer.echo(line)


def _ranking(reading: Reading, topics: Path, qid: str, docid: str, run: Path | None) -> Ranking:
    """The query's ranking in the run; without a run, one of the document alone."""
    queries = reading.topics(topics)
    if qid not in queries:
        raise ParameterError(f"topic {qid!r} is not in {topics}, whose first topic is {next(iter(queries))!r}")
    if run is None:
        return Ranking(qid, queries[qid], (docid,), np.zeros(1))
    rankings = reading.run(run, topics)
    if qid not in rankings:
        raise ParameterError(f"topic {qid!r} has no documents in {run}")
    return rankings[qid]


def _lines(explanation: Explanation) -> list[str]:
    lines = [
        f"query {explanation.qid}, document {explanation.docid}: score {explanation.score:.12g}\n",
        f"{'contribution':>16} = {'weight':>12} x {'value':>14}  feature, its cliques",
    ]
    for share in explanation.features:
        lines.append(_row(share.contribution, share.weight, share.value, str(share.feature)))
        for clique in sorted(share.cliques, key=lambda clique: -abs(clique.contribution)):
            weight = share.weight * clique.multiplicity
            lines.append(_row(clique.contribution, weight, clique.value, f"    {_counts(clique, share.feature)}"))
    total = sum(share.contribution for share in explanation.features)
    return [*lines, f"{total:16.9f}   sum over features"]


def _row(contribution: float, weight: float, value: float, name: str) -> str:
    return f"{contribution:z16.9f} = {weight:12.6g} x {value:z14.9f}  {name}"


def _counts(clique: CliqueShare, feature: Feature) -> str:
    words = clique.name
    if feature.uses_ranking:
        words += f" (probability {clique.multiplicity:.4g})"
    elif clique.multiplicity != 1:
        words += f" ({clique.multiplicity:.0f} times)"
    return f"{words}: tf {clique.tf}, cf {clique.cf}, df {clique.df}"
