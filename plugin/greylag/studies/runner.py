"""Runs a study and writes its outcome. All studies go through here.

The output folder then contains

    results.json   settings, versions and all measurements
    times.json     seconds, if the study measured any
    NAME.run       the study's runs
    models/        the study's models
    report.html    tables and figures, if the study makes a report
    finished.json  what the outcome depends on, with all files that were read for it, its scores, its summary, and its
                   files by name with SHA-256
    .greylag-work  what is done of a study that was interrupted, such as folds; the next call goes on from there

A finished study is not run again as long as its settings, all files that were read for it (see
`greylag.base.runtime.reads`), and library versions are the same. Files
that ``finished.json`` does not name are not overwritten. Of an earlier outcome's files, those that a new one lacks are
removed if they are still as they were written.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from greylag.base import (
    SEEN,
    TREC_EVAL,
    ParameterError,
    alone,
    as_text,
    check_layout,
    code,
    file_digest,
    file_stamps,
    marked,
    resuming,
    unchanged,
    versions,
    write_text,
)
from greylag.evaluation import FORMS, report_page, run_metadata, run_tag, write_run
from greylag.features import followed
from greylag.studies.config import Experiment, check_file_name
from greylag.studies.study import WORK, Context, Outcome, Progress, Study

FINISHED = "finished.json"
RESULTS = "results.json"
REPORT = "report.html"
STUDY_FORMS = tuple(form for form in FORMS if form not in ("html", "junit"))  # a study has a report, and no gate
_WRITTEN = re.compile(r"(results|times)\.json|report\.html|[^/]+\.run|models/.+\.json")  # by studies


@dataclass(frozen=True)
class Finished:
    """A finished study: its scores by system and measure, a summary for the terminal, and forms of its evaluation."""

    scores: Mapping[str, Mapping[str, float]]
    summary: str
    forms: Mapping[str, str] = field(default_factory=dict)


class _Record(TypedDict):
    """The entries of `FINISHED`, which has no key and no more than these files until all of them are there."""

    key: str
    read: NotRequired[dict[str, Any]]
    scores: dict[str, dict[str, float]]
    summary: str
    forms: NotRequired[dict[str, str]]
    files: dict[str, str]


def run_study(
    study: Study[Any, Any],
    settings: Experiment,
    out: Path,
    *,
    n_jobs: int | None = None,
    progress: Progress = lambda line: None,
    metadata: Mapping[str, Any] | None = None,
) -> Finished:
    """Run a study and write its files to `out`, or reuse an earlier outcome that would be the same."""
    # One process at a time works in `out`; a second one waits. `progress` gets a line for each finished step. After any
    # error, or if a foreign file in `out` is in the way, the files of an earlier outcome are unchanged.
    inputs = list(followed(settings.paths()))
    fields, context = settings.model_dump(mode="json"), Context(out, n_jobs, progress)
    key = dependencies(fields, inputs, metadata)
    if finished := _reuse(key, context):  # before the lock, which would change the folder
        return finished
    with alone(out / WORK):
        if finished := _reuse(key, context):  # the work of a process that was waited for
            return finished
        earlier = _earlier_files(out)
        # What every study writes, before hours of work; the names of other files are known only after it.
        _check_free(out, earlier, [RESULTS] if earlier else [FINISHED, RESULTS])
        # Folds of an interrupted run count only under the same key: other data or code starts anew.
        with resuming(out / WORK, lambda: key, out) as reads:
            outcome = _marked(study.run(settings, study.open(settings, context), context), inputs)
            read = reads.state()
        files = outcome_files(outcome, fields, metadata)
        _check_free(out, earlier, files)
        return _write(outcome, files, {"key": key, "read": read}, out, earlier)


def _reuse(key: str, context: Context) -> Finished | None:
    """Load the earlier outcome, if it would be the same."""
    out, earlier = context.folder, _read_finished(context.folder)
    if earlier.get("key") != key or not all((out / name).exists() for name in earlier["files"]):
        return None
    if not unchanged(earlier.get("read")):  # code, data beside it, and whatever else was opened
        return None
    context.progress(f"finished before, with the same settings, input and code: {out / FINISHED}")
    return Finished(earlier["scores"], earlier["summary"], earlier.get("forms", {}))


def _write(
    outcome: Outcome,
    files: Mapping[str, Callable[[Path], object]],
    depends: Mapping[str, Any],
    out: Path,
    earlier: Mapping[str, str],
) -> Finished:
    """Write the files of an outcome, and remove the earlier ones that it lacks and nobody has changed."""
    out.mkdir(parents=True, exist_ok=True)
    # The record has no key until all files are there: a kill in between leaves no outcome that counts as finished.
    content = {"key": "", "scores": {}, "summary": "", "files": {**dict.fromkeys(files, ""), **earlier}}
    write_text(out / FINISHED, json.dumps(content, indent=1) + "\n")
    for name, write in files.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        write(out / name)
    for name in earlier.keys() - files.keys():
        # What somebody edited since is theirs.
        if (out / name).is_file() and file_digest(out / name) == earlier[name]:
            (out / name).unlink()
    report = f"\nThe report is {out / REPORT}\n" if outcome.sections else ""
    evaluation = outcome.evaluation
    forms = {form: evaluation.format(form) for form in STUDY_FORMS} if evaluation else {}
    finished = Finished(outcome.scores, "\n".join(map(as_text, outcome.tables)) + report, forms)
    kept = {name: value for name, value in vars(finished).items() if value or name != "forms"}
    content = {**depends, **kept, "files": {name: file_digest(out / name) for name in files}}
    write_text(out / FINISHED, json.dumps(content, indent=1) + "\n")
    return finished


def _marked(outcome: Outcome, inputs: Iterable[Path]) -> Outcome:
    """Mark the outcome if one of its input runs has topics that were trained on."""
    seen = ", ".join(str(path) for path in inputs if SEEN in run_tag(path))
    if not seen:
        return outcome
    note = f"A model ranked topics that it was trained on, so these scores do not carry over to others: {seen}."
    first = [replace(part, text=f"{part.text}\n\n{note}") for part in outcome.sections[:1]]
    return replace(
        outcome,
        tables=[*outcome.tables, f"{note}\n"],
        sections=[*first, *outcome.sections[1:]],
        runs={name: replace(run, tag=marked(run.tag, SEEN)) for name, run in outcome.runs.items()},
    )


def outcome_files(
    outcome: Outcome, settings: Mapping[str, Any], metadata: Mapping[str, Any] | None = None
) -> dict[str, Callable[[Path], object]]:
    """List the files of an outcome, each with a function that writes it."""
    origin = {"settings": settings, **outcome.provenance, "versions": versions() | TREC_EVAL}
    texts = {RESULTS: json.dumps({**origin, **outcome.results}, indent=1) + "\n"}
    if outcome.seconds:
        texts["times.json"] = json.dumps(outcome.seconds, indent=1) + "\n"
    files: dict[str, Callable[[Path], object]] = {name: partial(write_text, text=text) for name, text in texts.items()}
    head = None if metadata is None else run_metadata([], metadata)
    files |= {f"{name}.run": partial(write_run, run, metadata=head) for name, run in outcome.runs.items()}
    files |= {f"models/{name}.json": model.save for name, model in outcome.models.items()}
    if outcome.sections:
        title = outcome.title or settings["name"]
        files[REPORT] = lambda path: write_text(path, report_page(title, outcome.sections, origin))
    for name in files:
        for part in name.split("/"):
            check_file_name(part)
    return files


def _earlier_files(out: Path) -> dict[str, str]:
    """List the files in `out` that a study wrote, without its record, each with the digest of its content."""
    earlier: dict[str, str] = _read_finished(out).get("files", {})
    # The folder may come from elsewhere: a record must not make greylag remove files that are none of a study's.
    for name in earlier:
        if not _WRITTEN.fullmatch(name) or any(part.startswith(".") for part in name.split("/")):
            raise ParameterError(f"{out / FINISHED} is damaged: no study writes {name!r:.60}; give another folder")
    return earlier


def _check_free(out: Path, earlier: Mapping[str, str], names: Iterable[str]) -> None:
    """Raise `ParameterError` if there is a file of one of these names that no study wrote."""
    for name in names:  # a link that leads nowhere is in the way, too
        if name not in earlier and os.path.lexists(out / name):
            raise ParameterError(f"{out / name} exists and was not written by a study: move it, or give another folder")


def dependencies(settings: Mapping[str, Any], inputs: Iterable[Path], metadata: Mapping[str, Any] | None = None) -> str:
    """Digest all that an outcome depends on: settings, input files (by `file_stamp`), code, versions."""
    depends = {
        **({} if metadata is None else {"metadata": metadata}),
        "settings": settings,
        "inputs": [(str(path), file_stamps(path)) for path in inputs],
        "code": code(),
        "versions": versions(),
    }
    return hashlib.sha256(json.dumps(depends, sort_keys=True).encode()).hexdigest()


def _read_finished(out: Path) -> dict[str, Any]:
    """Read `FINISHED`, empty if there is none or it is damaged."""
    try:
        content = json.loads((out / FINISHED).read_text(encoding="utf-8"))
        check_layout(_Record, content)
    except (OSError, ValueError, RecursionError):
        return {}
    return dict(content)
