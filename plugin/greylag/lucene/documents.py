"""Document files to be indexed: detecting their form, reading them, and writing them for Anserini.

Anserini reads HTML and TREC files itself. JSON is read here, because Anserini silently stops at a malformed line and
does not index titles; so are TREC files whose text is directly in ``<DOC>``, which Anserini would ignore.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import zlib
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, cast

from greylag.errors import CollectionError, FormatError, ParameterError
from greylag.runtime.files import file_stamp, is_name, parse_json
from greylag.runtime.progress import step

COLLECTIONS = ("JsonCollection", "TrecCollection", "HtmlCollection")

Document = tuple[str, str]

_TAR = (".tar.gz", ".tgz", ".tar")
_ANSERINI_UNPACKS = {"TrecCollection": (".gz", ".z"), "HtmlCollection": (".tar.gz", ".tgz")}
_FIRST_CHARACTERS = {
    "JsonCollection": (b"{", b"["),
    "TrecCollection": (b"<doc>",),
    "HtmlCollection": (b"<html", b"<!doctype html"),
}
# The elements whose text Anserini's TrecCollection indexes; it ignores everything else.
_TEXT_ELEMENT = re.compile(r"<(TEXT|HEADLINE|TITLE|HL|HEAD|TTL|DD|DATE|LP|LEADPARA)>")
_TREC_DOCUMENT = re.compile(r"\s*<DOC>\s*<DOCNO>\s*(\S+)\s*</DOCNO>(.*)</DOC>", re.DOTALL)
_ELEMENT = re.compile(r"<(\w+)[^<>]*>.*?</\1>|<[^<>]*>", re.DOTALL)
_TREC_TAG = re.compile(r"</?DOC(NO)?>", re.IGNORECASE)
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>")


def guess_collection(docs: Path) -> str:
    """Detect the collection class that reads `docs`, from the first characters of its first file."""
    for name, file in _files(docs):
        with _reading(name):
            head = file.read(1 << 12).removeprefix(BOM_UTF8).lstrip().lower()
        for collection, beginnings in _FIRST_CHARACTERS.items():
            if head.startswith(beginnings):
                return collection
        choices = ", ".join(COLLECTIONS)
        raise CollectionError(f"{name}: unknown form, starting {head[:20]!r}: give the collection ({choices})")
    raise CollectionError(f"{docs} contains no files")


def stamp_documents(docs: Path, collection: str | None) -> str:
    """A text that differs if documents have changed: SHA-256 (hex) of their files' names and stamps."""
    stamps = [(str(path.relative_to(docs.parent)), file_stamp(path)) for path in _paths(docs)]
    return hashlib.sha256(json.dumps([collection, stamps]).encode()).hexdigest()


def write_for_anserini(docs: Path, collection: str, folder: Path, parts: int) -> tuple[str, int]:
    """Fill an empty folder with what Anserini shall read; return the collection class, and the number of documents.

    JSON files, and TREC files whose first document has none of Anserini's text elements, are rewritten as `parts` files
    of JSON lines. Other files are linked, or unpacked if Anserini cannot unpack them. Documents are counted here, so
    that those which Anserini loses are noticed.
    """
    if collection == "JsonCollection":
        return collection, _write_json(_json_documents(docs), folder, parts)
    if collection == "TrecCollection" and _is_bare(docs):
        return "JsonCollection", _write_json(_trec_documents(docs), folder, parts)
    prefix = "_" if collection == "TrecCollection" else ""  # Anserini leaves out TREC files called readme
    count = sum(1 for _ in (_trec_texts(docs) if collection == "TrecCollection" else _files(docs)))
    for number, path in enumerate(_paths(docs)):
        marked = collection == "TrecCollection" and not _is_packed(path) and _begins_with_mark(path)
        if marked or (_is_packed(path) and not path.name.lower().endswith(_ANSERINI_UNPACKS[collection])):
            for member, (name, file) in enumerate(_files(path)):
                place = folder / str(number) / str(member)  # members of different folders may have the same name
                place.mkdir(parents=True)
                with _reading(name), (place / f"{prefix}{name.name.removesuffix('.gz')}").open("wb") as copy:
                    copy.write(file.read(len(BOM_UTF8)).removeprefix(BOM_UTF8))
                    shutil.copyfileobj(file, copy)
        else:
            (folder / str(number)).mkdir()
            (folder / str(number) / f"{prefix}{path.name}").symlink_to(path.resolve())
    return collection, count


def _paths(docs: Path) -> list[Path]:
    """`docs` itself, or the files below it in the order of their names, except READMEs and hidden files and folders."""
    if docs.is_file():
        return [docs]
    if not docs.is_dir():
        what = "is neither a file nor a folder" if docs.exists() else "does not exist"
        raise ParameterError(f"{docs} {what}: give a file or a folder of documents")
    files = []
    for path in sorted(docs.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(docs).parts)
        if hidden or path.name.lower().startswith("readme"):
            continue
        if path.is_file():
            files.append(path)
        elif path.is_symlink() or not path.is_dir():  # a folder behind a link would not be searched
            raise ParameterError(f"{path} is neither a file nor a folder: remove it, or put the documents in its place")
    return files


def _is_packed(path: Path) -> bool:
    return path.name.lower().endswith((*_TAR, ".gz"))


def _files(docs: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """The files of `docs`, unpacked, with their names. Read each one before requesting the next.

    Of an archive these are all files, hidden ones and READMEs among them, as for Anserini.
    """
    for path in _paths(docs):
        with _reading(path):
            if path.name.lower().endswith(_TAR):
                with tarfile.open(path) as archive:
                    for member in archive:
                        if content := archive.extractfile(member):
                            yield path / member.name, content
            else:
                with cast(IO[bytes], gzip.open(path)) if _is_packed(path) else path.open("rb") as file:
                    yield path, file


def _begins_with_mark(path: Path) -> bool:
    """Whether a file begins with a byte-order mark, behind which Anserini does not see the first ``<DOC>``."""
    with _reading(path), path.open("rb") as file:
        return file.read(len(BOM_UTF8)) == BOM_UTF8


def _write_json(documents: Iterable[Document], folder: Path, parts: int) -> int:
    """Write the documents as JSON lines; return their number."""
    count = 0
    with ExitStack() as stack:
        current = stack.enter_context(step("reading documents"))
        files = [stack.enter_context((folder / f"{part}.jsonl").open("w", encoding="utf-8")) for part in range(parts)]
        for docid, contents in documents:
            current.reach(count)
            files[count % parts].write(json.dumps({"id": docid, "contents": contents}) + "\n")
            count += 1
    return count


def _json_documents(docs: Path) -> Iterator[Document]:
    for name, file in _files(docs):
        for line, record in _json_records(name, file):
            yield _json_document(name, line, record)


def _json_records(name: Path, file: IO[bytes]) -> Iterator[tuple[int, Any]]:
    """The JSON objects of a file, directly or in lists, each with the line on which its value starts."""
    lines = enumerate(_text(name, file), 1)
    for number, line in lines:
        if line.strip():
            value = _json_value(name, number, line, lines)
            for record in value if isinstance(value, list) else [value]:
                yield number, record


def _json_value(name: Path, number: int, line: str, rest: Iterable[tuple[int, str]]) -> Any:
    """The value on a line or, if it does not end there, on that line and all lines after it."""
    try:
        try:
            return parse_json(line)
        except json.JSONDecodeError as error:
            if error.pos < len(line.rstrip()):
                raise
            return parse_json(line + "".join(text for _, text in rest))
    except json.JSONDecodeError as error:
        raise FormatError(name, number + error.lineno - 1, f"not JSON: {error.msg} at column {error.colno}") from error
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:  # a huge number, deep nesting
        raise FormatError(name, number, f"not JSON that can be read: {error}") from error


def _json_document(name: Path, line: int, record: Any) -> Document:
    """The docid and text of a document. The text is the title, if any, a line feed, and the contents."""
    if not isinstance(record, dict):
        raise FormatError(name, line, f"{type(record).__name__} instead of an object with id and contents")
    if not {"id", "contents"} <= record.keys():
        raise FormatError(
            name, line, f"an object needs id and contents, but this one has {', '.join(record) or 'nothing'}"
        )
    docid, title, contents = record["id"], record.get("title"), record["contents"]
    if isinstance(docid, bool) or not isinstance(docid, str | int):
        raise FormatError(name, line, f"id is {docid!r}: it must be a string or an integer")
    _check_docid(name, line, str(docid))
    if not isinstance(contents, str) or not isinstance(title, str | None):
        raise FormatError(name, line, f"document {docid}: contents and title must be strings")
    return str(docid), f"{title}\n{contents}" if title else contents


def _is_bare(docs: Path) -> bool:
    first = next(_trec_elements(docs), None)
    return first is not None and not _TEXT_ELEMENT.search(first[2])


def _trec_documents(docs: Path) -> Iterator[Document]:
    for name, line, element in _trec_elements(docs):
        document = _TREC_DOCUMENT.match(element)
        if not document:
            raise FormatError(name, line, "<DOC> is not followed by <DOCNO>...</DOCNO> with a docid")
        yield document[1], _MARKUP.sub(" ", document[2])


def _trec_texts(docs: Path) -> Iterator[str]:
    """Each ``<DOC>...</DOC>`` of which Anserini loses no text; text in elements that it ignores is not meant."""
    for name, line, element in _trec_elements(docs):
        if not _TEXT_ELEMENT.search(element) and _ELEMENT.sub("", element.partition("<DOC>")[2]).strip():
            raise FormatError(name, line, "the text is not in <TEXT> or the like, as that of the first document is")
        yield element


def _trec_elements(docs: Path) -> Iterator[tuple[Path, int, str]]:
    """Each ``<DOC>...</DOC>`` with its file and line; an element that is not complete is an error."""
    for name, file in _files(docs):
        start, lines = 0, list[str]()
        for number, line in enumerate(_text(name, file, errors="replace"), 1):
            if line.lstrip().startswith("<DOC>"):
                if start:
                    break
                start = number
            if not start:
                if tag := _TREC_TAG.search(line):
                    raise FormatError(name, number, f"{tag[0]} is not inside <DOC>, which must start a line")
                continue
            lines.append(line)
            if "</DOC>" in line:
                if tag := _TREC_TAG.search(line.partition("</DOC>")[2]):
                    raise FormatError(name, number, f"{tag[0]} follows </DOC> on the same line: start a new line")
                yield name, start, _checked(name, start, "".join(lines))
                start, lines = 0, []
        if start:
            raise FormatError(name, start, "<DOC> without </DOC>")


def _checked(name: Path, line: int, element: str) -> str:
    begins, ends = element.count("<DOCNO>"), element.count("</DOCNO>")
    if (begins, ends) != (1, 1):
        raise FormatError(name, line, f"<DOC> has {begins} <DOCNO> and {ends} </DOCNO>, not one")
    if element.count("<DOC>") != 1:
        raise FormatError(name, line, "<DOC> inside <DOC>: is </DOC> missing?")
    docid = element.partition("<DOCNO>")[2].partition("</DOCNO>")[0].strip()
    if docid:
        _check_docid(name, line, docid)
    return element


def _check_docid(name: Path, line: int, docid: str) -> None:
    if not is_name(docid):
        reason = "is empty or has white space or NUL or is not UTF-8, which a TREC run cannot contain: rename it"
        raise FormatError(name, line, f"docid {docid!r:.80} {reason}")


def _text(name: Path, file: IO[bytes], errors: str = "strict") -> Iterator[str]:
    """The lines of a UTF-8 file."""
    with _reading(name):
        yield from io.TextIOWrapper(file, encoding="utf-8-sig", errors=errors)


@contextmanager
def _reading(name: Path) -> Iterator[None]:
    try:
        yield
    except KeyError as error:  # of tarfile
        raise FormatError(name, None, f"cannot be read: a link leads out of the archive ({error.args[0]})") from error
    except (OSError, EOFError, tarfile.TarError, zlib.error, UnicodeDecodeError) as error:
        raise FormatError(name, None, f"cannot be read: {error}") from error
