"""Compiling loops with Numba, which caches the machine code in ``NUMBA_CACHE_DIR``, beside the module, or for the user.

The first process that needs a loop compiles it, which takes seconds, and says so.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numba
from numba.core.event import Event, Listener, register, unregister

_log = logging.getLogger("greylag")


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Decorate a function to be compiled by `numba.njit` on first use, without the GIL, and cached if that is possible.

    Parameters
    ----------
    **options
        Further options of `numba.njit`.
    """

    def decorate(function: Any) -> Any:
        try:
            return numba.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # no folder is writable
            _warn()
            return numba.njit(nogil=True, **options)(function)

    return decorate


class _Announcer(Listener):
    """Logs why the first command after an installation or an update takes longer."""

    def on_start(self, event: Event) -> None:
        function = event.data["dispatcher"]
        if function.stats.cache_path and function.py_func.__module__.startswith("greylag"):
            _announce()

    def on_end(self, event: Event) -> None:
        pass


_ANNOUNCER = _Announcer()
register("numba:compile", _ANNOUNCER)  # type: ignore[no-untyped-call]


@contextmanager
def unannounced() -> Iterator[None]:
    """Compile without the log's line, for those who compile ahead."""
    unregister("numba:compile", _ANNOUNCER)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        register("numba:compile", _ANNOUNCER)  # type: ignore[no-untyped-call]


@cache
def _announce() -> None:
    """Log once that compiling takes the time."""
    _log.info("compiling what is used for the first time; greylag compile does so ahead")


@cache
def _warn() -> None:
    """Log the warning once."""
    _log.warning(
        "compiled code cannot be cached, so every process compiles it again; set NUMBA_CACHE_DIR to a writable folder"
    )
