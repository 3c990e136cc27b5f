"""One thread for BLAS, whose sums depend on how many threads it has."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from functools import lru_cache
from threading import Lock
from typing import Any


class _OneThread(AbstractContextManager[None]):
    """A limit that ends with the last of the threads that hold it; threadpoolctl's ends with the first."""

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._before: dict[str, int] = {}  # threads by library

    def __enter__(self) -> None:
        with self._lock:
            self._holders += 1
            for library in _libraries():
                self._before.setdefault(library.filepath, library.num_threads)
                _set_threads(library, 1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._holders -= 1
            for library in _libraries():
                # OpenMP has a number for each thread, and others one for all.
                if not self._holders or getattr(library, "threading_layer", "") == "openmp":
                    _set_threads(library, self._before.get(library.filepath, library.num_threads))
            if not self._holders:
                self._before.clear()


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number, also where another thread has set it: threadpoolctl would let only that one, without a word."""
    release = getattr(library, "clear_controlling_thread", None)  # of OpenBLAS, from threadpoolctl 3.8 on
    if release:
        release(force=True)
    library.set_num_threads(n_threads)
    if release:
        release()


def _libraries() -> list[Any]:
    """Return the controllers of NumPy's BLAS, and of SciPy's once it is loaded."""
    return _find_libraries(sum(name.startswith("scipy") for name in sys.modules))


@lru_cache(maxsize=1)
def _find_libraries(loaded: int) -> list[Any]:
    """Find the libraries in memory, which takes milliseconds; SciPy's come with one of its modules."""
    from threadpoolctl import ThreadpoolController  # slow to import

    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


one_blas_thread = _OneThread()
"""``with one_blas_thread:`` limits the BLAS of NumPy and SciPy in all threads of the process."""
