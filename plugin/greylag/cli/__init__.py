"""The command line. Each command reads files, calls the library and writes files.

The command NAME is the function of that name in the module ``greylag.cli.NAME``, which is imported when the command is
run. To add a command, add its module and its line in `COMMANDS`.
"""

from __future__ import annotations

import io
import logging
import os
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from greylag import __version__
from greylag.cli.groups import flatten
from greylag.cli.outputs import above_progress
from greylag.errors import GreylagError, one_line

COMMANDS = {
    "index": "Index documents with positions.",
    "search": "Search with BM25 or query likelihood.",
    "features": "Compute the features of a run's documents.",
    "train": "Learn a linear ranking model.",
    "tune": "Tune a baseline on judged topics, and write it as a model.",
    "fuse": "Fuse runs without learning.",
    "rerank": "Rerank a run with a learned model or by manifold ranking.",
    "train-diversity": "Learn to diversify from subtopic judgements.",
    "diversify": "Diversify the top of a run.",
    "explain": "Break down a document's score.",
    "show": "Show what a model is.",
    "evaluate": "Score runs and test their differences.",
    "experiment": "Run a study from an experiment file.",
    "doctor": "Check Java, Pyserini and an index.",
    "demo": "Run a whole pipeline on a small collection.",
}
MAX_MESSAGE = 2000
INTERRUPTED = 130

_UsageError: type[Any] = typer.BadParameter.__mro__[1]  # click's, or that of the copy of click within newer typer


class _Commands(TyperGroup):
    """Imports a command's module when the command is looked up; the list of commands needs none of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        commands: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = commands

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command, or None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command = _app(add_completion=False)
        command.command(cmd_name)(flatten(getattr(import_module(f"greylag.cli.{name}"), name)))
        return typer.main.get_command(command)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _app(**options: Any) -> typer.Typer:
    return typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, **options)


app = _app(cls=_Commands)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"greylag {__version__}")
        raise typer.Exit


@app.callback()
def _greylag(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Dependence features, feature selection and learned diversity for Pyserini pipelines."""


class _AboveProgress(logging.StreamHandler[Any]):
    def emit(self, record: logging.LogRecord) -> None:
        with above_progress():
            super().emit(record)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"greylag: {record.levelname.lower()}: {record.getMessage()}"


def main() -> None:
    """Run the command line.

    The exit code is 0, 2 after one line about what the user must change, 130 after an interrupt, 1 after anything else.
    """
    handler = _AboveProgress()
    handler.setFormatter(_OneLine())
    log = logging.getLogger("greylag")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    _show_all_names()
    try:
        code = app(sys.argv[1:] or ["--help"], prog_name="greylag", standalone_mode=False)
        sys.stdout.flush()
    except _UsageError as error:
        context = error.ctx.command_path if error.ctx else "greylag"
        code = _fail(f"{error.format_message()} (see {context} --help)")
    except GreylagError as error:
        code = _fail(str(error))
    except BrokenPipeError:  # such as `greylag evaluate ... | head`
        _discard_output()
        code = 1
    except OSError as error:
        place = error.filename or _place()
        code = _fail(f"{place}: {error.strerror}" if error.strerror else str(error))
        if error.filename is None:  # such as a full disk behind `greylag evaluate ... > scores.txt`
            _discard_output()
    except UnicodeEncodeError as error:
        code = _fail(f"{error.object!r:.80} is not valid UTF-8")
    except (RecursionError, MemoryError) as error:
        code = _fail(f"an input is too large or too deeply nested: {error}")
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    finally:
        log.removeHandler(handler)
    if code == INTERRUPTED:  # newer typer catches the interrupt itself, and returns this code
        from greylag.runtime.work_log import interruptions

        print("; ".join(["greylag: interrupted", *interruptions]), file=sys.stderr)
    sys.exit(code)


def _show_all_names() -> None:
    """Escape characters that the terminal cannot show."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _place() -> str:
    """What an error without a file's name is about."""
    from greylag.runtime.folders import in_folder

    return "output" if in_folder() else "the working folder was removed"


def _discard_output() -> None:
    """Discard what Python would write to standard output at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    line = one_line(message)
    shown = line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}..."
    print(f"greylag: error: {shown}", file=sys.stderr)
    return 2
