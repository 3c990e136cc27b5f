"""``greylag export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.options import LETOR
from greylag.cli.terminal import write_line
from greylag.rankers import ENGINES, LIGHTGBM, RankingModel, engine_model


def export(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Model from `greylag train`, or trees that LightGBM saved.")],
    engine: Annotated[str, typer.Argument(help=f"Search engine: {', '.join(ENGINES)}; or {LIGHTGBM}, for trees.")],
    text_field: Annotated[str, typer.Option("--text-field", help="Name of the engine's text field.")] = "contents",
    letor: Annotated[
        Path | None, typer.Option("--letor", help=f"{LETOR}: the names of columns that LightGBM's model has not.")
    ] = None,
) -> None:
    """Print a model in the format of a search engine: feature definitions with weights, or with trees.

    A model is refused if the engine would compute a feature to another value: those of FI/term/BM25, score, prior:FILE
    and column:NAME can be exported. Trees, also those in a file of LightGBM, are exported to opensearch and
    elasticsearch as XGBoost's JSON, and to lightgbm as its text.
    """
    learned = RankingModel.load(model)
    if letor is not None:
        from greylag.cli.ranking_inputs import over_columns  # with stages, which others do without

        learned, _ = over_columns(learned, letor)
    write_line(engine_model(learned, engine, text_field))
