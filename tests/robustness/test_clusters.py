"""Whole commands on Dask clusters of one thread, that grow, and whose parts die: the same bytes, or one line."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from itertools import cycle
from pathlib import Path

import pytest

from greylag.base.runtime import parallel
from greylag.base.runtime.cache import beside
from tests.greylag.cli.conftest import DEMO
from tests.greylag.cli.test_running import INTERRUPTED, start
from tests.processes import SECONDS

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.long
RANKED = "--index {made}/index --topics {made}/topics.tsv --run {made}/bm25.run"
JUDGED = f"{RANKED} --qrels {{made}}/qrels.txt"
COMMANDS = {
    "search": "search --index {made}/index --topics {made}/topics.tsv --model bm25+rm3",
    "rerank": f"rerank {RANKED} --stage manifold",
    "train": f"train {JUDGED} --model bm25",
    "folds": f"train {JUDGED} --model bm25 --folds 2 --out-run held",
    "features": f"features {RANKED} --features FI/term/LM,stage:manifold",
}
SCHEDULER = """
import sys, time
from distributed import LocalCluster
with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=":0") as cluster:
    print(cluster.scheduler_address, flush=True)
    time.sleep(600)
"""


@contextmanager
def process(*words):
    """A process of Dask, which is killed at the end."""
    given = [sys.executable, *map(str, words)]
    with subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def separate(address, count):
    """Workers of one thread without nannies, each in a process of its own."""
    with ExitStack() as stack:
        words = ("-m", "distributed.cli.dask_worker", address, "--nthreads=1", "--no-nanny")
        yield [stack.enter_context(process(*words)) for _ in range(count)]


@contextmanager
def only_worker():
    """A worker that is all of a cluster, and the address of the scheduler."""
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        separate(cluster.scheduler_address, 1) as (worker,),
    ):
        cluster.wait_for_workers(1, timeout=60)
        yield worker, cluster.scheduler_address


@contextmanager
def scheduler(workers=2):
    """A scheduler in a process of its own, and its address."""
    with process("-c", SCHEDULER, workers) as started:
        yield started, started.stdout.readline().strip()


@pytest.fixture(scope="module")
def one():
    """A cluster of one worker of one thread."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


@pytest.fixture
def written(command, made, tmp_path, monkeypatch):
    """Run a command of `COMMANDS`, and return the content of what it writes."""
    monkeypatch.setattr("greylag.base.runtime.cache.MIN_KEPT_SECONDS", 0.0)
    monkeypatch.setattr(parallel, "WAITING_SECONDS", 3)
    monkeypatch.chdir(tmp_path)

    def run(name, *options):
        for path in (Path("out"), Path("held")):
            path.unlink(missing_ok=True)
        code, _, errors = command(*options, *COMMANDS[name].format(made=made).split(), "--out", "out")
        if code:
            *before, last = errors.splitlines()
            assert code == 2
            assert last.startswith("greylag: error: ")
            assert all(line.startswith("greylag: info: kept in ") for line in before)
            raise RuntimeError(last)
        return [path.read_bytes() for path in (Path("out"), Path("held")) if path.exists()]

    return run


def killed(pid):
    """Kill a process once work is kept."""

    def kill():
        while not beside(Path("out")).exists():
            time.sleep(0.005)
        os.kill(pid(), signal.SIGKILL)

    thread = threading.Thread(target=kill, daemon=True)
    thread.start()
    return thread


def worker_of(cluster):
    return lambda: int(next(iter(cluster.workers.values())).process.process.pid)


@pytest.mark.parametrize("name", COMMANDS)
def test_one_thread_gives_the_same_bytes(name, one, written):
    assert written(name, "--scheduler", one.scheduler_address) == written(name)


@pytest.mark.parametrize("least", [0, 1])
def test_a_cluster_that_grows_gives_the_same_bytes(least, written):
    with distributed.LocalCluster(n_workers=least, threads_per_worker=1, dashboard_address=":0") as cluster:
        cluster.adapt(minimum=least, maximum=2, interval="100ms")
        parallel.WAITING_SECONDS = 60  # as a new process takes its time
        assert written("rerank", "--scheduler", cluster.scheduler_address) == written("rerank")


@pytest.mark.parametrize(("name", "workers"), [("folds", 2), ("rerank", 2), ("rerank", 1)])
def test_a_worker_with_a_successor_dies(name, workers, written):
    with distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster:
        parallel.WAITING_SECONDS = 60
        killer = killed(worker_of(cluster))
        found = written(name, "--scheduler", cluster.scheduler_address)
        killer.join(timeout=1)
        assert not killer.is_alive()
    assert found == written(name)


@pytest.mark.parametrize("lost", [only_worker, scheduler])
def test_a_cluster_is_lost_without_its_only_worker_or_its_scheduler(lost, written):
    with lost() as (dying, address):
        killed(lambda: dying.pid)
        with pytest.raises(RuntimeError, match="the cluster is lost"):
            written("rerank", "--scheduler", address)
        assert beside(Path("out")).exists()
    resumed = written("rerank")
    assert resumed == written("rerank")


def test_an_interrupt_on_a_cluster_says_what_is_kept(one, ranked, tmp_path):
    out = tmp_path / "out.run"
    words = ["--scheduler", one.scheduler_address, "rerank", *ranked, "--stage", "manifold", "--out", out]
    process = start(*words, before=INTERRUPTED)
    errors = process.communicate(timeout=SECONDS)[1]
    assert process.returncode == 130
    assert f"greylag: interrupted; kept in {beside(out)}: run bm25-manifold (" in errors
    assert "Traceback" not in errors


def test_an_experiment_gives_the_same_bytes(one, command, tmp_path):
    for name in ("docs.jsonl", "topics.tsv", "qrels.txt"):
        shutil.copy(DEMO / name, tmp_path)
    text = "name: x\ncollection: {docs: docs.jsonl}\ntopics: topics.tsv\nqrels: qrels.txt\nmodel: sdm\n"
    (tmp_path / "x.yaml").write_text(f"{text}training: {{folds: 2}}\nstages: [manifold]\n")
    runs = []
    for out, before in (("there", ["--scheduler", one.scheduler_address]), ("here", [])):
        code, _, errors = command(*before, "experiment", tmp_path / "x.yaml", "--out", tmp_path / out)
        assert code == 0, errors
        runs.append([path.read_bytes() for path in sorted((tmp_path / out).glob("*.run"))])
    assert runs[0] == runs[1] != []


def test_one_of_two_workers_dies_without_a_successor(written):
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        separate(cluster.scheduler_address, 2) as workers,
    ):
        cluster.wait_for_workers(2, timeout=60)
        killer = killed(lambda: workers[0].pid)
        result = written("rerank", "--scheduler", cluster.scheduler_address)
        killer.join(timeout=1)
        assert not killer.is_alive()
    assert result == written("rerank")


def test_a_cluster_that_grows_and_shrinks_gives_the_same_bytes(written):
    with distributed.LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0") as cluster:
        parallel.WAITING_SECONDS = 60
        over = threading.Event()

        def scale():
            for number in cycle((3, 1, 2)):
                cluster.scale(number)
                if over.wait(0.5):
                    return

        thread = threading.Thread(target=scale, daemon=True)
        thread.start()
        result = written("folds", "--scheduler", cluster.scheduler_address)
        over.set()
        thread.join()
    assert result == written("folds")


@pytest.mark.parametrize("how", ["stopped", "paused"])
@pytest.mark.parametrize("count", [1, 2])
def test_workers_that_take_no_work_are_named(how, count, written, caplog):
    """Work goes on when they do."""
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        separate(cluster.scheduler_address, count),
        distributed.Client(cluster.scheduler_address) as client,
    ):
        cluster.wait_for_workers(count, timeout=60)

        def set_state(state, dask_worker):
            dask_worker.memory_manager.memory_pause_fraction = False  # which would resume it by itself
            dask_worker.status = distributed.core.Status[state]

        first = next(iter(client.scheduler_info(n_workers=-1)["workers"]))
        pid = client.run(os.getpid, workers=[first])[first]

        def set_working(working):
            if how == "stopped":
                os.kill(pid, signal.SIGCONT if working else signal.SIGSTOP)
            else:
                client.run(set_state, "running" if working else "paused", workers=[first])

        def resume():
            latest = time.monotonic() + 30
            while "take no work" not in caplog.text and not over.wait(0.1) and time.monotonic() < latest:
                pass
            set_working(True)

        set_working(False)
        over, thread = threading.Event(), threading.Thread(target=resume, daemon=True)
        thread.start()
        result = written("rerank", "--scheduler", cluster.scheduler_address)
        over.set()
        thread.join()
        if count == 1:
            state = "is paused" if how == "paused" else "does not answer"
            assert f"1 take no work ({first} {state}): the work waits" in caplog.text
    assert result == written("rerank")
