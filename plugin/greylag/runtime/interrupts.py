"""Ctrl-C at any moment, once or twice, ends a command in one line.

Python raises `KeyboardInterrupt` wherever the main thread is. Some C code, such as Numba's calls of compiled functions,
makes another error of it there, or none, and an import that it breaks off may print and cannot be repeated.
"""

from __future__ import annotations

import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # this module is there before anything else, and imports next to nothing
    from types import FrameType
    from typing import Any

PATIENCE = 1.0
"""Seconds in which further interrupts are ignored; after them, one ends the process at once, as a kill does."""
_PAUSE = 0.02  # seconds until an interrupt is raised that could not be before

_pressed: list[float] = []


def prepare() -> None:
    """Handle interrupts in this process, unless they are ignored, as under ``nohup``."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _press)
        signal.signal(signal.SIGALRM, _interrupt)
        sys.unraisablehook = _lost
        import threading

        threading.excepthook = _ended


def caused(error: BaseException) -> bool:
    """Whether an exception is due to an interrupt."""
    return isinstance(error, KeyboardInterrupt) or bool(_pressed)


def ignore() -> None:
    """Ignore what comes now, as the command has ended: at the end of Python an interrupt would end in a traceback."""
    for number in (signal.SIGINT, signal.SIGALRM):
        if signal.getsignal(number) in (_press, _interrupt):
            signal.signal(number, signal.SIG_IGN)
    exec("")  # Python, once interrupted in a text like this, ends by the signal unless it has run another


def _press(number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    if not _pressed:
        _pressed.append(now)
        if disable := getattr(sys.modules.get("logging"), "disable", None):
            disable()  # what a cluster's client loses, for one
        _interrupt(number, frame)
    elif now - _pressed[0] > PATIENCE:
        os.write(2, b"greylag: interrupted\n")
        os._exit(130)


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raise, or wait for the end of an import."""
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            signal.setitimer(signal.ITIMER_REAL, _PAUSE)
            return
        frame = frame.f_back
    raise KeyboardInterrupt


def _lost(error: Any) -> None:
    """Raise again what C code could not hand on; other errors are told as ever."""
    if not _pressed:
        sys.__unraisablehook__(error)
    elif issubclass(error.exc_type, KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, _PAUSE)


def _ended(error: Any) -> None:
    """Say nothing of threads that an interrupt has ended."""
    if not _pressed:
        sys.modules["threading"].__excepthook__(error)
