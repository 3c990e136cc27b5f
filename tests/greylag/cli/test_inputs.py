"""Whatever option, setting or parameter names a file is an input: protected, and what resumed work depends on.

Tests `greylag.base.runtime.inputs`.
"""

import json
import os
import shutil
import sys
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from pydantic import BaseModel

from greylag.base import ParameterError
from greylag.base.core.registry import registered
from greylag.base.runtime.inputs import Names
from greylag.cli import COMMANDS, running
from greylag.cli.options import Shared
from greylag.cli.running import OUTPUTS, RESUMED_COMMANDS, check_outputs, dependencies, input_files
from greylag.features import FeatureParameters
from greylag.features.stage_registry import StageStep, registered_stages
from greylag.studies.config import Experiment
from greylag.studies.study import find_study

WORDS = {
    "tag", "measure", "measures", "form", "method", "fields", "language", "qid", "docid", "top",
    "init", "search_model", "values", "part", "engine", "text_field", "formats", "collections", "fail_if",
    "margin", "floors", "release", "power",
}  # fmt: skip
"""The options that take text with no file in it, in all commands."""
SETTINGS = {
    ("Part", "related"),
    ("Collection", "fields"), ("Collection", "language"), ("Queries", "field"), ("Documents", "id"),
    ("Documents", "label"), ("Documents", "text"), ("Documents", "split"), ("Documents", "labels"),
    ("Settings", "queries"), ("Settings", "general_without"),
}  # fmt: skip
"""The settings of studies that take any text, with no file in it."""
STAGES = [(name, option) for name in registered_stages() for option in StageStep(name).stage.readers]
TEXTS = {
    "features": ["prior:FILE", "run:FILE@z", "vectors:(documents=FILE,queries=q)", "vectors:(documents=d,queries=FILE)"]
    + [f"stage:{name}({option}=FILE)" for name, option in STAGES],
    "stages": [f"{name}({option}=FILE)" for name, option in STAGES],
    "methods": [f"{name}({option}=FILE)" for name, option in STAGES],
    **{key: ["FILE"] for key in ("teams", "folds")},
    **{key: ["FILE", "NAME=FILE"] for key in ("run", "runs", "baseline")},
    "files": ["NAME=FILE"],
    "model": ["mrf(mu=3,stop_words=FILE)", "bm25(stop_words=FILE)", "svmdiv(titles=FILE)"],
}
"""How texts of options name a file."""


def function_of(command):
    return getattr(import_module(f"greylag.cli.{command}"), command)


def options(command):
    """The types of a command's options but the outputs."""
    hints = get_type_hints(function_of(command), include_extras=True)
    return {name: hint for name, hint in hints.items() if name not in (*OUTPUTS, "context", "return")}


def kinds(hint):
    """All types in a type."""
    return {hint}.union(*map(kinds, get_args(hint))) if get_args(hint) else {hint}


def marked(hint):
    """Whether text of the type names files."""
    return any(isinstance(mark, Names) for part in kinds(hint) for mark in getattr(part, "__metadata__", ()))


def naming():
    """Each command, each of its options that names files, and each way to do so."""
    for command in COMMANDS:
        for name, hint in options(command).items():
            if Path in kinds(hint):
                yield command, name, "FILE"
            elif marked(hint):
                yield from ((command, name, text) for text in TEXTS[name])


@pytest.mark.parametrize("command", COMMANDS)
def test_an_option_with_text_names_files_by_its_type_or_has_none(command):
    texts = {name for name, hint in options(command).items() if str in kinds(hint) and not marked(hint)}
    assert texts <= WORDS


@pytest.mark.parametrize("name", registered_stages())
def test_a_parameter_of_a_stage_with_text_is_a_file_or_one_of_some_words(name):
    stage = StageStep(name).stage
    hints = {part.name: part.type for part in fields(stage) if part.init}
    texts = {part for part, hint in hints.items() if hint in ("str", "str | None")}
    assert texts <= stage.readers.keys() | {"delimiter"}


def forms(form):
    """The form and all forms within it."""
    inner = {kind for field in form.model_fields.values() for kind in kinds(field.annotation)}
    parts = [kind for kind in inner if isinstance(kind, type) and issubclass(kind, BaseModel)]
    return {form}.union(*map(forms, parts))


@pytest.mark.parametrize("study", registered("study"))
def test_a_setting_with_text_names_files_by_its_type_or_has_none(study):
    """Settings with a check of their own, such as names of measures, have none unless their type says so."""
    for form in forms(find_study(study).settings):
        for name, hint in get_type_hints(form, include_extras=True).items():
            if hint in (str, str | None, tuple[str, ...]):
                assert (form.__name__, name) in SETTINGS or name in Experiment.model_fields, form


@pytest.mark.parametrize(("command", "name", "text"), list(naming()))
def test_a_file_that_an_option_names_is_protected_and_depended_on(command, name, text, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text("1\n")
    value = Path("mine") if text == "FILE" else text.replace("FILE", "mine")
    values = {name: [value] if "list" in str(options(command)[name]) else value}

    def shared():
        return Shared(inputs=input_files(function_of(command), values, Shared()))

    assert [*shared().inputs] == [Path("mine")]
    with pytest.raises(ParameterError):
        check_outputs([Path("mine")], shared().inputs)
    if command in RESUMED_COMMANDS:
        before = dependencies(command, shared(), values)
        Path("mine").write_text("2\n")
        assert before() != dependencies(command, shared(), values)()


def test_a_file_of_metadata_is_protected(made, refused, tmp_path):
    (tmp_path / "me.yml").write_text("actor: {team: mine}\n")
    words = ["--metadata", tmp_path / "me.yml", "fuse", "--run", made / "bm25.run", "--out", tmp_path / "me.yml"]
    assert "is the input" in refused(*words)


def given(made, folder):
    """Files of all kinds, of eight topics and their top 30 documents."""
    folder.mkdir()
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    first = [line for line in lines if int(line.split()[0]) <= 8 and int(line.split()[3]) <= 30]
    (folder / "run").write_text("".join(first))
    (folder / "other").write_text("".join(line.replace(" bm25", " o") for line in first[::2]))
    for name in ("topics.tsv", "qrels.txt", "qrels.subtopics.txt", "subtopics.tsv"):
        shutil.copy(made / name, folder / name.partition(".t")[0])
    docids = sorted({line.split()[2] for line in first})
    (folder / "prior").write_text("".join(f"{docid} {number % 7}\n" for number, docid in enumerate(docids)))
    groups = [json.dumps({"id": docid, "group": str(number % 5)}) for number, docid in enumerate(docids)]
    (folder / "groups").write_text("\n".join(groups) + "\n")
    vectors = np.random.default_rng(1).normal(size=(len(docids), 3))
    (folder / "vectors").write_text(
        "".join(json.dumps({"id": i, "vector": v}) + "\n" for i, v in zip(docids, vectors.tolist(), strict=True))
    )
    (folder / "words").write_text("the\nof\n")
    model = {"kind": "greylag linear model", "schema": 1, "objective": "", "collection": {}}
    model |= {"parameters": FeatureParameters().as_dict()}
    rows = [{"feature": name, "weight": 1.0, "training_score": None} for name in ("score", f"prior:{folder / 'prior'}")]
    model |= {"fingerprint": "", "provenance": {}, "features": rows}
    (folder / "model").write_text(json.dumps(model))
    rows[1]["feature"] = "run:NAME"
    (folder / "named").write_text(json.dumps(model))


LEARN = "train --index {index} --topics topics --qrels qrels --run run"
CHANGED = {
    "search": ("search --index {index} --topics topics", ["topics"]),
    "features": (
        "features --index {index} --topics topics --qrels qrels --run run --features "
        "FI/term/LM,prior:prior,run:other,vectors:(documents=vectors,queries=queries)",
        ["topics", "qrels", "run", "prior", "other", "vectors"],
    ),
    "mrf": (
        f"{LEARN} --model mrf(stop_words=words) --features FI/term/LM,prior:prior --folds 2 --out-run held",
        ["topics", "qrels", "run", "prior", "words"],
    ),
    "rerank": (
        "rerank --index {index} --topics topics --run run --model named --file NAME=other --stage mrf(model=model) "
        "--stage manifold(feedback=qrels) --stage group-limit(groups=groups) --vectors vectors --stage mmr(k=5) "
        "--stage xquad(aspects=subtopics,k=5)",
        ["topics", "run", "named", "other", "model", "prior", "qrels", "groups", "vectors", "subtopics"],
    ),
}  # fmt: skip
"""Commands whose work is kept, and the files that they read."""


@pytest.mark.parametrize("name", CHANGED)
def test_a_file_is_changed_between_interruption_and_resumption(name, made, command, tmp_path, monkeypatch):
    """All files that are opened are known, and the results are those of the new file, although all work was kept."""
    monkeypatch.setattr("greylag.base.runtime.cache.MIN_KEPT_SECONDS", 0.0)
    given(made, tmp_path / "in")
    monkeypatch.chdir(tmp_path / "in")
    (tmp_path / "in" / "queries").write_text(
        "".join(json.dumps({"id": str(qid), "vector": [1.0, qid, -1.0]}) + "\n" for qid in range(1, 9))
    )
    text, files = CHANGED[name]
    read = reading(tmp_path / "in", monkeypatch)

    def results(out):
        out.mkdir(exist_ok=True)
        words = [word.format(index=made / "index") for word in text.split()]
        words = [str(out / "held") if word == "held" else word for word in words]
        code, _, errors = command("--jobs", "1", *words, "--out", out / "out")
        assert code == 0, errors
        return [(out / part).read_bytes() for part in ("out", "held") if (out / part).exists()]

    with monkeypatch.context() as kept:
        kept.setattr("greylag.base.runtime.cache.WorkLog.remove", lambda log: None)
        before = results(tmp_path / "whole")
    known, opened = read()
    assert opened <= known
    assert set(files) <= opened
    topics = Path("topics").read_text().splitlines()
    Path("topics").write_text("".join(f"{line} river\n" for line in topics))
    (tmp_path / "whole" / "out").unlink()
    resumed, whole = results(tmp_path / "whole"), results(tmp_path / "new")
    assert resumed == whole != before


def reading(folder, monkeypatch):
    """A function that gives the names of the known inputs in a folder, and of the files there that were opened."""
    known, opened = set[str](), set[str]()

    def check(outputs, inputs):
        known.update(path.name for path in inputs)
        check_outputs(outputs, inputs)

    def audit(event, arguments):
        if event == "open" and isinstance(arguments[0], str | os.PathLike):
            path = Path(os.path.abspath(arguments[0]))
            if path.parent == folder:
                opened.add(path.name)

    monkeypatch.setattr(running, "check_outputs", check)
    sys.addaudithook(audit)  # which cannot be removed, and looks at this test's folder only
    return lambda: (known, opened)
