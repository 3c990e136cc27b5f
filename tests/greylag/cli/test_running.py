"""Around commands: outputs are no inputs; interrupts say what is kept; the bars."""

import os
import socket
import subprocess
import sys
import threading
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from greylag.base import ParameterError
from greylag.base.runtime.cache import beside
from greylag.cli import main, running
from greylag.cli.options import Shared
from greylag.cli.running import check_outputs, dependencies, input_files
from tests.greylag.base.runtime.test_progress import bars, on_terminal
from tests.greylag.cli.conftest import COMPILING
from tests.processes import IMPATIENT, SECONDS, python

INTERRUPTED = """
import os, signal, greylag.base.runtime.cache as log
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


@pytest.mark.parametrize(
    ("outputs", "reason"),
    [
        (["in"], "in is the input in"),
        (["symbolic"], "symbolic is the input in"),
        (["hard"], "hard is the input in"),
        (["folder/new"], "inside the input folder"),
        (["new", "new"], "new would be written twice"),
        (["link", "other"], "other would be written twice"),
        (["-"], "/dev/stdout"),
        (["é" * 121], "242 bytes"),
        (["new", "other", "x" * 241], ""),
    ],
)
def test_outputs_are_no_inputs_and_can_be_written(outputs, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("in", "other"):
        Path(name).write_text(name)
    Path("folder").mkdir()
    Path("symbolic").symlink_to("in")
    Path("link").symlink_to("other")
    os.link("in", "hard")
    with pytest.raises(ParameterError) if reason else nullcontext() as error:
        check_outputs(map(Path, outputs), map(Path, ("in", "folder", "absent")))
    assert not reason or reason in str(error.value)


def test_a_command_refuses_outputs_that_are_inputs(refused, tmp_path):
    (tmp_path / "in").write_text("mine")
    words = "--index no/i --topics t --qrels q --folds 2 --features run:TMP/in"
    for options in ("--out TMP/in", "--out TMP/new --out-run TMP/in"):
        assert f"in is the input {tmp_path / 'in'}" in refused(f"train {words} {options}")
    assert (tmp_path / "in").read_text() == "mine"


def start(*words, before=""):
    """Start a command that keeps its work from the first item on."""
    code = f"{before}\nimport sys; sys.argv = {['greylag', *map(str, words)]!r}; {IMPATIENT}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=pipe, stderr=pipe, text=True)


def test_an_interrupt_says_what_is_kept(ranked, tmp_path):
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


def depending(name, values, **options):
    """The digest of all that the results of a command with these values depend on."""
    function = getattr(import_module(f"greylag.cli.{name}"), name)
    shared = Shared(**options)
    found = dependencies(name, replace(shared, inputs=input_files(function, values, shared)), values)
    return str(found())


def test_what_results_depend_on(tmp_path):
    """On options and models' files, but not on who works; other files are tested with all options."""
    model = tmp_path / "model"
    model.write_text(f'{{"kind": "x", "features": ["prior:{tmp_path / "prior.tsv"}"]}}')
    values = {"model": model}
    first = depending("rerank", values)
    assert depending("rerank", values, jobs=2, scheduler="tcp://x") == first
    others = [depending("rerank", values, field="desc"), depending("rerank", {**values, "stages": ["mmr(k=3)"]})]
    (tmp_path / "prior.tsv").write_text("d 1\n")
    assert len({first, *others, depending("rerank", values)}) == 4
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TypeError):  # there is no digest
        depending("rerank", {**values, "run": tmp_path / "pipe"})


def greet(server, content):
    """Answer as a server that is not Dask's."""
    connection, _ = server.accept()
    with connection:
        connection.sendall(content)
        connection.recv(1 << 16)


def test_no_cluster_and_no_dask(refused, ranked, tmp_path, monkeypatch):
    distributed, clients = pytest.importorskip("distributed"), list[object]()
    monkeypatch.setattr(running, "CONNECTION_SECONDS", 1)
    monkeypatch.setattr(distributed, "Client", lambda *given, **_: clients.append(given))
    words = ["rerank", *ranked, "--stage", "manifold", "--out", tmp_path / "out.run", "--scheduler"]
    for address in ("tcp://127.0.0.1:9", "nowhere://x", "nowhere"):
        assert f"no Dask scheduler at {address}" in refused(*words, address)
    for content in (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(800)):
        with socket.create_server(("127.0.0.1", 0)) as server:
            if content:  # else it is silent
                threading.Thread(target=greet, args=(server, content), daemon=True).start()
            address = f"127.0.0.1:{server.getsockname()[1]}"
            assert f"no Dask scheduler at {address}" in refused(*words, address)
    assert clients == []  # one that cannot connect takes 20 seconds to close
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install 'dask>=2025.1' 'distributed>=2025.1'" in refused(*words, "tcp://127.0.0.1:9")


SMALL = ["--model", "mrf(max_features=2)", "--features", "FI/term/LM,SD/ordered/LM-O-1,FI/term/BM25"]


def test_the_bars_of_a_command(made, ranked, tmp_path, monkeypatch):
    words = ["train", *SMALL, "--folds", "3", "--out-run", tmp_path / "held.run", "--out", tmp_path / "model.json"]
    monkeypatch.setattr(
        sys, "argv", ["greylag", "--jobs", "1", *map(str, [*words, *ranked, "--qrels", made / "qrels.txt"])]
    )

    def work():
        with pytest.raises(SystemExit) as stop:
            main()
        assert not stop.value.code

    shown = bars(on_terminal(work, monkeypatch))
    assert {"1 features 24/24", "2 folds 2/3 features selected 1/2"} <= set(shown), shown


@pytest.mark.long
def test_a_damaged_cache_of_machine_code_is_said_in_one_line(ranked, tmp_path):
    words = ["rerank", *ranked, "--stage", "mmr(k=5)", "--out", tmp_path / "out.run"]
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def errors():
        return python("-m", "greylag", *words, env=environment).stderr

    assert errors() == COMPILING
    assert errors() == ""
    for path in (tmp_path / "cache").rglob("*.nbi"):
        path.write_bytes(b"")
    told = errors()
    assert told.startswith("greylag: error: Numba's cache of compiled code is damaged")
    assert told.endswith("set NUMBA_CACHE_DIR to an empty folder\n")
    assert told.count("\n") == 1
