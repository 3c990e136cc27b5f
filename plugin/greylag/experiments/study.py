"""What a study is, and the registry of all studies.

A study is three things: settings (its fields of the experiment file), a function that opens what the settings name, and
a pure function from what was opened to an `Outcome`. `greylag.experiments.runner` does the rest for all studies: files,
report, provenance, and reuse of a finished study. To add a study, write one module with a ``STUDY`` and add one line to
`STUDIES`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from greylag.errors import FormatError, ParameterError
from greylag.experiments.config import Experiment, check_fields, read_yaml
from greylag.experiments.report import Section
from greylag.experiments.tables import Table
from greylag.ranking import Run

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

S = TypeVar("S", bound=Experiment)
T = TypeVar("T")
Progress = Callable[[str], None]


class Model(Protocol):
    """A model that saves itself."""

    def save(self, path: Path) -> None:
        """Write the model to `path`."""


@dataclass(frozen=True)
class Context:
    """Where a study runs.

    Parameters
    ----------
    folder : Path
        The study's output folder. Only indexes are written there before the study is finished.
    n_jobs : int, default 1
        Number of threads; -1 for one per core. Results do not depend on it.
    progress : callable, default prints nothing
        Called with one line for each finished step.
    """

    folder: Path
    n_jobs: int = 1
    progress: Progress = lambda line: None
    seconds: dict[str, float] = field(default_factory=dict, init=False, compare=False)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Time the block: report it as progress, and keep its seconds in `seconds`."""
        start = time.perf_counter()
        yield
        self.seconds[step] = time.perf_counter() - start
        self.progress(f"{step}: {self.seconds[step]:.1f} s")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a study found. The runner writes it; see `greylag.experiments.runner.write_outcome` for the files.

    Parameters
    ----------
    scores : mapping of system to measure to float
        What the file's ``expected`` is compared with.
    results : mapping, JSON-serialisable
        Everything that was measured: ``results.json``. The same in every run.
    tables : sequence of Table or str
        Shown on the terminal, in this order.
    title : str, default "": the study's name
        The report's title.
    sections : sequence of Section, default ()
        The report; without any, none is written.
    runs : mapping of file name (without suffix) to Run, default {}
    descriptions : mapping of a run's file name to its ir_metadata description, default {}
    models : mapping of path below ``models/`` (without suffix) to model, default {}
    seconds : mapping, JSON-serialisable, default {}
        Times, which differ from run to run and are therefore kept out of `results`.
    provenance : mapping, JSON-serialisable, default {}
        What the results depend on besides the settings and versions, such as an index's fingerprint.
    """

    scores: Mapping[str, Mapping[str, float]]
    results: Mapping[str, Any]
    tables: Sequence[Table | str]
    title: str = ""
    sections: Sequence[Section] = ()
    runs: Mapping[str, Run] = field(default_factory=dict)
    descriptions: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    models: Mapping[str, Model] = field(default_factory=dict)
    seconds: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Study(Generic[S, T]):
    """A study.

    Parameters
    ----------
    settings : type
        A subclass of `Experiment`: the study's fields of an experiment file.
    open : callable
        From settings and context to whatever `run` needs: reads files, opens or builds indexes, generates data.
    run : callable
        From settings, what was opened and context to an `Outcome`. Writes nothing.
    report : bool, default True
        Whether the outcome has sections, so that the packages for reports are looked for before any work is done.
    """

    settings: type[S]
    open: Callable[[S, Context], T]
    run: Callable[[S, T, Context], Outcome]
    report: bool = True


def load(path: str | Path) -> tuple[Study[Any, Any], Experiment]:
    """The study that an experiment file names, and its settings.

    Raises
    ------
    FormatError
        If the file cannot be used or names no study.
    """
    fields = read_yaml(path)
    name = fields.get("study", "pipeline")
    if name not in STUDIES:
        raise FormatError(path, None, f"unknown study {name!r}: use one of {', '.join(STUDIES)}")
    study: Study[Any, Any] = import_module(STUDIES[name]).STUDY
    return study, check_fields(path, fields, study.settings)


def deviations(scores: Mapping[str, Mapping[str, float]], expected: Mapping[str, Mapping[str, float]]) -> list[str]:
    """The scores that differ from the expected ones when both are rounded to four decimals, one line each.

    Raises
    ------
    ParameterError
        If a score is expected that the study does not compute.
    """
    lines = []
    for system, measures in expected.items():
        for measure, value in measures.items():
            if measure not in scores.get(system, {}):
                raise ParameterError(f"the experiment expects {measure} of {system!r}, which it does not compute")
            got = scores[system][measure]
            if round(got, 4) != round(value, 4):
                lines.append(f"{system} {measure}: expected {value:.4f}, got {got:.4f}")
    return lines
