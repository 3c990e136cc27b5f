"""Locks between processes, and removal of what killed processes left behind.

A temporary file ``.greylag-HEX`` is locked by the process that writes it. A folder ``NAME`` is made under the lock file
``.NAME.greylag-lock``, which also guards the temporary folders ``.NAME.greylag-part`` and ``.NAME.greylag-old`` beside
it. The kernel releases a killed process's locks, so whatever is left and is not locked is stale.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from greylag.errors import DependencyError

try:
    import fcntl
except ModuleNotFoundError:
    raise DependencyError(
        "greylag needs file locks of POSIX: use Linux or macOS, or Windows' subsystem for Linux"
    ) from None

MARK = ".greylag"
"""The name of the marker file in every folder that greylag makes."""

TEMPORARY = ".greylag-"
"""The beginning of the name of every temporary file; 32 hexadecimal digits follow."""

_LOCK = ".greylag-lock"
_STALE = re.compile(rf"{re.escape(TEMPORARY)}[0-9a-f]{{32}}|\..*{re.escape(_LOCK)}", re.DOTALL)
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL}
_log = logging.getLogger("greylag")


@contextmanager
def locked(path: Path, what: Path | None = None) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is made for it and removed afterwards.

    Parameters
    ----------
    path : Path
        The file to lock. A file system without locks is used without.
    what : Path, optional
        What the lock is for; named in a warning if another process holds the lock and this one must wait.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            if not acquire(descriptor, wait=False):
                _log.warning("%s is being written by another process; waiting for it", what or path)
                acquire(descriptor, wait=True)
            if is_named(descriptor, path):
                break
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its last owner removed it in the meantime
    try:
        yield
    finally:
        with suppress(OSError):  # it is removed as stale later
            path.unlink()
        os.close(descriptor)


@contextmanager
def claimed(target: Path) -> Iterator[tuple[Path, Path]]:
    """Hold the exclusive right to make a folder; a second process waits.

    Parameters
    ----------
    target : Path
        The folder.

    Yields
    ------
    part, old : Path
        Names beside `target` for the new folder and the replaced one. Neither exists; both are removed afterwards,
        whichever of the two folders has which name.
    """
    lock = target.with_name(f".{target.name}{_LOCK}")
    with locked(lock, target):
        _recover(lock)
        try:
            yield _beside(lock, "part"), _beside(lock, "old")
        finally:
            with suppress(OSError):
                _recover(lock)


def sweep(folder: Path) -> None:
    """Remove the temporary files and folders of killed processes from a folder; those in use are left alone."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if _STALE.fullmatch(name):
                with suppress(OSError):
                    _remove_stale(folder / name)


def discard(folder: Path) -> None:
    """Remove a folder of greylag's. The mark goes last, so that what a killed process leaves is still recognised."""
    for name in os.listdir(folder):
        path = folder / name
        if name != MARK:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (folder / MARK).unlink(missing_ok=True)
    folder.rmdir()


def acquire(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file for this process alone; False if another process has it and this one does not `wait`.

    A file system without locks is used without.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
    return True


def is_named(descriptor: int, path: Path) -> bool:
    """Whether the open file is the one of this name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    return False


def _remove_stale(path: Path) -> None:
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        if acquire(descriptor, wait=False) and is_named(descriptor, path):
            if path.name.endswith(_LOCK):
                _recover(path)
            path.unlink()
    finally:
        os.close(descriptor)


def _recover(lock: Path) -> None:
    """Return what a lock guards, which this process holds, to the state before or after an interrupted replacement."""
    part, old = _beside(lock, "part"), _beside(lock, "old")
    target = lock.with_name(lock.name[1:].removesuffix(_LOCK))
    if os.path.lexists(old) and not os.path.lexists(target):
        old.rename(target)
    for folder in (part, old):
        if folder.is_dir() and not folder.is_symlink():
            discard(folder)


def _beside(lock: Path, suffix: str) -> Path:
    return lock.with_name(lock.name.removesuffix("lock") + suffix)
