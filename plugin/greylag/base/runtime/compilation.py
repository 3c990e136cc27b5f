"""Compiling loops with Numba, which caches the machine code in ``NUMBA_CACHE_DIR``, beside the module, or for the user.

The first process that needs a loop compiles it, which takes seconds, and says so. Numba takes a third of a second to
import; the first call of a loop imports it.
"""

from __future__ import annotations

import gc
import logging
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from threading import RLock
from typing import Any

ANNOUNCED = "compiling loops on first use; greylag compile does this ahead of time"
UNCACHED = (
    "compiled code cannot be cached, so every process compiles it again; set NUMBA_CACHE_DIR to a writable folder"
)
_log = logging.getLogger("greylag")
_lock = RLock()
_waiting: defaultdict[str, list[_Loop]] = defaultdict(list)  # by module


class _Loop:
    """A function that is compiled when it is first called, with all others of its module, which it may call."""

    def __init__(self, function: Any, options: dict[str, Any]) -> None:
        self._function, self._options = function, options
        self._dispatcher: Any = None
        self.__name__, self.__doc__, self.__module__ = function.__name__, function.__doc__, function.__module__
        _waiting[self.__module__].append(self)

    def __call__(self, *arguments: Any) -> Any:
        if self._dispatcher is None:
            with _lock:
                # None if another thread has compiled them while this one waited for the lock.
                loops = _waiting.pop(self.__module__, ())
                # Seen by other threads only once none of the module's functions calls a loop that is not compiled.
                for loop, dispatcher in [(loop, loop._dispatch()) for loop in loops]:
                    loop._dispatcher = dispatcher
        return self._dispatcher(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_dispatcher"], name)

    def _dispatch(self) -> Any:
        """Put Numba's dispatcher in this function's place in the module, and return it."""
        numba = _numba()
        options = {"nogil": True, "no_cfunc_wrapper": True, **self._options}  # what C would call takes time to compile
        try:
            dispatcher = numba.njit(cache=True, **options)(self._function)
            _load_alone(getattr(dispatcher, "_cache", None))
        except RuntimeError:  # no folder is writable
            _say_once(UNCACHED)
            dispatcher = numba.njit(**options)(self._function)
        # Compiled functions call each other by their names in the module.
        self._function.__globals__[self.__name__] = dispatcher
        return dispatcher


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Decorate a module's function to be compiled on first use, by `numba.njit` with these options, and cached."""
    return lambda function: _Loop(function, options)


@cache
def _numba() -> Any:
    """Import Numba, which will announce that it compiles."""
    import numba
    from numba.core.event import Event, Listener, register
    from numba.np import linalg

    # Numba's module of sums imports SciPy's linear algebra only to see if it is there; that takes as long as Numba.
    names: dict[str, Any] = vars(linalg)
    ensure_blas, names["ensure_blas"] = names.get("ensure_blas"), lambda: None
    import numba.np.arraymath

    names["ensure_blas"] = ensure_blas
    looked: list[bool] = []  # before each function that is being compiled; Numba compiles in one thread at a time

    class Compiling(Listener):
        """Says why the first command after an installation takes longer; keeps Python from looking for cycles."""

        def on_start(self, event: Event) -> None:
            function = event.data["dispatcher"]
            if function.stats.cache_path and function.py_func.__module__.startswith("greylag"):
                # As a warning, Python prints it where logging is not set up.
                level = logging.INFO if _log.hasHandlers() else logging.WARNING
                _say_once(ANNOUNCED, level)
            looked.append(gc.isenabled())
            gc.disable()  # a sixth of the time

        def on_end(self, event: Event) -> None:
            if looked.pop():
                gc.enable()

    register("numba:compile", Compiling())  # type: ignore[no-untyped-call]
    return numba


def _load_alone(cache: Any) -> None:
    """Let a cache load machine code without registering what compilation alone needs, and registers for itself."""
    from numba.core.runtime.nrt import rtsys

    # As Numba's own method, which imports 65 modules and registers all implementations first: a quarter of its import.
    if load := getattr(cache, "_load_overload", None):
        cache.load_overload = lambda signature, context: (rtsys.initialize(context), load(signature, context))[1]


_said: set[str] = set()


def _say_once(text: str, level: int = logging.WARNING) -> None:
    """Log a line, once in this process."""
    if text not in _said:
        _said.add(text)
        _log.log(level, text)


def unannounced() -> None:
    """Compile without the log's line from here on, for those who compile ahead."""
    _said.add(ANNOUNCED)
