"""Output to the terminal: above the progress line, and without the control characters of files."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import typer

from greylag.base import visible


@contextmanager
def above_progress() -> Iterator[None]:
    """Print in the block above the progress line, if there is one."""
    tqdm = sys.modules.get("tqdm")  # not imported as long as there has been no progress
    with nullcontext() if tqdm is None else tqdm.tqdm.external_write_mode():
        yield


def write_line(text: str) -> None:
    """Print a text above the progress line."""
    with above_progress():
        typer.echo(visible(text.removesuffix("\n")))


class LogLines(logging.StreamHandler[Any]):
    """Writes records of the log as lines above the progress line."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record on one line."""
        return visible(f"greylag: {record.levelname.lower()}: {record.getMessage()}")

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record."""
        with above_progress():
            super().emit(record)


def prepare_streams() -> None:
    """Give closed streams a file, and escape characters that the terminal cannot show."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # as after `>&-`; in this order, each gets its usual descriptor
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
