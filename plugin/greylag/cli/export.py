"""``greylag export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.terminal import write_line
from greylag.rankers.export import ENGINES, LIGHTGBM, engine_model
from greylag.rankers.model import RankingModel


def export(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Model from `greylag train`, or trees that LightGBM saved.")],
    engine: Annotated[str, typer.Argument(help=f"Search engine: {', '.join(ENGINES)}; or {LIGHTGBM}, for trees.")],
    text_field: Annotated[str, typer.Option("--text-field", help="Name of the engine's text field.")] = "contents",
) -> None:
    """Print a model in the format of a search engine: feature definitions with weights, or with trees.

    A model is refused if the engine would compute a feature to another value: those of FI/term/BM25, score, prior:FILE
    and column:NAME can be exported. Trees, also those in a file of LightGBM, are exported to opensearch and
    elasticsearch as XGBoost's JSON, and to lightgbm as its text.
    """
    write_line(engine_model(RankingModel.load(model), engine, text_field))
