"""Labelled texts: the format, the choice of fields and documents, and errors."""

import gzip
import json
from collections import Counter

import pytest

from greylag import FormatError
from greylag_papers.labelled_text import Documents, read_labelled_texts
from tests.refusals import refuses

GOOD = {"id": "d1", "label": "a", "text": "one"}


def write(path, *records):
    lines = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    path.write_bytes(gzip.compress(lines.encode()) if path.name.endswith(".gz") else lines.encode())
    return path


def read(path, *records, **options):
    return read_labelled_texts(write(path / "docs.jsonl", *records), Documents(path="", **options))


def test_fields(tmp_path):
    texts = read(
        tmp_path,
        {"id": "d1", "label": "b", "text": "one\ntwo", "split": "TRAIN", "more": None},
        {"id": 2, "label": 7, "text": "x\u2028y", "split": "test"},
        {"id": "d3", "label": ["b"], "text": "x", "split": "validation"},
    )
    assert (texts.ids, texts.labels) == (("d1", "2", "d3"), ("b", "7", "b"))
    assert (texts.texts, texts.splits) == (("one\ntwo", "x\u2028y", "x"), ("train", "test", ""))
    assert texts.left_out == {}
    record = {"number": 1, "topics": ["a"], "title": "Head", "body": "text", "part": "Test"}
    texts = read(tmp_path, record, id="number", label="topics", text=("title", "body"), split="part")
    assert (texts.ids, texts.labels, texts.texts, texts.splits) == (("1",), ("a",), ("Head\ntext",), ("test",))


def test_files_of_a_folder_are_read_in_order_of_name(tmp_path):
    write(tmp_path / "b.jsonl", {**GOOD, "id": "1"})
    write(tmp_path / "a.jsonl.gz", {**GOOD, "id": "2"}, {**GOOD, "id": "3"})
    (tmp_path / "README.md").write_text("notes")
    assert read_labelled_texts(tmp_path, Documents(path="")).ids == ("2", "3", "1")


def test_documents_are_left_out_for_a_reason(tmp_path):
    labels = ["a", ["a"], [], ["a", "b"], "c", ["b", "c"], "b", "a"]
    texts = zip(labels, ["x", "y", "x", "x", "x", "x", "12 - _", "é"], strict=True)
    records = [{"id": i, "label": label, "text": text} for i, (label, text) in enumerate(texts)]
    found = read(tmp_path, *records, labels=("a", "b"))
    assert found.ids == ("0", "1", "5", "7")
    assert found.labels == ("a", "a", "b", "a")
    assert found.left_out == {"another label": 1, "no label": 1, "no word": 1, "several labels": 1}
    assert read(tmp_path, *records).ids == ("0", "1", "4", "7")


@pytest.mark.parametrize("blank", ["\n\n", "\r\n\r\n", "\n \t\n"])
def test_headers_end_at_the_first_blank_line(tmp_path, blank):
    kept = read(tmp_path, {**GOOD, "text": f"From: x{blank}first{blank}second"}, skip_headers=True)
    assert kept.texts == (f"first{blank}second",)


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ('{"id": 1,', "10"),
        ('["id"]', "list"),
        ('{"id": 1, "text": "x"}', "'label' id, text"),
        ('{"id": null, "label": "a", "text": "x"}', "id None"),
        ('{"id": 1, "label": [{}], "text": "x"}', "label {}"),
        ('{"id": 1, "label": true, "text": "x"}', "label True"),
        ('{"id": 1, "label": "a", "text": ["x"]}', "text ['x']"),
        ('{"id": "d1", "label": "a", "text": "x"}', "'d1'"),
    ],
)
def test_errors_name_the_line(tmp_path, line, parts):
    path = tmp_path / "docs.jsonl"
    path.write_text(json.dumps(GOOD) + "\n\n" + line + "\n")
    refuses(lambda: read_labelled_texts(path, Documents(path="")), FormatError, f"docs.jsonl:3 {parts}")


def test_reuters_subset(data):
    fields = {"label": "topics", "text": ("title", "body"), "split": "lewissplit"}
    documents = Documents(path="", labels=("coffee", "iron-steel", "livestock"), **fields)
    texts = read_labelled_texts(data("reuters21578") / "reuters.jsonl.gz", documents)
    assert Counter(texts.labels) == {"coffee": 143, "iron-steel": 65, "livestock": 114}
    assert texts.left_out["several labels"] == 2
    assert sum(texts.left_out.values()) + len(texts.ids) == 21578


def test_newsgroups_without_headers(data):
    documents = Documents(path="", label="group", skip_headers=True)
    texts = read_labelled_texts(data("rec_newsgroups"), documents)
    assert (len(texts.ids), texts.left_out) == (3975, {"no word": 4})
    assert texts.texts[0].startswith("In article ")
    assert Counter(texts.splits).keys() == {"train", "test"}
