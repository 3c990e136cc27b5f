"""The contract of a study, and finding the study of an experiment file.

A study consists of settings (its fields of the experiment file), a function that opens what the settings name, and a
pure function from what was opened to an `Outcome`. `greylag.studies.runner` handles everything else: files, report,
provenance, and reuse of a finished study. Studies are registered as entry points of the group ``greylag.studies``, by
which other packages may add theirs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from greylag.base import ParameterError, Run, Table, alone, import_entry, naming, read_yaml, registered, unknown
from greylag.evaluation import Collections, Evaluation, Section
from greylag.features import modules_of
from greylag.studies.config import Experiment, check_fields

S = TypeVar("S", bound=Experiment)
T = TypeVar("T")
Progress = Callable[[str], None]
WORK = ".greylag-work"
"""What is done of a study that was interrupted, in its folder."""


@dataclass(frozen=True)
class Context:
    """Where a study runs."""

    folder: Path
    """The study's output folder. Until the study is finished, only its index is written there."""
    n_jobs: int | None = None
    """Number of workers; -1 for one per core. Results do not depend on it."""
    progress: Progress = lambda line: None
    """Called with one line for each finished step; prints nothing by default."""
    seconds: dict[str, float] = field(default_factory=dict, init=False, compare=False)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Time a block: add its seconds to those of `step`, and report them as progress."""
        start = time.perf_counter()
        yield
        # Not in a `finally`: a step that fails has no time to report.
        spent = time.perf_counter() - start
        self.seconds[step] = self.seconds.get(step, 0.0) + spent
        self.progress(f"{step}: {spent:.1f} s")


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The results of a study. `greylag.studies.runner` lists the files that it is written to."""

    evaluation: Evaluation | Collections | None = None
    """The scores with their tests, in one family; ``greylag experiment --format`` prints it in its forms."""
    scores: Mapping[str, Mapping[str, float]]
    results: Mapping[str, Any]
    tables: Sequence[Table | str] = ()
    title: str = ""
    sections: Sequence[Section] = ()
    runs: Mapping[str, Run] = field(default_factory=dict)
    models: Mapping[str, Any] = field(default_factory=dict)
    seconds: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.tables and self.evaluation:
            object.__setattr__(self, "tables", [self.evaluation.format()])
        elif not self.tables:
            tables = [part for section in self.sections for part in section.parts if isinstance(part, Table)]
            # The class is frozen; a study whose report has all tables need not list them twice.
            object.__setattr__(self, "tables", tables)


@dataclass(frozen=True)
class Study(Generic[S, T]):
    """A study."""

    settings: type[S]
    """A subclass of `Experiment` with the study's fields of an experiment file."""
    open: Callable[[S, Context], T]
    """From settings and context to whatever `run` needs. Reads files, opens or builds indexes, generates data."""
    run: Callable[[S, T, Context], Outcome]
    """From settings, what was opened, and context to an `Outcome`. Writes nothing."""
    evaluates: bool = False
    """Whether the outcome has an evaluation."""

    def __call__(
        self,
        settings: S,
        folder: str | Path | None = None,
        *,
        n_jobs: int | None = None,
        progress: Progress = lambda line: None,
    ) -> Outcome:
        """Run the study with settings of `load`, and return its outcome. Nothing is written but its index.

        The folder is that of ``greylag experiment --out``, by default runs/NAME; for the others see `Context`.
        """
        context = Context(Path(folder or Path("runs") / settings.name), n_jobs, progress)
        with alone(context.folder / WORK):
            return self.run(settings, self.open(settings, context), context)


def load(path: str | Path | Mapping[str, Any]) -> tuple[Study[Any, Any], Experiment]:
    """Load the study that an experiment file names, and its settings. Stages of modules may be files beside it.

    A mapping of fields is read like a file in the working folder.

    Raises
    ------
    FormatError
        If the file is not a valid experiment file or names an unknown study.
    """
    fields = path if isinstance(path, Mapping) else read_yaml(path)
    path = "settings" if isinstance(path, Mapping) else path
    with naming(Path(path)):
        study = find_study(fields.get("study", "pipeline"))
    with modules_of(Path(path).resolve().parent):
        return study, check_fields(path, fields, study.settings)


def find_study(name: object) -> Study[Any, Any]:
    """Find the registered study of this name."""
    entry = registered("study").get(str(name))
    if entry is None:
        raise unknown("study", str(name))
    study: Study[Any, Any] = import_entry("study", entry)
    return study


def deviations(scores: Mapping[str, Mapping[str, float]], expected: Mapping[str, Mapping[str, float]]) -> list[str]:
    """List scores that differ from the expected ones at four decimals, and unexpected rows.

    A row may have more measures than are expected of it. A row that no file expects would never be compared.
    """
    lines = [f"{system}: measured, but not among the expected scores" for system in scores if system not in expected]
    for system, measures in expected.items():
        for measure, value in measures.items():
            if measure not in scores.get(system, {}):
                raise ParameterError(f"the study does not compute {measure} of {system!r}, which its file expects")
            got = scores[system][measure]
            if round(got, 4) != round(value, 4):
                lines.append(f"{system} {measure}: expected {value:.4f}, got {got:.4f}")
    return lines
