"""The command line. Each command reads files, calls the library and writes files.

The command NAME is the function of that name in the module ``greylag.cli.NAME``, which is imported when the command is
run. To add a command, add its module and its line in `COMMANDS`.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from greylag import __version__
from greylag.base import GreylagError, ignore_interrupts, is_interrupt, one_line, visible
from greylag.cli.terminal import LogLines, prepare_streams

COMMANDS = {
    "index": "Index documents with positions.",
    "search": "Search with BM25 or query likelihood.",
    "features": "Compute the features of a run's documents.",
    "train": "Learn a model, or tune a baseline.",
    "fuse": "Fuse runs by a rule, or by weights learned from judgements.",
    "rerank": "Rerank or diversify a run.",
    "diversify": "Compare and tune diversifiers.",
    "explain": "Show what a model learned, or break down a document's score.",
    "export": "Print a model for a search engine.",
    "evaluate": "Score runs and test their differences.",
    "pool": "Pool the top documents of runs, to be judged.",
    "check": "Check runs by TREC's rules for submissions.",
    "experiment": "Run a study from an experiment file, such as the demo.",
    "compile": "Compile the ranking loops ahead of time.",
    "doctor": "Check Java, Pyserini and an index.",
}
MAX_MESSAGE = 2000
MAX_JOBS = 1024
INTERRUPTED = 130
SHARED = ("--jobs", "--scheduler", "--field", "--lenient", "--metadata")
"""The options of all commands, which are accepted before and after the command."""

_UsageError: type[Any] = typer.BadParameter.__mro__[1]  # click's, or its copy's within newer typer


class _Converter:
    """Converts an option's words as typer does, plain ones without Pydantic, which is slow to import."""

    def __init__(self, typers: Callable[[], Any], described: Any) -> None:
        self._typers = typers
        self._minimum = described.parameter_info.min
        several = get_origin(described.annotation) is list
        self._kind = get_args(described.annotation)[0] if several else described.annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Convert what the command line has for an option, or its default."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        words = value if isinstance(value, list | tuple) else [value]
        plain = [self._plain(word) for word in words]
        if None in plain:
            return self._typers().coerce(value, param=param, ctx=ctx)
        return plain[0] if words is not value else plain

    def _plain(self, word: Any) -> Any:
        """Convert a word, or a default; return None if it may be wrong."""
        kind = self._kind
        if kind is str or (get_origin(kind) is Literal and word in get_args(kind)):
            return word
        if kind is int and self._minimum is None and re.fullmatch("[0-9]{1,9}", str(word)):
            return int(word)
        if kind is Path and "\0" not in str(word) and (os.access(word, os.R_OK) or not os.path.exists(word)):
            return Path(word)
        return word if isinstance(kind, type) and isinstance(word, kind) else None


class _Converting:
    """A command or group whose options convert their words by `_Converter`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options."""
        options: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for option in options:
            if hasattr(option, "get_runtime_param") and "get_runtime_param" not in vars(option):
                option.get_runtime_param = partial(_Converter, option.get_runtime_param, option.type_descriptor)
        return options


class _Command(_Converting, TyperCommand):
    """A command that may show the help of one of its options, and refuses a second value of an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words of the command line; refuse an option that has a value already."""
        # click keeps the last value, so that a second --baseline would replace the first in silence.
        words = list(args)
        try:
            rest: list[str] = super().parse_args(ctx, args)
        except _UsageError as error:
            unknown, known = getattr(error, "option_name", ""), {name for option in self.params for name in option.opts}
            if unknown and unknown not in known:
                from greylag.cli.guesses import find_way
                from greylag.cli.options import nearest_spelling

                ours = find_way(self.name or "", unknown, lambda option: nearest_spelling(option, self.params))
                raise _UsageError(f"No such option: {unknown}{f'; {ours}' if ours else ''}", ctx) from None
            raise
        order: list[Any] = self.make_parser(ctx).parse_args(args=words)[2]
        for option in order:
            several = option.param_type_name != "option" or option.multiple or option.is_flag or option.count
            if not several and order.count(option) > 1:
                raise _UsageError(f"{option.opts[-1]} is given {order.count(option)} times: give it once", ctx)
        return rest

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help."""
        if (text := ctx.meta.get("greylag.help")) is None:
            super().format_help(ctx, formatter)
        else:
            formatter.write(text)


class _Commands(_Converting, TyperGroup):
    """Imports a command's module when the command is looked up; the list of commands needs none of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        # Only the names, by which click knows commands and proposes similar ones.
        commands: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = commands

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command, or None if there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        from greylag.cli.running import postpone, surrounded

        postpone("numpy.f2py", "numpy.testing")  # before the command's module, which may import SciPy
        module, app = import_module(f"greylag.cli.{cmd_name}"), _app(add_completion=False)
        app.command(
            cmd_name, cls=_Command, epilog=f"Options of all commands (see greylag --help): {', '.join(SHARED)}."
        )(surrounded(getattr(module, cmd_name)))
        command: Any = typer.main.get_command(app)
        command.params += [_after_command(option) for option in self.params if option.opts[0] in SHARED]
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find the command; refuse an unknown one with those that may be meant."""
        if args[0] in COMMANDS:
            return super().resolve_command(ctx, args)
        from greylag.base import nearest
        from greylag.cli.guesses import COMMANDS as GUESSED

        raise _UsageError(f"No such command {args[0]!r}: {GUESSED.get(args[0]) or nearest(args[0], COMMANDS)}", ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _after_command(option: Any) -> Any:
    """Make an option of all commands a hidden option of one, where it overrides the one before the command."""

    def override(context: Any, parameter: Any, value: Any) -> None:
        # Its default must not override what was given before the command.
        if context.get_parameter_source(parameter.name).name == "COMMANDLINE":
            checked = option.callback(context, parameter, value) if option.callback else value
            context.obj = replace(context.obj, **{parameter.name: checked})

    again = copy(option)
    again.hidden, again.expose_value, again.callback = True, False, override
    return again


def _app(**options: Any) -> typer.Typer:
    return typer.Typer(pretty_exceptions_enable=False, rich_markup_mode=None, **options)


app = _app(cls=_Commands)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"greylag {__version__}")
        raise typer.Exit


def _check_jobs(jobs: int) -> int:
    if jobs != -1 and not 1 <= jobs <= MAX_JOBS:
        raise typer.BadParameter(f"{jobs} is neither -1 nor from 1 to {MAX_JOBS}")
    return jobs


@app.callback()
def _greylag(
    context: typer.Context,
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", callback=_check_jobs, help="Number of threads; -1 for one per core. Results do not change."
        ),
    ] = -1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="Work on a Dask cluster: tcp://HOST:PORT. Results do not change."
        ),
    ] = None,
    field: Annotated[
        str, typer.Option("--field", help="Field of TREC topics that is the query: title or desc.")
    ] = "title",
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Repair faulty lines of runs, judgements and topics, with a warning.")
    ] = False,
    metadata_file: Annotated[
        Path | None,
        typer.Option(
            "--metadata", metavar="FILE", help="Add ir_metadata to written runs, with the fields of this YAML file."
        ),
    ] = None,
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Dependence features, feature selection and learned diversity for Pyserini pipelines.

    These options are accepted before and after the command: greylag rerank --jobs 2 ...
    """
    from greylag.cli.options import Shared

    context.obj = Shared(jobs, scheduler, field, lenient, metadata_file)


def main() -> None:
    """Run the command line; exits with 0, 2 for a user's mistake, 3 of a gate, 130 if interrupted, 1 for a defect."""
    prepare_streams()
    handler, log = LogLines(), logging.getLogger("greylag")
    log.addHandler(handler)
    warnings.showwarning = lambda message, *_: log.warning("%s", message)  # without the line of the source
    log.setLevel(logging.INFO)
    try:
        # In standalone mode, click would print errors in its own form, and end the process.
        code = app(sys.argv[1:] or ["--help"], prog_name="greylag", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        code = INTERRUPTED if is_interrupt(error) or isinstance(error, typer.Abort) else _code(error)
    finally:
        ignore_interrupts()
        log.removeHandler(handler)
    if code == INTERRUPTED:  # newer typer catches the interrupt itself, and returns this code
        cache = sys.modules.get("greylag.base.runtime.cache")  # NumPy cannot be imported again where it was interrupted
        kept = cache.interruptions if cache else []
        print(visible("; ".join(["greylag: interrupted", *kept])), file=sys.stderr)
    sys.exit(code)


def _code(error: BaseException) -> int:
    """Log an error in a line and return its exit code; a bug is raised again."""
    if isinstance(error, _UsageError):
        command = error.ctx.command_path if error.ctx else "greylag"
        message = error.format_message().replace(": Value error, ", ": ")  # of pydantic, within newer typer
        return _fail(f"{message} (see {command} --help)")
    if isinstance(error, GreylagError):
        return _fail(str(error))
    if isinstance(error, BrokenPipeError):  # such as `greylag evaluate ... | head`
        _discard_output()
        return 1
    if isinstance(error, OSError):
        subject = error.filename
        if subject is None:  # such as a full disk behind `greylag evaluate ... > scores.txt`
            from greylag.base import in_folder

            _discard_output()
            subject = "output" if in_folder() else "the working folder was removed"
        return _fail(f"{subject}: {error.strerror}" if error.strerror else str(error))
    reason = ""
    if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith("greylag"):
        # Folders of stages are on the path while their modules are imported, and not afterwards.
        reason = f"{error}: code of your own imports it when it is called; import it at the top of its module"
    elif isinstance(error, UnicodeEncodeError):
        reason = f"{error.object!r:.80} is not valid UTF-8"
    elif isinstance(error, RecursionError | MemoryError):
        reason = f"an input is too large or too deeply nested: {error}"
    if reason:
        return _fail(reason)
    raise error


def _discard_output() -> None:
    """Discard pending output: if Python failed to write it at exit, it would print a traceback."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    line = visible(one_line(message))
    shown = line if len(line) <= MAX_MESSAGE else f"{line[:MAX_MESSAGE]}..."
    print(f"greylag: error: {shown}", file=sys.stderr)
    return 2
