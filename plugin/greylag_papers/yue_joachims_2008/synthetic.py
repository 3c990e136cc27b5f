"""SVM-div on synthetic candidate sets, by the number of documents picked (Yue & Joachims 2008, section 7.3)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from greylag.diversity import C_GRID
from greylag.experiments import config
from greylag.experiments.report import (
    Section,
    Table,
    as_text,
    check_dependencies,
    line_figure,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say
from greylag_papers.yue_joachims_2008.comparison import first_split, study, synthetic_queries
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics
from greylag_papers.yue_joachims_2008.tables import LOSS, METHODS

_TEXT = """\
Each method picks K of a set's documents; the loss is the weight of the subtopics that these do not cover. SVM-div is
trained for each K, and its C chosen on the validation sets. "random" is the mean over 20 orders; the synthetic order of
"first-stage" means nothing either; "known-subtopics" is the greedy choice by the truth."""


class Settings(config.Experiment):
    """What is drawn, and how it is learned from.

    Parameters
    ----------
    synthetic_seed, n_sets : of `SyntheticSubtopics`, whose other sizes are the paper's.
    n_training, n_validation : sets to train on, and to choose C by; the others are tested.
    ks : the numbers of documents that are picked.
    spaces : SVM-div's feature spaces.
    grid : values of C.
    """

    synthetic_seed: Annotated[int, Field(ge=0)] = 0
    n_sets: config.Positive = 100
    n_training: config.Positive = 15
    n_validation: config.Positive = 10
    ks: Annotated[tuple[config.Positive, ...], Field(min_length=1)] = tuple(range(1, 16))
    spaces: tuple[Literal["svmdiv", "svmdiv2"], ...] = ("svmdiv",)
    grid: Annotated[tuple[float, ...], Field(min_length=1)] = C_GRID


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    data = SyntheticSubtopics(n_sets=settings.n_sets, seed=settings.synthetic_seed)
    split = first_split(synthetic_queries(data), settings.n_training, settings.n_validation)
    say("synthetic sets: " + ", ".join(f"{len(part)} {use}" for use, part in split._asdict().items()))
    table = study([split], settings.ks, spaces=settings.spaces, grid=settings.grid, n_jobs=n_jobs)
    methods = (*METHODS, *settings.spaces)
    means = {method: {str(k): table.mean(method, k) for k in settings.ks} for method in methods}
    write_results(out, {"data": asdict(data), "means": means})
    rows: list[tuple[str | float, ...]] = [(method, *by_k.values()) for method, by_k in means.items()]
    shown = Table(f"Mean weighted subtopic loss on {len(split.test)} sets", ("K", *map(str, settings.ks)), rows, 3)
    curves = {method: {float(k): loss for k, loss in by_k.items()} for method, by_k in means.items()}
    figure = line_figure("Loss by K (after their Figure 4)", "K", LOSS, {"synthetic sets": (curves, {})})
    sections = [Section("Loss", _TEXT, [shown, figure])]
    write_report(out / "report.html", f"SVM-div: {settings.name}", sections, provenance(settings, data=asdict(data)))
    return Result(means, f"{as_text(shown)}\nThe report is {out / 'report.html'}\n")
