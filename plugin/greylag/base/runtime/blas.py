"""One thread for BLAS, whose sums depend on how many threads it has."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from threading import Lock, get_ident
from typing import Any

_lock = Lock()
# By library: the threads that it had before each holder of the limit came. The last to go restores the first number.
_before: dict[tuple[str, int], list[int]] = {}


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit the BLAS of NumPy and SciPy to one thread, in the whole process, until the last holder of the limit ends.

    A limit of threadpoolctl would end with the first holder.
    """
    libraries = _libraries(len(sys.modules))  # others may be loaded meanwhile, which are not this holder's to release
    with _lock:
        for library in libraries:
            _before.setdefault(_key(library), []).append(library.num_threads)
            _set_threads(library, 1)
    try:
        yield
    finally:
        with _lock:
            for library in libraries:
                number = _before[_key(library)].pop()
                if not _before[_key(library)]:
                    _set_threads(library, number)


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


@lru_cache(maxsize=1)  # it takes milliseconds, and finds others only once there are other modules
def _libraries(n_modules: int) -> list[Any]:
    """Return the controllers of the BLAS that modules have loaded: NumPy's, and later SciPy's."""
    from threadpoolctl import ThreadpoolController  # slow to import

    controllers: list[Any] = ThreadpoolController().select(user_api="blas").lib_controllers
    return controllers
