"""Around a command: its files are checked, it may work on a cluster, and interrupted work is kept."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import wraps
from importlib.util import LazyLoader, find_spec, module_from_spec
from pathlib import Path
from traceback import format_exception
from typing import Any, get_type_hints

import typer

from greylag.base import DependencyError, ParameterError, file_stamp, named_files, record_files
from greylag.cli.options import Shared

OUTPUTS = ("out", "out_run", "out_model", "out_figure", "out_sheets")
"""The parameters of commands that name a file or folder to write."""
RESUMED_COMMANDS = ("search", "features", "train", "rerank")
"""The commands whose finished work is kept beside their output until they end."""
MAX_NAME = 255 - len("..greylag-work")
"""The bytes that an output's name may have, so that kept work can lie beside it."""
CONNECTION_SECONDS = 10
"""Seconds to wait for a cluster."""


def surrounded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command in its surroundings; its first parameter is the context, whose object has the shared options."""

    @wraps(command)
    def run(context: typer.Context, **values: Any) -> None:
        shared: Shared = replace(context.obj, inputs=input_files(command, values, context.obj))
        context.obj = shared
        shared.described  # noqa: B018 - reads the metadata, so that a mistake in it is told before any work
        check_outputs([values[name] for name in OUTPUTS if values.get(name)], shared.inputs)
        with ExitStack() as stack:
            if shared.scheduler is not None:
                stack.enter_context(cluster(shared.scheduler))
            if command.__name__ in RESUMED_COMMANDS:
                stack.enter_context(resumed(command.__name__, shared, values))
            try:
                command(context, **values)
            except Exception as error:
                # Numba passes on whatever reading a damaged file raises, such as EOFError.
                if "/numba/core/caching.py" in "".join(format_exception(error)):  # in this thread or a worker
                    raise DependencyError(
                        f"Numba's cache of compiled code is damaged or cannot be written ({type(error).__name__}: "
                        f"{error}): set NUMBA_CACHE_DIR to an empty folder"
                    ) from None
                raise

    return run


def postpone(*modules: str) -> None:
    """Let modules of NumPy load when something of theirs is used: SciPy lists all, half the time of its import."""
    for name in modules:
        if name not in sys.modules and (spec := find_spec(name)) and spec.loader:
            spec.loader = LazyLoader(spec.loader)
            module = sys.modules[name] = module_from_spec(spec)
            spec.loader.exec_module(module)
            setattr(sys.modules["numpy"], name.removeprefix("numpy."), module)


def check_outputs(outputs: Iterable[Path], inputs: Iterable[Path]) -> None:
    """Check that outputs can be made, and that none is an input, inside an input folder, or another output."""
    seen: list[Path] = []
    inputs = list(inputs)
    for out in outputs:
        if str(out) == "-":
            raise ParameterError("- is no file: write to /dev/stdout for standard output")
        if (size := len(os.fsencode(out.name))) > MAX_NAME:
            raise ParameterError(f"{out.name:.40}... has a name of {size} bytes: give one of at most {MAX_NAME}")
        # Real paths show what links to the same name, which need not exist yet; samefile shows hard links.
        real = Path(os.path.realpath(out))
        for path in inputs:
            if os.path.exists(out) and os.path.exists(path) and os.path.samefile(out, path):
                raise ParameterError(f"{out} is the input {path}, which it would replace: write to another file")
            if os.path.isdir(path) and real.is_relative_to(os.path.realpath(path)):
                raise ParameterError(f"{out} is inside the input folder {path}: write to another place")
        for other in seen:
            if real == Path(os.path.realpath(other)) or (out.exists() and other.exists() and out.samefile(other)):
                raise ParameterError(f"{out} would be written twice: {other} is the same file")
        seen.append(out)


def input_files(command: Callable[..., None], values: Mapping[str, Any], shared: Shared) -> dict[Path, Any]:
    """Return the files that a command reads, by the types of its options, as `followed` does."""
    from greylag.features import followed

    hints = get_type_hints(command, include_extras=True)
    read = {name: value for name, value in values.items() if name not in OUTPUTS}
    named = [*record_files(shared), *(file for name, value in read.items() for file in named_files(hints[name], value))]
    places = values.get("collections") or ["{}"]  # names, each of which stands for {} in its files
    return followed(Path(str(file).replace("{}", name)) for name in places for file in named if file)


@contextmanager
def resumed(name: str, shared: Shared, values: Mapping[str, Any]) -> Iterator[None]:
    """Keep finished work beside the output of a command, and go on from what was kept."""
    from greylag.base import beside, is_file, resuming

    out, digest = values["out"], dependencies(name, shared, values)
    # There is no keeping beside a pipe or device, nor for an input that a second process could not read again.
    if digest is None or (os.path.lexists(out) and not is_file(out)):
        yield
    else:
        with resuming(beside(out), digest):
            yield


def dependencies(name: str, shared: Shared, values: Mapping[str, Any]) -> Callable[[], str] | None:
    """Make a function that digests all that a command's results depend on; None if an input cannot be read twice."""
    # These are the options, the input files (which, size, and time of change), and the versions of the software.
    stamps = list(_stamps(shared.inputs))
    if any(stamp is None for stamp in stamps):
        return None

    def digest() -> str:
        from greylag.base import code, versions

        # Not the number of workers, nor where they are: results do not depend on them.
        content = [name, shared.field, shared.lenient, values, stamps, code(), versions()]
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()

    return digest


def _stamps(paths: Iterable[Path]) -> Iterator[tuple[str, Any] | None]:
    """Yield the paths with the states of their files; None for one that cannot be read twice."""
    for path in paths:
        if path.is_dir():  # an index, where each commit of Lucene makes such a file, or LETOR's folds
            yield str(path), [file_stamp(file) for file in sorted([*path.glob("segments_*"), *path.glob("Fold*/*")])]
        else:
            yield (str(path), file_stamp(path)) if path.is_file() else None


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Connect to the Dask cluster at this address, and work there."""
    import asyncio  # with all of this, for few commands

    try:
        from distributed import Client
        from distributed.comm import connect
    except ImportError:
        raise DependencyError("--scheduler needs Dask: pip install 'dask>=2025.1' 'distributed>=2025.1'") from None
    from joblib import parallel_config

    async def answers() -> None:
        await (await asyncio.wait_for(connect(address, timeout=CONNECTION_SECONDS), CONNECTION_SECONDS)).close()

    try:
        asyncio.run(answers())  # a Client that cannot connect takes 20 seconds to close
        client = Client(address, timeout=CONNECTION_SECONDS, set_as_default=False)
    except Exception as error:  # what is not Dask may send anything
        reason = str(error) or type(error).__name__
        raise ParameterError(
            f"no Dask scheduler at {address} ({reason}): start one with `dask scheduler`, and give its address"
        ) from None
    for name in ("distributed", "distributed.client", "tornado.application"):  # what fails there is told in one line
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with client, parallel_config(backend="dask", client=client):
        yield
