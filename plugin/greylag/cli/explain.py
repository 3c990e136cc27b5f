"""The command that takes a score apart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from greylag.cli.options import Field, Index, Lenient, Topics, open_positional
from greylag.errors import ParameterError

if TYPE_CHECKING:
    from greylag.features.spec import Feature
    from greylag.ltr.explanation import CliqueShare


def explain(
    index: Index,
    topics: Topics,
    model: Annotated[Path, typer.Option("--model", help="A model from `greylag train`.")],
    qid: Annotated[str, typer.Option("--qid", help="The topic.")],
    docid: Annotated[str, typer.Option("--docid", help="The document.")],
    run: Annotated[
        Path | None, typer.Option("--run", help="The run that is reranked, for a model with expansion features.")
    ] = None,
    transfer: Annotated[bool, typer.Option("--transfer", help="Allow a model of another collection.")] = False,
    field: Field = "title",
    lenient: Lenient = False,
) -> None:
    """Show a document's score by a model as a sum over features and cliques, with the counts behind each.

    A feature's cliques follow it, those that contribute most first; their weight is the feature's, times how often the
    query has the clique or, of a feedback term, times its probability.
    """
    import numpy as np

    from greylag.ltr import explanation as explaining
    from greylag.ltr.linear import LinearModel
    from greylag.ranking import Ranking
    from greylag.trec import read_run, read_topics

    queries = read_topics(topics, field=field, lenient=lenient)
    if qid not in queries:
        raise ParameterError(f"topic {qid!r} is not in {topics}, which starts with {next(iter(queries))!r}")
    linear = LinearModel.load(model)
    if run is not None:
        rankings = read_run(run, queries, lenient=lenient)
        if qid not in rankings:
            raise ParameterError(f"topic {qid!r} has no document in {run}")
        ranking = rankings[qid]
    elif any(feature.expands for feature in linear.features):
        raise ParameterError(f"{model} has expansion features, which depend on what is reranked: give --run")
    else:
        ranking = Ranking(qid, queries[qid], (docid,), np.zeros(1))
    explanation = explaining.explain(linear, open_positional(index), ranking, docid, transfer=transfer)
    typer.echo(f"query {qid}, document {docid}: score {explanation.score:.12g}\n")
    typer.echo(f"{'contribution':>16} = {'weight':>12} x {'value':>14}  feature, its cliques")
    for share in explanation.features:
        typer.echo(_row(share.contribution, share.weight, share.value, str(share.feature)))
        for clique in sorted(share.cliques, key=lambda clique: -abs(clique.contribution)):
            weight = share.weight * clique.multiplicity
            typer.echo(_row(clique.contribution, weight, clique.value, f"    {_counts(clique, share.feature)}"))
    typer.echo(f"{sum(share.contribution for share in explanation.features):16.9f}   sum over features")


def _row(contribution: float, weight: float, value: float, name: str) -> str:
    return f"{contribution:z16.9f} = {weight:12.6g} x {value:z14.9f}  {name}"


def _counts(clique: CliqueShare, feature: Feature) -> str:
    words = " ".join("(not in the collection)" if term is None else term for term in clique.terms)
    if feature.expands:
        words += f" (probability {clique.multiplicity:.4g})"
    elif clique.multiplicity != 1:
        words += f" ({clique.multiplicity:.0f} times)"
    return f"{words}: tf {clique.tf}, cf {clique.cf}, df {clique.df}"
