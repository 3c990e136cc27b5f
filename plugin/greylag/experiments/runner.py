"""Runs a study and writes its outcome: the one way for all studies.

The output folder then holds

    results.json   settings, versions and everything that was measured
    times.json     seconds, if the study measured any
    NAME.run       the study's runs, some with a description (NAME.yaml, ir_metadata)
    models/        the study's models
    report.html    tables and figures, if the study makes a report
    finished.json  what the outcome depends on, its scores and its summary; written last

A finished study is not run again while settings, input files, code and library versions are the same.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from greylag.experiments.config import Experiment
from greylag.experiments.figures import check_dependencies
from greylag.experiments.ir_metadata import describe
from greylag.experiments.report import write_report
from greylag.experiments.study import Context, Outcome, Progress, Study, load
from greylag.experiments.tables import as_text
from greylag.files import write_text
from greylag.trec.runs import write_run

FINISHED = "finished.json"


@dataclass(frozen=True)
class Finished:
    """A finished study.

    Parameters
    ----------
    scores : mapping of system to measure to float
    summary : str
        Text for the terminal.
    """

    scores: Mapping[str, Mapping[str, float]]
    summary: str


def run_study(
    study: Study[Any, Any],
    settings: Experiment,
    out: Path,
    *,
    n_jobs: int = 1,
    progress: Progress = lambda line: None,
    fresh: bool = False,
) -> Finished:
    """Run a study and write its files to `out`, or take the outcome of an earlier run that would be the same.

    Parameters
    ----------
    fresh : bool, default False
        Run the study even if it is finished.

    Raises
    ------
    GreylagError
        Whatever the study raises; then no file of an earlier outcome has changed.
    """
    key = dependencies(settings)
    if not fresh and (earlier := _earlier(out / FINISHED, key)):
        progress(f"finished before, with the same settings, input and code: {out / FINISHED}")
        return earlier
    if study.report:
        check_dependencies()
    context = Context(out, n_jobs, progress)
    outcome = study.run(settings, study.open(settings, context), context)
    return write_outcome(outcome, settings, out, key)


def write_outcome(outcome: Outcome, settings: Experiment, out: Path, key: str) -> Finished:
    """Write the files of an outcome, `FINISHED` last, under the key `dependencies` gives."""
    out.mkdir(parents=True, exist_ok=True)
    (out / FINISHED).unlink(missing_ok=True)
    origin = provenance(settings, **outcome.provenance)
    write_text(out / "results.json", json.dumps({**origin, **outcome.results}, indent=1) + "\n")
    if outcome.seconds:
        write_text(out / "times.json", json.dumps(outcome.seconds, indent=1) + "\n")
    for name, run in outcome.runs.items():
        write_run(run, out / f"{name}.run")
    for name, description in outcome.descriptions.items():
        write_text(out / f"{name}.yaml", describe(outcome.runs[name], description))
    for name, model in outcome.models.items():
        path = out / "models" / f"{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        model.save(path)
    summary = "\n".join(map(as_text, outcome.tables))
    if outcome.sections:
        write_report(out / "report.html", outcome.title or settings.name, outcome.sections, origin)
        summary += f"\nThe report is {out / 'report.html'}\n"
    content = {"key": key, "scores": outcome.scores, "summary": summary}
    write_text(out / FINISHED, json.dumps(content, indent=1) + "\n")
    return Finished(outcome.scores, summary)


def provenance(settings: Experiment, **more: Any) -> dict[str, Any]:
    """What results depend on: the settings, the versions, and `more`, such as an index's fingerprint."""
    return {"settings": settings.model_dump(mode="json"), **more, **_versions()}


def dependencies(settings: Experiment) -> str:
    """A digest of all that an outcome depends on: settings, input files (size and time of change), code, versions."""
    depends = {
        "settings": settings.model_dump(mode="json"),
        "inputs": [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in _inputs(settings)],
        "code": _code(),
        **_versions(),
    }
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _earlier(path: Path, key: str) -> Finished | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Finished(content["scores"], content["summary"]) if content["key"] == key else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _inputs(settings: Experiment) -> Iterator[Path]:
    """The files that the settings name, and those that experiment files among them name."""
    for name in _texts(settings.model_dump(mode="json")):
        path = settings.path(name)
        if path.suffix in {".yaml", ".yml"} and path.is_file():
            yield from _inputs(load(path)[1])
        if path.is_dir() and path != settings.path(""):
            yield from sorted(below for below in path.rglob("*") if below.is_file())
        elif path.is_file():
            yield path


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _texts(part)
    elif isinstance(value, list):
        for part in value:
            yield from _texts(part)


def _versions() -> dict[str, str]:
    return {"Python": platform.python_version(), **{name: version(name) for name in ("greylag", "numpy", "scipy")}}


@cache
def _code() -> str:
    """A digest of the source of greylag and greylag_papers."""
    digest = hashlib.sha256()
    for package in ("greylag", "greylag_papers"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or []) if spec else []:
            for path in sorted(Path(folder).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()
