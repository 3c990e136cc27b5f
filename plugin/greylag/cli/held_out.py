"""Held-out rankings of commands that learn: ``--folds`` and ``--out-run``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.outputs import check_output, tell
from greylag.cli.training_topics import next_tag
from greylag.errors import ParameterError
from greylag.evaluation import compare, table
from greylag.index.positional import PositionalIndex
from greylag.ltr.linear import LinearModel
from greylag.ltr.training import Recipe, train
from greylag.ranking import Run
from greylag.trec import Qrels, write_run


@dataclass(frozen=True)
class HeldOut:
    """Cross-validation, and where its rankings go."""

    folds: Annotated[
        int | None, typer.Option("--folds", min=2, help="Cross-validate over topics, too, with this number of folds.")
    ] = None
    out_run: Annotated[
        Path | None, typer.Option("--out-run", help="Run to write: each topic ranked by the model of its fold.")
    ] = None

    def check(self, others: Iterable[Path | None]) -> None:
        """Check that both options are given or none, and that the run is not one of the other files.

        Raises
        ------
        ParameterError
            If not.
        """
        if (self.folds is None) != (self.out_run is None):
            raise ParameterError("--folds and --out-run go together: one number of folds, one run of held-out rankings")
        if self.out_run is not None:
            check_output(self.out_run, [path for path in others if path is not None])


def train_recipe(
    recipe: Recipe, rankings: Run, qrels: Qrels, index: PositionalIndex, held_out: HeldOut, step: str, jobs: int
) -> LinearModel:
    """Train a model, and write the held-out run and show its scores, if they are asked for."""
    tag = next_tag(rankings.tag, step)
    model, validated, scores = train(
        recipe, rankings, qrels, index, folds=held_out.folds, n_jobs=jobs, tag=tag, progress=tell
    )
    if validated is not None and held_out.out_run is not None:
        write_run(validated.run, held_out.out_run)
        typer.echo(f"\n{table(scores, compare(scores, 'first stage'))}")
    return model
