"""Code beside the work, in whole commands: all of it is an input, and nothing that is not named is run."""

import shutil
import signal
import sys
from pathlib import Path

import pytest

import greylag
from greylag.features.spelling import parse_feature
from greylag.rankers import RankingModel
from tests.processes import IMPATIENT, installed, python, run
from tests.robustness.test_reads import finished_before, install

DEMO = Path(greylag.__file__).parent / "demo"
MODULE = """
import os
from dataclasses import dataclass
from greylag import Stage
{early}

CALLS = []

def called():
    CALLS.append(1)
    if len(CALLS) == int(os.environ.get("STOP", 0)):
        os.kill(os.getpid(), 9)
    return helper.SIGN

@dataclass(frozen=True)
class Flip(Stage):
    reads_query = False
    diversifies = True

    def __call__(self, ranking):
        return ranking.first(range(len(ranking))[::called()])

@dataclass(frozen=True)
class Late(Flip):
    def __call__(self, ranking):
        {late}
        return super().__call__(ranking).first(range(len(ranking))[::late.SIGN])
"""
PARTS = """
from greylag.features.evidence import Score
from greylag.learning import GreedySelection
from greylag.studies import Experiment, Outcome, Study

class Feature(Score):
    form = "mine"

    def __str__(self):
        return "mine"

    def bind(self, index):
        return lambda ranking: called() * ranking.scores

@dataclass(frozen=True)
class Learner(GreedySelection):
    pass

class Settings(Experiment):
    pass

def run(settings, opened, context):
    from . import late
    return Outcome(scores={"mine": {"sign": helper.SIGN * late.SIGN}}, results={}, tables=["mine"])

STUDY = Study(Settings, lambda settings, context: None, run)
"""
ENTRIES = """
[greylag.stages]
mine = mine.parts:Flip
mine-late = mine.parts:Late
[greylag.features]
mine = mine.parts:Feature
[greylag.learners]
mine = mine.parts:Learner
[greylag.diversity_learners]
mine-sets = mine.parts:Learner
[greylag.studies]
mine = mine.parts:STUDY
"""
COLLECTION = (
    "collection: {docs: docs.jsonl, java: optional}\ntopics: topics.tsv\nqrels: qrels.txt\ntraining: {folds: 2}\n"
)
RANKED = f"{COLLECTION}model: bm25\nbaselines: []\n"
LEARNED = f"{COLLECTION}model: listwise\nbaselines: []\n"
USES = {
    "stage": f"{RANKED}stages: [mine]\n",
    "joined": f"{RANKED}stages: ['mmr >> mine-late']\n",
    "module": f"{RANKED}stages: ['own_stage:Flip']\n",
    "feature": f"{LEARNED}features: mine@z\n",
    "stage as feature": f"{LEARNED}features: 'stage:mine'\n",
    "learner": f"{COLLECTION}model: mine(max_features=2)\nbaselines: []\n",
    "baseline": f"{COLLECTION}model: bm25\nbaselines: [mine(max_features=2)]\n",
    "study": "study: mine\n",
}
"""Experiments that use the package `mine`, or a module beside them, and nothing else of others."""


def write_signs(folder, *, early=1, late=1):
    """What stages multiply with, in modules that they import at once and when they are called."""
    for name, sign in (("helper", early), ("late", late)):
        for path in (folder / "mine" / f"{name}.py", folder / f"own_{name}.py"):
            if not path.exists() or path.read_text() != f"SIGN = {sign}\n":
                path.write_text(f"SIGN = {sign}\n")


@pytest.fixture
def own(tmp_path):
    """A folder with an installed package, a module with stages, what both import, and a run."""
    install(tmp_path, ENTRIES, MODULE.format(early="from mine import helper", late="from mine import late") + PARTS)
    of_module = MODULE.format(early="import own_helper as helper", late="import own_late as late")
    (tmp_path / "own_stage.py").write_text(of_module)
    write_signs(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("option", "value", "part"),
    [
        ("--stage", "own_stage:Flip", "early"),
        ("--stage", "own_stage:Late", "late"),
        ("--stage", "mine-late", "late"),
        ("--model", "model.json", "early"),
    ],
)
def test_a_killed_command_does_not_go_on_with_changed_code(option, value, part, own):
    RankingModel((parse_feature("score"),), (1.0,)).save(own / "model.json")
    (own / "model.json").write_text((own / "model.json").read_text().replace('"score"', '"mine"'))

    def rerank(stop):
        words = ["--jobs", "1", "rerank", "--run", "first.run", option, value, "--out", "out.run"]
        return python("-c", IMPATIENT, *words, cwd=own, env=installed(own, STOP=str(stop))).returncode

    write_signs(own, **{part: -1})
    assert rerank(7) == -signal.SIGKILL
    assert (own / ".out.run.greylag-work").exists()
    write_signs(own)
    assert rerank(0) == 0
    ranks = [line.split()[2] for line in (own / "out.run").read_text().splitlines()]
    assert ranks == [f"d{rank}" for rank in range(1, 6)] * 12


@pytest.mark.long
def test_an_outcome_depends_on_all_code_of_what_the_study_uses(own):
    """Imported early or late."""
    for name, text in USES.items():
        (own / f"{name}.yaml").write_text(f"name: x\n{text}")
    for name in ("docs.jsonl", "topics.tsv", "qrels.txt"):
        shutil.copy(DEMO / name, own)
    assert set(finished_before(own).values()) == {False}
    assert {name for name, taken in finished_before(own).items() if not taken} == set()
    write_signs(own, late=2)
    changed = finished_before(own)
    assert {name for name, taken in changed.items() if taken} == {"baseline", "feature"}  # which never import it
    write_signs(own, early=2, late=2)
    changed = finished_before(own)
    assert {name for name, taken in changed.items() if taken} == set()
    assert changed.keys() == USES.keys()


@pytest.mark.long
def test_an_experiment_runs_no_module_beside_it_that_it_does_not_name(tmp_path):
    """LightGBM imports pandas, which tries these where they are not installed."""
    pytest.importorskip("lightgbm")
    for name in "pyarrow bottleneck numexpr pytz scikits sksparse uarray winreg".split():
        (tmp_path / f"{name}.py").write_text(f"open('{name}.ran', 'w')\n")
    for name in ("docs.jsonl", "topics.tsv", "qrels.txt"):
        shutil.copy(DEMO / name, tmp_path)
    (tmp_path / "own.yaml").write_text(f"name: own\n{COLLECTION}model: lambdamart\n")
    script = Path(sys.executable).with_name("greylag")  # python -m puts the working folder on the path by itself
    run([script, "experiment", "own.yaml", "--out", "out"], cwd=tmp_path, check=True)
    assert [path.name for path in tmp_path.glob("*.ran")] == []
