"""Ensembles for subset prediction on synthetic candidate sets, whose truth is known in full."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from pydantic import Field

from greylag.experiments import config
from greylag.experiments.report import check_dependencies
from greylag.experiments.study import Result, Say
from greylag_papers.schiegg_2016 import subsets as cssvm_subsets
from greylag_papers.yue_joachims_2008.comparison import first_split, synthetic_queries
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics


class Settings(cssvm_subsets.SubsetSettings):
    """What is drawn.

    Parameters
    ----------
    synthetic_seed, n_sets : of `SyntheticSubtopics`, whose other sizes are those of Yue & Joachims (2008). What is not
        trained on or validated by is tested.
    """

    synthetic_seed: Annotated[int, Field(ge=0)] = 0
    n_sets: config.Positive = 100


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    data = SyntheticSubtopics(n_sets=settings.n_sets, seed=settings.synthetic_seed)
    split = first_split(synthetic_queries(data), settings.n_training, settings.n_validation)
    found = cssvm_subsets.find([split], settings, n_jobs, say)
    return cssvm_subsets.write(settings, found, out, {"data": asdict(data)})
