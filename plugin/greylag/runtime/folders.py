"""Making and removing folders: atomically, by one process at a time, and only greylag's own.

Every folder that greylag makes contains a marker file, and nothing without it is ever removed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from greylag.errors import ParameterError
from greylag.runtime.files import sync, why
from greylag.runtime.locks import MARK, claimed, discard, sweep

_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # of Linux
_CANNOT_EXCHANGE = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}


def make_folder(
    target: Path, fill: Callable[[Path], None], *, done: Callable[[], bool] = lambda: False, mark: str = ""
) -> None:
    """Make a folder such that it is complete or absent, in whatever way the process ends.

    The folder is filled under a temporary name beside `target`, flushed to disk, and renamed. An earlier `target` is
    exchanged with it in one step; where the system cannot do that, `target` is absent for a moment. One process at a
    time makes `target`; a second one waits. What a killed process left beside it is removed.

    Parameters
    ----------
    target : Path
        The folder. If it exists it must be empty or made by this function, and it is replaced.
    fill : callable
        Fills the empty folder that it is given.
    done : callable, optional
        Called when no other process makes `target`. If it returns true, the folder is left as it is.
    mark : str, default ""
        The content of the marker file, which `read_mark` returns.

    Raises
    ------
    ParameterError
        If `target` exists and is not greylag's, or the folder cannot be written.
    """
    target = target.absolute()
    with alone(target) as (part, old):
        try:
            if done():
                return
            part.mkdir()
            (part / MARK).write_text(mark, encoding="utf-8")
            fill(part)
            _sync_tree(part)
            _put(part, target, old)
            sync(target.parent)
        except OSError as error:
            raise ParameterError(f"{target} cannot be written: {why(error)}") from None


@contextmanager
def alone(target: Path) -> Iterator[tuple[Path, Path]]:
    """Be the one process that writes a file or folder: make its parents and hold its lock; a second process waits.

    Parents that were made are removed again if they are empty afterwards.

    Yields
    ------
    part, old : Path
        As for `locks.claimed`.

    Raises
    ------
    ParameterError
        If the parents or the lock cannot be made.
    """
    target = target.absolute()
    parents = [folder for folder in target.parents if not os.path.lexists(folder)]
    with ExitStack() as stack:
        stack.callback(_remove_empty, parents)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            sweep(target.parent)
            names = stack.enter_context(claimed(target))
        except OSError as error:
            raise ParameterError(f"{target} cannot be written: {why(error)}") from None
        yield names


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """A private temporary folder; those that killed processes left are removed.

    Raises
    ------
    ParameterError
        If it cannot be made.
    """
    with ExitStack() as stack:
        try:
            place = Path(tempfile.gettempdir())
            sweep(place)
            folder, _ = stack.enter_context(claimed(place / uuid.uuid4().hex))
            folder.mkdir(mode=0o700)
        except OSError as error:
            raise ParameterError(f"no temporary folder can be made: {why(error)}; or set TMPDIR to another") from None
        yield folder


def in_folder() -> bool:
    """Whether the working folder still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def read_mark(folder: Path) -> str:
    """The content of a folder's marker file; "" if there is none."""
    try:
        return (folder / MARK).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def remove_folder(folder: Path) -> None:
    """Remove a folder that is empty or was made by `make_folder`; it may be absent.

    Raises
    ------
    ParameterError
        If it is something else.
    """
    if os.path.lexists(folder):
        _check_own(folder)
        discard(folder)


def exchange(first: Path, second: Path) -> bool:
    """Exchange two files or folders in one step; False if the system or the file system cannot."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (AttributeError, OSError, TypeError):  # not Linux, or an old C library
        return False
    if renameat2(_AT_FDCWD, os.fsencode(first), _AT_FDCWD, os.fsencode(second), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _CANNOT_EXCHANGE:
        return False
    raise OSError(code, os.strerror(code), str(second))


def _put(part: Path, target: Path, old: Path) -> None:
    """Give the folder `part` the name `target`, and what had that name, if anything, the name `part` or `old`."""
    if not os.path.lexists(target):
        part.rename(target)
        return
    _check_own(target)
    if not exchange(part, target):
        target.rename(old)
        part.rename(target)


def _check_own(folder: Path) -> None:
    if folder.is_symlink() or not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).is_file()):
        raise ParameterError(f"{folder} exists already: delete it, or give another folder")


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):  # it is not empty
            folder.rmdir()


def _sync_tree(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            sync(Path(place, name))
        sync(Path(place))
