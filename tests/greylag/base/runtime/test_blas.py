"""One thread for BLAS, as threadpoolctl sees it.

Tests `blas`.
"""

from dataclasses import dataclass
from threading import Barrier, Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from greylag.base.runtime import blas
from greylag.base.runtime.blas import one_blas_thread


def threads():
    np.eye(2) @ np.eye(2)  # so that NumPy, which has a BLAS, is loaded
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.mark.parametrize("loaded", ["scipy.linalg", "faiss"])
def test_the_limit_lasts_until_the_last_thread_that_holds_it(loaded):
    """Also of a BLAS with OpenMP, which has a number for each thread; that of faiss has."""
    pytest.importorskip(loaded)
    turn, seen = Barrier(2, timeout=60), dict[str, set[int]]()

    def first():
        with one_blas_thread():
            turn.wait()  # both hold it
            turn.wait()
        turn.wait()  # the other one holds it alone
        turn.wait()

    with threadpool_limits(3, user_api="blas"):
        other = Thread(target=first)
        other.start()
        turn.wait()
        with one_blas_thread():
            seen["both"] = threads()
            turn.wait()
            turn.wait()
            seen["one"] = threads()
        seen["none"] = threads()
        turn.wait()
        other.join()
    assert seen == {"both": {1}, "one": {1}, "none": {3}}


@dataclass
class Library:
    """A BLAS whose threads are a number, as threadpoolctl controls one."""

    filepath: str
    num_threads: int = 4

    def set_num_threads(self, n_threads):
        self.num_threads = n_threads


def test_a_library_that_is_loaded_meanwhile_keeps_its_limit(monkeypatch):
    early, late = Library("early"), Library("late")
    first, second = one_blas_thread(), one_blas_thread()
    monkeypatch.setattr(blas, "_libraries", lambda _: [early])
    first.__enter__()
    monkeypatch.setattr(blas, "_libraries", lambda _: [early, late])
    second.__enter__()
    first.__exit__(None, None, None)
    assert (early.num_threads, late.num_threads) == (1, 1)
    second.__exit__(None, None, None)
    assert (early.num_threads, late.num_threads) == (4, 4)


def test_an_error_ends_the_limit():
    with threadpool_limits(2, user_api="blas"):
        with pytest.raises(ZeroDivisionError), one_blas_thread():
            assert 1 / 0
        assert threads() == {2}
