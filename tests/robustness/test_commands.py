"""Every option of every command with odd values and paths: code 0, or code 2 and one line; never a traceback."""

import os
import random
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from typer.models import OptionInfo

from greylag.cli import COMMANDS, main
from tests.robustness.harness import LIMIT, HangError, time_limit

DIGITS = "9" * 5000
NUMBERS = [*"-1 0 1 2.5 nan inf 1e400 -1e-400 1_0 \u0661".split(), str(10**12), str(2**63), DIGITS]
TEXTS = ["", " ", "a b", "a\tb", "\n", "\udcff", "é", "x" * 5000, "..", "a/b", "%s", "$", "-", "--", "O-999999999999"]
PATHS = [*". / absent absent/x file/x loop \udcff /dev/full /dev/null empty".split(), "", "x" * 300, "a\nb"]
OPTIONS = [*"mu mu= mu=1_0 mu=nan k1=\u0661 =1 mu=1,2 mu=[1 mu=[] preselect=0 preselect=[1,2]".split(), "b=\n"]
OPTIONS += [f"fb_terms={DIGITS}"]
MODELS = [
    f"{name}({options})"
    for name in ("mrf", "listwise", "bm25", "bm25+rm3")
    for options in [*OPTIONS, "stop_words=loop", ")("]
]
STAGES = [
    *("", f"mmr(k={DIGITS})"),
    *"mmr( mmr(k=1_0) mmr(k=\u0661) mmr() mmr(k=) mmr(depth=1e9) xquad(aspects=empty) random(seed=-1)".split(),
    *"manifold(feedback=/dev/null) mrf(model=loop) svmdiv(member=2)".split(),
]
FEATURES = "SD/ordered/LM-O-99999999999999999999 FI/term/LM,FI/term/LM , prior: prior:absent prior:empty".split()
SPELT = {"--features": FEATURES, "--parameters": OPTIONS, "--stage": STAGES, "--model": MODELS}
COMPILING = 240
"""Seconds for the first command, which may have to compile."""


INDEX, TOPICS, RUN = "--index={made}/index", "--topics={made}/topics.tsv", "--run={made}/few.run"
RANKED = f"{INDEX} {TOPICS} {RUN} --out=out"
VALID = {
    "index": "{made}/few.jsonl --out=out",
    "search": f"{INDEX} --topics={{made}}/few.tsv --out=out --hits=10",
    "features": f"{RANKED} --features=FI/term/LM",
    "train": f"{RANKED} --qrels={{made}}/qrels.txt --model=mrf --features=FI/term/LM",
    "rerank": f"{RANKED} --stage=manifold",
    "explain": f"{{made}}/model.json {INDEX} {TOPICS} --qid=1 --docid=d1",
    "export": "{made}/model.json solr",
    "fuse": f"{RUN} --run={{made}}/bm25.run --out=out",
    "diversify": f"{{made}}/few.run {INDEX} --subtopics={{made}}/few.subtopics --method=mmr --folds=2",
    "evaluate": "{made}/few.run --qrels={made}/qrels.txt",
    "pool": "{made}/few.run --out=out",
    "check": f"{{made}}/few.run {TOPICS}",
    "experiment": "{made}/few.yaml --out=out",
    "doctor": INDEX,
}
"""A valid command line for each command that takes files; outputs are new."""


@pytest.fixture(scope="module")
def files(made):
    """The indexed collection, with small files for quick commands."""
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    few = [line for line in lines if int(line.split()[0]) <= 3 and int(line.split()[3]) <= 10]
    (made / "few.run").write_text("".join(few))
    (made / "few.tsv").write_text("".join((made / "topics.tsv").read_text().splitlines(keepends=True)[:3]))
    (made / "few.jsonl").write_text('{"id": "a", "contents": "grey goose"}\n')
    (made / "few.subtopics").write_text(
        "".join(f"{qid} {i % 2} {docid} 1\n" for i, (qid, _, docid, *_) in enumerate(map(str.split, few)))
    )
    (made / "few.yaml").write_text("name: few\nstudy: nothing\n")
    (made / "model.json").write_text("{}")
    return made


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The working folder, with a file, a loop and an empty file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("1\n")
    (tmp_path / "empty").write_text("")
    (tmp_path / "loop").symlink_to("loop")
    return tmp_path


def parameters(name):
    """The flag (None for an argument) and the type of each parameter of a command."""
    hints = get_type_hints(getattr(import_module(f"greylag.cli.{name}"), name), include_extras=True)
    for hint in (hint for parameter, hint in hints.items() if parameter not in ("context", "return")):
        option = hint.__metadata__[0]
        types = {*get_args(hint.__origin__), hint.__origin__}
        kind = next((kind for kind in (bool, Path, int, float) if kind in types), str)
        yield [option.default, *option.param_decls][-1] if isinstance(option, OptionInfo) else None, kind


def variants(name, words):
    """The command line with each option in turn set to each odd value, and without it."""
    for flag, kind in parameters(name):
        rest = [word for word in words if not own(word, flag)]
        yield rest
        if flag and kind is bool:
            yield [*rest, flag]
            continue
        values = {Path: PATHS, int: NUMBERS, float: NUMBERS, str: TEXTS + NUMBERS}[kind]
        for value in [*values, *SPELT.get(flag or "", [])]:
            yield [*rest, value if flag is None else f"{flag}={value}"]


def own(word, flag):
    return not word.startswith("--") if flag is None else word.split("=", maxsplit=1)[0] == flag


def verdict(words, capfd, monkeypatch, limit=LIMIT):
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
    return "accepted" if code == 0 or (code == 1 and "doctor" in words) else f"code {code} with {told[:400]!r}"


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@pytest.mark.parametrize("name", sorted(COMMANDS.keys() - {"compile"}))  # which takes nothing
@pytest.mark.parametrize("part", [pytest.param(0.1, id="sample"), pytest.param(1.0, id="all", marks=pytest.mark.slow)])
def test_odd_values_are_refused_in_one_line(*, name, part, files, place, capfd, monkeypatch):
    rng, wrong, given = random.Random(name), [], VALID[name].format(made=files).split()
    verdict(["--jobs=1", name, *given], capfd, monkeypatch, COMPILING)
    remove(place / "out")
    for words in variants(name, given):
        if rng.random() < part:
            found = verdict(["--jobs=1", name, *words], capfd, monkeypatch)
            if found not in ("refused", "accepted"):
                wrong.append(([word[:80] for word in words], found))
            remove(place / "out")
    assert not wrong, "\n".join(map(str, wrong))
    assert {"file", "empty", "loop"} <= set(os.listdir(place))


@pytest.mark.parametrize(
    "words",
    [
        *[f"--out={name}" for name in ("file", "file/x", "loop", "loop/x", "x" * 300, "/dev/null", "/proc/x", "a\0")],
        *[f"--jobs={number}" for number in ("0", "-2", "1.5", "x", "99999999999", "")],
    ],
)
def test_the_demo_refuses_odd_values(words, place, capfd, monkeypatch):
    given = [words, "experiment", "demo"] if words.startswith("--jobs") else ["experiment", "demo", words]
    found = verdict(given, capfd, monkeypatch)
    assert found == "refused"
    assert set(os.listdir(place)) == {"file", "empty", "loop"}
