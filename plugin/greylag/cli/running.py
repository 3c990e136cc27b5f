"""Where long commands run, and how they go on after an interruption."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.cli.groups import Surroundings
from greylag.cli.options import Jobs
from greylag.errors import DependencyError, ParameterError
from greylag.runtime.files import file_stamp

CONNECTING = 10
"""Seconds to wait for a cluster."""


@dataclass(frozen=True)
class Running(Surroundings):
    """Where the work of a command is done."""

    jobs: Jobs = -1
    scheduler: Annotated[
        str | None,
        typer.Option(
            "--scheduler", metavar="ADDRESS", help="Work on a Dask cluster: tcp://HOST:PORT. Results do not change."
        ),
    ] = None

    @contextmanager
    def begin(self, command: Callable[..., None], values: Mapping[str, Any]) -> Iterator[None]:
        """Surround a command that was given these values."""
        with ExitStack() as stack:
            if self.scheduler is not None:
                stack.enter_context(cluster(self.scheduler))
            yield


@dataclass(frozen=True)
class Resumable(Running):
    """Where the work of a command is done; what is done is kept beside its output until the command ends."""

    @contextmanager
    def begin(self, command: Callable[..., None], values: Mapping[str, Any]) -> Iterator[None]:
        """Surround a command that was given these values, one of which is ``out``."""
        from greylag.runtime.files import is_file
        from greylag.runtime.work_log import beside, resuming

        with ExitStack() as stack:
            stack.enter_context(super().begin(command, values))
            depends = dependencies(command.__name__, values)
            out = values["out"]
            if depends is not None and (is_file(out) or not os.path.lexists(out)):
                stack.enter_context(resuming(beside(out), depends))
            yield


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Work on the Dask cluster at this address.

    Raises
    ------
    DependencyError
        If Dask is not installed.
    ParameterError
        If there is no scheduler at the address.
    """
    try:
        from distributed import Client
        from distributed.comm import connect
    except ImportError:
        raise DependencyError("--scheduler needs Dask: pip install 'greylag[dask]'") from None
    from joblib import parallel_config

    async def answers() -> None:
        await (await connect(address, timeout=CONNECTING)).close()

    try:
        asyncio.run(answers())  # a Client that cannot connect takes 20 seconds to close
        client = Client(address, timeout=CONNECTING, set_as_default=False)
    except (OSError, ValueError, TypeError, MemoryError) as error:  # what is not Dask may send any length
        reason = str(error) or type(error).__name__
        raise ParameterError(
            f"no Dask scheduler at {address} ({reason}): start one with `dask scheduler`, and give its address"
        ) from None
    with client, parallel_config(backend="dask", client=client, wait_for_workers_timeout=CONNECTING):
        yield


def dependencies(command: str, values: Mapping[str, Any]) -> Callable[[], str] | None:
    """A function that gives a digest of all that a command's results depend on; None if an input cannot be read twice.

    These are the options, the input files (which, size, and time of change), and the versions of the software.
    """
    settings = {name: _plain(value) for name, value in values.items() if name not in ("jobs", "scheduler")}
    inputs = [value for name, value in settings.items() if name not in ("out", "out_run")]
    inputs += [text.partition("=")[2] for text in settings.get("file") or ()]  # NAME=FILE
    stamps = list(_stamps(inputs))
    if any(stamp is None for stamp in stamps):
        return None

    def digest() -> str:
        from greylag.experiments.software import code, versions

        content = [command, settings, stamps, code(), versions()]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=repr).encode()).hexdigest()

    return digest


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value


def _stamps(values: Iterable[Any]) -> Iterator[tuple[str, Any] | None]:
    """The files that options, features and models name, with their states; None for one that cannot be read twice."""
    from greylag.features.named_files import followed, named_files

    for path in followed(Path(name) for value in values for name in named_files(value) if name):
        if path.is_dir():
            yield str(path), [file_stamp(file) for file in sorted(path.glob("segments_*"))]
        else:
            yield (str(path), file_stamp(path)) if path.is_file() else None
