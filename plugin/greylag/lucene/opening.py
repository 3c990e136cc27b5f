"""Opening the files of a Lucene index, and what shows that they are whole and the expected ones."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from greylag.errors import CollectionError
from greylag.lucene.jvm import calls_java, java_class, pyjnius, reason
from greylag.lucene.transfers import directory

SMALL = 1 << 26
"""The size in bytes up to which all checksums of an index are compared when it is opened, about 1 ms per MB."""

BUILD = "build it with greylag index (or Anserini's -storePositions -optimize)"


def commit_fingerprint(path: Path) -> str:
    """SHA-256 (hex) of the name and bytes of the index's newest commit file.

    Raises
    ------
    CollectionError
        If the folder contains no Lucene index.
    """
    commits = [file for file in path.glob("segments_*") if re.fullmatch("segments_[0-9a-z]+", file.name)]
    if not commits:
        raise CollectionError(f"{path} is not a Lucene index (it contains no segments_N file): {BUILD}")
    newest = max(commits, key=lambda file: int(file.name.removeprefix("segments_"), 36))
    return hashlib.sha256(newest.name.encode() + newest.read_bytes()).hexdigest()


@calls_java
def open_reader(path: Path, fingerprint: str) -> Any:
    """The Lucene ``IndexReader`` of the folder `path`, at the commit with this fingerprint.

    Raises
    ------
    CollectionError
        If the index cannot be opened, has another commit by now, or is small and damaged.
    """
    try:
        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory(path))
    except pyjnius().JavaException as error:
        raise CollectionError(f"{path} {_why_unopened(error)} ({reason(error)}): {BUILD}") from error
    if commit_fingerprint(path) != fingerprint:
        raise CollectionError(f"{path} has changed since it was opened: create another LuceneIndex")
    if sum(file.stat().st_size for file in path.iterdir()) <= SMALL:
        check_integrity(path, reader)
    return pyjnius().cast("org.apache.lucene.index.IndexReader", reader)


@calls_java
def check_integrity(path: Path, reader: Any) -> None:
    """Raise `CollectionError` if a file of an open index does not have the checksum that Lucene recorded."""
    try:
        leaves = reader.leaves()
        for number in range(leaves.size()):
            leaves.get(number).reader().checkIntegrity()
    except pyjnius().JavaException as error:
        raise CollectionError(f"{path} is damaged ({reason(error)}): build it again") from error


def _why_unopened(error: Exception) -> str:
    name = str(getattr(error, "classname", "")).rpartition(".")[2]
    if name == "InvalidPathException":
        return "has a name that Java cannot represent in this locale; set LC_ALL=C.UTF-8"
    if name in ("CorruptIndexException", "EOFException", "FileNotFoundException", "NoSuchFileException"):
        return "is damaged"
    return "cannot be opened; it may come from another version of Pyserini"
