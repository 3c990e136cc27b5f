"""The command line: one function for each command, which reads files, calls the package, and writes files.

Everything heavy is imported by the command that needs it.
"""

from __future__ import annotations

import logging
import sys
from typing import Any

import typer

from greylag.cli import diversity, explain, retrieval, studies
from greylag.errors import GreylagError

app = typer.Typer(
    help="Dependence features, feature selection and learned diversity on top of a Pyserini BM25 first stage.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (
    retrieval.index,
    retrieval.search,
    retrieval.features,
    retrieval.train,
    retrieval.rerank,
    diversity.train_diversity,
    diversity.diversify,
    explain.explain,
    studies.evaluate,
    studies.experiment,
    studies.doctor,
    studies.demo,
):
    app.command()(command)


_UsageError: type[Any] = typer.BadParameter.__mro__[1]  # click's own, or that of the copy that newer typer carries


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"greylag: {record.levelname.lower()}: {record.getMessage()}"


def main() -> None:
    """Run the command line: exit code 0, 2 with one line for what the user got wrong, 1 for anything else."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    log = logging.getLogger("greylag")
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except _UsageError as error:
        context = error.ctx.command_path if error.ctx else "greylag"
        code = _fail(f"{error.format_message()} (see {context} --help)")
    except (GreylagError, FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        code = _fail(str(error))
    except (KeyboardInterrupt, typer.Abort):
        print("greylag: interrupted", file=sys.stderr)
        code = 1
    finally:
        log.removeHandler(handler)
    sys.exit(code)


def _fail(message: str) -> int:
    print(f"greylag: error: {message}", file=sys.stderr)
    return 2
