"""The runner, studies and their registry, and what results depend on.

Tests `greylag.evaluation.reports.provenance`, `study` and `greylag.base.runtime.software`.
"""

import json
import math
import os
import platform
import sys
import time
from dataclasses import replace
from functools import partial
from importlib.metadata import EntryPoint, version

import pytest

from greylag import FormatError, ParameterError
from greylag.base import Ranking, Run
from greylag.base.core.registry import GROUPS, registered
from greylag.base.ranking import SEEN
from greylag.base.runtime.software import code, versions
from greylag.evaluation import read_run, write_run
from greylag.evaluation.reports.provenance import read_given, run_metadata
from greylag.features.spelling import parse_feature
from greylag.rankers import RankingModel
from greylag.studies import Context, Experiment, Study, deviations, load, runner
from greylag.studies import study as study_module
from greylag.studies.config import shipped_files
from greylag.studies.runner import Finished, run_study
from tests.greylag.studies import samples
from tests.greylag.studies.samples import STUDY, Number, Settings

FILES = {"results.json", "times.json", "sum.run", "models/part/0.json", "report.html", "finished.json"}

TABLES = "Sums\nsystem     sum\nall     6.0000\n\nA line.\n"


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "numbers.txt").write_text("1 2 3")
    return Settings(name="sum", data_folder=tmp_path, file_folder=tmp_path, numbers="numbers.txt")


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def steps(settings, out):
    """The progress of a run without the seconds."""
    lines = []
    run_study(STUDY, settings, out, progress=lines.append)
    return [line.split(":")[0] for line in lines]


RUN, REUSED = ["opened", "adding"], ["finished before, with the same settings, input and code"]


def test_the_files_of_an_outcome(settings, tmp_path):
    out = tmp_path / "deep" / "out"
    finished = run_study(STUDY, settings, out)
    assert finished.scores == {"all": {"sum": 6.0}}
    assert finished.summary == f"{TABLES}\nThe report is {out / 'report.html'}\n"
    assert set(files(out)) == FILES
    results = samples.results(out)
    assert list(results) == ["settings", "fingerprint", "versions", "numbers"]
    assert results["settings"]["numbers"] == "numbers.txt"
    assert results["versions"]["trec_eval"] == "10.0"
    assert (results["fingerprint"], results["numbers"]) == ("abc", [1.0, 2.0, 3.0])
    assert json.loads((out / "times.json").read_text()).keys() == {"adding"}
    assert read_run(out / "sum.run")["1"].docids == ("a", "b")
    assert (out / "models" / "part" / "0.json").read_text() == "6.0"
    page = samples.Page((out / "report.html").read_text())
    assert page.texts["h1"] == ["Sum of numbers"]
    assert page.rows[1] == ["all", "6.0000"]
    content = json.loads((out / "finished.json").read_text())
    assert set(content["files"]) == FILES - {"finished.json"}


def test_training_topics_of_input_runs_are_told(settings, tmp_path):
    for tag in ("own", f"own{SEEN}"):
        write_run(Run((Ranking("1", "", ("a",), [1.0]),), tag), tmp_path / "own.run")
        finished = run_study(STUDY, settings.model_copy(update={"features": "run:own.run@z"}), tmp_path / "out")
        page = (tmp_path / "out" / "report.html").read_text()
        assert read_run(tmp_path / "out" / "sum.run").tag == tag.replace("own", "sum")
        assert [f"{tmp_path / 'own.run'}." in told for told in (finished.summary, page)] == [SEEN in tag] * 2


def test_a_finished_study_is_reused(settings, tmp_path):
    first = run_study(STUDY, settings, tmp_path / "out")
    before = files(tmp_path / "out")
    assert steps(settings, tmp_path / "out") == REUSED
    assert run_study(STUDY, settings, tmp_path / "out") == first
    assert files(tmp_path / "out") == before


CHANGES = {
    "content": lambda folder, patch: write(folder / "numbers.txt", "1 2 3 4"),
    "time": lambda folder, patch: os.utime(folder / "numbers.txt", ns=(0, 1)),
    "code": lambda folder, patch: patch.setattr(runner, "code", lambda: "other code"),
    "versions": lambda folder, patch: patch.setattr(runner, "versions", lambda: {"numpy": "0.1"}),
    "output": lambda folder, patch: (folder / "out" / "sum.run").unlink(),
    "setting": lambda folder, patch: {"factor": 2.0},
    "name": lambda folder, patch: {"name": "other"},
    "expected": lambda folder, patch: {"expected": {"all": {"sum": 6.0}}},
    "file of a folder": lambda folder, patch: write(folder / "folder" / "below" / "a.txt", "12"),
    "feature of a model of a model": lambda folder, patch: write(folder / "prior.tsv", "a 2\n"),
}


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("name", CHANGES)
def test_a_study_runs_again_after_a_change(settings, tmp_path, monkeypatch, name):
    write(tmp_path / "folder" / "below" / "a.txt", "1")
    write(tmp_path / "prior.tsv", "a 1\n")
    inner, model = tmp_path / "inner.json", tmp_path / "model.json"
    RankingModel((parse_feature(f"prior:{tmp_path / 'prior.tsv'}"),), (1.0,)).save(inner)
    RankingModel((parse_feature(f"stage:mrf(model={inner})"),), (1.0,)).save(model)
    given = {"other": "folder", "features": f"score,stage:mrf(model={model})@z"}
    settings = settings.model_copy(update=given)
    assert steps(settings, tmp_path / "out") == RUN
    write(tmp_path / "unrelated.txt", "1")
    assert steps(settings, tmp_path / "out") == REUSED
    settings = settings.model_copy(update=CHANGES[name](tmp_path, monkeypatch) or {})
    assert steps(settings, tmp_path / "out") == RUN
    assert steps(settings, tmp_path / "out") == REUSED


def test_files_that_a_new_outcome_lacks_are_removed(settings, tmp_path):
    run_study(STUDY, settings.model_copy(update={"models": 3}), tmp_path / "out")
    (tmp_path / "out" / "notes.txt").write_text("mine")
    assert set(files(tmp_path / "out")) == FILES | {"notes.txt", "models/part/1.json", "models/part/2.json"}
    run_study(STUDY, settings, tmp_path / "out")
    assert set(files(tmp_path / "out")) == FILES | {"notes.txt"}


def test_files_that_changed_since_or_that_a_planted_record_names_are_not_removed(settings, tmp_path):
    run_study(STUDY, settings.model_copy(update={"models": 2}), tmp_path / "out")
    (tmp_path / "out" / "models" / "part" / "1.json").write_text("mine")
    (tmp_path / "out" / "mine.run").write_text("mine")
    finished(settings.model_copy(update={"models": 2}), tmp_path / "out", planted="mine.run")
    run_study(STUDY, settings, tmp_path / "out")
    assert set(files(tmp_path / "out")) == FILES | {"models/part/1.json", "mine.run"}


def finished(settings, out, record=None, planted=""):
    """A finished study, with another record, or one that names a file more."""
    run_study(STUDY, settings, out)
    file = out / "finished.json"
    if planted:
        content = json.loads(file.read_text())
        content["files"][planted] = ""
        record = json.dumps(content)
    file.unlink() if record is None else file.write_text(record)


@pytest.mark.parametrize(
    ("spoil", "part"),
    [
        *(
            (lambda settings, out, name=name: write(out / name, "mine"), f"{name} exists")
            for name in ("results.json", "finished.json", "sum.run", "report.html", "models/part/0.json")
        ),
        *((partial(finished, record=record), "exists") for record in ("{", "[]", "{}", None)),
        *(
            (partial(finished, planted=name), repr(name))
            for name in ("../victim", "/victim", "models/../../victim.json", ".hidden", "notes.txt")
        ),
    ],
)
def test_files_that_no_study_wrote_are_left_alone(settings, tmp_path, spoil, part):
    write(tmp_path / "victim", "mine")
    spoil(settings, tmp_path / "out")
    before = files(tmp_path)
    with pytest.raises(ParameterError) as caught:
        run_study(STUDY, settings.model_copy(update={"factor": 2.0}), tmp_path / "out")
    assert part in str(caught.value)
    assert files(tmp_path) == before


@pytest.mark.parametrize("name", ["../victim", "a//b", "", "..", "x" * 201, "a\n"])
def test_no_name_of_an_outcome_leaves_the_folder(settings, tmp_path, name):
    def run(settings, numbers, context):
        found = samples.run(settings, numbers, context)
        return replace(found, runs={name: found.runs["sum"]})

    with pytest.raises(ParameterError):
        run_study(replace(STUDY, run=run), settings, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_failing_study_leaves_the_earlier_outcome(settings, tmp_path):
    run_study(STUDY, settings, tmp_path / "out")
    before = files(tmp_path / "out")
    with pytest.raises(ParameterError):
        run_study(STUDY, settings.model_copy(update={"fails": True}), tmp_path / "out")
    assert files(tmp_path / "out") == before
    assert steps(settings, tmp_path / "out") == REUSED


def test_an_outcome_that_is_half_written_is_not_finished(settings, tmp_path, monkeypatch):
    run_study(STUDY, settings, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr(Number, "save", lambda self, path: path.mkdir(parents=False))
        with pytest.raises(FileExistsError):
            run_study(STUDY, settings.model_copy(update={"factor": 3.0}), tmp_path / "out")
    assert steps(settings, tmp_path / "out") == RUN


def test_a_study_without_a_report(settings, tmp_path):
    def without_report(settings, numbers, context):
        return replace(samples.run(settings, numbers, context), sections=())

    finished = run_study(replace(STUDY, run=without_report), settings, tmp_path / "out")
    assert finished == Finished({"all": {"sum": 6.0}}, TABLES)
    assert set(files(tmp_path / "out")) == FILES - {"report.html"}


@pytest.mark.parametrize("entry", registered("study").values(), ids=lambda entry: entry.name)
def test_every_entry_of_the_registry_is_a_study(entry):
    study = entry.load()
    assert isinstance(study, Study)
    assert issubclass(study.settings, Experiment)
    assert study.settings.__doc__


@pytest.mark.parametrize("path", shipped_files().values(), ids=lambda path: path.stem)
def test_every_experiment_file_loads(path):
    study, settings = load(path)
    assert isinstance(settings, study.settings)
    assert settings.name == path.stem
    assert settings.expected or "No scores are expected" in path.read_text().replace("\n#", "")
    assert all(math.isfinite(score) for scores in settings.expected.values() for score in scores.values())


def test_the_study_of_a_file(tmp_path, monkeypatch):
    entry = EntryPoint("sum", f"{samples.__name__}:STUDY", GROUPS["study"])
    monkeypatch.setattr(study_module, "registered", lambda kind: {"sum": entry})
    (tmp_path / "x.yaml").write_text("name: x\nstudy: sum\nnumbers: n.txt\n")
    study, settings = load(tmp_path / "x.yaml")
    assert study is samples.STUDY
    assert settings.path("n.txt") == tmp_path / "n.txt"
    (tmp_path / "x.yaml").write_text("name: x\nstudy: some\n")
    with pytest.raises(FormatError) as caught:
        load(tmp_path / "x.yaml")
    assert f"{tmp_path / 'x.yaml'}: unknown study 'some'" in str(caught.value)


def test_timed_steps_add_up_and_are_reported(tmp_path):
    lines = []
    context = Context(tmp_path, progress=lines.append)
    for _ in range(2):
        with context.timed("waiting"):
            time.sleep(0.02)
    with pytest.raises(ParameterError), context.timed("failing"):
        raise ParameterError("no")
    assert context.seconds.keys() == {"waiting"}
    assert context.seconds["waiting"] >= 0.04
    assert [line[:9] for line in lines] == ["waiting: "] * 2


def test_deviations_are_at_four_decimals_and_rows_that_nobody_expects():
    scores = {"a": {"AP": 0.12344, "P@10": 0.5}, "b": {"AP": 0.3}}
    assert deviations(scores, {"a": {"AP": 0.1234}, "b": {"AP": 0.30004}}) == []
    assert deviations(scores, {"a": {"AP": 0.1235, "P@10": 0.5}, "b": {"AP": 0.4}}) == [
        "a AP: expected 0.1235, got 0.1234",
        "b AP: expected 0.4000, got 0.3000",
    ]
    assert deviations(scores, {"a": {"AP": 0.1234}}) == ["b: measured, but not among the expected scores"]
    for expected in ({"a": {"RR": 1.0}}, {"c": {"RR": 1.0}}):
        with pytest.raises(ParameterError) as caught:
            deviations(scores, expected)
        assert f"RR of {next(iter(expected))!r}" in str(caught.value)


def test_versions_are_those_of_the_required_packages():
    found = versions()
    assert list(found)[:2] == ["Python", "greylag"]
    assert found["Python"] == platform.python_version()
    assert all(found[name] == version(name) for name in ("numpy", "scipy", "numba", "joblib", "pyserini"))


def test_the_code_of_both_packages_counts(tmp_path, monkeypatch):
    before = code()
    package = tmp_path / "greylag_papers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "greylag_papers", raising=False)
    code.cache_clear()
    assert code() != before
    code.cache_clear()


def test_metadata_of_a_run_is_merged_with_the_users(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/some/where/greylag", "experiment", "my file.yaml"])
    step = {"name": "search", "k1": 0.9}
    assert "hardware" not in run_metadata([], {})["platform"]
    given = {
        "actor": {"team": "geese"},
        "platform": {"hardware": "auto", "software": {"retrieval toolkit": ["mine==1"]}},
        "method": {"automatic": False},
    }
    content = run_metadata([step], given)
    assert list(content) == ["platform", "implementation", "method", "actor"]
    assert content["implementation"]["executable"]["cmd"] == "greylag experiment 'my file.yaml'"
    assert content["platform"]["hardware"]["cpu"].keys() == {"architecture", "number of cores"}
    assert content["platform"]["software"]["retrieval toolkit"] == ["mine==1"]
    assert any(name.startswith("numpy==") for name in content["platform"]["software"]["libraries"]["python"])
    assert (content["method"]["automatic"], content["method"]["retrieval"]) == (False, [step])
    assert given["platform"]["hardware"] == "auto"
    for text, part in (("research_goal: {description: no}\n", "'research_goal'"), ("[1]\n", "mapping")):
        write(tmp_path / "me.yml", text)
        with pytest.raises(FormatError) as caught:
            read_given(tmp_path / "me.yml")
        assert part in str(caught.value)


def test_a_study_writes_metadata_into_its_runs(settings, tmp_path):
    """And is run again for other metadata."""
    for team in ("geese", "ducks"):
        run_study(STUDY, settings, tmp_path / "out", metadata={"actor": {"team": team}})
        head = (tmp_path / "out" / "sum.run").read_text().partition("# ir_metadata.end\n")[0]
        assert f"# actor:\n#   team: {team}\n" in head
    run_study(STUDY, settings, tmp_path / "out")
    assert "#" not in (tmp_path / "out" / "sum.run").read_text()
