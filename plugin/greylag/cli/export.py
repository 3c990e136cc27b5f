"""``greylag export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.options import LETOR, MISSING_AS_ZERO
from greylag.cli.terminal import write_line
from greylag.rankers import ENGINES, LIGHTGBM, RankingModel, engine_model


def export(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Model from `greylag train`, or trees that LightGBM or XGBoost saved.")],
    engine: Annotated[str, typer.Argument(help=f"Search engine: {', '.join(ENGINES)}; or {LIGHTGBM}, for trees.")],
    text_field: Annotated[str, typer.Option("--text-field", help="Name of the engine's text field.")] = "contents",
    letor: Annotated[
        Path | None,
        typer.Option("--letor", help=f"{LETOR}: the names of columns that LightGBM's or XGBoost's model has not."),
    ] = None,
    missing_as_zero: Annotated[bool, MISSING_AS_ZERO] = False,
) -> None:
    """Print a model in the format of a search engine: feature definitions with weights, or with trees.

    A model is refused if the engine would compute a feature to another value: those of FI/term/BM25, score, prior:FILE
    and column:NAME can be exported. Trees, also those in a file of LightGBM or XGBoost, are exported to opensearch
    and elasticsearch as XGBoost's JSON, to solr as its additive trees, to vespa as functions, and to lightgbm as its
    text.
    """
    learned = RankingModel.load(model)
    if letor is not None:
        from greylag.cli.ranking_inputs import over_columns  # with stages, which others do without

        learned, _ = over_columns(learned, letor, missing_as_zero=missing_as_zero)
    if missing_as_zero:  # an engine's documents may lack any field
        learned = learned.missing_as_zero()
    write_line(engine_model(learned, engine, text_field))
