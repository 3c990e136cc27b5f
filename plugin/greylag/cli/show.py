"""``greylag show``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from greylag.diversity.model import DiversityModel
from greylag.errors import ModelError
from greylag.ltr.linear import LinearModel
from greylag.model_files import read_kind

KINDS: dict[str, type[LinearModel] | type[DiversityModel]] = {kind.kind: kind for kind in (LinearModel, DiversityModel)}


def show(model: Annotated[Path, typer.Argument(help="A model of greylag.")]) -> None:
    """Show what a model learned, from what, and how well."""
    kind = read_kind(model)
    if kind not in KINDS:
        raise ModelError(
            f"{model}: not a model of greylag: give a file that `greylag train` or `train-diversity` wrote"
        )
    typer.echo(KINDS[kind].load(model).summary(), nl=False)
