"""Document files: detection of their form, and refusal of malformed ones."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from greylag.errors import CollectionError, FormatError, GreylagError, ParameterError
from greylag.lucene.documents import guess_collection, stamp_documents, write_for_anserini
from tests.greylag.lucene.samples import BARE, GOOD, HTML, LINES, LIST, TREC


def archived_link() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("a.html")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    return content.getvalue()


LINK = archived_link()


@pytest.mark.parametrize(
    ("content", "collection"),
    [
        (LINES, "JsonCollection"),
        (LIST, "JsonCollection"),
        (TREC, "TrecCollection"),
        (" \n" + BARE.lower(), "TrecCollection"),
        (HTML, "HtmlCollection"),
        (HTML.replace("<!DOCTYPE html>", ""), "HtmlCollection"),
    ],
)
def test_the_form_is_detected_from_the_first_characters(content: str, collection: str, tmp_path: Path) -> None:
    (tmp_path / "docs").write_text(content)
    assert guess_collection(tmp_path / "docs") == guess_collection(tmp_path) == collection


@pytest.mark.parametrize(
    ("error", "message", "files"),
    [
        (CollectionError, "unknown form, starting b'grey goose'", {"t.txt": "grey goose"}),
        (CollectionError, "contains no files", {}),
        (FormatError, "cannot be read: Compressed file ended", {"t.gz": gzip.compress(999 * TREC.encode())[:-99]}),
        (FormatError, "cannot be read: Compressed file ended", {"b.gz": gzip.compress(999 * BARE.encode())[:-99]}),
        (FormatError, "cannot be read: Not a gzipped file", {"j.gz": GOOD}),
        (FormatError, "cannot be read: 'utf-8' codec", {"j.json": GOOD.replace("x", "é").encode("latin-1")}),
        (FormatError, r"j.json:2: not JSON: .* at column 25", {"j.json": GOOD + GOOD[:-3]}),
        (FormatError, r"j.json:3: not JSON: .* at column 1", {"j.json": '[\n{"id": "1", "contents": "x"},\n}'}),
        (FormatError, r"j.json:2: an object needs .* has id, x", {"j.json": GOOD + '{"id": "2", "x": ""}'}),
        (FormatError, r"j.json:1: id is None: it must be", {"j.json": '{"id": null, "contents": "x"}'}),
        (FormatError, r"j.json:1: document 1: contents and title must be", {"j.json": '{"id": 1, "contents": 7}'}),
        (FormatError, r"j.json:1: str instead of an object", {"j.json": '["x"]'}),
        (FormatError, r"j.json:1: docid '1 2' .*white space", {"j.json": GOOD.replace("1", "1 2")}),
        (FormatError, r"j.json:1: docid '' is empty", {"j.json": GOOD.replace("1", "")}),
        (FormatError, r"j.json:1: docid '1\\x00' .*NUL", {"j.json": GOOD.replace("1", "1\\u0000")}),
        (FormatError, r"j.json:1: docid '\\ud800' .*not UTF-8", {"j.json": GOOD.replace("1", "\\ud800")}),
        (FormatError, r"j.json:1: not JSON .*recursion", {"j.json": '{"id": ' + "[" * 100_000}),
        (FormatError, r"j.json:1: not JSON .*digits", {"j.json": GOOD.replace('"1"', "1" * 5000)}),
        (FormatError, r"j.json:1: not JSON .*duplicate key 'id'; keep", {"j.json": GOOD.replace("{", '{"id": "0", ')}),
        (FormatError, r"t.trec:15: <doc> is not inside <DOC>", {"t.trec": TREC + TREC.lower()}),
        (FormatError, r"h.tar: cannot be read: a link leads out of the archive", {"h.tar": LINK}),
        (FormatError, r"t.trec:1: docid 'T 1' .*white space", {"t.trec": TREC.replace("T1", "T 1")}),
        (FormatError, r"t.trec:1: docid 'T.*1' .*NUL", {"t.trec": TREC.replace("T1", "T\x001")}),
        (FormatError, r"t.trec:15: the text is not in <TEXT>", {"t.trec": TREC + BARE.replace("B", "T3")}),
        (FormatError, r"b.trec:5: <DOC> without </DOC>", {"b.trec": BARE[:-9]}),
        (FormatError, r"b.trec:1: <DOC> without </DOC>", {"b.trec": BARE.replace("</DOC>", "")}),
        (FormatError, r"b.trec:1: <DOC> has 0 <DOCNO> and 1", {"b.trec": BARE.replace("<DOCNO>B1", "")}),
        (FormatError, r"b.trec:1: <DOC> is not followed by <DOCNO>", {"b.trec": BARE.replace("<DOCNO>B1", "<DOCNO>")}),
        (FormatError, r"t.trec:8: <DOC> without </DOC>", {"t.trec": TREC[:-20]}),
        (FormatError, r"t.trec:8: <DOC> has 0 <DOCNO> and 0", {"t.trec": TREC.replace("<DOCNO> T2 </DOCNO>", "")}),
        (FormatError, r"t.trec:7: <DOC> follows </DOC>", {"t.trec": TREC.replace("</DOC>\n<DOC>", "</DOC><DOC>")}),
    ],
)  # fmt: skip
def test_refusals(tmp_path: Path, error: type[GreylagError], message: str, files: dict[str, str | bytes]) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "out").mkdir()
    for name, content in files.items():
        (tmp_path / "docs" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=message) as caught:
        write_for_anserini(tmp_path / "docs", guess_collection(tmp_path / "docs"), tmp_path / "out", 1)
    assert "\n" not in str(caught.value)


def test_missing_documents(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="absent does not exist"):
        guess_collection(tmp_path / "absent")


def test_documents_are_counted(tmp_path: Path) -> None:
    for number, (name, content) in enumerate((("j", LINES), ("b", BARE), ("t", TREC))):
        (tmp_path / name).write_text(content)
        (tmp_path / f"out{number}").mkdir()
        docs = tmp_path / name
        assert write_for_anserini(docs, guess_collection(docs), tmp_path / f"out{number}", 2)[1] == 2


@pytest.mark.parametrize("kind", ["link to a folder", "dangling link", "pipe"])
def test_what_is_neither_file_nor_folder_is_refused(tmp_path: Path, kind: str) -> None:
    docs, path = tmp_path / "docs", tmp_path / "docs" / "sub" / "b"
    path.parent.mkdir(parents=True)
    (docs / "a").write_text("<DOC>")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path if kind == "link to a folder" else tmp_path / "none")
    with pytest.raises(ParameterError, match="sub/b is neither a file nor a folder: remove it"):
        guess_collection(docs)
    if kind == "pipe":
        with pytest.raises(ParameterError, match="sub/b is neither a file nor a folder: give"):
            guess_collection(path)


def test_the_stamp_of_documents_differs_if_they_do(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a").write_text("a")
    stamps = [stamp_documents(tmp_path / "docs", None)]
    assert stamps == [stamp_documents(tmp_path / "docs", None)]
    stamps.append(stamp_documents(tmp_path / "docs", "TrecCollection"))
    stamps.append(stamp_documents(tmp_path / "docs" / "a", None))
    (tmp_path / "docs" / "b").touch()
    stamps.append(stamp_documents(tmp_path / "docs", None))
    os.utime(tmp_path / "docs" / "b", ns=(0, 1))
    stamps.append(stamp_documents(tmp_path / "docs", None))
    assert len(set(stamps)) == len(stamps)


def test_hidden_files_and_folders_are_skipped(tmp_path: Path) -> None:
    for name in ("docs/.git/a", "docs/.b", "docs/.c/d/e", "docs/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(CollectionError, match="contains no files"):
        guess_collection(tmp_path / "docs")
