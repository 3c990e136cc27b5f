"""Code beside the work, in whole commands: all of it is an input, and nothing that is not named is run."""

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest

import greylag
from tests.processes import python, run

DEMO = Path(greylag.__file__).parent / "demo"
STAGE = """
import os
from dataclasses import dataclass
from own_helper import SIGN, STOP
from greylag import Stage

CALLS = []

@dataclass(frozen=True)
class Flip(Stage):
    reads_query = False
    diversifies = True

    def __call__(self, ranking):
        CALLS.append(1)
        if len(CALLS) == STOP:
            os.kill(os.getpid(), 9)
        return ranking.first(range(len(ranking))[::SIGN])
"""
IMPATIENT = "import greylag.runtime.cache as log; log.MIN_KEPT_SECONDS = 0.0; from greylag.__main__ import main; main()"


def write_helper(folder: Path, sign: int, stop: int = 0) -> None:
    (folder / "own_helper.py").write_text(f"SIGN, STOP = {sign}, {stop}\n")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A folder with a stage that imports another module, and a run."""
    (tmp_path / "own_stage.py").write_text(STAGE)
    lines = (f"{qid} Q0 d{rank} {rank} {10 - rank} x\n" for qid in range(12) for rank in range(1, 6))
    (tmp_path / "first.run").write_text("".join(lines))
    return tmp_path


def rerank(folder: Path, out: str) -> int:
    words = ["--jobs", "1", "rerank", "--run", "first.run", "--stage", "own_stage:Flip", "--out", out]
    return python("-c", IMPATIENT, *words, cwd=folder).returncode


def test_a_killed_command_does_not_go_on_with_changed_code(own: Path) -> None:
    write_helper(own, -1, stop=7)
    assert rerank(own, "out.run") == -signal.SIGKILL
    assert list(own.glob("*.greylag-work")) or list(own.glob(".*.greylag-work"))
    write_helper(own, 1)
    assert rerank(own, "out.run") == 0
    assert rerank(own, "fresh.run") == 0
    assert (own / "out.run").read_bytes() == (own / "fresh.run").read_bytes()
    write_helper(own, -1)
    assert rerank(own, "other.run") == 0
    assert (own / "out.run").read_bytes() != (own / "other.run").read_bytes()


def experiment(folder: Path, text: str, out: str) -> str:
    """Run an experiment of the demonstration's collection; return the last stage's run."""
    for name in ("docs.jsonl", "topics.tsv", "qrels.txt"):
        if not (folder / name).exists():
            shutil.copy(DEMO / name, folder)
    (folder / "own.yaml").write_text(
        "name: own\ncollection: {docs: docs.jsonl, java: optional}\ntopics: topics.tsv\nqrels: qrels.txt\n" + text
    )
    environment = {name: value for name, value in os.environ.items() if name != "GREYLAG_DATA"}
    script = Path(sys.executable).with_name("greylag")  # python -m puts the working folder on the path by itself
    done = run([script, "experiment", "own.yaml", "--out", out], cwd=folder, env=environment)
    assert done.returncode == 0, done.stderr
    return "".join(path.read_text() for path in sorted((folder / out).glob("*.run")))


@pytest.mark.long
def test_a_finished_study_is_run_again_if_code_that_its_stage_imports_changed(own: Path) -> None:
    text = 'model: sdm\nstages: ["own_stage:Flip"]\n'
    write_helper(own, 1)
    before = experiment(own, text, "out")
    assert experiment(own, text, "out") == before
    write_helper(own, -1)
    after = experiment(own, text, "out")
    assert after != before
    assert after == experiment(own, text, "fresh")


@pytest.mark.long
def test_an_experiment_runs_no_module_beside_it_that_it_does_not_name(tmp_path: Path) -> None:
    """LightGBM imports pandas, which tries these where they are not installed."""
    pytest.importorskip("lightgbm")
    names = "pyarrow bottleneck numexpr pytz scikits sksparse uarray winreg".split()
    for name in names:
        (tmp_path / f"{name}.py").write_text(f"open('{name}.ran', 'w')\n")
    experiment(tmp_path, "model: lambdamart\ntraining: {folds: 2}\n", "out")
    assert [path.name for path in tmp_path.glob("*.ran")] == []
