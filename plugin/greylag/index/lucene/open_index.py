"""Opening the files of a Lucene index, and checking that they are whole and the expected ones."""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar

from greylag.base import CollectionError, ParameterError, check_sequences
from greylag.index.languages import ENGLISH
from greylag.index.lucene.bulk_calls import directory, repeated_term
from greylag.index.lucene.jvm import calls_java, java_class, pyjnius, reason
from greylag.index.lucene.prebuilt import prebuilt_index

MAX_CHECKED_BYTES = 1 << 26
"""The size in bytes up to which all checksums of an index are compared when it is opened, about 1 ms per MB."""

LANGUAGE = "greylag.language"
"""The key in the commit of an index that has the name of its analyzer, unless this is English."""

POSITIONS_REMEDY = "build it with greylag index (or Anserini's -storePositions -storeContents -optimize)"
TEXTS_REMEDY = "build it with greylag index, without --no-texts (or Anserini's -storeContents)"

_P = ParamSpec("_P")
_T = TypeVar("_T")


def reads_index(function: Callable[_P, _T]) -> Callable[_P, _T]:
    """Decorate a function as `calls_java` does; what Java raises, as in a damaged index, becomes `CollectionError`."""

    @calls_java
    @wraps(function)
    def wrapper(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return function(*args, **kwargs)
        except pyjnius().JavaException as error:
            raise CollectionError(f"the index cannot be read ({reason(error)}): build it again") from error

    return wrapper


class Statistics(NamedTuple):
    """Lucene's own totals: the number of documents, and of tokens, terms and postings of the field ``contents``."""

    documents: int
    tokens: int
    terms: int
    postings: int


def folders(path: str | Path | Sequence[str | Path], *, positions: bool = False) -> tuple[Path, ...]:
    """Find the folders of an index or of a collection's shards, given by paths or names of prebuilt indexes."""
    # With `positions`, names of indexes without positions are refused.
    given = [path] if isinstance(path, (str, Path)) else path
    check_sequences(index=given)
    paths = tuple(prebuilt_index(each, positions=positions) for each in given)
    if not paths:
        raise ParameterError("no index is given: name at least one folder")
    for folder in paths:
        if "\0" in str(folder):
            raise CollectionError(f"{str(folder)!r} is not the name of a folder: it has a null character")
    real = [os.path.realpath(folder) for folder in paths] if len(paths) > 1 else []  # a path may be a loop of links
    # By the real path, as a link would count all documents twice.
    for place, name in enumerate(real):
        if name in real[:place]:
            raise ParameterError(f"{paths[place]} is given twice: name each index once")
    return paths


def commit_fingerprint(*paths: Path) -> str:
    """Compute the SHA-256 (hex) of an index's newest commit; for several indexes, one digest over all."""
    if len(paths) > 1:
        return hashlib.sha256("".join(map(commit_fingerprint, paths)).encode()).hexdigest()
    newest = newest_commit(*paths)
    return hashlib.sha256(newest.name.encode() + newest.read_bytes()).hexdigest()


def newest_commit(path: Path) -> Path:
    """Find the file ``segments_N`` with the highest N, a number in base 36."""
    commits = [file for file in path.glob("segments_*") if re.fullmatch("segments_[0-9a-z]+", file.name)]
    if not commits:
        raise CollectionError(f"{path} is not a Lucene index (it contains no segments_N file): {POSITIONS_REMEDY}")
    return max(commits, key=lambda file: int(file.name.removeprefix("segments_"), 36))


def recorded_language(path: Path) -> str:
    """Read the language that `build_index` recorded in the newest commit of an index; English without one."""
    content = newest_commit(path).read_bytes()
    _, key, value = content.partition(LANGUAGE.encode())
    if not key:
        return ENGLISH
    if zlib.crc32(content[:-8]) != int.from_bytes(content[-8:]):  # Lucene's footer
        raise CollectionError(f"{path} is damaged: build it again")
    return value[1 : 1 + value[0]].decode()  # after its length


@calls_java
def open_reader(paths: Sequence[Path], fingerprint: str) -> Any:
    """Open the Lucene ``IndexReader`` of one or more folders, at the commits with this fingerprint."""
    with ExitStack() as opened:  # closes the readers if a check fails
        readers = [_open_folder(path, opened) for path in paths]
        if commit_fingerprint(*paths) != fingerprint:
            changed = ", ".join(map(str, paths))
            raise CollectionError(f"{changed} has changed since it was opened: create another LuceneIndex")
        for path, reader in zip(paths, readers, strict=True):
            if sum(file.stat().st_size for file in path.iterdir()) <= MAX_CHECKED_BYTES:
                check_integrity(str(path), reader)
        whole = readers[0] if len(readers) == 1 else _join_readers(paths, readers)
        opened.pop_all()
    return whole


def _open_folder(path: Path, opened: ExitStack) -> Any:
    """Open the reader of a folder, which the stack closes."""
    try:
        reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory(path))
    except pyjnius().JavaException as error:
        raise CollectionError(f"{path} {_why_unopened(error)} ({reason(error)}): {POSITIONS_REMEDY}") from error
    # A document as a query has more terms than the 1024 that Lucene allows.
    java_class("org.apache.lucene.search.IndexSearcher").setMaxClauseCount((1 << 31) - 1)
    opened.callback(lambda: reader.close())  # noqa: PLW0108 - or it would be looked up in another thread
    return pyjnius().cast("org.apache.lucene.index.IndexReader", reader)


def _join_readers(paths: Sequence[Path], readers: list[Any]) -> Any:
    """Make the reader of the shards of a collection."""
    for path, reader in zip(paths, readers, strict=True):
        if reader.hasDeletions():
            raise CollectionError(f"{path} has deleted documents: {POSITIONS_REMEDY}")
    try:
        several = java_class("org.apache.lucene.index.MultiReader")(*readers)
    except pyjnius().JavaException as error:
        raise CollectionError(f"{', '.join(map(str, paths))} cannot be one collection ({reason(error)})") from error
    return pyjnius().cast("org.apache.lucene.index.IndexReader", several)


@calls_java
def check_docids(paths: Sequence[Path], reader: Any) -> bool:
    """Return True, or raise `CollectionError` if two documents have the same docid; other threads may call Java."""
    terms = java_class("org.apache.lucene.index.MultiTerms").getTerms(reader, "id")
    docid = None if terms is None else repeated_term(terms)
    if docid is None:
        return True
    term = java_class("org.apache.lucene.index.Term")("id", docid)
    with ExitStack() as opened:
        counts = {str(path): int(_open_folder(path, opened).docFreq(term)) for path in paths}
    having = [path for path, count in counts.items() if count]
    if len(having) == 1:
        raise CollectionError(f"{having[0]}: {counts[having[0]]} documents have the id {docid!r}")
    raise CollectionError(f"the docid {docid!r} is in {' and in '.join(having)}: leave it out of one of them")


@calls_java
def check_integrity(name: str, reader: Any) -> None:
    """Raise `CollectionError` if a file of an open index does not have the checksum that Lucene recorded."""
    try:
        leaves = reader.leaves()
        for number in range(leaves.size()):
            leaves.get(number).reader().checkIntegrity()
    except pyjnius().JavaException as error:
        raise CollectionError(f"{name} is damaged ({reason(error)}): build it again") from error


def _why_unopened(error: Exception) -> str:
    name = str(getattr(error, "classname", "")).rpartition(".")[2]
    if name in ("CorruptIndexException", "EOFException", "FileNotFoundException", "NoSuchFileException"):
        return "is damaged"
    return "cannot be opened; it may come from another version of Pyserini"
