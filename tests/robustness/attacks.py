"""What hostile files and users do beyond malformed content: right results or one line, and nothing else is touched."""

import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import greylag
from greylag.diversity.model import DiversityModel
from greylag.errors import GreylagError
from greylag.evaluation import evaluate
from greylag.models.model import RankingModel
from greylag.ranking import Ranking, Run
from greylag.runtime.cache import WorkLog, resuming
from greylag.runtime.parallel import parallel_map
from greylag.trec import read_run, write_qrels, write_run
from tests.robustness.formats import make_diversity_model, make_linear_model
from tests.robustness.machine import Counts, rounds, snapshot

MEASURES = ("AP", "nDCG", "nDCG@10", "P@5", "RR", "bpref", "infAP", "Rprec", "ERR@10")
ODD = (None, True, -1, 0, 1.5, 1e308, -1e-308, 10**30, "", "x", "\x1b[2J", "\u202e", "\ufeffa", [], {}, [[]], {"a": 1})
STARTED = (
    "from greylag.runtime import interrupts; interrupts.prepare(); from greylag.__main__ import main; "
    'import sys; sys.stdout and print("started", flush=True); main()'
)
"""Before, Python itself is interrupted."""
DEMO = Path(greylag.__file__).parent / "demo"


def survives(case: Callable[[], bool]) -> bool:
    """Whether a case is right in a process of its own, which it may end."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(not case())
        except GreylagError as error:
            os._exit("\n" in str(error))
        except BaseException:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def judgements(place: Path, rng: random.Random) -> bool:
    """Grades of any sign and size: documents with negative ones count as not relevant, and no memory is damaged."""
    docids = [f"d{n}" for n in range(12)]
    run = Run(tuple(Ranking(str(q), "", tuple(rng.sample(docids, 10)), np.arange(10.0)[::-1]) for q in range(6)), "t")
    largest = rng.choice([1, 4, 100])
    qrels = {
        str(q): {docid: rng.randint(least, max(least, most)) for docid in rng.sample(docids, 8)}
        for q in range(6)
        for least, most in [(rng.choice([-5, -2, -1, 0]), rng.choice([-2, -1, 0, largest]))]
    }
    clean = {qid: {docid: max(0, grade) for docid, grade in grades.items()} for qid, grades in qrels.items()}
    names = [name for name in MEASURES if name not in ("bpref", "infAP")]

    def case() -> bool:
        evaluate(run, qrels, MEASURES)
        found, expected = evaluate(run, qrels, names), evaluate(run, clean, names)
        return all(np.array_equal(found.by_measure[name], expected.by_measure[name]) for name in names)

    return survives(case)


def models(place: Path, rng: random.Random) -> bool:
    """A model with an odd value somewhere is refused in one line, or shown."""
    make, kind = rng.choice([(make_linear_model, RankingModel), (make_diversity_model, DiversityModel)])
    content = json.loads(make(rng))
    parts: list[tuple[Any, Any]] = []

    def walk(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)):
            parts.append((value, key))
            if isinstance(value[key], dict | list):
                walk(value[key])

    walk(content)
    owner, key = rng.choice(parts)
    owner[key] = rng.choice(ODD)
    (place / "m.json").write_text(json.dumps(content))
    return bool(kind.load(place / "m.json").summary())


def work_logs(place: Path, rng: random.Random) -> bool:
    """A work log that is damaged, planted or another file: the work is done, and what others own is left alone."""
    path, expected = place / "log", [n * n for n in range(20)]
    log = WorkLog(path, lambda: "")
    for number in range(10):
        log.save_result(f"/1:squares:{number}", (number * number, {}))
    if not path.exists():
        path.write_bytes(b"")
    content = bytearray(path.read_bytes())
    kind = rng.choice(["flip", "cut", "random", "mode", "link", "pipe"])
    if kind == "flip" and content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    content = {"cut": content[: len(content) // 2], "random": bytearray(rng.randbytes(5000))}.get(kind, content)
    path.write_bytes(content)
    if kind == "mode":
        path.chmod(0o666)
    if kind == "link":
        path.rename(place / "mine")
        path.hardlink_to(place / "mine")
    if kind == "pipe":
        path.unlink()
        os.mkfifo(path)
    with resuming(path, lambda: ""):
        found = list(parallel_map(pow, range(20), 2, what="squares"))
    kept = kind != "link" or (place / "mine").read_bytes() == bytes(content)
    return found == expected and kept


def docids(place: Path, rng: random.Random) -> bool:
    """Any Unicode in a docid: refused, or what is written is read again, in the same order."""
    names = {"".join(chr(rng.choice([rng.randrange(1, 0x300), 0xFEFF, 0xFFFE, 0x202E, rng.randrange(0x10FFFF)]))
                     for _ in range(rng.randint(1, 5))) for _ in range(5)}  # fmt: skip
    run = Run((Ranking("1", "", tuple(names), np.arange(float(len(names)))[::-1]),), "t")
    write_run(run, place / "r.run")
    write_qrels({"1": dict.fromkeys(names, 1)}, place / "q.txt")
    return read_run(place / "r.run")["1"].docids == tuple(names)


def command(words: list[str], place: Path, more: str = ":|") -> subprocess.Popen[str]:
    """A command in a folder, by way of a shell that closes or limits what it has."""
    line = " ".join(["exec", sys.executable, "-c", f"'{STARTED}'", *words])
    path = os.pathsep.join(filter(None, [str(DEMO.parents[1]), *sys.path]))
    return subprocess.Popen(
        ["sh", "-c", f"{more.partition('|')[0]}; {line} {more.partition('|')[2]}"],
        cwd=place, env={**os.environ, "PYTHONPATH": path}, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def one_line(process: subprocess.Popen[str], codes: tuple[int, ...]) -> bool:
    """Whether a process ends with one of the codes, and an error has one line."""
    errors = process.communicate(timeout=120)[1].splitlines()
    errors = [line for line in errors if not line.startswith(("greylag: warning: ", "greylag: info: "))]
    return process.returncode in codes and len(errors) <= 1 and all(line.startswith("greylag: ") for line in errors)


def streams_and_limits(place: Path, rng: random.Random) -> bool:
    """Closed streams and small limits of the process."""
    (place / "a.run").write_text("1 Q0 d 1 1 t\n")
    more = rng.choice([":|>&-", ":|2>&-", ":|<&- >&- 2>&-", "ulimit -n 16|", "ulimit -v 900000|", "ulimit -f 1|"])
    words = rng.choice([["fuse", "--run", "a.run", "--run", "a.run", "--out", "o.run"], ["nothing"], ["--version"]])
    return one_line(command(words, place, more), (0, 2))


def names_of_outputs(place: Path, rng: random.Random) -> bool:
    """An output that is an input, under any name: refused, and the input is as it was."""
    (place / "a.run").write_text("1 Q0 d 1 1 t\n")
    (place / "sub").mkdir()
    (place / "link").symlink_to("a.run")
    (place / "hard").hardlink_to(place / "a.run")
    before = snapshot(place)
    out = rng.choice(["a.run", "link", "hard", "./sub/../a.run", str(place / "a.run")])
    process = command(["fuse", "--run", "a.run", "--run", rng.choice(["a.run", "link"]), "--out", out], place)
    return one_line(process, (2,)) and snapshot(place) == before


def interrupts(place: Path, rng: random.Random) -> bool:
    """Ctrl-C at any moment after the start, once or twice: finished, or one line and code 130, and no litter."""
    lines = "".join(f"{q} Q0 d{n} {n} {100 - n} t\n" for q in range(900) for n in range(30))
    (place / "a.run").write_text(lines)
    process = command(["fuse", "--run", "a.run", "--run", "a.run", "--out", "o.run"], place)
    assert process.stdout
    assert process.stdout.readline() == "started\n"
    time.sleep(rng.uniform(0, 1.5))
    for _ in range(rng.choice([1, 2])):
        process.send_signal(signal.SIGINT)
        time.sleep(rng.choice([0, 0.01]))
    right = one_line(process, (0, 130))
    return right and set(os.listdir(place)) <= {"a.run", *(["o.run"] if process.returncode == 0 else [])}


QUICK = (judgements, models, work_logs, docids)
SLOW = (streams_and_limits, names_of_outputs, interrupts)


def run(seconds: float, seed: int) -> Counts:
    """Try each attack in turn, the quick ones more often."""
    logging.getLogger("greylag").setLevel(logging.CRITICAL)
    counts = Counts()
    for number, place in rounds(seconds, seed):
        for attack in [*QUICK * 20, *SLOW]:
            own = place / f"{attack.__name__}-{counts.tried}"
            own.mkdir()
            rng = random.Random(f"{attack.__name__} {number} {counts.tried}")
            counts.judge(
                f"{attack.__name__}, seed {number}, trial {counts.tried}",
                lambda: attack(own, rng),  # noqa: B023
            )
    return counts
