"""``greylag export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.terminal import write_line
from greylag.rankers.export import ENGINES, engine_model
from greylag.rankers.model import RankingModel


def export(
    context: typer.Context,
    model: Annotated[Path, typer.Argument(help="Linear model from `greylag train`.")],
    engine: Annotated[str, typer.Argument(help=f"Search engine: {', '.join(ENGINES)}.")],
    text_field: Annotated[str, typer.Option("--text-field", help="The engine's field of the text.")] = "contents",
) -> None:
    """Print a model as a search engine takes it: feature definitions and weights.

    Only features that the engine computes to the same value are exported. A model with others is refused.
    """
    write_line(engine_model(RankingModel.load(model), engine, text_field))
