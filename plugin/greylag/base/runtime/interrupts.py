"""Ctrl-C ends a command in one line; pressed again a second later, at once."""

from __future__ import annotations

import os
import signal
import time

IGNORED_SECONDS = 1.0
"""Seconds in which further interrupts are ignored, so that cleaning up is not interrupted."""

_pressed: list[float] = []


def handle_interrupts() -> None:
    """Handle interrupts in this process, unless they are ignored, as under ``nohup``."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _press)


def is_interrupt(error: BaseException) -> bool:
    """Return whether an exception is due to an interrupt, which Numba and imports turn into other exceptions."""
    return isinstance(error, KeyboardInterrupt) or bool(_pressed)


def check_interrupts() -> None:
    """Raise the interrupt again, if compiled code that called Python back has swallowed it."""
    if _pressed:
        raise KeyboardInterrupt


def ignore_interrupts() -> None:
    """Ignore further interrupts: at the end of Python one would print a traceback."""
    if signal.getsignal(signal.SIGINT) is _press:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _press(_: int, __: object) -> None:
    now = time.monotonic()
    if not _pressed:
        _pressed.append(now)
        raise KeyboardInterrupt
    if now - _pressed[0] > IGNORED_SECONDS:  # the first was lost in C code, or cleaning up hangs
        # By no exception, which C code would lose again, and no print, which may be what was interrupted.
        os.write(2, b"greylag: interrupted\n")
        os._exit(130)
