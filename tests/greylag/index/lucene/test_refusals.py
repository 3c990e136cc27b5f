"""Documents, indexes, searches and names that are refused: the call, the error, and what its message has."""

import gzip
import io
import math
import tarfile
from types import SimpleNamespace

import pytest

from greylag.base import CollectionError, DependencyError, FormatError, ParameterError
from greylag.index.lucene.documents import guess_collection
from greylag.index.lucene.jvm import start_jvm
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.lucene.prebuilt import pyserini_module
from tests.greylag.index.lucene.samples import BARE, GOOD, HTML, ROWS, TREC, build, tar, tsv_of
from tests.refusals import refuses

LONG = GOOD.replace('"x', '"' + 100_001 * "x")
PACKED = gzip.compress(999 * TREC.encode())[:-99], gzip.compress(999 * BARE.encode())[:-99]


def archived_link(target):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("a.html")
        member.type, member.linkname = tarfile.SYMTYPE, target
        archive.addfile(member)
    return content.getvalue()


def fields(text):
    return {"fields": text}


@pytest.mark.parametrize(
    ("error", "parts", "files", "options"),
    [
        (CollectionError, "has no document|JsonCollection", {"j.json": '{"id": "1", "contents": ""}'}, {}),
        (CollectionError, "document|TrecCollection", {"j.json": GOOD}, {"collection": "TrecCollection"}),
        (CollectionError, "docs/j.json|2 documents|'1'", {"j.json": 2 * GOOD}, {}),
        (CollectionError, "2 documents|'h'", {"h.tar": tar({"x/h.html": HTML, "y/h.html": HTML}, "w")}, {}),
        (CollectionError, "no document has a word", {"j.json": GOOD.replace("x", "the of")}, {}),
        (FormatError, "h.tgz|Compressed", {"h.tgz": tar({"h": 999 * HTML, "i": HTML})[:-40]}, {}),
        (FormatError, "j.json:1|document 1 has more than", {"j.json": LONG}, {}),
        (FormatError, "h.tar|a name in the arch", {"h.tar": tar({6000 * "n": HTML}, "w")}, {}),
        (CollectionError, "Anserini failed on a file|immense term", {"j.json": GOOD.replace("1", 40000 * "x")}, {}),
        (ParameterError, "'Json'|one of Json", {"j.json": GOOD}, {"collection": "Json"}),
        (ParameterError, "threads|not 0", {"j.json": GOOD}, {"threads": 0}),
        (ParameterError, "'xx'|whitespace|Arabic (ar)", {"j.json": GOOD}, {"language": "xx"}),
        (ParameterError, "'ro'|en, whitespace, and ar, ", {"j.json": GOOD}, {"language": "Romanian"}),
        (FormatError, "t.tsv:1|3 columns|'1'|--fields", {"t.tsv": tsv_of(ROWS)}, {}),
        (FormatError, "t.tsv:1|2 columns|'docid'", {"t.tsv": "docid\ttext\n1\tgoose\n"}, {}),
        (FormatError, "t.tsv:2|3 columns instead of 2", {"t.tsv": "1\tgoose\n2\tduck\tx\n"}, {}),
        (CollectionError, "no document", {"t.csv": "1,goose\n"}, {}),
        (FormatError, "t.csv:3|3 columns instead of 2", {"t.csv": "id,contents\n1,goose\n2,x,y\n"}, {}),
        (FormatError, "t.csv:2|not a table", {"t.csv": 'id,contents\n1,"goose\n'}, {}),
        (FormatError, "t.csv:1|same name", {"t.csv": "a,a\n1,goose\n"}, fields("id=a,contents=b")),
        (FormatError, "'c'|a, b", {"t.csv": "a,b\n1,goose\n"}, fields("id=a,contents=b+c")),
        (FormatError, "d is None", {"t.csv": "a,b\n1,goose\n"}, fields("id=d,contents=b")),
        (ParameterError, "--fields 'id=a'", {"t.csv": "a,b\n1,goose\n"}, fields("id=a")),
        (ParameterError, "--fields|b+b", {"t.csv": "a,b\n1,goose\n"}, fields("id=a,contents=b+b")),
        (ParameterError, "--fields|TrecCollection", {"t.trec": TREC}, fields("id=a,contents=b")),
        (CollectionError, "t.txt|b'grey goose'", {"t.txt": "grey goose"}, {}),
        (CollectionError, "contains no files", {}, {}),
        (FormatError, "t.gz|Compressed file ended", {"t.gz": PACKED[0]}, {}),
        (FormatError, "b.gz|Compressed file ended", {"b.gz": PACKED[1]}, {}),
        (FormatError, "'utf-8' codec", {"j.json": GOOD.replace("x", "é").encode("latin-1")}, {}),
        (FormatError, "j.json:2|not JSON|column 25", {"j.json": GOOD + GOOD[:-3]}, {}),
        (FormatError, "j.json:3|not JSON|column 1", {"j.json": '[\n{"id": "1", "contents": "x"},\n}'}, {}),
        (FormatError, "j.json:2|id, x|--fields", {"j.json": GOOD + '{"id": "2", "x": ""}'}, {}),
        (FormatError, "j.json:1|id is None", {"j.json": '{"id": null, "contents": "x"}'}, {}),
        (FormatError, "j.json:1|document 1|strings", {"j.json": '{"id": 1, "contents": 7}'}, {}),
        (FormatError, "j.json:1|document 1|title", {"j.json": GOOD.replace("{", '{"title": 7, ')}, {}),
        (FormatError, "j.json:1|str", {"j.json": '["x"]'}, {}),
        (FormatError, "j.json:1|'1 2'|white space", {"j.json": GOOD.replace("1", "1 2")}, {}),
        (FormatError, "j.json:1|'' is empty", {"j.json": GOOD.replace("1", "")}, {}),
        (FormatError, r"j.json:1|'1\x00'|NUL", {"j.json": GOOD.replace("1", "1\\u0000")}, {}),
        (FormatError, r"j.json:1|'\ud800'|not UTF-8", {"j.json": GOOD.replace("1", "\\ud800")}, {}),
        (FormatError, "j.json:1|not JSON", {"j.json": '{"id": ' + "[" * 100_000}, {}),
        (FormatError, "j.json:1|not JSON|digits", {"j.json": GOOD.replace('"1"', "1" * 5000)}, {}),
        (FormatError, "j.json:1|duplicate key 'id'", {"j.json": GOOD.replace("{", '{"id": "0", ')}, {}),
        (FormatError, "h.tar|a link leads out", {"h.tar": archived_link("/etc/passwd")}, {}),
        (FormatError, "l.tar|lead to each other", {"l.tar": archived_link("a.html")}, {}),
        (FormatError, "t.trec:15|<doc> is not inside <DOC>", {"t.trec": TREC + TREC.lower()}, {}),
        (FormatError, "t.trec:1|'T 1'|white space", {"t.trec": TREC.replace("T1", "T 1")}, {}),
        (FormatError, r"t.trec:1|'T\x001'|NUL", {"t.trec": TREC.replace("T1", "T\x001")}, {}),
        (FormatError, "t.trec:15|not in <TEXT>", {"t.trec": TREC + BARE.replace("B", "T3")}, {}),
        (FormatError, "b.trec:5|<DOC> without </DOC>", {"b.trec": BARE[:-9]}, {}),
        (FormatError, "b.trec:1|<DOC> without </DOC>", {"b.trec": BARE.replace("</DOC>", "")}, {}),
        (FormatError, "b.trec:1|0 <DOCNO> and 1", {"b.trec": BARE.replace("<DOCNO>B1", "")}, {}),
        (FormatError, "b.trec:1|not followed by <DOCNO>", {"b.trec": BARE.replace("<DOCNO>B1", "<DOCNO>")}, {}),
        (FormatError, "t.trec:8|<DOC> without </DOC>", {"t.trec": TREC[:-20]}, {}),
        (FormatError, "t.trec:8|0 <DOCNO> and 0", {"t.trec": TREC.replace("<DOCNO> T2 </DOCNO>", "")}, {}),
        (FormatError, "t.trec:7|<DOC> follows </DOC>", {"t.trec": TREC.replace("</DOC>\n<DOC>", "</DOC><DOC>")}, {}),
    ],
)  # fmt: skip
def test_documents(tmp_path, error, parts, files, options, monkeypatch, capfd):
    monkeypatch.setattr("greylag.index.lucene.documents.MAX_TEXT", 100_000)
    monkeypatch.setattr("greylag.index.lucene.documents.MAX_HEADER", 5000)
    (tmp_path / "docs").mkdir()
    refuses(lambda: build(tmp_path, files, **options), error, parts, "|")
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]
    assert capfd.readouterr().err == ""  # of log4j


HEAPS = ["", "4", "4gb", "-1g", "0g", "4g -Xint"]


def searcher(small):
    return SimpleNamespace(index_dir=str(small.path), object=None)


@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        (lambda small, _: small.bm25(k=0), ParameterError, "k must be|not 0"),
        (lambda small, _: small.bm25(k1=-0.1), ParameterError, "k1 is -0.1"),
        (lambda small, _: small.bm25(k1=math.nan), ParameterError, "k1 is nan"),
        (lambda small, _: small.bm25(b=1.1), ParameterError, "b is 1.1"),
        (lambda small, _: small.ql(mu=0.0), ParameterError, "mu is 0.0"),
        (lambda small, _: small.ql(mu=math.inf), ParameterError, "mu is inf"),
        (lambda _, folder: LuceneIndex(folder), CollectionError, "segments_N"),
        (lambda _, folder: LuceneIndex(folder / "absent"), CollectionError, "absent|segments_N"),
        (lambda _, folder: LuceneIndex(folder / "loop"), CollectionError, "loop|segments_N"),
        (lambda small, folder: LuceneIndex([folder / "loop", small.path]), CollectionError, "loop|segments_N"),
        (lambda _, folder: LuceneIndex(folder / "broken").statistics(), CollectionError, "cannot be opened|build it"),
        (lambda small, _: LuceneIndex([small.path, small.path]), ParameterError, "index is given twice"),
        (lambda small, _: LuceneIndex(["no/a\0", small.path]), CollectionError, r"'no/a\x00'|null"),
        (lambda *_: LuceneIndex([]), ParameterError, "no index is given"),
        (lambda *_: LuceneIndex({"one", "two"}), ParameterError, "index: set"),
        (lambda small, _: LuceneIndex(small.path, language="fr").language, ParameterError, "'en'|'fr'"),
        (lambda small, _: LuceneIndex(small.path, language="tea"), ParameterError, "'tea'"),
        (lambda small, _: LuceneIndex(searcher(small), language="de"), ParameterError, "a searcher"),
        (lambda *_: pyserini_module("nothing"), DependencyError, "pyserini.nothing|pip install"),
        (lambda _, folder: guess_collection(folder / "none"), ParameterError, "none does not exist"),
        *[(lambda *_, heap=heap: start_jvm(heap), ParameterError, f"{heap!r}|'4g'") for heap in HEAPS],
    ],
)
def test_calls(call, error, parts, small, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "segments_1").write_bytes(b"nonsense")
    refuses(lambda: call(small, tmp_path), error, parts, "|")
