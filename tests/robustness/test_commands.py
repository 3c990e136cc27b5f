"""Every option of every command with odd values and paths: code 0, or code 2 and one line; never a traceback."""

from __future__ import annotations

import inspect
import os
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest
from typer.models import OptionInfo

from greylag.cli import COMMANDS, main
from greylag.cli.groups import flatten
from tests.robustness.harness import LIMIT, HangError, summary, time_limit

NUMBERS = [
    "-1",
    "0",
    "1",
    "2.5",
    "nan",
    "inf",
    "1e400",
    "-1e-400",
    "1_0",
    "\u0661",
    str(10**12),
    str(2**63),
    "9" * 5000,
]
TEXTS = ["", " ", "a b", "a\tb", "\n", "\udcff", "é", "x" * 5000, "..", "a/b", "%s", "$", "-", "--", "O-999999999999"]
PATHS = [
    "",
    ".",
    "/",
    "absent",
    "absent/x",
    "file/x",
    "loop",
    "x" * 300,
    "\udcff",
    "a\nb",
    "/dev/full",
    "/dev/null",
    "empty",
]
FEATURES = [
    "SD/ordered/LM-O-99999999999999999999",
    "FI/term/LM,FI/term/LM",
    ",",
    "prior:",
    "prior:absent",
    "prior:empty",
]
TRIED: Counter[str] = Counter()
COMPILING = 240
"""Seconds for the first command, which may have to compile."""


def valid(made: Path) -> dict[str, list[str]]:
    """A valid command line for each command that takes files; outputs are new."""
    index, topics, run = f"--index={made / 'index'}", f"--topics={made / 'topics.tsv'}", f"--run={made / 'few.run'}"
    qrels, subtopics = f"--qrels={made / 'qrels.txt'}", f"--qrels={made / 'qrels.subtopics.txt'}"
    few = f"--topics={made / 'few.tsv'}"
    return {
        "index": [str(made / "few.jsonl"), "--out=out", "--jobs=1"],
        "search": [index, few, "--out=out", "--hits=10", "--jobs=1"],
        "features": [index, topics, run, "--out=out", "--features=FI/term/LM"],
        "train": [index, topics, run, qrels, "--out=out", "--features=FI/term/LM", "--jobs=1"],
        "tune": [index, topics, run, qrels, "--out=out", "--grid=k1=0.9", "--grid=b=0.4", "--jobs=1"],
        "rerank": [index, topics, run, "--out=out", "--method=manifold", "--jobs=1"],
        "train-diversity": [index, topics, run, subtopics, "--out=out", "--k=2", "--depth=10"],
        "diversify": [index, run, "--out=out", "--k=2", "--jobs=1"],
        "explain": [index, topics, f"--model={made / 'model.json'}", "--qid=1", "--docid=d1"],
        "show": [str(made / "model.json")],
        "fuse": [run, f"--run={made / 'bm25.run'}", "--out=out"],
        "evaluate": [str(made / "few.run"), qrels],
        "experiment": [str(made / "few.yaml"), "--out=out", "--jobs=1"],
        "doctor": [index],
    }


@pytest.fixture(scope="module")
def files(made: Path) -> Path:
    """The indexed collection, with small files for quick commands."""
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    few = [line for line in lines if int(line.split()[0]) <= 3 and int(line.split()[3]) <= 10]
    (made / "few.run").write_text("".join(few))
    (made / "few.tsv").write_text("".join((made / "topics.tsv").read_text().splitlines(keepends=True)[:3]))
    (made / "few.jsonl").write_text('{"id": "a", "contents": "grey goose"}\n')
    (made / "few.yaml").write_text("name: few\nstudy: nothing\n")
    (made / "model.json").write_text("{}")
    return made


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file, a loop and an empty file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("1\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


def parameters(name: str) -> Iterator[tuple[str | None, Any]]:
    """The flag (None for an argument) and the type of each parameter of a command."""
    function = getattr(import_module(f"greylag.cli.{name.replace('-', '_')}"), name.replace("-", "_"))
    for parameter in inspect.signature(flatten(function)).parameters.values():
        option = parameter.annotation.__metadata__[0]
        types = {*get_args(parameter.annotation.__origin__), parameter.annotation.__origin__}
        kind = next((kind for kind in (bool, Path, int, float) if kind in types), str)
        yield [option.default, *option.param_decls][-1] if isinstance(option, OptionInfo) else None, kind


def variants(name: str, words: list[str]) -> Iterator[list[str]]:
    """The command line with each option in turn set to each odd value, and without it."""
    for flag, kind in parameters(name):
        rest = [word for word in words if not own(word, flag)]
        yield rest
        if flag and kind is bool:
            yield [*rest, flag]
            continue
        values = {Path: PATHS, int: NUMBERS, float: NUMBERS, str: TEXTS + NUMBERS}[kind]
        for value in [*values, *(FEATURES if flag == "--features" else [])]:
            yield [*rest, value if flag is None else f"{flag}={value}"]


def own(word: str, flag: str | None) -> bool:
    return not word.startswith("--") if flag is None else word.split("=", maxsplit=1)[0] == flag


def verdict(
    words: list[str], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, limit: float = LIMIT
) -> str:
    monkeypatch.setattr(sys, "argv", ["greylag", *words])
    capfd.readouterr()
    try:
        with time_limit(limit):
            main()
    except SystemExit as stop:
        code = stop.code or 0
    except HangError:
        return "hang"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.300}"
    told = capfd.readouterr().err
    lines = [line for line in told.splitlines() if not line.startswith(("greylag: warning: ", "greylag: info: "))]
    if code == 2:
        good = len(lines) == 1 and lines[0].startswith("greylag: error: ") and len(lines[0]) < 2100
        return "refused" if good else f"code 2 with {told[:400]!r}"
    return "accepted" if code == 0 or (code == 1 and words[0] == "doctor") else f"code {code} with {told[:400]!r}"


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"demo"}))
@pytest.mark.parametrize("part", [pytest.param(0.1, id="sample"), pytest.param(1.0, id="all", marks=pytest.mark.slow)])
def test_odd_values_are_refused_in_one_line(
    *,
    name: str,
    part: float,
    files: Path,
    place: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng, wrong = random.Random(name), []
    verdict([name, *valid(files)[name]], capfd, monkeypatch, COMPILING)
    subprocess.run(["rm", "-rf", place / "out"], check=True)
    for words in variants(name, valid(files)[name]):
        if rng.random() < part:
            found = verdict([name, *words], capfd, monkeypatch)
            TRIED[found if found in ("refused", "accepted") else "wrong"] += 1
            if found not in ("refused", "accepted"):
                wrong.append(([word[:80] for word in words], found))
            subprocess.run(["rm", "-rf", place / "out"], check=True)
    assert not wrong, "\n".join(map(str, wrong))
    assert {"file", "empty", "loop"} <= set(os.listdir(place))


@pytest.mark.parametrize(
    "words",
    [
        *[f"--out={name}" for name in ("file", "file/x", "loop", "loop/x", "x" * 300, "/dev/null", "/proc/x", "a\0")],
        *[f"--jobs={number}" for number in ("0", "-2", "1.5", "x", "99999999999", "")],
    ],
)
def test_the_demo_refuses_odd_values(
    words: str, place: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = verdict(["demo", words], capfd, monkeypatch)
    TRIED[found if found == "refused" else "wrong"] += 1
    assert found == "refused"
    assert set(os.listdir(place)) == {"file", "empty", "loop"}


def test_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\ncommands with odd values: {summary(TRIED)}")
    assert TRIED["wrong"] == 0
