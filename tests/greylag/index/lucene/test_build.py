"""Building indexes: accepted forms, refused input, and cleanup after a refusal.

Tests `bulk_calls` and `documents`.
"""

import bz2
import csv
import gzip
import io
import json
import logging
import os
import signal
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from greylag.errors import CollectionError, FormatError, GreylagError, ParameterError
from greylag.index import PositionalIndex
from greylag.index.lucene.build import _run_in_background, build_index
from greylag.index.lucene.documents import guess_collection, stamp_documents, write_for_anserini
from greylag.index.lucene.jvm import java_class, pyjnius, reason
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.lucene.method_handles import method, run
from greylag.ranking import Query
from greylag.runtime.folders import MARK_FILE
from tests.greylag.index.lucene import oracle
from tests.greylag.index.lucene.samples import BARE, GOOD, HTML, LINES, LIST, OBJECT, TREC, tar
from tests.processes import SECONDS

OTHER = TREC.replace(" T", " U")
LONG = GOOD.replace('"x', '"' + 100_001 * "x")


def build(folder, files, **options):
    """Index `files`: the folder, or the file if there is only one."""
    for name, content in files.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    docs = folder / "docs" if len(files) != 1 else folder / "docs" / next(iter(files))
    count = build_index(docs, folder / "index", **options)
    return count, LuceneIndex(folder / "index")


def found(index, text):
    return sorted(index.bm25()(Query("1", text)).docids)


@pytest.mark.parametrize(
    ("name", "count"),
    [("cacm/cacm.tar.gz", 3204), ("vaswani/doc-text.trec.gz", 11429), ("cranfield/docs.jsonl.gz", 1398)],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_real_collections(data, tmp_path, name, count, threads):
    folder, _, file = name.partition("/")
    assert build_index(data(folder) / file, tmp_path / "index", threads=threads) == count
    index = LuceneIndex(tmp_path / "index")
    assert index.statistics().documents == len(set(index.docids())) == count
    index.check_exportable()
    assert oracle.segments(index.path) == 1


@pytest.mark.parametrize(
    ("files", "collection", "goose"),
    [
        ({"t.trec": TREC}, "TrecCollection", ["T1", "T2"]),
        ({"t.trec.gz": gzip.compress(TREC.encode())}, "TrecCollection", ["T1", "T2"]),
        ({"t.tgz": tar({"x/t": TREC, "x/u": OTHER})}, "TrecCollection", ["T1", "T2", "U1", "U2"]),
        ({"t.tar": tar({"x/t": TREC, "y/t": OTHER}, "w")}, "TrecCollection", ["T1", "T2", "U1", "U2"]),
        ({"t.trec": "\ufeff" + TREC}, "TrecCollection", ["T1", "T2"]),
        ({"b.trec": BARE}, "TrecCollection", ["B1", "B2"]),
        ({"b.tar.gz": tar({"b.trec": BARE})}, "TrecCollection", ["B1", "B2"]),
        ({"h.html": HTML}, "HtmlCollection", ["h"]),
        ({"h.html.gz": gzip.compress(HTML.encode())}, "HtmlCollection", ["h"]),
        ({"h.tgz": tar({"a/h.html": HTML, "b/i.html": HTML})}, "HtmlCollection", ["h", "i"]),
        ({"a/h.html": HTML, "b/i.html": HTML, "README.md": "goose"}, "HtmlCollection", ["h", "i"]),
        ({"j.jsonl": LINES}, "JsonCollection", ["1", "2"]),
        ({"j.json": LIST}, "JsonCollection", ["2", "3"]),
        ({"a.json": OBJECT, "b.tgz": tar({"c.json": LIST})}, "JsonCollection", ["1", "2", "3"]),
    ],
)  # fmt: skip
def test_forms(tmp_path, files, collection, goose):
    for place, options in (("guessed", {}), ("given", {"collection": collection})):
        count, index = build(tmp_path / place, files, **options)
        assert found(index, "goose") == goose
        assert count == len(goose)
        assert all("goose" in text.lower() and "DOC" not in text for text in index.texts())
    assert guess_collection(tmp_path / "given" / "docs") == collection


ROWS = [("1", "snow goose", "a"), ("2", 'a "goose", 2 m', "b"), ("3", "duck", "goose")]


def csv_of(rows):
    content = io.StringIO()
    csv.writer(content).writerows(rows)
    return content.getvalue()


def tsv_of(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    ("files", "options", "goose"),
    [
        ({"corpus.jsonl": '{"_id": "b", "title": "goose", "text": "x", "metadata": {}}', "queries.jsonl": "{}",
          "qrels/test.tsv": "query-id\tcorpus-id\tscore\n"}, {}, ["b"]),
        ({"collection.tsv": tsv_of([row[:2] for row in ROWS])}, {}, ["1", "2"]),
        ({"a.tsv.gz": gzip.compress(tsv_of([row[:2] for row in ROWS]).encode())}, {}, ["1", "2"]),
        ({"d.tsv": tsv_of(ROWS)}, {"fields": "id=1,contents=3+2"}, ["1", "2", "3"]),
        ({"d.csv": csv_of(ROWS)}, {"fields": "id=1,contents=2"}, ["1", "2"]),
        ({"d.csv": "\ufeff" + csv_of([("nr", "text", "note"), *ROWS])}, {"fields": "id=nr,contents=note"}, ["3"]),
        ({"d.csv": csv_of([("id", "contents", "note"), *ROWS])}, {}, ["1", "2"]),
        ({"d.jsonl": '{"docid": 7, "text": "goose"}\n{"docid": 8, "h": "goose", "text": null}'},
         {"fields": "id=docid,contents=h+text"}, ["7", "8"]),
        ({"d.bz2": bz2.compress(LINES.encode())}, {}, ["1", "2"]),
        ({"packed": gzip.compress(TREC.encode())}, {}, ["T1", "T2"]),
        ({"packed": gzip.compress(HTML.encode())}, {}, ["packed"]),
        ({"plain.gz": TREC}, {}, ["T1", "T2"]),
        ({"readme.trec": TREC}, {}, ["T1", "T2"]),
        ({".hidden.trec": TREC}, {}, ["T1", "T2"]),
    ],
)  # fmt: skip
def test_forms_of_other_collections(tmp_path, files, options, goose):
    index = build(tmp_path, files, **options)[1]
    assert found(index, "goose") == goose
    texts = dict(zip(index.docids(), index.texts(), strict=True))
    assert sorted(docid for docid, text in texts.items() if "goose" in text.lower()) == goose


@pytest.mark.parametrize(
    ("name", "content", "fields", "message"),
    [
        ("t.tsv", tsv_of(ROWS), None, "t.tsv:1: 3 columns, '1' first: say which"),
        ("t.tsv", "docid\ttext\n1\tgoose\n", None, "t.tsv:1: 2 columns, 'docid' first: say which"),
        ("t.tsv", "1\tgoose\n2\tduck\tx\n", None, "t.tsv:2: 3 columns instead of 2"),
        ("t.csv", "1,goose\n", None, "no document|an object needs"),
        ("t.csv", "id,contents\n1,goose\n2,x,y\n", None, "t.csv:3: 3 columns instead of 2"),
        ("t.csv", 'id,contents\n1,"goose\n', None, "t.csv:2: not a table"),
        ("t.csv", "a,a\n1,goose\n", "id=a,contents=b", "t.csv:1: two columns have the same name"),
        ("t.csv", "a,b\n1,goose\n", "id=a,contents=b+c", "no document has the field 'c', but a, b"),
        ("t.csv", "a,b\n1,goose\n", "id=d,contents=b", "d is None: it must be"),
        ("t.csv", "a,b\n1,goose\n", "id=a", "--fields 'id=a': it must be of the form"),
        ("t.csv", "a,b\n1,goose\n", "id=a,contents=b+b", "it must be of the form"),
        ("t.trec", TREC, "id=a,contents=b", "--fields is for JSON and tables"),
    ],
)
def test_refusals_of_fields_and_tables(tmp_path, name, content, fields, message):
    with pytest.raises(GreylagError, match=message) as caught:
        build(tmp_path, {name: content}, **({} if fields is None else {"fields": fields}))
    assert "\n" not in str(caught.value)


def test_what_is_not_indexed_is_told(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="greylag")
    build(tmp_path, {"j.jsonl": '{"id": "1", "title": "a", "contents": "x", "url": 1}\n{"id": "2", "contents": "x"}'})
    assert any("title + contents; left out: 'url' (of 1 documents)" in message for message in caplog.messages)


@pytest.mark.parametrize(
    ("language", "text", "terms"),
    [
        ("de", "Die Häuser der Stadt", ["haus", "stadt"]),
        ("whitespace", "Die  Häuser-1 der", ["Die", "Häuser-1", "der"]),
        ("zh", "日本語", ["日本", "本語"]),
    ],
)
def test_languages_are_recorded_with_the_index(tmp_path, language, text, terms):
    _, index = build(tmp_path, {"j.jsonl": json.dumps({"id": "1", "contents": text})}, language=language)
    assert (index.language, index.analyze(text)) == (language, terms)
    assert index.bm25()(Query("1", text)).docids == ("1",)
    positions = PositionalIndex.from_lucene(index)
    assert positions.terms_of(positions.token_stream(0)[0]) == terms
    _, english = build(tmp_path / "en", {"j.jsonl": GOOD})
    assert english.language == "en"
    with pytest.raises(CollectionError, match=f"have one language, unlike .*{language}"):
        LuceneIndex([index.path, english.path]).analyze("x")


def test_markup_and_elements_that_anserini_ignores_are_not_indexed(tmp_path):
    _, trec = build(tmp_path / "trec", {"t.trec": TREC})
    assert found(trec, "skipped docno text profile") == []
    _, bare = build(tmp_path / "bare", {"b.trec": BARE})
    assert found(bare, "i doc docno b1") == []
    assert found(bare, "4") == ["B1"]


def test_titles_are_indexed_before_contents(tmp_path):
    _, index = build(tmp_path, {"j.jsonl": json.dumps({"id": "1", "title": "Snow goose", "contents": "White bird"})})
    block = next(index.postings_blocks())
    assert dict(zip(block.terms, block.positions.tolist(), strict=True)) == {
        b"snow": 0, b"goos": 1, b"white": 2, b"bird": 3,
    }  # fmt: skip


def test_documents_without_text_are_skipped_with_a_warning(tmp_path, caplog):
    with caplog.at_level(logging.WARNING, logger="greylag"):
        count, _ = build(tmp_path, {"j.jsonl": '{"id": "1", "contents": "x"}\n{"id": "2", "contents": " "}\n'})
    assert count == 1
    assert caplog.messages == [f"{tmp_path}/docs/j.jsonl: 1 documents without text are not indexed"]


@pytest.mark.parametrize(
    ("error", "message", "files", "options"),
    [
        (CollectionError, "has no document .* JsonCollection can read", {"j.json": '{"id": "1", "contents": ""}'}, {}),
        (CollectionError, "document .* TrecCollection can read", {"j.json": GOOD}, {"collection": "TrecCollection"}),
        (CollectionError, r"docs/j.json: 2 documents have the id '1'", {"j.json": 2 * GOOD}, {}),
        (CollectionError, "2 documents have the id 'h'", {"h.tar": tar({"x/h.html": HTML, "y/h.html": HTML}, "w")}, {}),
        (CollectionError, "no document has a word that is indexed", {"j.json": GOOD.replace("x", "the of")}, {}),
        (FormatError, "h.tgz: cannot be read: Compressed", {"h.tgz": tar({"h": 999 * HTML, "i": HTML})[:-40]}, {}),
        (FormatError, "j.json:1: document 1 has more than", {"j.json": LONG}, {}),
        (FormatError, "h.tar: cannot be read: a name in the arch", {"h.tar": tar({6000 * "n": HTML}, "w")}, {}),
        (CollectionError, "Anserini failed on a file: .*immense term", {"j.json": GOOD.replace("1", 40000 * "x")}, {}),
        (ParameterError, "collection is 'Json': it must be one of Json", {"j.json": GOOD}, {"collection": "Json"}),
        (ParameterError, "threads must be an integer of at least 1, not 0", {"j.json": GOOD}, {"threads": 0}),
        (ParameterError, r"'xx'.*whitespace.*Arabic \(ar\)", {"j.json": GOOD}, {"language": "xx"}),
        (ParameterError, r"'ro': Anserini has en, whitespace, and ar, ", {"j.json": GOOD}, {"language": "Romanian"}),
    ],
)  # fmt: skip
def test_refusals(tmp_path, error, message, files, options, monkeypatch, capfd):
    monkeypatch.setattr("greylag.index.lucene.documents.MAX_TEXT", 100_000)
    monkeypatch.setattr("greylag.index.lucene.documents.MAX_HEADER", 5000)
    (tmp_path / "docs").mkdir()
    with pytest.raises(error, match=message) as caught:
        build(tmp_path, files, **options)
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["docs"]
    assert capfd.readouterr().err == ""  # of log4j


def test_only_an_index_of_greylag_is_overwritten(tmp_path):
    out, docs = tmp_path / "index", {"t.trec": TREC}
    assert build(tmp_path, {"j.json": GOOD}, overwrite=True)[0] == 1
    assert build(tmp_path, docs, overwrite=True)[0] == 2
    assert found(LuceneIndex(out), "goose") == ["T1", "T2"]
    for name in ("_notes.txt", "thesis.txt"):  # Lucene's files begin with an underscore, too
        (out / name).write_text("x")
        with pytest.raises(ParameterError, match=f"index .*'{name}'"):
            build(tmp_path, docs, overwrite=True)
        (out / name).rename(tmp_path / name)
    (tmp_path / "link").symlink_to(out)
    (out / MARK_FILE).rename(tmp_path / "mark")
    for name in ("index", "link", "thesis.txt"):
        with pytest.raises(ParameterError, match=f"{name} exists"):
            build_index(tmp_path / "docs" / "t.trec", tmp_path / name, overwrite=True)
    assert found(LuceneIndex(out), "goose") == ["T1", "T2"]
    assert (tmp_path / "thesis.txt").read_text() == "x"


def test_an_index_of_the_same_origin_is_left_or_overwritten(tmp_path):
    (tmp_path / "index").mkdir()
    _, index = build(tmp_path, {"j.json": GOOD}, origin="a")
    before = (index.path.stat().st_ino, index.fingerprint)
    count, index = build(tmp_path, {"j.json": GOOD}, origin="a")
    assert (count, index.path.stat().st_ino, index.fingerprint) == (1, *before)
    with pytest.raises(ParameterError, match="overwrite it"):
        build(tmp_path, {"j.json": GOOD}, origin="b")
    _, index = build(tmp_path, {"j.json": GOOD}, origin="a", overwrite=True)
    assert index.path.stat().st_ino != before[0]


@pytest.mark.parametrize("name", ["d.tar", "d.tgz"])
def test_hidden_files_and_readmes_in_archives_are_indexed(tmp_path, name):
    """A ``.tgz`` of HTML is unpacked by Anserini itself, everything else by greylag."""
    html = tar({"a/README.html": HTML, ".b/.c.html": HTML}, "w" if name == "d.tar" else "w:gz")
    (tmp_path / "html").mkdir()
    assert build(tmp_path / "html", {name: html})[0] == 2
    assert len(found(LuceneIndex(tmp_path / "html" / "index"), "goose")) == 2
    (tmp_path / "trec").mkdir()
    trec = tar({"a/readme": TREC, ".b/.c": OTHER}, "w" if name == "d.tar" else "w:gz")
    assert build(tmp_path / "trec", {name: trec})[0] == 4


def test_relative_paths_follow_pythons_working_directory(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "j.json").write_text(GOOD)
    java_class("java.lang.System")  # starts Java in another folder
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert build_index(Path("j.json"), Path("a/b/index")) == 1
    assert found(LuceneIndex("a/b/index"), "x") == ["1"]


def test_an_interrupt_stops_java():
    stopped = []
    latch = java_class("java.util.concurrent.CountDownLatch")(1)

    def wait():
        try:
            run(method("java.util.concurrent.CountDownLatch", "await", "void"), latch)
        except pyjnius().JavaException as error:
            stopped.append(reason(error))

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _run_in_background(wait, interrupt)
    assert [text.partition(":")[0] for text in stopped] == ["InterruptedException"]


def test_a_lost_file_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr("greylag.index.lucene.documents._files", lambda docs: range(3))
    with pytest.raises(CollectionError, match="has 3 documents, but Anserini read 2"):
        build(tmp_path, {"h.html": HTML, "i.html": HTML}, collection="HtmlCollection")


def test_an_interrupted_build_leaves_nothing(tmp_path):
    """Ctrl-C while Anserini waits on a named pipe, in a process that continues."""
    os.mkfifo(tmp_path / "pipe.html")
    code = (
        "import signal, sys, threading; from pathlib import Path; from greylag.index.lucene import documents\n"
        "from greylag.index.lucene.build import build_index\n"
        "def interrupt(*_):\n"
        "    print('caught', file=sys.stderr, flush=True)\n"
        "    raise KeyboardInterrupt\n"
        "signal.signal(signal.SIGINT, interrupt)\n"
        "documents._paths = documents._files = lambda docs: [docs]\n"
        "try:\n"
        "    here = Path(sys.argv[1])\n"
        "    build_index(here / 'pipe.html', here / 'out' / 'index', collection='HtmlCollection')\n"
        "except KeyboardInterrupt:\n"
        "    left = [thread.name for thread in threading.enumerate() if thread.name == 'indexing']\n"
        "    sys.exit(f'interrupted; left: {left}, {[path.name for path in here.iterdir()]}')"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # Not buffered, as communicate() does not see what readline() has read ahead.
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], env=environment, stderr=subprocess.PIPE, bufsize=0
    )
    with (tmp_path / "pipe.html").open("wb"):  # opens once Anserini reads
        assert (tmp_path / "out" / ".index.greylag-part").is_dir()
        process.send_signal(signal.SIGINT)
        while b"caught" not in (line := process.stderr.readline()):
            assert line
    assert process.communicate(timeout=SECONDS)[1].decode().splitlines()[-1] == "interrupted; left: [], ['pipe.html']"


def test_the_level_of_log4j_is_restored(tmp_path):
    configurator = java_class("org.apache.logging.log4j.core.config.Configurator")
    context = java_class("org.apache.logging.log4j.core.LoggerContext").getContext(False)
    root = context.getConfiguration().getRootLogger
    before = root().getLevel()
    configurator.setRootLevel(java_class("org.apache.logging.log4j.Level").WARN)
    try:
        build(tmp_path, {"j.json": GOOD})
        assert root().getLevel().toString() == "WARN"
    finally:
        configurator.setRootLevel(before)


def test_two_processes_building_one_index(tmp_path):
    (tmp_path / "j.json").write_text(GOOD)
    code = (
        "import sys; from pathlib import Path; from greylag.index.lucene import build_index; here = Path(sys.argv[1])\n"
        "build_index(here / 'j.json', here / 'index')"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    both = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in "12"]
    errors = sorted(process.communicate(timeout=SECONDS)[1] for process in both)
    assert errors[0] == ""
    assert "index exists already: delete it, overwrite it" in errors[1].splitlines()[-1]
    assert found(LuceneIndex(tmp_path / "index"), "x") == ["1"]
    assert {path.name for path in tmp_path.iterdir()} == {"index", "j.json"}


def archived_link(target):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        member = tarfile.TarInfo("a.html")
        member.type, member.linkname = tarfile.SYMTYPE, target
        archive.addfile(member)
    return content.getvalue()


LINK, LOOP = archived_link("/etc/passwd"), archived_link("a.html")


@pytest.mark.parametrize(
    ("content", "collection"),
    [
        (" \n" + BARE.lower(), "TrecCollection"),
        (HTML.replace("<!DOCTYPE html>", ""), "HtmlCollection"),
    ],
)
def test_the_form_is_detected_from_the_first_characters(content, collection, tmp_path):
    (tmp_path / "docs").write_text(content)
    assert guess_collection(tmp_path / "docs") == guess_collection(tmp_path) == collection


@pytest.mark.parametrize(
    ("error", "message", "files"),
    [
        (CollectionError, "unknown form, starting b'grey goose'", {"t.txt": "grey goose"}),
        (CollectionError, "contains no files", {}),
        (FormatError, "cannot be read: Compressed file ended", {"t.gz": gzip.compress(999 * TREC.encode())[:-99]}),
        (FormatError, "cannot be read: Compressed file ended", {"b.gz": gzip.compress(999 * BARE.encode())[:-99]}),
        (FormatError, "cannot be read: 'utf-8' codec", {"j.json": GOOD.replace("x", "é").encode("latin-1")}),
        (FormatError, r"j.json:2: not JSON: .* at column 25", {"j.json": GOOD + GOOD[:-3]}),
        (FormatError, r"j.json:3: not JSON: .* at column 1", {"j.json": '[\n{"id": "1", "contents": "x"},\n}'}),
        (FormatError, r"j.json:2: an object needs .* has id, x", {"j.json": GOOD + '{"id": "2", "x": ""}'}),
        (FormatError, r"j.json:1: id is None: it must be", {"j.json": '{"id": null, "contents": "x"}'}),
        (FormatError, r"j.json:1: document 1: title and contents must be", {"j.json": '{"id": 1, "contents": 7}'}),
        (FormatError, r"j.json:1: document 1: title and contents must", {"j.json": GOOD.replace("{", '{"title": 7, ')}),
        (FormatError, r"j.json:1: str instead of an object", {"j.json": '["x"]'}),
        (FormatError, r"j.json:1: docid '1 2' .*white space", {"j.json": GOOD.replace("1", "1 2")}),
        (FormatError, r"j.json:1: docid '' is empty", {"j.json": GOOD.replace("1", "")}),
        (FormatError, r"j.json:1: docid '1\\x00' .*NUL", {"j.json": GOOD.replace("1", "1\\u0000")}),
        (FormatError, r"j.json:1: docid '\\ud800' .*not UTF-8", {"j.json": GOOD.replace("1", "\\ud800")}),
        (FormatError, r"j.json:1: not JSON .*(recursion|Stack overflow)", {"j.json": '{"id": ' + "[" * 100_000}),
        (FormatError, r"j.json:1: not JSON .*digits", {"j.json": GOOD.replace('"1"', "1" * 5000)}),
        (FormatError, r"j.json:1: not JSON .*duplicate key 'id'; keep", {"j.json": GOOD.replace("{", '{"id": "0", ')}),
        (FormatError, r"t.trec:15: <doc> is not inside <DOC>", {"t.trec": TREC + TREC.lower()}),
        (FormatError, r"h.tar: cannot be read: a link leads out of the archive", {"h.tar": LINK}),
        (FormatError, r"l.tar: cannot be read: links of the archive lead to each other", {"l.tar": LOOP}),
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
def test_refusals_of_documents(tmp_path, error, message, files):
    (tmp_path / "docs").mkdir()
    (tmp_path / "out").mkdir()
    for name, content in files.items():
        (tmp_path / "docs" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(error, match=message) as caught:
        write_for_anserini(tmp_path / "docs", guess_collection(tmp_path / "docs"), tmp_path / "out", 1)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["link to a folder", "dangling link", "pipe"])
def test_what_is_neither_file_nor_folder_is_refused(tmp_path, kind):
    docs, path = tmp_path / "docs", tmp_path / "docs" / "sub" / "b"
    path.parent.mkdir(parents=True)
    (docs / "a").write_text("<DOC>")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path if kind == "link to a folder" else tmp_path / "none")
    with pytest.raises(ParameterError, match=r"sub/b .*neither a file nor a folder"):
        guess_collection(docs)
    if kind == "pipe":
        with pytest.raises(ParameterError, match="sub/b is neither a file nor a folder: give"):
            guess_collection(path)


def test_the_stamp_of_documents_differs_if_they_do(tmp_path):
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


def test_hidden_files_and_folders_are_skipped(tmp_path):
    for name in ("docs/.git/a", "docs/.b", "docs/.c/d/e", "docs/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(CollectionError, match="contains no files"):
        guess_collection(tmp_path / "docs")
    with pytest.raises(ParameterError, match="absent does not exist"):
        guess_collection(tmp_path / "absent")
