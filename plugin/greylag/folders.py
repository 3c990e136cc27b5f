"""Making and removing folders: atomically, by one process at a time, and only greylag's own.

Every folder that greylag makes contains a marker file, and nothing without it is ever removed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from greylag.errors import ParameterError
from greylag.files import sync, why

MARK = ".greylag"


def make_folder(
    target: Path, fill: Callable[[Path], None], *, done: Callable[[], bool] = lambda: False, mark: str = ""
) -> None:
    """Make a folder such that it is complete or absent, in whatever way the process ends.

    The folder is filled under a temporary name beside `target`, flushed to disk, and renamed. A lock file ensures that
    one process at a time makes `target`; a second one waits. What a killed process left behind is removed.

    Parameters
    ----------
    target : Path
        The folder. If it exists it must be empty or made by this function, and it is replaced.
    fill : callable
        Fills the empty folder that it is given.
    done : callable, optional
        Called with the lock held. If it returns true, the folder is left as it is.
    mark : str, default ""
        The content of the marker file, which `read_mark` returns.

    Raises
    ------
    ParameterError
        If `target` exists and is not greylag's, or the folder cannot be written.
    """
    part = target.with_name(f".{target.name}.greylag-part")
    parents: list[Path] = []
    try:
        parents = [folder for folder in target.parents if not folder.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f".{target.name}.greylag-lock")):
            if done():
                return
            remove_folder(part)
            try:
                part.mkdir()
                (part / MARK).write_text(mark, encoding="utf-8")
                fill(part)
                _sync_tree(part)
                remove_folder(target)
                part.rename(target)
                sync(target.parent)
            finally:
                shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise ParameterError(f"{target} cannot be written: {why(error)}") from None
    finally:
        for folder in parents:
            with suppress(OSError):  # succeeds only for empty folders
                folder.rmdir()


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
    if not os.path.lexists(folder):
        return
    if folder.is_symlink() or not folder.is_dir() or (any(folder.iterdir()) and not (folder / MARK).is_file()):
        raise ParameterError(f"{folder} exists already: delete it, or give another folder")
    shutil.rmtree(folder)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is removed afterwards."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):
            if os.fstat(descriptor).st_ino == path.stat().st_ino:
                break
        os.close(descriptor)  # its last owner removed it in the meantime
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _sync_tree(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            sync(Path(place, name))
        sync(Path(place))
