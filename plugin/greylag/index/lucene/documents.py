"""Document files to be indexed: detecting their form, reading them, and writing them for Anserini.

Anserini reads HTML and TREC files itself. JSON is read here, because Anserini silently stops at a malformed line and
does not index titles; so are tables, and TREC files whose text is directly in ``<DOC>``, which Anserini would ignore.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import logging
import re
import shutil
import tarfile
import zlib
from bisect import bisect_left
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from typing import IO, Any

from greylag.base import (
    CollectionError,
    FormatError,
    ParameterError,
    file_stamp,
    is_file,
    is_name,
    parse_json,
    step,
    unpacked,
)

COLLECTIONS = ("JsonCollection", "TrecCollection", "HtmlCollection", "TableCollection")

Document = tuple[str, str]
Fields = tuple[str, tuple[str, ...]]
"""The field with a document's docid, and those that are its text."""

_JSON_FORMS: tuple[Fields, ...] = (("id", ("title", "contents")), ("_id", ("title", "text")))  # Anserini's, BEIR's
_DOCID_COLUMNS = ("id", "_id", "docid", "doc_id", "docno", "pid")  # of the first line of a table that names its columns
_log = logging.getLogger("greylag")
MAX_TEXT = 20_000_000
"""UTF-16 units of a document in JSON that Anserini's parser reads."""

MAX_HEADER = 1 << 20
"""Bytes of a member's attributes in an archive."""
_ATTRIBUTE_TYPES = {*b"xgXLK"}
"""The types of headers that hold attributes of the next member, or of all."""
_TAR = (".tar.gz", ".tgz", ".tar")
_UNPACKED_SUFFIXES = re.compile(r"\.(gz|bz2)$", re.IGNORECASE)
_ANSERINI_UNPACKS = {"TrecCollection": (".gz", ".z"), "HtmlCollection": (".tar.gz", ".tgz")}
_FIRST_CHARACTERS = {
    "JsonCollection": (b"{", b"["),
    "TrecCollection": (b"<doc>",),
    "HtmlCollection": (b"<html", b"<!doctype html"),
}
# The elements whose text Anserini's TrecCollection indexes; it ignores everything else.
_TEXT_ELEMENT = re.compile(r"<(TEXT|HEADLINE|TITLE|HL|HEAD|TTL|DD|DATE|LP|LEADPARA)>")
_TREC_DOCUMENT = re.compile(r"\s*<DOC>\s*<DOCNO>\s*(\S+)\s*</DOCNO>(.*)</DOC>", re.DOTALL)
_TREC_TAG = re.compile(r"</?DOC(NO)?>", re.IGNORECASE)
_MARKUP = re.compile(r"</?[A-Za-z][^<>]*>")
_ELEMENT = re.compile(r"<(\w++)[^<>]*+>|<[^<>]*+>")  # an opening, or a tag that stands alone
_ELEMENT_END = re.compile(r"</(\w++)>")


def guess_collection(docs: Path) -> str:
    """Detect the collection class that reads `docs`, from the first characters of its first file, or its name."""
    for name, file in _files(docs):
        if ".csv" in name.suffixes or ".tsv" in name.suffixes:
            return "TableCollection"
        with _reading(name):
            head = file.read(1 << 12).removeprefix(BOM_UTF8).lstrip().lower()
        for collection, beginnings in _FIRST_CHARACTERS.items():
            if head.startswith(beginnings):
                return collection
        choices = ", ".join(COLLECTIONS)
        raise CollectionError(
            f"{name}: unknown form, starting {head[:20]!r}: give the collection ({choices}); tables are .csv or .tsv"
        )
    raise CollectionError(f"{docs} contains no files")


def stamp_documents(docs: Path, *how: str | None) -> str:
    """Compute a SHA-256 (hex) of files' names and stamps, which differs if documents, or their reading, differ."""
    stamps = [(str(path.relative_to(docs.parent)), file_stamp(path)) for path in _paths(docs)]
    return hashlib.sha256(json.dumps([how, stamps]).encode()).hexdigest()


def parse_fields(text: str) -> Fields:
    """Parse the fields of ``id=FIELD,contents=FIELD+FIELD``; columns without names are numbered from 1."""
    named = dict(part.partition("=")[::2] for part in text.split(","))
    docid, contents = named.get("id", ""), tuple(named.get("contents", "").split("+"))
    if set(named) != {"id", "contents"} or not all((docid, *contents)) or len({*contents}) < len(contents):
        raise ParameterError(f"--fields {text!r:.80}: it must be of the form id=FIELD,contents=FIELD+FIELD")
    return docid, contents


def write_for_anserini(
    docs: Path, collection: str, folder: Path, parts: int, fields: Fields | None = None
) -> tuple[str, int]:
    """Fill an empty folder with files for Anserini; return the collection class, and the number of documents."""
    # JSON, tables, and TREC files whose first document has none of Anserini's text elements are rewritten as `parts`
    # files of JSON lines. Other files are linked, or unpacked if Anserini cannot. Documents are counted here, so that
    # those that Anserini loses are noticed.
    if collection in ("JsonCollection", "TableCollection"):
        return "JsonCollection", _write_json(_read_records(docs, collection, fields), folder, parts)
    if fields is not None:
        raise ParameterError(f"--fields is for JSON and tables, not for {collection}")
    # The first document decides for all, as its form is the collection's.
    first = next(_trec_elements(docs), None) if collection == "TrecCollection" else None
    if first is not None and not _TEXT_ELEMENT.search(first[2]):
        return "JsonCollection", _write_json(_trec_documents(docs), folder, parts)
    prefix = "_" if collection == "TrecCollection" else ""  # Anserini leaves out TREC files called readme
    count = sum(1 for _ in (_trec_texts(docs) if collection == "TrecCollection" else _files(docs)))
    for number, path in enumerate(_paths(docs)):
        with _reading(path), path.open("rb") as start:
            packed = path.name.lower().endswith(_TAR) or unpacked(start) is not start
            marked = collection == "TrecCollection" and not packed and start.read(len(BOM_UTF8)) == BOM_UTF8
        # Copied where Anserini would read a byte-order mark as text, or does not know the packing.
        if marked or packed != path.name.lower().endswith(_ANSERINI_UNPACKS[collection]):
            for member, (name, file) in enumerate(_files(path)):
                place = folder / str(number) / str(member)  # members of different folders may have the same name
                place.mkdir(parents=True)
                with _reading(name), (place / f"{prefix}{_UNPACKED_SUFFIXES.sub('', name.name)}").open("wb") as copy:
                    copy.write(file.read(len(BOM_UTF8)).removeprefix(BOM_UTF8))
                    shutil.copyfileobj(file, copy)
        else:
            (folder / str(number)).mkdir()
            (folder / str(number) / f"{prefix}{path.name}").symlink_to(path.resolve())
    return collection, count


def read_documents(docs: Path, *, collection: str | None = None, fields: str | None = None) -> Iterator[Document]:
    """Read the docids and texts of JSON or tables; Anserini reads other forms."""
    form = collection or guess_collection(docs)
    if form not in ("JsonCollection", "TableCollection"):
        raise ParameterError(f"{docs}: without Java, JSON and tables can be indexed, not {form}")
    return _read_records(docs, form, None if fields is None else parse_fields(fields))


def _read_records(docs: Path, collection: str, fields: Fields | None) -> Iterator[Document]:
    """Read the documents of JSON or tables."""
    read = _json_records if collection == "JsonCollection" else _table_records
    records = ((name, line, record) for name, file in _files(docs) for line, record in read(name, file, fields))
    return _documents(docs, records, fields)


def _without_elements(text: str) -> str:
    """Replace elements, each up to the first closing of its name, and tags that stand alone, by spaces."""
    # Closings are looked up: a search from each opening that has none would take quadratic time.
    ends: dict[str, list[tuple[int, int]]] = {}
    for match in _ELEMENT_END.finditer(text):
        ends.setdefault(match[1].lower(), []).append(match.span())
    outside, at = list[str](), 0
    for match in _ELEMENT.finditer(text):
        if match.start() >= at:  # else inside of an element
            ends_of_name = ends.get((match[1] or "").lower(), [])
            following = bisect_left(ends_of_name, (match.end(), 0))
            outside.append(text[at : match.start()])
            at = ends_of_name[following][1] if following < len(ends_of_name) else match.end()
    return " ".join([*outside, text[at:]])


def _paths(docs: Path) -> list[Path]:
    """List `docs` itself, or the files below it in the order of their names, except READMEs and hidden ones."""
    # Of a folder in BEIR's form, with queries and judgements, only the corpus has documents.
    if docs.is_file():
        return [docs]
    # Queries of BEIR are JSON lines, too, and would be indexed as documents.
    corpus = [path for path in (docs / "corpus.jsonl", docs / "corpus.jsonl.gz") if is_file(path)]
    if corpus and any(map(is_file, (docs / "queries.jsonl", docs / "queries.jsonl.gz"))):
        return corpus[:1]
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


def _files(docs: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    """Yield the files of `docs`, unpacked, with their names. Read each one before requesting the next."""
    # All files of an archive count, hidden ones and READMEs among them, as for Anserini.
    for path in _paths(docs):
        with _reading(path):
            if path.name.lower().endswith(_TAR):
                with tarfile.open(path, tarinfo=_Member) as archive:
                    for member in archive:
                        if content := archive.extractfile(member):
                            yield path / member.name, content
            else:
                with path.open("rb") as file:
                    yield path, unpacked(file)


class _Member(tarfile.TarInfo):
    """A member of an archive: tarfile reads its long names and other attributes into memory."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        """Read the member after its header; in every version of tarfile, this method is for subclasses."""
        if self.type[0] in _ATTRIBUTE_TYPES and self.size > MAX_HEADER:
            raise OSError(f"a name in the archive has {self.size} bytes")
        member: tarfile.TarInfo = super()._proc_member(archive)  # type: ignore[misc]
        return member


def _write_json(documents: Iterable[Document], folder: Path, parts: int) -> int:
    """Write the documents as JSON lines; return their number."""
    count = 0
    with ExitStack() as stack:
        current = stack.enter_context(step("reading documents"))
        files = [stack.enter_context((folder / f"{part}.jsonl").open("w", encoding="utf-8")) for part in range(parts)]
        for docid, contents in documents:
            current.reach(count)
            # In turn, so that Anserini's threads have equal shares; the order in the index does not matter.
            files[count % parts].write(json.dumps({"id": docid, "contents": contents}) + "\n")
            count += 1
    return count


def _documents(docs: Path, records: Iterable[tuple[Path, int, Any]], fields: Fields | None) -> Iterator[Document]:
    """Yield the documents of records; log which fields are indexed, and which are not."""
    # Fields that are never indexed are named at the end: a wrong --fields is silent otherwise.
    seen: Counter[str] = Counter()
    used: dict[str, None] = {}
    for name, line, record in records:
        if not isinstance(record, dict):
            raise FormatError(name, line, f"{type(record).__name__} instead of an object with id and contents")
        docid, contents = fields or _json_form(name, line, record)
        seen.update(record.keys())
        used |= dict.fromkeys((docid, *contents))
        yield _document(name, line, record, docid, contents)
    if missing := [field for field in used if fields and field not in seen]:
        raise FormatError(docs, None, f"no document has the field {missing[0]!r}, but {', '.join(seen)}")
    left_out = [f"{field!r} (of {count} documents)" for field, count in seen.items() if field not in used]
    if left_out or len([*filter(seen.__contains__, used)]) > 2:
        texts = " + ".join([field for field in used if field in seen][1:])
        without = f"; left out: {', '.join(left_out)}" if left_out else ""
        _log.info("%s: indexed as text: %s%s", docs, texts, without)


def _json_form(name: Path, line: int, record: Mapping[str, Any]) -> Fields:
    for docid, contents in _JSON_FORMS:
        if {docid, contents[-1]} <= record.keys():
            return docid, contents
    there = f"{', '.join(record) or 'nothing':.100}"
    raise FormatError(
        name, line, f"an object needs id and contents, or _id and text, but this one has {there}: give --fields"
    )


def _table_records(name: Path, file: IO[bytes], fields: Fields | None) -> Iterator[tuple[int, Any]]:
    """Yield the rows of a table by the names of its columns: the first line, or numbers from 1."""
    # Columns are separated by tabs, without quotes, or by commas. A table of docids and texts alone, as MS MARCO's, has
    # tabs and no names.
    lines = _read_lines(name, file)
    first = next(lines, "")
    # Tabs need no quotes, and MS MARCO's texts have single ones: the csv module would read on to the next.
    lines, tabs = chain([first], lines), "\t" in first
    # The default of 128 KB is less than a book, which may be a document.
    csv.field_size_limit(1 << 30)
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if tabs else csv.reader(lines, strict=True)
    names: list[str] | None = None
    try:
        for row in reader:
            if not row:
                continue
            if names is None:
                numbered = all(field.isdigit() for field in (fields[0], *fields[1])) if fields else tabs
                names = [str(number) for number in range(1, len(row) + 1)] if numbered else row
                if not fields and tabs and (len(row) != 2 or row[0].lower() in _DOCID_COLUMNS):
                    reason = f"{len(row)} columns, {row[0]!r:.20} first: say which to index, as in"
                    raise FormatError(name, 1, f"{reason} --fields id=1,contents=2, or by the names in the first line")
                if len({*names}) < len(names):
                    raise FormatError(name, reader.line_num, "two columns have the same name: rename one")
                if not numbered:
                    continue
            if len(row) != len(names):
                separated = "separated by tabs, as the first line has one" if tabs else "separated by commas"
                reason = f"{len(row)} columns instead of {len(names)}, {separated}"
                raise FormatError(name, reader.line_num, reason)
            record = dict(zip(names, row, strict=True))
            yield reader.line_num, {"id": record["1"], "contents": record["2"]} if tabs and not fields else record
    except csv.Error as error:
        raise FormatError(name, reader.line_num, f"not a table of comma-separated values: {error}") from None


def _json_records(name: Path, file: IO[bytes], _: Fields | None) -> Iterator[tuple[int, Any]]:
    """Yield the JSON objects of a file, directly or in lists, each with the line on which its value starts."""
    lines = enumerate(_read_lines(name, file), 1)
    for number, line in lines:
        if line.strip():
            value = _json_value(name, number, line, lines)
            for record in value if isinstance(value, list) else [value]:
                yield number, record


def _json_value(name: Path, number: int, line: str, rest: Iterable[tuple[int, str]]) -> Any:
    """Return the value on a line or, if it does not end there, on that line and all lines after it."""
    try:
        try:
            return parse_json(line)
        except json.JSONDecodeError as error:
            # An error at the very end may be a value that goes on in the next line, as in a file that is one list.
            if error.pos < len(line.rstrip()):
                raise
            return parse_json(line + "".join(text for _, text in rest))
    except json.JSONDecodeError as error:
        raise FormatError(name, number + error.lineno - 1, f"not JSON: {error.msg} at column {error.colno}") from error
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:  # a huge number, deep nesting
        raise FormatError(name, number, f"not JSON that can be read: {error}") from error


def _document(name: Path, line: int, record: Mapping[str, Any], key: str, fields: tuple[str, ...]) -> Document:
    """Return the docid and text of a document. The text has a line for each field that is there."""
    docid = record.get(key)
    if isinstance(docid, bool) or not isinstance(docid, str | int):
        raise FormatError(name, line, f"{key} is {docid!r}: it must be a string or an integer")
    _check_docid(name, line, str(docid))
    texts = [record[field] for field in fields if record.get(field) is not None]
    if not texts or not all(isinstance(text, str) for text in texts):
        raise FormatError(name, line, f"document {docid}: {' and '.join(fields)} must be strings")
    text = "\n".join(filter(None, texts)).encode("utf-16-le", "surrogatepass")
    if len(text) > 2 * MAX_TEXT:
        raise FormatError(name, line, f"document {docid} has more than {MAX_TEXT:,} characters: split it")
    # Of a text that was cut within a character beyond 16 bits, such as an emoji, Lucene would index nothing.
    return str(docid), text.decode("utf-16-le", "replace")


def _trec_documents(docs: Path) -> Iterator[Document]:
    for name, line, element in _trec_elements(docs):
        document = _TREC_DOCUMENT.match(element)
        if not document:
            raise FormatError(name, line, "<DOC> is not followed by <DOCNO>...</DOCNO> with a docid")
        yield document[1], _MARKUP.sub(" ", document[2])


def _trec_texts(docs: Path) -> Iterator[str]:
    """Yield each ``<DOC>...</DOC>``; Anserini must lose no text of it, but for elements that it ignores."""
    for name, line, element in _trec_elements(docs):
        if not _TEXT_ELEMENT.search(element) and _without_elements(element.partition("<DOC>")[2]).strip():
            raise FormatError(name, line, "the text is not in <TEXT> or the like, as that of the first document is")
        yield element


def _trec_elements(docs: Path) -> Iterator[tuple[Path, int, str]]:
    """Yield each ``<DOC>...</DOC>`` with its file and line; an element that is not complete is an error."""
    for name, file in _files(docs):
        start, lines = 0, list[str]()
        for number, line in enumerate(_read_lines(name, file, errors="replace"), 1):
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
                yield name, start, _check_element(name, start, "".join(lines))
                start, lines = 0, []
        if start:
            raise FormatError(name, start, "<DOC> without </DOC>")


def _check_element(name: Path, line: int, element: str) -> str:
    begins, ends = element.count("<DOCNO>"), element.count("</DOCNO>")
    if (begins, ends) != (1, 1):
        raise FormatError(name, line, f"<DOC> has {begins} <DOCNO> and {ends} </DOCNO>, not one")
    if element.count("<DOC>") != 1:
        raise FormatError(name, line, "<DOC> inside <DOC>: is </DOC> missing?")
    docid = element.partition("<DOCNO>")[2].partition("</DOCNO>")[0].strip()
    # An empty one is refused later, with the form that is expected.
    if docid:
        _check_docid(name, line, docid)
    return element


def _check_docid(name: Path, line: int, docid: str) -> None:
    if not is_name(docid):
        reason = "is empty or has white space or NUL or is not UTF-8, which a TREC run cannot contain: rename it"
        raise FormatError(name, line, f"docid {docid!r:.80} {reason}")


def _read_lines(name: Path, file: IO[bytes], errors: str = "strict") -> Iterator[str]:
    """Read the lines of a UTF-8 file."""
    with _reading(name):
        yield from io.TextIOWrapper(file, encoding="utf-8-sig", errors=errors)


@contextmanager
def _reading(name: Path) -> Iterator[None]:
    try:
        yield
    except KeyError as error:  # of tarfile
        raise FormatError(name, None, f"cannot be read: a link leads out of the archive ({error.args[0]})") from error
    except RecursionError:  # of tarfile, too
        raise FormatError(name, None, "cannot be read: links of the archive lead to each other") from None
    except (OSError, EOFError, tarfile.TarError, zlib.error, UnicodeDecodeError) as error:
        raise FormatError(name, None, f"cannot be read: {error}") from error
