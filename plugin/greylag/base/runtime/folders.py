"""Files and folders that one process at a time replaces, so that they are complete or as before.

The new content of ``NAME`` is made beside it as ``.NAME.greylag-part``, under the lock ``.NAME.greylag-lock``, and then
renamed; a folder that it replaces is ``.NAME.greylag-old`` meanwhile. The kernel releases a killed process's locks, so
what is left with an unlocked lock file is stale. Only files of these names beside their lock, and folders that are
empty or have greylag's marker file, are ever removed.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import re
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from greylag.base.errors import DependencyError, ParameterError

if find_spec("fcntl") is None:  # on Windows, folders cannot be flushed to disk, and open files not be replaced
    raise DependencyError("greylag needs POSIX: use Linux or macOS, or Windows' subsystem for Linux")

MARK_FILE = ".greylag"
"""The name of the marker file in every folder that greylag makes."""

SWEEP_SECONDS = 0.3
"""Seconds for which another process may hold a new lock, which it took for a leftover; a longer wait is logged."""
PAUSE = 0.05
"""Seconds between two looks at a lock that another process has."""
_LOCK = re.compile(r"\.(.+)\.greylag-lock", re.DOTALL)
_HINTS = {
    **dict.fromkeys((errno.ENOENT, errno.ENOTDIR), "; give a file in an existing folder"),
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "; free some disk space"),
    **dict.fromkeys((errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP), "; write to a file system that has locks"),
}
_log = logging.getLogger("greylag")


@contextmanager
def claimed(target: Path, *, wait: bool = True) -> Iterator[tuple[Path, Path]]:
    """Lock a name; yield names beside it for the new content and the replaced one, which are removed afterwards."""
    # What a killed process left under these names is removed first, or gets its name back; without its lock, it is
    # in the way. A second process waits, or gets a `TimeoutError`.
    os.stat(os.path.join(target.parent, "."))
    path = _beside(target, "lock")
    was_locked = os.path.lexists(path)
    if was_locked and os.lstat(path).st_size:
        raise _taken(path)
    try:
        lock = _lock(path, SWEEP_SECONDS if wait else 0)
    except TimeoutError:
        if not wait:
            raise
        _log.warning("%s is being written by another process; waiting for it", target)
        lock = _lock(path, math.inf)
    except OSError:
        if not was_locked:  # a file system without locks
            path.unlink(missing_ok=True)
        raise
    names = _beside(target, "part"), _beside(target, "old")
    # Under a lock file that was there already they are leftovers of a killed process; without one, a user's files.
    foreign = [] if was_locked else [name for name in names if os.path.lexists(name)]
    try:
        if foreign:
            raise _taken(foreign[0])
        _recover(target)
        yield names
    finally:
        with suppress(OSError):  # the next process that takes the lock removes the rest
            if not foreign:
                _recover(target)
            path.unlink()  # before the release, after which it may be another process's lock
        os.close(lock)


def _lock(path: Path, seconds: float) -> int:
    """Make and lock a file; return its descriptor, which has the lock until it is closed, or raise `TimeoutError`."""
    import fcntl

    until = time.monotonic() + seconds
    while True:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), os.lstat(path)):
                return lock
        except (BlockingIOError, FileNotFoundError):  # as another process has it, or removed it before its release
            pass
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)
        if time.monotonic() >= until:
            raise TimeoutError(errno.ETIMEDOUT, "another process has the lock", str(path))
        time.sleep(PAUSE)


def _taken(path: Path) -> FileExistsError:
    return FileExistsError(errno.EEXIST, f"{path.name} is there, and not what a killed process left; move it away")


def sweep(folder: Path) -> None:
    """Remove or restore the leftovers of killed processes in a folder; files in use are left alone."""
    with suppress(OSError):
        for name in os.listdir(folder):
            if match := _LOCK.fullmatch(name):
                with suppress(OSError), claimed(folder / match[1], wait=False):
                    pass


def make_folder(
    target: Path, fill: Callable[[Path], None], *, done: Callable[[], bool] = lambda: False, mark: str = ""
) -> None:
    """Make a folder that is complete or absent, in whatever way the process ends; a second process waits."""
    # A folder that exists must be empty or made here. It is replaced, unless `done` returns true once no other
    # process makes it. `fill` fills an empty folder, and `read_mark` returns the `mark`.
    target = target.absolute()
    with alone(target) as (part, old):
        try:
            if done():
                return
            part.mkdir()
            # First, so that what is left of a killed process is recognised, however little was written.
            (part / MARK_FILE).write_text(mark, encoding="utf-8")
            fill(part)
            for below, _, names in os.walk(part):
                for name in ("", *names):
                    sync(Path(below, name))
            if os.path.lexists(target):
                _check_marked(target)
                # No call replaces a folder that has files; `_recover` undoes this half.
                target.rename(old)
            part.rename(target)
            # The names, too: after a power loss the folder would else not be there.
            sync(target.parent)
        except OSError as error:
            raise ParameterError(f"{target} cannot be written: {why(error)}") from None


@contextmanager
def alone(target: Path) -> Iterator[tuple[Path, Path]]:
    """Call `claimed` in a folder that is made if it is absent, and removed again if it is empty afterwards."""
    target = target.absolute()
    parents = [folder for folder in target.parents if not os.path.lexists(folder)]
    try:
        with ExitStack() as stack:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                sweep(target.parent)
                names = stack.enter_context(claimed(target))
            except OSError as error:
                raise ParameterError(f"{target} cannot be written: {why(error)}") from None
            yield names
    finally:
        for folder in parents:
            with suppress(OSError):  # it is not empty
                folder.rmdir()


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a private temporary folder; those that killed processes left are removed."""
    with ExitStack() as stack:
        try:
            temporary = Path(tempfile.gettempdir())
            sweep(temporary)
            folder, _ = stack.enter_context(claimed(temporary / uuid.uuid4().hex))
            folder.mkdir(mode=0o700)
            (folder / MARK_FILE).touch()
        except OSError as error:
            raise ParameterError(f"no temporary folder can be made: {why(error)}; or set TMPDIR to another") from None
        yield folder


def in_folder() -> bool:
    """Return whether the working folder still exists."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return False
    return True


def read_mark(folder: Path) -> str:
    """Read the content of a folder's marker file; "" if there is none."""
    try:
        return (folder / MARK_FILE).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def remove_folder(folder: Path) -> None:
    """Remove a folder that is empty or was made by `make_folder`; it may be absent."""
    if os.path.lexists(folder):
        _check_marked(folder)
        _discard(folder)


def sync(path: Path, *, drop: bool = False) -> None:
    """Flush a file or folder to disk; with `drop`, it is next read from the disk and not from memory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        if drop and hasattr(os, "posix_fadvise"):
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def why(error: OSError) -> str:
    """Return the reason for an operating system error, and what to do about it if that is known."""
    return f"{error.strerror or error}{_HINTS.get(error.errno or 0, '')}"


def _beside(target: Path, suffix: str) -> Path:
    return target.with_name(f".{target.name}.greylag-{suffix}")


def _recover(target: Path) -> None:
    """Undo a replacement of `target` that was not finished, and remove what is left of it."""
    part, old = _beside(target, "part"), _beside(target, "old")
    if (old / MARK_FILE).is_file() and not old.is_symlink() and not os.path.lexists(target):  # one that greylag made
        old.rename(target)
    for path in (part, old):
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif _is_marked(path):
            _discard(path)


def _is_marked(folder: Path) -> bool:
    """Return whether this is a folder with greylag's mark, or empty."""
    return folder.is_dir() and not folder.is_symlink() and ((folder / MARK_FILE).is_file() or not any(folder.iterdir()))


def _check_marked(folder: Path) -> None:
    if not _is_marked(folder):
        raise ParameterError(f"{folder} exists already: delete it, or give another folder")


def _discard(folder: Path) -> None:
    """Remove a folder. The mark goes last, so that what a killed process leaves is still recognised."""
    for name in os.listdir(folder):
        path = folder / name
        if name != MARK_FILE:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (folder / MARK_FILE).unlink(missing_ok=True)
    folder.rmdir()
