"""Long commands: killed and gone on with, and on a cluster whose worker dies, with the same bytes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from greylag.cli import running
from greylag.cli.running import dependencies
from greylag.runtime.work_log import beside
from tests.greylag.cli.conftest import Command, Refused

IMPATIENT = "import greylag.runtime.work_log as log; log.PATIENCE = 0.0; from greylag.cli import main; main()"


def start(*words: object) -> subprocess.Popen[str]:
    """Start a command that keeps its work from the first item on."""
    code = f"import sys; sys.argv = {['greylag', *map(str, words)]!r}; {IMPATIENT}"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=pipe, stderr=pipe, text=True)


def stop_after(process: subprocess.Popen[str], log: Path, size: int, number: signal.Signals) -> bool:
    """Send a signal when the log has this size; whether that was before the end."""
    while process.poll() is None:
        if log.exists() and log.stat().st_size >= size:
            process.send_signal(number)
            break
        time.sleep(0.002)
    return process.wait(timeout=120) != 0


def words_of(name: str, ranked: list[object], made: Path, out: Path) -> list[object]:
    if name == "rerank":
        return ["rerank", *ranked, "--method", "manifold", "--jobs", "1", "--out", out]
    more = ["--features", "FI/term/LM,SD/ordered/LM-O-1,SD/unordered/LM-U-8", "--folds", "3"]
    return ["train", *ranked, "--qrels", made / "qrels.txt", *more, "--out-run", f"{out}.held-out", "--out", out]


@pytest.mark.parametrize("name", ["rerank", "train"])
def test_killed_again_and_again(name: str, ranked: list[object], made: Path, tmp_path: Path) -> None:
    expected = tmp_path / "expected"
    expected.mkdir()
    whole = start(*words_of(name, ranked, made, expected / "out"))
    told, errors = whole.communicate(timeout=120)
    assert whole.returncode == 0, errors
    (tmp_path / "killed").mkdir()
    out, kills, size = tmp_path / "killed" / "out", 0, 100
    log, words = beside(out), words_of(name, ranked, made, out)
    for _ in range(3):
        kills += stop_after(start(*words), log, size, signal.SIGKILL)
        assert not out.exists() or not log.exists()
        size = max(size, log.stat().st_size if log.exists() else 0) + 20_000
    last = start(*words)
    assert last.communicate(timeout=120)[0] == told
    assert last.returncode == 0
    assert kills > 1
    for path in expected.iterdir():
        assert (tmp_path / "killed" / path.name).read_bytes() == path.read_bytes()
    assert sorted(path.name for path in (tmp_path / "killed").iterdir()) == sorted(os.listdir(expected))


def test_an_interrupt_says_what_is_kept(ranked: list[object], tmp_path: Path) -> None:
    words = ["rerank", *ranked, "--method", "manifold", "--jobs", "1", "--out", tmp_path / "out.run"]
    log = beside(tmp_path / "out.run")
    process = start(*words)
    threading.Thread(target=stop_after, args=(process, log, 1000, signal.SIGINT)).start()
    errors = process.communicate(timeout=120)[1]
    assert process.returncode == 130
    assert errors.startswith(f"greylag: interrupted; kept in {log}: run bm25-manifold (")
    assert errors.endswith("; the same command goes on from there\n")
    assert errors.count("\n") == 1
    assert log.exists()
    assert not (tmp_path / "out.run").exists()


def test_what_results_depend_on(tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text("1 Q0 d 1 1 a\n")
    (tmp_path / "topics").write_text("1\tx\n")
    values: dict[str, Any] = {"run": tmp_path / "a.run", "topics": tmp_path / "topics", "jobs": 1, "features": "score"}

    def digest(**more: object) -> str:
        found = dependencies("rerank", {**values, **more})
        assert found is not None
        return found()

    first = digest()
    assert digest(jobs=2, scheduler="tcp://x") == first
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
    before = digest(file=placed)
    (tmp_path / "c.run").write_text("1 Q0 d 1 1 a\n")
    assert digest(file=placed) != before
    assert dependencies("rerank", {**values, "run": tmp_path / "pipe"}) is None


def test_another_file_of_the_same_name_size_and_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digests = set()
    for folder, docid in (("a", "d"), ("b", "e")):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        for own in (docid, docid.upper()):
            Path("x.run").write_text(f"1 Q0 {own} 1 1 a\n")
            os.utime("x.run", (1, 1))
            found = dependencies("rerank", {"run": Path("x.run"), "out": tmp_path / "out.run"})
            assert found is not None
            digests.add(found())
            time.sleep(0.02)  # more than a tick of the file system's clock
    assert len(digests) == 4


@pytest.mark.parametrize("content", ['{"kind": 1}\n{"kind": 2}\n', '{"kind":', "\x1f\x8b"])
def test_options_that_name_neither_models_nor_files(content: str, tmp_path: Path) -> None:
    (tmp_path / "titles.json").write_bytes(content.encode("latin-1"))
    features = ",".join(f"SD/ordered/LM-O-{width}" for width in range(1, 400))
    assert dependencies("features", {"titles": tmp_path / "titles.json", "features": features}) is not None


def greet(server: socket.socket) -> None:
    """Answer as a server that is not Dask's."""
    connection, _ = server.accept()
    with connection:
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        connection.recv(1 << 16)


def test_no_cluster_and_no_dask(
    refused: Refused, ranked: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(running, "CONNECTING", 1)
    words = ["rerank", *ranked, "--method", "manifold", "--out", tmp_path / "out.run", "--scheduler"]
    assert "no Dask scheduler at tcp://127.0.0.1:9" in refused(*words, "tcp://127.0.0.1:9")
    assert "no Dask scheduler at nowhere://x" in refused(*words, "nowhere://x")
    started = time.monotonic()
    assert "no Dask scheduler at nowhere" in refused(*words, "nowhere")
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=greet, args=(server,), daemon=True).start()
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert f"no Dask scheduler at {address}" in refused(*words, address)
    assert time.monotonic() - started < 15  # a client that could not connect would take 20 seconds to close, each
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert "pip install 'greylag[dask]'" in refused(*words, "tcp://127.0.0.1:9")


@pytest.fixture
def workers() -> Any:
    """A local cluster of two worker processes."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def kill_one(cluster: Any, ready: Callable[[], bool]) -> None:
    while not ready():
        time.sleep(0.005)
    os.kill(next(iter(cluster.workers.values())).process.process.pid, signal.SIGKILL)


def test_a_worker_of_a_cluster_dies(
    workers: Any, command: Command, ranked: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greylag.runtime.work_log.PATIENCE", 0.0)
    words = ["rerank", *ranked, "--method", "manifold", "--out"]
    assert command(*words, tmp_path / "threads.run")[0] == 0
    out = tmp_path / "cluster.run"
    killer = threading.Thread(target=kill_one, args=(workers, beside(out).exists))
    killer.start()
    code, _, errors = command(*words, out, "--scheduler", workers.scheduler_address)
    assert code == 0, errors
    killer.join(timeout=1)
    assert not killer.is_alive()
    assert out.read_bytes() == (tmp_path / "threads.run").read_bytes()
