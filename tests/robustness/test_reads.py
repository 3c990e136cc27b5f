"""What a study or command read is an input, by whatever road it came in: none goes on from it once a byte has changed.

Tests `greylag.base.runtime.reads`.
"""

import gzip
import json
import os
import signal
import sys
import timeit
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from greylag.base.runtime.reads import reading, unchanged
from tests.processes import IMPATIENT, installed, python

ROADS = {
    "a module imported with the study": "from mine import early; value = early.VALUE",
    "a module imported late": "from mine import late; value = late.VALUE",
    "a second package": "import other.part; value = other.part.VALUE",
    "open": "value = open(DATA / 'a.txt').read()",
    "pathlib": "value = (DATA / 'b.txt').read_text()",
    "a resource of the package": "value = importlib.resources.files('mine').joinpath('data/c.txt').read_text()",
    "JSON": "value = json.load((DATA / 'd.json').open())",
    "a file in memory": "value = np.load(DATA / 'e.npy', mmap_mode='r')[0]",
    "numbers of NumPy": "value = np.fromfile(DATA / 'f.bin', np.uint8)[0]",
    "os.open": "value = os.read(os.open(DATA / 'g.txt', os.O_RDONLY), 9)",
    "gzip": "value = gzip.open(DATA / 'h.gz').read()",
    "a thread": "with ThreadPoolExecutor() as pool: value = [*pool.map(lambda p: p.read_text(), [DATA / 'i.txt'])]",
    "another process": "value = [*parallel_map(read, [DATA / 'j.txt'], what='x', n_jobs=2, prefer='processes')]",
    "a link": "value = (DATA / 'link.txt').read_text()",
    "a file that may be there": "value = (DATA / 'k.txt').read_text() if try_open(DATA / 'k.txt') else 0",
}
"""Python that a study runs. Each reads a file of its own."""
MODULES = {
    "a module imported with the study": "mine/early.py",
    "a module imported late": "mine/late.py",
    "a second package": "other/part.py",
}
"""The roads that lead to modules."""
STUDY = """
import gzip, importlib.resources, json, os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
import numpy as np
from greylag.base import parallel_map
from greylag.studies import Experiment, Outcome, Study
from mine import early

DATA = Path(__file__).parent / "data"

class Settings(Experiment):
    code: str = ""

def read(path):
    return path.read_text()

def try_open(path):
    try:
        return open(path)
    except FileNotFoundError:
        return None

def run(settings, opened, context):
    exec(settings.code)
    return Outcome(scores={}, results={}, tables=["done"])

STUDY = Study(Settings, lambda settings, context: None, run)
"""
ENTRIES = "[greylag.studies]\nmine = mine.parts:STUDY\n"
RUN = """
from pathlib import Path
from greylag.studies.runner import run_study
from greylag.studies.study import load
for path in sorted(Path().glob("*.yaml")):
    lines = []
    run_study(*load(path), Path("out", path.stem), progress=lines.append)
    print(path.stem, any("finished before" in line for line in lines), sep="\\t")
"""


def write_module(path, number):
    """Write a module that a road leads to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"VALUE = {number}\n")
    os.utime(path, (number * 1000, number * 1000))  # Python compares seconds with those of compiled code


def write_data(folder, number):
    """Write the files that all other roads lead to, as another byte for another number."""
    data = folder / "mine" / "data"
    data.mkdir(parents=True, exist_ok=True)
    for name in ("a.txt", "b.txt", "c.txt", "g.txt", "i.txt", "j.txt", "h.gz", "d.json", "target.txt"):
        (data / name).write_text(str(number))
    (data / "h.gz").write_bytes(gzip.compress(str(number).encode()))
    np.save(data / "e.npy", [number])
    (data / "f.bin").write_bytes(bytes([number]))
    if number > 1:
        (data / "k.txt").write_text("there now")
    if not (data / "link.txt").exists():
        (data / "link.txt").symlink_to("target.txt")


def install(folder, entries, parts):
    """The package `mine` with its entry points, and a run to rank again."""
    for name in ("mine", "mine-1.0.dist-info"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "mine-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (folder / "mine-1.0.dist-info" / "entry_points.txt").write_text(entries)
    (folder / "mine" / "__init__.py").touch()
    (folder / "mine" / "parts.py").write_text(parts)
    lines = (f"{qid} Q0 d{rank} {rank} {10 - rank} x\n" for qid in range(12) for rank in range(1, 6))
    (folder / "first.run").write_text("".join(lines))


@pytest.fixture
def own(tmp_path):
    write_data(tmp_path, 1)
    for path in MODULES.values():
        write_module(tmp_path / path, 1)
    install(tmp_path, ENTRIES, STUDY)
    return tmp_path


def finished_before(folder):
    """Run the studies of a folder in a process; say of each whether its earlier outcome was taken."""
    done = python("-c", RUN, cwd=folder, env=installed(folder), check=True)
    return {name: taken == "True" for name, taken in (line.split("\t") for line in done.stdout.splitlines())}


def test_a_study_is_run_again_once_a_byte_that_it_read_has_changed(own):
    names = {f"road{number:02}": road for number, road in enumerate(ROADS)}
    for name, road in names.items():
        (own / f"{name}.yaml").write_text(f"name: {name}\nstudy: mine\ncode: {json.dumps(ROADS[road])}\n")
    assert not any(finished_before(own).values())
    again = finished_before(own)
    assert {names[name] for name, taken in again.items() if not taken} == set()
    write_data(own, 2)  # and no module, which all studies of a process may share
    changed = finished_before(own)
    assert {names[name] for name, taken in changed.items() if taken} == MODULES.keys()
    assert changed.keys() == names.keys()


@pytest.mark.parametrize("road", MODULES)
def test_a_study_is_run_again_once_a_module_that_it_imported_has_changed(own, road):
    (own / "road.yaml").write_text(f"name: x\nstudy: mine\ncode: {json.dumps(ROADS[road])}\n")
    assert finished_before(own) == {"road": False}
    assert finished_before(own) == {"road": True}
    write_module(own / MODULES[road], 2)
    assert finished_before(own) == {"road": False}


def test_what_lies_beside_an_output_is_an_input(tmp_path):
    """Whatever the output's name begins with; and so is a module that changes while the work goes on."""
    (tmp_path / "out-data.txt").write_text("1")
    module = SimpleNamespace(__file__=str(tmp_path / "loaded.py"))
    (tmp_path / "loaded.py").write_text("1")
    sys.modules["loaded_before"] = module
    try:
        with reading(tmp_path / "out") as reads:
            (tmp_path / "out-data.txt").read_text()
            os.utime(tmp_path / "loaded.py", (1, 1))
            assert str(tmp_path / "out-data.txt") in reads.state()
            assert not unchanged(reads.state())
    finally:
        del sys.modules["loaded_before"]


def test_what_is_written_is_no_input_and_what_vanishes_is_one(tmp_path):
    (tmp_path / "in.txt").write_text("1")
    with reading(tmp_path / "out") as reads:
        (tmp_path / "made.txt").write_text("2")
        (tmp_path / "made.txt").read_text()
        (tmp_path / "in.txt").read_text()
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "kept").write_text("3")
    named = {name for name in reads.state() if name.startswith(str(tmp_path))}
    assert named == {str(tmp_path / "in.txt")}
    state = json.loads(json.dumps(reads.state()))
    assert unchanged(state)
    assert reads.state()["numpy"] == np.__version__  # distributions count by version
    (tmp_path / "in.txt").unlink()
    assert not unchanged(state)
    assert not any(map(unchanged, (None, [], "x", {"numpy": "0"})))


def test_recording_ends_and_costs_little(tmp_path):
    """One event takes less than a microsecond, and imports raise some 60,000; taking stock of modules is once."""
    path = tmp_path / "in.txt"
    path.write_text("1")
    with reading() as reads:
        pass
    path.read_text()
    assert str(path) not in reads.state()
    with reading():
        took = min(timeit.repeat(lambda: sys.audit("greylag.none", 1), number=10_000, repeat=5)) / 10_000
        stock = min(timeit.repeat(reads.state, number=1, repeat=5))
    assert 60_000 * took + stock < 0.2  # ten times what was measured


@pytest.mark.parametrize("road", ["open", "a module imported late"])
def test_a_killed_command_begins_anew_if_what_it_read_has_changed(own, road):
    module = f"""
import os
from dataclasses import dataclass
from pathlib import Path
from greylag import Stage
DATA = Path(__file__).parent / "mine" / "data"
CALLS = []

@dataclass(frozen=True)
class Own(Stage):
    reads_query = False

    def __call__(self, ranking):
        {ROADS[road]}
        CALLS.append(1)
        if len(CALLS) == int(os.environ.get("STOP", 0)):
            os.kill(os.getpid(), 9)
        return ranking.first(range(len(ranking))[::-1] if int(value) == 2 else [])
"""
    (own / "stage.py").write_text(module)

    def rerank(stop):
        words = ["--jobs", "1", "rerank", "--run", "first.run", "--stage", "stage:Own", "--out", "out.run"]
        return python("-c", IMPATIENT, *words, cwd=own, env=installed(own, STOP=str(stop)))

    assert rerank(7).returncode == -signal.SIGKILL
    assert (own / ".out.run.greylag-work").exists()
    write_data(own, 2)
    write_module(own / "mine" / "late.py", 2)
    again = rerank(7)
    assert (again.returncode, "work begins anew" in again.stderr) == (-signal.SIGKILL, True)
    done = rerank(0)
    assert done.returncode == 0, done.stderr
    assert "going on from" in done.stderr  # from the second command's work
    assert "anew" not in done.stderr
    ranks = [line.split()[2] for line in (own / "out.run").read_text().splitlines()]
    assert ranks == [f"d{rank}" for rank in range(5, 0, -1)] * 12
    assert Path(own / "out.run").read_text().count("\n") == 60
