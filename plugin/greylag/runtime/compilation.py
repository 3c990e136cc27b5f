"""Compiling loops with Numba, which caches the machine code in ``NUMBA_CACHE_DIR``, beside the module, or for the user.

The first process that needs a loop compiles it, which takes seconds, and says so. Numba takes a third of a second to
import; the first call of a loop imports it.
"""

from __future__ import annotations

import gc
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from typing import Any

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
        except RuntimeError:  # no folder is writable
            _warn()
            dispatcher = numba.njit(**options)(self._function)
        # Compiled functions call each other by their names in the module.
        self._function.__globals__[self.__name__] = dispatcher
        return dispatcher


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Decorate a module's function to be compiled by `numba.njit` on first use, without the GIL, and cached.

    Parameters
    ----------
    **options
        Further options of `numba.njit`.
    """
    return lambda function: _Loop(function, options)


@cache
def _numba() -> Any:
    """Import Numba, which will announce that it compiles."""
    import numba
    from numba.core.event import register
    from numba.np import linalg

    # Numba's module of sums imports SciPy's linear algebra only to see if it is there; that takes as long as Numba.
    names: dict[str, Any] = vars(linalg)
    ensure_blas, names["ensure_blas"] = names.get("ensure_blas"), lambda: None
    import numba.np.arraymath

    names["ensure_blas"] = ensure_blas
    register("numba:compile", _announcer())  # type: ignore[no-untyped-call]
    register("numba:compile", _collector())  # type: ignore[no-untyped-call]
    return numba


@cache
def _announcer() -> Any:
    """Make the listener that logs why the first command after an installation or an update takes longer."""
    from numba.core.event import Event, Listener

    class Announcer(Listener):
        def on_start(self, event: Event) -> None:
            function = event.data["dispatcher"]
            if function.stats.cache_path and function.py_func.__module__.startswith("greylag"):
                _announce()

        def on_end(self, event: Event) -> None:
            pass

    return Announcer()


@cache
def _collector() -> Any:
    """Make the listener that keeps Python from looking for cycles while Numba compiles, a sixth of the time."""
    from numba.core.event import Event, Listener

    looked: list[bool] = []  # before each function that is being compiled; Numba compiles in one thread at a time

    class Collector(Listener):
        def on_start(self, event: Event) -> None:
            looked.append(gc.isenabled())
            gc.disable()

        def on_end(self, event: Event) -> None:
            if looked.pop():
                gc.enable()

    return Collector()


@contextmanager
def unannounced() -> Iterator[None]:
    """Compile without the log's line, for those who compile ahead."""
    _numba()
    from numba.core.event import register, unregister

    unregister("numba:compile", _announcer())  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        register("numba:compile", _announcer())  # type: ignore[no-untyped-call]


@cache
def _announce() -> None:
    """Log once that compiling takes the time."""
    level = logging.INFO if _log.hasHandlers() else logging.WARNING  # which Python prints where logging is not set up
    _log.log(level, "compiling loops on first use; greylag compile does this ahead of time")


@cache
def _warn() -> None:
    """Log the warning once."""
    _log.warning(
        "compiled code cannot be cached, so every process compiles it again; set NUMBA_CACHE_DIR to a writable folder"
    )
