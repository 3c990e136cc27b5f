"""Building indexes: accepted forms, refused input, and cleanup after a refusal.

Tests `bulk_calls` and `documents`.
"""

import bz2
import gzip
import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from greylag.base import CollectionError, ParameterError, Query
from greylag.base.runtime.folders import MARK_FILE
from greylag.index import PositionalIndex
from greylag.index.lucene.build import build_index
from greylag.index.lucene.documents import guess_collection, stamp_documents
from greylag.index.lucene.jvm import java_class
from greylag.index.lucene.lucene_index import LuceneIndex
from tests.greylag.index.lucene import oracle
from tests.greylag.index.lucene.samples import (
    BARE,
    GOOD,
    HTML,
    LINES,
    LIST,
    OBJECT,
    ROWS,
    TREC,
    build,
    csv_of,
    tar,
    tsv_of,
)
from tests.processes import SECONDS

OTHER = TREC.replace(" T", " U")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def found(index, text):
    return sorted(index.bm25()(Query("1", text)).docids)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        (("cacm", "cacm.tar.gz"), 3204),
        pytest.param(("vaswani", "doc-text.trec.gz"), 11429, marks=pytest.mark.long),
        (("cranfield", "docs.jsonl.gz"), 1398),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_real_collections(data, tmp_path, name, count, threads):
    assert build_index(data(name[0]) / name[1], tmp_path / "index", threads=threads) == count
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
        # Texts that were cut within an emoji
        ({"a.json": r'{"id": "1", "contents": "goose \ud83e"}', "b.json": r'{"id": "2", "contents": "goose\udd86"}'},
         {}, ["1", "2"]),
    ],
)  # fmt: skip
def test_forms_of_other_collections(tmp_path, files, options, goose):
    index = build(tmp_path, files, **options)[1]
    assert found(index, "goose") == goose
    texts = dict(zip(index.docids(), index.texts(), strict=True))
    assert sorted(docid for docid, text in texts.items() if "goose" in text.lower()) == goose


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
    for call in (lambda both: both.analyze("x"), PositionalIndex.from_lucene):
        with pytest.raises(CollectionError, match=f"one language.*{language}.*(en)"):
            call(LuceneIndex([index.path, english.path]))
    assert not list(tmp_path.glob("*+*"))  # no merged tables


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


def test_only_an_index_of_greylag_is_overwritten(tmp_path):
    out, docs = tmp_path / "index", {"t.trec": TREC}
    assert build(tmp_path, {"j.json": GOOD}, overwrite=True)[0] == 1
    assert build(tmp_path, docs, overwrite=True)[0] == 2
    assert found(LuceneIndex(out), "goose") == ["T1", "T2"]
    for name in ("_notes.txt", "thesis.txt"):  # Lucene's files begin with an underscore, too
        (out / name).write_text("x")
        with pytest.raises(ParameterError, match=name):
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
    with pytest.raises(ParameterError):
        build(tmp_path, {"j.json": GOOD}, origin="b")
    _, index = build(tmp_path, {"j.json": GOOD}, origin="a", overwrite=True)
    assert index.path.stat().st_ino != before[0]


@pytest.mark.parametrize(("name", "mode"), [("d.tar", "w"), ("d.tgz", "w:gz")])
def test_hidden_files_and_readmes_in_archives_are_indexed(tmp_path, name, mode):
    """A ``.tgz`` of HTML is unpacked by Anserini itself, everything else by greylag."""
    html, trec = tar({"a/README.html": HTML, ".b/.c.html": HTML}, mode), tar({"a/readme": TREC, ".b/.c": OTHER}, mode)
    count, index = build(tmp_path / "html", {name: html})
    assert count == len(found(index, "goose")) == 2
    assert build(tmp_path / "trec", {name: trec})[0] == 4


def test_relative_paths_follow_pythons_working_directory(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "j.json").write_text(GOOD)
    java_class("java.lang.System")  # starts Java in another folder
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert build_index(Path("j.json"), Path("a/b/index")) == 1
    assert found(LuceneIndex("a/b/index"), "x") == ["1"]


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
    # Not buffered, as communicate() does not see what readline() has read ahead.
    command = [sys.executable, "-c", code, str(tmp_path)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, bufsize=0)
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


def test_the_form_is_detected_from_the_first_characters(tmp_path):
    bare = HTML.replace("<!DOCTYPE html>", "")
    for content, collection in ((" \n" + BARE.lower(), "TrecCollection"), (bare, "HtmlCollection")):
        (tmp_path / "docs").write_text(content)
        assert guess_collection(tmp_path / "docs") == guess_collection(tmp_path) == collection


@pytest.mark.parametrize("kind", ["link to a folder", "dangling link", "pipe"])
def test_what_is_neither_file_nor_folder_is_refused(tmp_path, kind):
    docs, path = tmp_path / "docs", tmp_path / "docs" / "sub" / "b"
    path.parent.mkdir(parents=True)
    (docs / "a").write_text("<DOC>")
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path if kind == "link to a folder" else tmp_path / "none")
    for place in (docs, path) if kind == "pipe" else (docs,):
        with pytest.raises(ParameterError, match="sub/b is neither a file nor a folder"):
            guess_collection(place)


def test_the_stamp_of_documents_differs_if_they_do(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a").write_text("a")
    stamps = [stamp_documents(docs, None), stamp_documents(docs, "TrecCollection"), stamp_documents(docs / "a", None)]
    assert stamps[0] == stamp_documents(docs, None)
    (docs / "b").touch()
    stamps.append(stamp_documents(docs, None))
    os.utime(docs / "b", ns=(0, 1))
    assert len({*stamps, stamp_documents(docs, None)}) == 5


def test_hidden_files_and_folders_are_skipped(tmp_path):
    for name in ("docs/.git/a", "docs/.b", "docs/.c/d/e", "docs/README.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(GOOD)
    with pytest.raises(CollectionError):
        guess_collection(tmp_path / "docs")
