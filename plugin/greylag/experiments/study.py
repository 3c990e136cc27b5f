"""What a study is: settings in, a result out; and the list of them.

A study is a module here with a class ``Settings`` (its fields of the experiment file) and a function ``run``. Adding
one is such a module and a line in `STUDIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Protocol

from greylag.errors import FormatError, ParameterError
from greylag.experiments.config import Experiment, check_fields, read_yaml

STUDIES = {
    "categorisation": "greylag_papers.lee_lee_2004.categorisation",
    "cssvm_images": "greylag_papers.schiegg_2016.images",
    "cssvm_subsets_collection": "greylag_papers.schiegg_2016.subsets_collection",
    "cssvm_subsets_synthetic": "greylag_papers.schiegg_2016.subsets_synthetic",
    "manifold_newsgroups": "greylag_papers.zhou_2003.newsgroups",
    "manifold_stage": "greylag.experiments.manifold_stage",
    "manifold_two_moons": "greylag_papers.zhou_2003.two_moons",
    "manifold_usps": "greylag_papers.zhou_2003.usps",
    "mrf": "greylag_papers.metzler_2007.study",
    "pipeline": "greylag.experiments.pipeline",
    "preselection": "greylag.experiments.preselection",
    "svmdiv_collection": "greylag_papers.yue_joachims_2008.collection",
    "svmdiv_pipeline": "greylag.experiments.learned_diversity",
    "svmdiv_synthetic": "greylag_papers.yue_joachims_2008.synthetic",
}

Say = Callable[[str], None]


@dataclass(frozen=True)
class Result:
    """What a study found.

    Parameters
    ----------
    scores : by system (or whatever the study compares) and measure; what ``expected`` is held against.
    summary : text for the terminal: tables, and where the files are.
    """

    scores: Mapping[str, Mapping[str, float]]
    summary: str

    def deviations(self, expected: Mapping[str, Mapping[str, float]]) -> list[str]:
        """Where a score differs from the expected one, both rounded to four decimals: one line each.

        Raises
        ------
        ParameterError
            Where a score is expected that the study did not compute.
        """
        lines = []
        for system, measures in expected.items():
            for measure, value in measures.items():
                if measure not in self.scores.get(system, {}):
                    raise ParameterError(f"the experiment expects {measure} of {system!r}, which it does not compute")
                got = self.scores[system][measure]
                if round(got, 4) != round(value, 4):
                    lines.append(f"{system} {measure}: expected {value:.4f}, got {got:.4f}")
        return lines


class Study(Protocol):
    """The form of a study's module."""

    Settings: type[Experiment]

    def run(self, settings: Experiment, out: Path, *, n_jobs: int, say: Say) -> Result:
        """Run the study, write its files to `out`, and tell of each step."""


def load(path: str | Path) -> tuple[Study, Experiment]:
    """The study that an experiment file names, and its settings.

    Raises
    ------
    FormatError
        Where the file is unusable or names no study.
    """
    fields = read_yaml(path)
    name = fields.get("study", "pipeline")
    if name not in STUDIES:
        raise FormatError(path, None, f"unknown study {name!r}: use one of {', '.join(STUDIES)}")
    study: Study = import_module(STUDIES[name])
    return study, check_fields(path, fields, study.Settings)
