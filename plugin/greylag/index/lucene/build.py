"""Building a Lucene index through Anserini: with positions, in one segment, atomically."""

from __future__ import annotations

import logging
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from greylag.base import (
    MARK_FILE,
    CollectionError,
    ParameterError,
    check_counts,
    guided,
    is_name,
    make_folder,
    read_mark,
    shown,
    step,
)
from greylag.index.languages import ENGLISH, WHITESPACE, language_code, warn_of_other_language
from greylag.index.lucene.bulk_calls import directory
from greylag.index.lucene.documents import COLLECTIONS, Fields, guess_collection, parse_fields, write_for_anserini
from greylag.index.lucene.jvm import calls_java, java_class, pyjnius, reason, start_jvm
from greylag.index.lucene.lucene_index import LuceneIndex, analyzer_of
from greylag.index.lucene.method_handles import method, run
from greylag.index.lucene.open_index import LANGUAGE

_LOST = re.compile("unrecoverable error|IndexWriter is closed|No space left")
"""Messages of Lucene when it could not write, at once or at a later document."""
_UNFINISHED = "Anserini did not finish writing the index: is the disk full?"
_log = logging.getLogger("greylag")


@guided
def build_index(
    docs: Path,
    out: Path,
    *,
    collection: str | None = None,
    fields: str | None = None,
    language: str = "en",
    texts: bool = True,
    threads: int = 1,
    origin: str = "",
    overwrite: bool = False,
) -> int:
    """Index documents with one of Anserini's analyzers, for English by default, and positions.

    The index is built in a temporary folder beside `out`, which is renamed once the index is complete. If there is no
    document, a docid is duplicated or Anserini fails, `out` stays as it was: `CollectionError`.

    Parameters
    ----------
    docs : Path
        A file or a folder of files: plain, gzipped or in tar archives.
    out : Path
        The index folder. It must be absent or empty, except as `origin` and `overwrite` allow.
    collection : {"JsonCollection", "TrecCollection", "HtmlCollection", "TableCollection"}, optional
        The documents' form. JSON: objects with ``id``, ``contents`` and optionally ``title``, which is indexed too, or
        BEIR's ``_id``, ``text`` and ``title``; one per line, or a list. HTML: one document per file, identified by the
        file name. Table: columns separated by commas, with their names in the first line, or docid and text separated
        by a tab. By default the form is detected from the first file: its first characters, or .csv and .tsv.
    fields : str, optional
        The fields of JSON objects or columns of tables to index, as ``id=docid,contents=title+text``. Columns without
        names have numbers, from 1.
    language : str, default "en"
        The analyzer: English (Porter's stemmer, stop words); another language's by its name or code, such as
        "German" or "de"; or "whitespace", which only splits at white space. It is recorded in the index, and analyses
        the queries, too.
    texts : bool, default True
        Store the texts in the index, which features of surface words need.
    threads : int, at least 1, default 1
        Number of indexing threads.
    origin : str, default ""
        A text about the source, recorded with the index (see `runtime.folders.read_mark`). An index in `out` with the
        same origin is left alone, unless it is to be overwritten.
    overwrite : bool, default False
        Replace an index in `out` that this function made, in one step when the new one is complete.

    Returns
    -------
    int
        The number of documents in the index. Documents without text are not indexed; a warning gives their number.
    """
    if not isinstance(docs, str | Path):
        raise ParameterError(f"docs is {shown(docs)}: give files, or index texts by PositionalIndex.from_texts(texts)")
    docs, out, language = Path(docs), Path(out), language_code(language)
    if collection not in (*COLLECTIONS, None):
        raise ParameterError(f"collection is {collection!r}: it must be one of {', '.join(COLLECTIONS)}")
    check_counts(threads=threads)
    replaced = _inode(out) if overwrite else None
    _is_made(out, origin, replaced)
    chosen, form = None if fields is None else parse_fields(fields), collection or guess_collection(docs)
    start_jvm()
    # Raises at once if there is no such language, before documents are read for minutes.
    calls_java(analyzer_of)(language)
    indexed = 0

    def fill(folder: Path) -> None:
        nonlocal indexed
        files = folder / ".docs"
        files.mkdir()
        # The copies for Anserini are inside of the folder that is renamed at the end, so that a killed process leaves
        # nothing else.
        indexed = _index(docs, files, folder, form, threads, chosen, language, texts=texts)
        shutil.rmtree(files)

    make_folder(out, fill, done=lambda: _is_made(out, origin, replaced), mark=origin)
    if indexed:
        return indexed
    with LuceneIndex(out) as existing:  # it was there, or another process made it
        return existing.statistics().documents


def _is_made(out: Path, origin: str, replaced: int | None) -> bool:
    """Return whether the folder is a finished index of this origin; raise if the index must not be written there."""
    # The index whose inode is `replaced` may be overwritten, unless another process has put a new one there since.
    if not os.path.lexists(out) or (out.is_dir() and not any(out.iterdir())):
        return False
    if origin and read_mark(out) == origin and _inode(out) != replaced:
        return True
    marked = out.is_dir() and not out.is_symlink() and (out / MARK_FILE).is_file()
    if not marked or _inode(out) != replaced:
        choice = "delete it, overwrite it (--overwrite)" if marked else "delete it"
        raise ParameterError(f"{out} exists already: {choice}, or give another folder")
    if others := sorted({path.name for path in out.iterdir()} - _index_files(out)):
        raise ParameterError(f"{out} is not overwritten: move {others[0]!r}, which is not of an index, elsewhere")
    return False


@calls_java
def _index_files(folder: Path) -> set[str]:
    """Return the names of an index's files, as its commit lists them, and of greylag's mark."""
    try:
        commit = java_class("org.apache.lucene.index.SegmentInfos").readLatestCommit(directory(folder))
    except pyjnius().JavaException as error:
        message = f"{folder} is not overwritten, as its files are not known ({reason(error)}): delete it"
        raise ParameterError(message) from error
    return {MARK_FILE, "write.lock", *commit.files(True).toArray()}


def _inode(folder: Path) -> int | None:
    """Return the number that distinguishes a folder from another that is renamed to its path."""
    return folder.stat().st_ino if folder.exists() else None


@calls_java
def _record_language(index: Path, language: str) -> None:
    """Write the name of the analyzer into the index's commit, where `LuceneIndex` finds it."""
    data = java_class("java.util.HashMap")()
    data.put(LANGUAGE, language)
    config = java_class("org.apache.lucene.index.IndexWriterConfig")()
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory(index), config)
    writer.setLiveCommitData(data.entrySet())
    writer.close()


@calls_java
def _indexer(docs: Path, index: Path, collection: str, threads: int, language: str, *, texts: bool) -> Any:
    """Make Anserini's indexer for the files in `docs`."""
    arguments = java_class("io.anserini.index.IndexCollection$Args")()
    # Java ignores changes of Python's working directory.
    arguments.input, arguments.index = str(docs.absolute()), str(index.absolute())
    arguments.collectionClass, arguments.generatorClass = collection, "DefaultLuceneDocumentGenerator"
    arguments.threads = threads
    arguments.pretokenized = language == WHITESPACE
    if language not in (ENGLISH, WHITESPACE):
        arguments.language = language
    # One segment: postings are then exported without merging, and scores do not depend on how the documents were split.
    arguments.storePositions = arguments.optimize = arguments.quiet = True
    arguments.storeContents = texts
    # Anserini's default is as large as the whole heap.
    arguments.memoryBuffer = java_class("java.lang.Runtime").getRuntime().maxMemory() // 4 // 2**20
    indexer = java_class("io.anserini.index.IndexCollection")(arguments)
    _set_level(java_class("org.apache.logging.log4j.Level").OFF)  # the constructor has changed it
    return indexer


@calls_java
def _counters(indexer: Any) -> dict[str, int]:
    """Return the counters of Anserini's indexer: numbers of documents, except that errors are files."""
    counters = indexer.getCounters()
    return {name: getattr(counters, name).get() for name in ("indexed", "empty", "unindexable", "skipped", "errors")}


def _index(
    docs: Path, files: Path, index: Path, collection: str, threads: int, fields: Fields | None, language: str,
    *, texts: bool,
) -> int:  # fmt: skip
    """Index `docs`, by way of the empty folder `files`; return the number of documents indexed."""
    reader, count = write_for_anserini(docs, collection, files, threads, fields)
    counters = _run_indexer(docs, partial(_indexer, files, index, reader, threads, language, texts=texts))
    if failed := counters["errors"] + counters["skipped"]:
        raise CollectionError(f"{docs}: Anserini could not read {failed} files or documents: are they complete?")
    indexed, empty = counters["indexed"], counters["empty"] + counters["unindexable"]
    if not indexed:
        raise CollectionError(f"{docs} has no document with text that {collection} can read: choose another collection")
    # Anserini skips documents that it cannot parse, without an error; they are counted on both sides.
    if count != indexed + empty:
        raise CollectionError(f"{docs} has {count} documents, but Anserini read {indexed + empty}: check their markup")
    if empty:
        _log.warning("%s: %d documents without text are not indexed", docs, empty)
    if language != ENGLISH:
        _record_language(index, language)
    try:
        built = LuceneIndex(index)
    except CollectionError:
        raise CollectionError(f"{docs}: {_UNFINISHED}") from None
    with built:
        try:
            built.statistics()
        except CollectionError:  # Lucene has no field without words
            raise CollectionError(f"{docs}: no document has a word that is indexed: all are stop words") from None
        # Read back what is on the disk: Lucene reports a full disk to its own log alone.
        written, wrong = 0, list[str]()
        try:
            for docids, _ in built.docid_blocks():
                written += len(docids)
                wrong += [docid for docid in map(bytes.decode, docids) if not is_name(docid)][:1]
        except CollectionError as error:
            raise CollectionError(str(error).replace(str(index), str(docs))) from error
        if built.stores_texts:
            warn_of_other_language(built.texts(), language)
    if written != indexed:
        raise CollectionError(f"{docs}: {_UNFINISHED}")
    if wrong:
        raise CollectionError(f"{docs}: docid {wrong[0]!r} is empty or has white space or NUL: rename it")
    return indexed


def _run_indexer(docs: Path, make: Callable[[], Any]) -> dict[str, int]:
    """Run Anserini's indexer of some documents; return its counters."""
    with _capture_errors() as printed:
        try:
            indexer = make()
            work = method("io.anserini.index.IndexCollection", "run", "void")
            _run_in_background(lambda: run(work, indexer), lambda: _counters(indexer)["indexed"])
        except pyjnius().JavaException as error:
            if _LOST.search(str(error)):
                raise CollectionError(f"{docs}: {_UNFINISHED}") from error
            raise CollectionError(f"{docs}: Anserini cannot index: {reason(error)}") from error
        # After an error, Anserini prints it and continues with the next file.
        if text := printed():
            if _LOST.search(text):
                raise CollectionError(f"{docs}: {_UNFINISHED}")
            raise CollectionError(f"{docs}: Anserini failed on a file: {text.splitlines()[0]}")
    return _counters(indexer)


def _run_in_background(work: Callable[[], object], done: Callable[[], int]) -> None:
    """Run `work` in a thread, so that progress is shown and Ctrl-C stops Java at once."""
    failures: list[Exception] = []
    java_threads: list[Any] = []
    java_thread = java_class("java.lang.Thread")
    # Waiting for the thread itself would fail: Python 3.11 marks a thread as ended if a join is interrupted.
    finished = threading.Event()

    @calls_java
    def target() -> None:
        java_threads.append(java_thread.currentThread())
        try:
            work()
        except Exception as error:
            failures.append(error)
        finally:
            finished.set()

    # Daemon, so that a stuck Java thread does not keep Python from ending.
    thread = threading.Thread(target=target, name="indexing", daemon=True)
    thread.start()
    try:
        with step("indexing documents") as current:
            while not finished.wait(0.1):
                current.reach(done())
    except KeyboardInterrupt:
        calls_java(lambda: [java_thread.interrupt() for java_thread in java_threads])()
        # Java ends its threads at the next document.
        thread.join(5)
        raise
    thread.join()
    if failures:
        raise failures[0]


def _set_level(level: Any) -> None:
    java_class("org.apache.logging.log4j.core.config.Configurator").setRootLevel(level)


@contextmanager
def _capture_errors() -> Iterator[Callable[[], str]]:
    """Switch log4j off, and capture Java's standard error; yields a function that returns the text so far."""

    @calls_java
    def exchange(level: Any, stream: Any) -> tuple[Any, Any]:
        """Set the level of the log and the standard error; return the ones before."""
        system, context = java_class("java.lang.System"), java_class("org.apache.logging.log4j.core.LoggerContext")
        before = context.getContext(False).getConfiguration().getRootLogger().getLevel(), system.err
        _set_level(level)
        system.setErr(stream)
        return before

    @calls_java
    def begin() -> tuple[Any, tuple[Any, Any]]:
        buffer = java_class("java.io.ByteArrayOutputStream")()
        stream = java_class("java.io.PrintStream")(pyjnius().cast("java.io.OutputStream", buffer))
        return buffer, exchange(java_class("org.apache.logging.log4j.Level").OFF, stream)

    buffer, before = begin()
    try:
        yield calls_java(lambda: str(buffer.toString()))
    finally:
        exchange(*before)
