"""``kill``, most often ``-9``, at random points of every long command: it then ends as if nothing had happened.

The output is that of a command that was never killed, to the byte, no work is done again that was kept, and the command
names what it goes on from.
"""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.base.runtime.cache import SUFFIX
from tests.processes import SECONDS

DEMO = Path(greylag.__file__).parent / "demo"
DOCS, TOPICS = str(DEMO / "docs.jsonl"), str(DEMO / "topics.tsv")
LEARNING = "--model mrf(max_features=2) --features FI/term/LM,SD/ordered/LM-O-1,SD/unordered/LM-U-8,FI/term/BM25"
SUBTOPICS = f"--qrels {DEMO / 'qrels.subtopics.txt'}"
RANKED = "--index {made}/index --topics {made}/topics.tsv --run {made}/few.run"
JUDGED = f"{RANKED} --qrels {DEMO / 'qrels.txt'}"
_TEMPORARY = re.compile(rf"\.greylag-([0-9a-f]{{32}}|lock|part|old|work|work-journal)$|{re.escape(SUFFIX)}$")
_UNSTABLE = re.compile(r"(out/)?(times\.json|index(\.greylag)?/.*)|keys")
"""Times, which differ from run to run, and indexes, whose content shows in what they give."""
_BUILT = re.compile(r"index: (\d+ documents, in out/index|out/index, built before)\n")
"""What a study says of its index, which a killed one may have built."""
_FINISHED = re.compile(r"^finished before, with the same settings.*\n\n")
_RESUMED = re.compile(r"greylag: info: going on from \S*greylag-work, which an interrupted command left\n")
_COMPILING = "greylag: info: compiling loops on first use; greylag compile does this ahead of time\n"

COMMANDS = {
    "index": f"index {DOCS} --out index",
    "search": "search --index {made}/index --topics {made}/topics.tsv --model bm25+rm3 --out out.run",
    "features": f"features {RANKED} --pool sd --out out.letor",
    "train": f"train {JUDGED} {LEARNING} --out out.json",
    "train --folds": f"train {JUDGED} {LEARNING} --folds 3 --out-run held.run --out out.json",
    "train --model rm3": f"train {JUDGED} --model rm3(k1=[0.6,0.9],b=[0.2,0.4],fb_docs=[5,10],fb_terms=5) "
    "--folds 3 --out-run held.run --out out.json",
    "train --model lambdamart": f"train {JUDGED} --model lambdamart --folds 2 --out-run held.run --out out.json",
    "rerank": f"rerank {RANKED} --stage manifold --out out.run",
    "rerank twice": f"rerank {RANKED} --stage manifold --stage mmr --out out.run",
    "rerank --vectors": f"rerank {RANKED} --vectors {{made}}/vectors.jsonl "
    "--query-vectors {made}/queries.jsonl --out out.run",
    "pool": f"pool {{made}}/few.run {{made}}/out.run --depth 10 --sample 9 --qrels {DEMO / 'qrels.txt'} --out out.txt",
    "fuse": "fuse --run {made}/few.run --run {made}/out.run --out fused.run",
    "fuse --qrels": "fuse --run {made}/few.run --run {made}/out.run --folds 2 --out fused.run "
    f"--qrels {DEMO / 'qrels.txt'}",
    "train --model cssvm": f"train {RANKED} {SUBTOPICS} --model cssvm(depth=8,k=2,M=2,validate=true) --out out.json",
    "experiment": f"experiment {DEMO / 'demo.yaml'} --out out",
}
QUICK = "rerank"
"""The command that is killed in every run of the tests."""

CODE = """
import sys
from greylag.base.runtime import cache
from greylag.cli import main

save = cache.WorkLog.save_result

def told(log, key, result):
    if save(log, key, result):
        print(key, file=keys, flush=True)

with open("keys", "w") as keys:
    cache.MIN_KEPT_SECONDS, cache.WorkLog.save_result = 0.0, told
    main()
"""
"""Runs a command that keeps its work from the first item on, and lists the keys of what it has kept."""


@dataclass(frozen=True)
class Ended:
    """How a process ended: its exit code, what it printed, the errors, its files, and the keys of what it kept."""

    code: int
    printed: str
    errors: str
    files: dict[str, bytes]
    keys: list[str]


def start(arguments, folder):
    """Start a command in a folder, with temporary files in another below it."""
    (folder / "tmp").mkdir(exist_ok=True)
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen(
        [sys.executable, "-c", CODE, *arguments],
        cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def snapshot(folder):
    """The content of all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def finish(process, folder):
    """Wait for the end of a command."""
    printed, errors = process.communicate(timeout=SECONDS)
    files = {name: content for name, content in snapshot(folder).items() if not _UNSTABLE.fullmatch(name)}
    if record := files.get("out/finished.json"):  # without what was read: an index is built by one process of two
        files["out/finished.json"] = json.dumps(json.loads(record) | {"read": {}}).encode()
    keys = (folder / "keys").read_text().splitlines()
    return Ended(process.returncode, _BUILT.sub("", printed), errors.replace(_COMPILING, ""), files, keys)


def strays(folder):
    """Temporary files and folders."""
    found = [path for path in folder.rglob("*") if _TEMPORARY.search(path.name) or path.parent.name == "tmp"]
    return list(map(str, found))


def prepare(folder):
    """An index, and the top of BM25's run for some topics, which the commands start from."""
    (folder / "topics.tsv").write_text("".join(Path(TOPICS).read_text().splitlines(keepends=True)[:12]))
    for name in ("index", "search"):
        ended = finish(start(words(name, folder), folder), folder)
        assert ended.code == 0, ended.errors
    lines = (folder / "out.run").read_text().splitlines(keepends=True)
    (folder / "few.run").write_text("".join(line for line in lines if int(line.split()[3]) <= 30))
    docids = [json.loads(line)["id"] for line in Path(DOCS).read_text().splitlines()]
    qids = [line.split("\t")[0] for line in (folder / "topics.tsv").read_text().splitlines()]
    for name, ids in (("vectors", docids), ("queries", qids)):
        rows = zip(ids, np.random.default_rng(0).normal(size=(len(ids), 4)).tolist(), strict=True)
        text = "".join(json.dumps({"id": key, "vector": row}) + "\n" for key, row in rows)
        (folder / f"{name}.jsonl").write_text(text)
    return folder


def words(name, made, jobs=1):
    """The arguments of a command."""
    given = COMMANDS[name].format(made=made).split()
    return given if name == "index" else ["--jobs", str(jobs), *given]


def kept(folder, before):
    """The keys of what killed commands had kept; none if there is no file of them, or it was removed at the end."""
    logs = [path for path in folder.rglob("*") if path.name.endswith((SUFFIX, ".greylag-work"))]
    return before | {*(folder / "keys").read_text().splitlines()} if logs else set()


def try_kill(name, folder, made, rng, expected, seconds):
    """Kill a command twice, at random times or after random parts of its work, and repeat it; what is wrong, or ""."""
    before = set[str]()
    for _ in range(2):
        process = start(words(name, made, rng.choice([1, 2])), folder)
        if expected.keys and rng.random() < 0.7:
            wait_for(process, folder / "keys", rng.randrange(len(expected.keys)))
        else:
            time.sleep(rng.uniform(0.1, 1.0) * seconds)
        process.send_signal(rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT]))
        process.communicate(timeout=SECONDS)
        before = kept(folder, before)
    again = finish(start(words(name, made, rng.choice([1, 2])), folder), folder)
    errors = _RESUMED.sub("", again.errors)
    # What a finished step told, such as what was indexed, is not told again.
    if again.code or not {*errors.splitlines()} <= {*expected.errors.splitlines()}:
        return f"exit code {again.code}: {again.errors}"
    if before and set(expected.keys) - set(again.keys) and errors == again.errors:
        return "went on from kept work without a word"
    printed = _FINISHED.sub("", again.printed)  # killed after its last file, a study prints its results again, alone
    same = expected.printed.endswith(printed) if printed != again.printed else printed == expected.printed
    if not same or again.files != expected.files:
        names = again.files.keys() | expected.files.keys()
        differing = sorted(name for name in names if again.files.get(name) != expected.files.get(name))
        return f"another outcome: {differing}, {again.printed}"
    if twice := before & set(again.keys):
        return f"{len(twice)} of {len(before)} parts were done twice, such as {min(twice)}"
    return f"left {strays(folder)}" if strays(folder) else ""


def wait_for(process, path, lines):
    """Wait until a file has more lines than this, or the process ends."""
    while process.poll() is None and not (path.exists() and path.read_bytes().count(b"\n") > lines):
        time.sleep(0.001)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepare(tmp_path_factory.mktemp("prepared"))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name != QUICK else ()) for name in COMMANDS]
)
def test_a_killed_command_goes_on(name, prepared, tmp_path):
    for part in ("whole", "killed"):
        (tmp_path / part).mkdir()
    began = time.monotonic()
    expected = finish(start(words(name, prepared), tmp_path / "whole"), tmp_path / "whole")
    assert expected.code == 0, expected.errors
    rng, seconds = random.Random(1), time.monotonic() - began
    assert not try_kill(name, tmp_path / "killed", prepared, rng, expected, seconds)
