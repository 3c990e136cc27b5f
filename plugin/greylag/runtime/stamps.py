"""By what a file is recognised as unchanged, without reading it."""

from __future__ import annotations

import os
from pathlib import Path

Stamp = tuple[int, int, int, int]


def file_stamp(path: str | Path) -> Stamp:
    """The inode, size, time of modification and time of change (ns) of a file, of which any change differs in one.

    A copy, an archive or `os.utime` may restore size and time of modification, but neither the time of change nor, for
    another file under the same name, the inode. The price is that a file that was moved, or whose permissions changed,
    counts as changed.
    """
    state = os.stat(path)
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def file_stamps(path: Path) -> list[tuple[str, Stamp]]:
    """The relative path and stamp of the file `path`, or of every file in the folder `path`, in order."""
    files = sorted(below for below in path.rglob("*") if below.is_file()) if path.is_dir() else [path]
    return [(str(file.relative_to(path)), file_stamp(file)) for file in files]
