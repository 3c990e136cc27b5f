"""Runs a study and writes its outcome. All studies go through here.

The output folder then contains

    results.json   settings, versions and all measurements
    times.json     seconds, if the study measured any
    NAME.run       the study's runs, some with a description (NAME.yaml, ir_metadata)
    models/        the study's models
    report.html    tables and figures, if the study makes a report
    finished.json  what the outcome depends on, its scores, its summary and its files; written last

A finished study is not run again as long as its settings, input files, code and library versions are the same.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from greylag.experiments.config import Experiment, file_stamps
from greylag.experiments.figures import check_dependencies
from greylag.experiments.ir_metadata import describe, versions
from greylag.experiments.report import write_report
from greylag.experiments.study import Context, Outcome, Progress, Study, load
from greylag.experiments.tables import as_text
from greylag.files import write_text
from greylag.folders import alone
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
) -> Finished:
    """Run a study and write its files to `out`, or reuse an earlier outcome that would be the same.

    One process at a time works in `out`; a second one waits.

    Parameters
    ----------
    study, settings : Study, Experiment
        As `greylag.experiments.study.load` returns them.
    out : Path
        The output folder, made if it is missing.
    n_jobs : int, default 1
        Number of threads; -1 for one per core. Results do not depend on it.
    progress : callable, default prints nothing
        Called with one line for each finished step.

    Raises
    ------
    GreylagError
        Any error of the study. The files of an earlier outcome are then unchanged.
    """
    key, context = dependencies(settings), Context(out, n_jobs, progress)
    if finished := _reuse(key, context):
        return finished
    with alone(out / FINISHED):
        return _reuse(key, context) or _run(study, settings, key, context)


def _reuse(key: str, context: Context) -> Finished | None:
    """The earlier outcome, if it would be the same."""
    out, earlier = context.folder, _read_finished(context.folder)
    if earlier.get("key") != key or not all((out / name).exists() for name in earlier["files"]):
        return None
    context.progress(f"finished before, with the same settings, input and code: {out / FINISHED}")
    return Finished(earlier["scores"], earlier["summary"])


def _run(study: Study[Any, Any], settings: Experiment, key: str, context: Context) -> Finished:
    out, earlier = context.folder, _read_finished(context.folder)
    if study.report:
        check_dependencies()
    outcome = study.run(settings, study.open(settings, context), context)
    (out / FINISHED).unlink(missing_ok=True)
    summary, files = write_outcome(outcome, settings, out)
    for name in set(earlier.get("files", ())) - set(files):
        (out / name).unlink(missing_ok=True)
    content = {"key": key, "scores": outcome.scores, "summary": summary, "files": files}
    write_text(out / FINISHED, json.dumps(content, indent=1) + "\n")
    return Finished(outcome.scores, summary)


def write_outcome(outcome: Outcome, settings: Experiment, out: Path) -> tuple[str, list[str]]:
    """Write the files of an outcome; return the text for the terminal and the names of the files."""
    origin = {"settings": settings.model_dump(mode="json"), **outcome.provenance, "versions": versions()}
    texts = {"results.json": json.dumps({**origin, **outcome.results}, indent=1) + "\n"}
    if outcome.seconds:
        texts["times.json"] = json.dumps(outcome.seconds, indent=1) + "\n"
    for name, description in outcome.descriptions.items():
        texts[f"{name}.yaml"] = describe(outcome.runs[name], description)
    for name, text in texts.items():
        write_text(out / name, text)
    runs = {f"{name}.run": run for name, run in outcome.runs.items()}
    for name, run in runs.items():
        write_run(run, out / name)
    models = {f"models/{name}.json": model for name, model in outcome.models.items()}
    for name, model in models.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        model.save(out / name)
    summary, files = "\n".join(map(as_text, outcome.tables)), [*texts, *runs, *models]
    if outcome.sections:
        write_report(out / "report.html", outcome.title or settings.name, outcome.sections, origin)
        summary, files = f"{summary}\nThe report is {out / 'report.html'}\n", [*files, "report.html"]
    return summary, files


def dependencies(settings: Experiment) -> str:
    """A digest of all that an outcome depends on: settings, input files (size and time of change), code, versions."""
    depends = {
        "settings": settings.model_dump(mode="json"),
        "inputs": [(str(path), file_stamps(path)) for path in _inputs(settings)],
        "code": _code(),
        "versions": versions(),
    }
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _read_finished(out: Path) -> dict[str, Any]:
    """The content of `FINISHED`, empty if there is none or it is damaged."""
    try:
        content = json.loads((out / FINISHED).read_text(encoding="utf-8"))
        return content if {"key", "scores", "summary", "files"} <= content.keys() else {}
    except (OSError, ValueError, AttributeError):
        return {}


def _inputs(settings: Experiment) -> Iterator[Path]:
    """The files and folders that the settings name, and those that experiment files among them name."""
    for path in settings.paths():
        if os.path.isfile(path) or (os.path.isdir(path) and path != settings.path("")):
            yield path
            if path.suffix in {".yaml", ".yml"}:
                yield from _inputs(load(path)[1])


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
