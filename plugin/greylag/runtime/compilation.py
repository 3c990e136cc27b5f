"""Compiling loops with Numba, and caching the result where that is possible.

The first process that needs a loop compiles it, which takes seconds, and says so. Numba caches the result in
``NUMBA_CACHE_DIR``, beside the module, or in the user's cache folder. If none of them is writable, or the cache is
damaged, greylag works without.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from typing import Any

import numba
from numba.core.runtime.nrt import rtsys

_REMEDY = "set NUMBA_CACHE_DIR to a writable folder"
_log = logging.getLogger("greylag")


def compiled(**options: Any) -> Callable[[Any], Any]:
    """Decorate a function to be compiled by `numba.njit` on first use, without the GIL, and cached.

    Parameters
    ----------
    **options
        Further options of `numba.njit`.
    """

    def decorate(function: Any) -> Any:
        if _may_cache(Path(function.__code__.co_filename).parent):
            try:
                dispatcher = numba.njit(cache=True, nogil=True, **options)(function)
            except (RuntimeError, OSError):  # no folder is writable
                pass
            else:
                _guard(dispatcher._cache)
                return dispatcher
        _warn("compiled code cannot be cached, so every process compiles it again")
        return numba.njit(nogil=True, **options)(function)

    return decorate


def _may_cache(folder: Path) -> bool:
    """Whether there is a folder to try. Without a home folder, Numba would make one of the name ``~``."""
    beside = folder / "__pycache__"
    homes = os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME"), os.path.expanduser("~")
    return any(home and os.path.isabs(home) for home in homes) or os.access(
        beside if beside.exists() else folder, os.W_OK | os.X_OK
    )


def _guard(functions: Any) -> None:
    """Make failures of Numba's cache of a function's machine code harmless."""

    def guarded(work: Callable[..., Any], remedy: Callable[[], Any]) -> Callable[..., Any]:
        @wraps(work)
        def attempt(*arguments: Any) -> Any:
            try:
                return work(*arguments)
            except Exception as error:
                _warn(f"Numba's cache failed ({type(error).__name__}: {error})")
                remedy()
            return None

        return attempt

    def empty() -> None:
        try:
            functions.flush()
        except Exception as error:
            _warn(f"Numba's cache cannot be emptied ({type(error).__name__}: {error})")

    def read(signature: Any, context: Any) -> Any:
        rtsys.initialize(context)  # all that machine code needs; Numba would load its whole compiler first
        with functions._guard_against_spurious_io_errors():
            return functions._load_overload(signature, context)

    load = guarded(read, empty)

    def loaded(*arguments: Any) -> Any:
        found = load(*arguments)
        if found is None:
            _announce()
        return found

    functions.load_overload = loaded
    functions.save_overload = guarded(functions.save_overload, lambda: None)


@cache
def _announce() -> None:
    """Say once what the first command after an installation or an update spends its time on."""
    _log.info("compiling for this machine; this happens once after an installation or an update")


@cache
def _warn(message: str) -> None:
    """Warn once."""
    _log.warning("%s; %s", message, _REMEDY)
