"""Around commands: outputs are no inputs; interrupts say what is kept; the bars."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from greylag.cli import COMMANDS, main, running
from greylag.cli.options import Shared
from greylag.cli.running import check_outputs, dependencies, input_files
from greylag.errors import ParameterError
from greylag.runtime.cache import beside
from tests.greylag.cli.conftest import COMPILING, Command, Refused
from tests.greylag.runtime.test_progress import bars, on_terminal
from tests.processes import SECONDS, python

IMPATIENT = "import greylag.runtime.cache as log; log.MIN_KEPT_SECONDS = 0.0; from greylag.__main__ import main; main()"
INTERRUPTED = """
import os, signal, greylag.runtime.cache as log
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's jobs in the background ignore it
save, kept = log.WorkLog.save_result, []

def interrupt(self, key, result):
    kept.append(save(self, key, result))
    if len(kept) == 3:
        os.kill(os.getpid(), signal.SIGINT)
    return kept[-1]

log.WorkLog.save_result = interrupt
"""
"""Interrupts the process when it has kept its third result."""


OPTIONS = {
    "index": ["IN"],
    "search": ["--index", "no/i", "--topics", "IN"],
    "features": ["--index", "no/i", "--topics", "t", "--run", "IN", "--features", "FI/term/LM"],
    "train": ["--index", "no/i", "--topics", "t", "--qrels", "IN"],
    "rerank": ["--index", "no/i", "--topics", "t", "--run", "r", "--model", "IN"],
    "fuse": ["--run", "r", "--run", "IN"],
    "experiment": ["IN"],
}


def link(kind: str, path: Path) -> Path:
    other = path.with_name("other")
    if kind == "symbolic":
        other.symlink_to(path)
    elif kind == "hard":
        os.link(path, other)
    return path if kind == "same" else other


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "same") for name in OPTIONS), ("fuse", "symbolic"), ("fuse", "hard")]
)
def test_an_output_that_is_an_input_is_refused(name: str, kind: str, refused: Refused, tmp_path: Path) -> None:
    path = tmp_path / "in"
    path.write_text("mine")
    out, flag = link(kind, path), "--out"
    told = refused(name, *(path if word == "IN" else word for word in OPTIONS[name]), flag, out)
    assert f"{out} is the input {path}" in told
    assert path.read_text() == "mine"


def test_all_commands_with_inputs_and_an_output_are_tried() -> None:
    """The figure of evaluate has its own test."""
    functions = {name: getattr(import_module(f"greylag.cli.{name}"), name) for name in COMMANDS}
    writing = {name for name, function in functions.items() if {*running.OUTPUTS} & {*signature(function).parameters}}
    assert writing == OPTIONS.keys() | {"evaluate"}


def test_an_output_inside_an_input_folder_is_refused(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "index").mkdir()
    out = tmp_path / "index" / "new.run"
    assert "is inside the input folder" in refused("search", "--index", out.parent, "--topics", "t", "--out", out)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--out", "new", "--out-run", "in"], "in is the input in"),
        (["--out", "new", "--out-run", "new"], "new would be written twice"),
        (["--out", "link", "--out-run", "other"], "other would be written twice"),
        (["--out", "model", "--out-run", "new"], "model is the input model"),
    ],
)
def test_what_features_and_stages_read_is_an_input(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("in", "other"):
        Path(name).write_text(name)
    Path("link").symlink_to("other")
    Path("model").write_text('{"kind": "x", "features": ["prior:in"]}')
    words = ["--index", "no/i", "--topics", "t", "--qrels", "q", "--folds", "2"]
    assert reason in refused("train", *words, "--features", "run:in,prior:model", *options)
    for stage in ("mrf(model=model)", "xquad(aspects=in)", "manifold(feedback=in)"):
        words = ["--index", "no/i", "--topics", "t", "--run", "r", "--stage", stage, "--out", "in"]
        assert "in is the input in" in refused("rerank", *words)
    assert Path("in").read_text() == "in"


def test_standard_streams_have_their_names_and_outputs_room_for_kept_work(
    refused: Refused, tmp_path: Path, command: Command
) -> None:
    words = ["search", "--index", "no/i", "--topics", "t", "--out"]
    assert "- is no file: write to /dev/stdout" in refused(*words, "-")
    assert "has a name of 242 bytes: give one of at most 241" in refused(*words, tmp_path / ("é" * 121))
    assert "for standard input give /dev/stdin" in refused("evaluate", "-", "--qrels", "-")
    for name in "ab":
        (tmp_path / name).write_text("1 Q0 d 1 2.5 x\n")
    out = tmp_path / ("x" * 241)
    assert command("fuse", "--run", tmp_path / "a", "--run", tmp_path / "b", "--out", out)[0] == 0
    assert out.is_file()


def test_other_outputs_are_accepted(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("x")
    (tmp_path / "out").write_text("x")
    check_outputs([tmp_path / "out", tmp_path / "new"], [tmp_path / "in", tmp_path / "absent"])
    with pytest.raises(ParameterError, match="is the input"):
        check_outputs([tmp_path / "new", tmp_path / "in"], [tmp_path / "in"])


def start(*words: object, before: str = "") -> subprocess.Popen[str]:
    """Start a command that keeps its work from the first item on."""
    code = f"{before}\nimport sys; sys.argv = {['greylag', *map(str, words)]!r}; {IMPATIENT}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=pipe, stderr=pipe, text=True)


def test_an_interrupt_says_what_is_kept(ranked: list[object], tmp_path: Path) -> None:
    words = ["--jobs", "1", "rerank", *ranked, "--stage", "manifold", "--out", tmp_path / "out.run"]
    log = beside(tmp_path / "out.run")
    process = start(*words, before=INTERRUPTED)
    errors = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 130
    *before, line = errors.splitlines()
    assert all("compiling" in other for other in before)  # in a new environment
    assert line.startswith(f"greylag: interrupted; kept in {log}: run bm25-manifold (")
    assert line.endswith("; the same command goes on from there")
    assert log.exists()
    assert not (tmp_path / "out.run").exists()


def depending(name: str, values: dict[str, Any], **options: Any) -> str:
    """The digest of all that the results of a command with these values depend on."""
    function = getattr(import_module(f"greylag.cli.{name}"), name)
    shared = Shared(**options)
    found: Any = dependencies(name, replace(shared, inputs=tuple(input_files(function, values, shared))), values)
    return str(found())


def test_what_results_depend_on(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("1 Q0 d 1 1 a\n")
    (tmp_path / "topics").write_text("1\tx\n")
    values: dict[str, Any] = {"run": tmp_path / "a.run", "topics": tmp_path / "topics"}

    shared: dict[str, Any] = {}

    def digest(**more: object) -> str:
        return depending("rerank" if {"model", "files"} & more.keys() else "features", {**values, **more}, **shared)

    first = digest()
    shared = {"jobs": 2, "scheduler": "tcp://x"}
    assert digest() == first
    shared = {"field": "desc"}
    assert digest() != first
    shared = {}
    assert digest(features="reciprocal-rank") != first
    feature = f"score,run:{tmp_path / 'b.run'}@z"
    before = digest(features=feature)
    (tmp_path / "b.run").write_text("1 Q0 d 1 1 b\n")
    assert digest(features=feature) != before
    (tmp_path / "model").write_text(f'{{"kind": "x", "features": ["prior:{tmp_path / "prior.tsv"}"]}}')
    before = digest(model=tmp_path / "model")
    (tmp_path / "prior.tsv").write_text("d 1\n")
    assert digest(model=tmp_path / "model") != before
    (tmp_path / "topics").write_text("1\txy\n")
    assert digest() != first
    os.mkfifo(tmp_path / "pipe")
    placed = ["old.run=" + str(tmp_path / "c.run")]
    before = digest(files=placed)
    (tmp_path / "c.run").write_text("1 Q0 d 1 1 a\n")
    assert digest(files=placed) != before
    with pytest.raises(TypeError):  # there is no digest
        depending("rerank", {**values, "run": tmp_path / "pipe"})


def test_another_file_of_the_same_name_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for folder, docid in (("a", "d"), ("b", "e")):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        for own in (docid, docid.upper()):
            Path("x.run").write_text(f"1 Q0 {own} 1 1 a\n")
            os.utime("x.run", (1, 1))
            digests.add(depending("rerank", {"run": Path("x.run"), "out": tmp_path / "out.run"}))
            time.sleep(0.02)  # more than a tick of the file system's clock
    assert len(digests) == 4


@pytest.mark.parametrize("content", ['{"kind": 1}\n{"kind": 2}\n', '{"kind":', "\x1f\x8b"])
def test_options_that_name_neither_models_nor_files(content: str, tmp_path: Path) -> None:
    (tmp_path / "titles.json").write_bytes(content.encode("latin-1"))
    features = ",".join(f"SD/ordered/LM-O-{width}" for width in range(1, 400))
    assert depending("train", {"validation": tmp_path / "titles.json", "features": features})


def greet(server: socket.socket, content: bytes) -> None:
    """Answer as a server that is not Dask's."""
    connection, _ = server.accept()
    with connection:
        connection.sendall(content)
        connection.recv(1 << 16)


def test_no_cluster_and_no_dask(
    refused: Refused, ranked: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed, clients = pytest.importorskip("distributed"), list[object]()
    monkeypatch.setattr(running, "CONNECTION_SECONDS", 1)
    monkeypatch.setattr(distributed, "Client", lambda *given, **_: clients.append(given))
    words = ["rerank", *ranked, "--stage", "manifold", "--out", tmp_path / "out.run"]

    def told(address: str) -> str:
        return refused("--scheduler", address, *words)

    assert "no Dask scheduler at tcp://127.0.0.1:9" in told("tcp://127.0.0.1:9")
    assert "no Dask scheduler at nowhere://x" in told("nowhere://x")
    assert "no Dask scheduler at nowhere" in told("nowhere")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        assert f"no Dask scheduler at {address}" in told(address)
    for content in (b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(800)):
        with socket.create_server(("127.0.0.1", 0)) as server:
            threading.Thread(target=greet, args=(server, content), daemon=True).start()
            address = f"127.0.0.1:{server.getsockname()[1]}"
            assert f"no Dask scheduler at {address}" in told(address)
    assert clients == []  # one that cannot connect takes 20 seconds to close
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install 'dask>=2025.1' 'distributed>=2025.1'" in told("tcp://127.0.0.1:9")


SMALL = ["--model", "mrf(max_features=2)", "--features", "FI/term/LM,SD/ordered/LM-O-1,FI/term/BM25"]
BARS = {
    "train": (["train", *SMALL, "--folds", "3", "--out-run", "held.run", "--out", "model.json"], [
        "1 features 24/24", "2 folds 2/3 features selected 1/2",
    ]),
    "rm3": (["train", "--model", "rm3", "--folds", "3", "--out-run", "held.run", "--out", "model.json"], [
        "1 folds 0/3 parameters 4/56",
    ]),
    "rerank": (["rerank", "--stage", "manifold", "--out", "out.run"], ["1 run bm25-manifold 12/24"]),
}  # fmt: skip
"""Commands, and some of what their bars say."""


@pytest.mark.parametrize("name", BARS)
def test_the_bars_of_a_command(
    name: str, made: Path, collection: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, texts = BARS[name]
    judged = [] if name == "rerank" else ["--qrels", made / "qrels.txt"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        sys, "argv", ["greylag", "--jobs", "1", *map(str, [*words, *collection, "--run", made / "bm25.run", *judged])]
    )

    def work() -> None:
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code

    shown = bars(on_terminal(work, monkeypatch))
    assert set(texts) <= set(shown), shown


@pytest.mark.long
def test_a_damaged_cache_of_machine_code_is_said_in_one_line(ranked: list[object], tmp_path: Path) -> None:
    words = ["rerank", *ranked, "--stage", "mmr(k=5)", "--out", tmp_path / "out.run"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def errors() -> str:
        return python("-m", "greylag", *words, env=environment).stderr

    assert errors() == COMPILING
    assert errors() == ""
    for path in (tmp_path / "cache").rglob("*.nbi"):
        path.write_bytes(b"")
    told = errors()
    assert told.startswith("greylag: error: Numba's cache of compiled code is damaged")
    assert told.endswith("set NUMBA_CACHE_DIR to an empty folder\n")
    assert told.count("\n") == 1
