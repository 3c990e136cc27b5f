"""Maps over items: the same results in threads, in processes and on a cluster, kept and not kept."""

import logging
import os
import pickle
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import LokyBackend
from tests.processes import python
from tests.refusals import refuses

from greylag.base import DependencyError, ParameterError, Ranking
from greylag.base.core import missing_documents
from greylag.base.runtime import parallel
from greylag.base.runtime.parallel import core_count, keeping, parallel_map, reserved_path, thread_count, threads
from greylag.base.runtime.software import code, version
from greylag.features.evidence import RunScore
from greylag.features.extract import FeatureExtractor
from greylag.index.positional import PositionalIndex


@dataclass
class Memory:
    """A keeper, which counts."""

    kept: dict[str, Any] = field(default_factory=dict)
    loaded: int = 0

    def load_result(self, key):
        self.loaded += key in self.kept
        return self.kept.get(key)

    def save_result(self, key, result):
        assert key not in self.kept
        self.kept[key] = result
        return True


def square(n, plus=0):
    return n * n + plus


def pick(n, values):
    return values[n]


def test_results_in_order_on_any_backend():
    expected = [n * n + 3 for n in range(700)]
    for n_jobs in (1, 2, 5):
        assert list(parallel_map(square, range(700), 3, what="squares", n_jobs=n_jobs)) == expected
    assert set(parallel_map(lambda _: os.getpid(), range(9), what="here", n_jobs=2)) == {os.getpid()}
    with joblib.parallel_config("loky", n_jobs=2):
        assert list(parallel_map(lambda n, plus: n * n + plus, range(700), 3, what="squares")) == expected
        assert os.getpid() not in set(parallel_map(lambda _: os.getpid(), range(9), what="there"))
    assert list(parallel_map(square, range(700), 3, what="squares", n_jobs=2, prefer="processes")) == expected
    assert list(parallel_map(square, iter(()), what="squares", n_jobs=2)) == []


def test_processes_read_the_files_of_now_and_here(tmp_path, monkeypatch):
    ranking = Ranking("q", "york", ("d1", "d2"), np.array([2.0, 1.0]))
    index = PositionalIndex.from_texts({"d1": "york", "d2": "york"})
    for folder, score in (("a", 9.0), ("a", 8.0), ("b", 7.0)):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        Path("x.run").write_text(f"q Q0 d1 1 {score} x\nq Q0 d2 2 1 x\n")
        extractor = FeatureExtractor(index, (RunScore("x.run"),))
        with joblib.parallel_config("loky", n_jobs=2):
            found = list(parallel_map(extractor, [ranking] * 4, what="features"))
        assert [values[0, 0] for values in found] == [score] * 4


def test_a_large_function_is_not_sent_with_every_part():
    values = np.random.default_rng(0).random(20_000).tolist()
    function = partial(pick, values=values)
    call = parallel._packed(function, moves=False)
    assert len(pickle.dumps(call)) < 2000 < call.content.nbytes
    again = pickle.loads(pickle.dumps(call))
    assert again(call.content, 0, 5)[0] == (0, values[5], {})
    assert again(None, 1, 3)[0] == (1, values[3], {})  # unpickled once
    with joblib.parallel_config("loky", n_jobs=2):
        assert list(parallel_map(function, range(700), what="values")) == values[:700]


class Whole(LokyBackend):
    """A backend that gives all results of a window at once, as Ray's does."""

    supports_return_generator = False


def test_a_backend_without_generators():
    joblib.register_parallel_backend("whole", Whole)
    with joblib.parallel_config("whole", n_jobs=2):
        assert list(parallel_map(square, range(1200), 3, what="squares")) == [n * n + 3 for n in range(1200)]


def test_items_are_taken_as_they_are_needed():
    taken = 0

    def items():
        nonlocal taken
        for n in range(10_000):
            taken = n
            yield n

    results = parallel_map(square, items(), what="squares", n_jobs=2)
    assert next(results) == 0
    assert taken < 2 * parallel.WINDOW
    results.close()
    one = parallel_map(square, items(), what="squares", n_jobs=1)
    assert [next(one), next(one)] == [0, 1]
    assert taken == 1


def test_inside_a_worker_calls_take_turns():
    def outer(n):
        threads = set(parallel_map(lambda _: threading.get_ident(), range(20), what="inner", n_jobs=4))
        return threads == {threading.get_ident()}, thread_count(4), threads

    found = list(parallel_map(outer, range(4), what="outer", n_jobs=2))
    assert all(own and count == 1 for own, count, _ in found)
    assert thread_count(4) == 4


def test_threads_for_calls_of_milliseconds():
    """Results are in order, of as many threads as were asked for."""
    with threads(3) as in_threads, threads(1) as in_none:
        assert [*in_threads(square, range(5))] == [0, 1, 4, 9, 16]
        meet = threading.Barrier(3, timeout=60)
        assert len(set(in_threads(lambda _: (meet.wait(), threading.get_ident())[1], range(3)))) == 3
        assert set(in_none(lambda _: threading.get_ident(), range(3))) == {threading.get_ident()}
    assert thread_count(-1) == joblib.cpu_count()


def test_coarse_calls_take_turns_among_threads_and_use_them():
    def outer(_):
        barrier = threading.Barrier(2, timeout=10)
        list(parallel_map(lambda _: barrier.wait(), range(2), what="inner", n_jobs=2))
        return threading.get_ident()

    assert set(parallel_map(outer, range(3), what="outer", n_jobs=2, coarse=True)) == {threading.get_ident()}


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("coarse", [False, True])
def test_what_is_kept_is_not_computed_again(n_jobs, coarse):
    memory, calls = Memory(), []

    def fails_at(bad):
        def call(n):
            calls.append(n)
            time.sleep(0.01)
            if n == bad:
                raise ValueError(n)
            return sum(parallel_map(square, range(n), what="inner"))

        with keeping(memory):
            first = list(parallel_map(square, range(5), what="first", n_jobs=n_jobs))
            return first + list(parallel_map(call, range(40), what="second", n_jobs=n_jobs, coarse=coarse))

    with pytest.raises(ValueError, match="30"):
        fails_at(30)
    before = len(calls)
    again = fails_at(None)
    assert again == [n * n for n in range(5)] + [sum(k * k for k in range(n)) for n in range(40)]
    assert before > 20
    assert len(calls) - before < 25
    calls.clear()
    assert fails_at(30) == again
    assert not calls


def test_what_folds_share_is_kept_wherever_it_is_computed_first():
    memory, calls = Memory(), []

    def called(n):
        calls.append(n)
        return square(n)

    def folds(*numbers):
        table = []

        def fold(n, at):
            if not table:  # as if it were another fold, all others being kept
                table.extend(parallel_map(called, range(3), what="shared", at=f"{at}.table"))
            return [*table, *parallel_map(square, [n], what="its own")]

        with keeping(memory):
            return list(parallel_map(fold, numbers, reserved_path(), what="folds", coarse=True))

    first = folds(5, 6)
    assert first == [[0, 1, 4, 25], [0, 1, 4, 36]]
    memory.kept = {key: value for key, value in memory.kept.items() if "folds:1" not in key}
    assert folds(5, 6) == first
    assert calls == [0, 1, 2], "the second fold finds what the first has computed"


def test_kept_items_are_reported_as_if_they_had_been_computed(caplog):
    memory = Memory()
    for _ in range(2):
        with keeping(memory):
            list(
                parallel_map(
                    lambda n: missing_documents.report_missing("it stays", f"q{n}", ["x"], 2),
                    range(3),
                    what="run a",
                    n_jobs=2,
                )
            )
    assert len(caplog.messages) == 2
    assert len(set(caplog.messages)) == 1
    assert memory.loaded == 3


def test_messages_of_other_processes_are_relayed(caplog):
    def tells(n):
        logging.getLogger("greylag.somewhere").warning("item %d", n)
        missing_documents.report_missing("it stays", f"q{n}", ["x"], 2)

    with joblib.parallel_config("loky", n_jobs=2):
        list(parallel_map(tells, range(3), what="run a"))
    assert sorted(caplog.messages)[:3] == ["item 0", "item 1", "item 2"]
    assert caplog.messages[3].startswith("run a: 3 of 6 documents of 3 queries are unknown")


@pytest.mark.parametrize(("raised", "told"), [(SystemExit, SystemExit), (StopIteration, RuntimeError)])
def test_whatever_a_call_raises_ends_the_map(raised, told):
    def fail(_):
        raise raised

    with pytest.raises(told):
        list(parallel_map(fail, range(4), what="failing", n_jobs=2))


def test_an_interrupt_does_not_wait_for_threads():
    code = (
        "import os, signal, threading, time; from greylag.base import parallel_map;"
        "threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start();"
        "list(parallel_map(time.sleep, [900] * 4, what='sleeping', n_jobs=2))"
    )
    ended = python("-c", code, timeout=60, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    assert "KeyboardInterrupt" in ended.stderr


def test_what_cannot_be_done_is_refused():
    refuses(lambda: parallel_map(square, [1], what="squares", n_jobs=0), ParameterError, "n_jobs 0")
    with joblib.parallel_config("multiprocessing", n_jobs=2):
        refuses(lambda: parallel_map(square, [1], what="squares"), ParameterError, "'multiprocessing' 'loky'")
    lock = threading.Lock()
    with joblib.parallel_config("loky", n_jobs=2):
        refuses(lambda: [*parallel_map(lambda n: lock.locked() or n, [1], what="squares")], ParameterError, "lock")
        killed = partial(parallel_map, lambda _: os._exit(1), [1], what="kills")
        refuses(lambda: [*killed()], DependencyError, "worker killed memory")
        with pytest.raises(ZeroDivisionError):
            list(parallel_map(lambda n: 1 // n, [1, 0], what="quotients"))


def test_versions_are_those_of_all_installed_packages():
    names = {distribution.name for distribution in metadata.distributions()}
    assert {name: version(name) for name in names} == {name: metadata.version(name) for name in names}


@pytest.mark.parametrize("name", ["numpy", "the source code"])
def test_a_worker_with_other_software_is_refused(name):
    """In the call: an error while a message is unpickled would close a worker of Dask."""
    call = parallel._packed(square, moves=False)
    call.software = {**call.software, name: "0.0"}
    again = pickle.loads(pickle.dumps(call))
    refuses(lambda: again(call.content, 0, 1), DependencyError, f"worker {name} not 0.0: install")


def test_a_worker_with_older_code_of_another_package_is_refused(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "of_others.py").write_text("SIGN = 1\n")
    monkeypatch.setattr(parallel, "packages_in_use", {"of_others", "greylag", "__main__"})
    import_module("of_others")
    call = parallel._packed(square, moves=False)
    assert call(call.content, 0, 3)[0][1] == 9
    (tmp_path / "of_others.py").write_text("SIGN = -1.0\n")
    code.cache_clear()  # as in another client
    later = parallel._packed(square, moves=False)
    assert later.code != call.code
    code.cache_clear()
    call = pickle.loads(pickle.dumps(call))
    parallel._functions.cache_clear()
    refuses(lambda: call(later.content, 0, 3), DependencyError, "worker of_others restart")


@contextmanager
def local(**options):
    """A Dask cluster in this process, by default of one worker of one thread."""
    distributed = pytest.importorskip("distributed")
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": None, **options}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster), joblib.parallel_config("dask"):
        yield cluster


def test_a_cluster_of_one_thread_does_the_work():
    values, expected = np.arange(700.0), [n * n + 3 for n in range(700)]
    with local():
        assert list(parallel_map(square, range(700), 3, what="squares")) == expected
        assert list(parallel_map(lambda n, all_of: all_of[n], range(9), values, what="values")) == [*range(9)]
        threads = list(parallel_map(lambda _: threading.current_thread().name, range(3), what="threads"))
        with pytest.raises(ZeroDivisionError):
            list(parallel_map(lambda n: 1 // n, [1, 0], what="quotients"))
    assert all("Dask" in name for name in threads)


def test_an_adaptive_cluster_starts_without_a_worker():
    with local(n_workers=0) as cluster:
        cluster.adapt(minimum=0, maximum=2)
        assert list(parallel_map(square, range(20), what="squares")) == [n * n for n in range(20)]


def test_a_cluster_without_workers_or_scheduler_is_lost(monkeypatch):
    monkeypatch.setattr(parallel, "WAITING_SECONDS", 1)
    with local(n_workers=0):
        refuses(lambda: [*parallel_map(square, range(3), what="squares")], DependencyError, "no workers")
    with local() as cluster:
        threading.Timer(0.5, cluster.close).start()
        refuses(lambda: [*parallel_map(lambda _: time.sleep(0.1), range(100), what="x")], DependencyError, "lost")


@pytest.mark.long
def test_work_that_ends_its_workers_is_said():
    def kill(_):
        os.kill(os.getpid(), signal.SIGKILL)

    with local(processes=True):
        refuses(lambda: [*parallel_map(kill, range(3), what="items")], DependencyError, "memory")
        pytest.importorskip("distributed").default_client().wait_for_workers(1, timeout=60)  # Dask cannot close before


def test_cores_are_counted_as_by_joblib(monkeypatch, tmp_path):
    assert core_count() == joblib.cpu_count()
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    assert core_count() == joblib.cpu_count() == 1
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "64")
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(32))
    quota, period = tmp_path / "quota", tmp_path / "period"
    monkeypatch.setattr(parallel, "QUOTAS", (("/no/such/file",), (quota, period)))
    counts = {"max": 32, "150000": 2, "-1": 32, "1": 1}  # of loky: rounded up, and none where it is negative
    period.write_text("100000\n")
    assert {text: (quota.write_text(text + "\n"), core_count())[1] for text in counts} == counts
