"""Held-out rankings of commands that learn: ``--folds`` and ``--out-run``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.cli.outputs import check_output
from greylag.errors import ParameterError
from greylag.evaluation import compare, evaluate, table
from greylag.ranking import Run
from greylag.trec import Qrels


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


def validated(first: Run, held_out: Run, qrels: Qrels, measure: str, folds: int) -> dict[str, Any]:
    """Show the scores of the first stage and of held-out rankings, and return the latter for a model's provenance."""
    runs = {"first stage": first, "held out": held_out}
    scores = {name: evaluate(own, qrels, [measure]) for name, own in runs.items()}
    typer.echo(f"\n{table(scores, compare(scores, 'first stage'))}")
    return {"held_out": {"folds": folds, **scores["held out"].by_measure}}
