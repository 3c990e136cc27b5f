"""One thread for BLAS, whose sums depend on how many threads it has."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock, get_ident
from typing import Any


class _OneThread(AbstractContextManager[None]):
    """A limit that ends with the last of the threads that hold it; threadpoolctl's ends with the first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._held: dict[tuple[str, int], _Held] = {}

    def __enter__(self) -> None:
        with self._lock:
            for library in _libraries():
                held = self._held.setdefault(_key(library), _Held(library.num_threads))
                held.holders += 1
                _set_threads(library, 1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            for library in _libraries():
                key = _key(library)
                if key not in self._held:  # loaded meanwhile
                    continue
                held = self._held[key]
                held.holders -= 1
                if not held.holders:
                    del self._held[key]
                    _set_threads(library, held.before)


@dataclass
class _Held:
    """How many threads a library had before, and who holds the limit."""

    before: int
    holders: int = 0


def _key(library: Any) -> tuple[str, int]:
    """Return the library, and the thread if each has a number of its own, as with OpenMP; 0 if all share one."""
    return library.filepath, get_ident() if getattr(library, "threading_layer", "") == "openmp" else 0


def _set_threads(library: Any, n_threads: int) -> None:
    """Set the number, also where another thread has set it: threadpoolctl would let only that one, without a word."""
    release = getattr(library, "clear_controlling_thread", None)  # of OpenBLAS, from threadpoolctl 3.8 on
    if release:
        release(force=True)
    library.set_num_threads(n_threads)
    if release:
        release()


def _libraries() -> list[Any]:
    """Return the controllers of the BLAS that modules have loaded: NumPy's, and later SciPy's."""
    return _find_libraries(len(sys.modules))


@lru_cache(maxsize=1)
def _find_libraries(n_modules: int) -> list[Any]:
    """Find the libraries in memory, which takes milliseconds: again only once there are other modules."""
    from threadpoolctl import ThreadpoolController  # slow to import

    found: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return found


one_blas_thread = _OneThread()
"""``with one_blas_thread:`` limits the BLAS of NumPy and SciPy, in all threads of the process."""
