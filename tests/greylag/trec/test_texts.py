"""Titles of documents and aspects of queries."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from greylag.errors import FormatError
from greylag.trec import read_aspects, read_titles
from tests.greylag.experiments.samples import DEMO


@pytest.mark.parametrize("name", ["docs.jsonl", "docs.jsonl.gz"])
def test_reads_titles(tmp_path: Path, name: str) -> None:
    text = '{"id": "a", "title": "Blue\u2028Öl"}\n\n{"id": 2, "contents": "x"}\n{"id": "c", "title": ""}\n'
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    assert read_titles(tmp_path / name) == {"a": "Blue\u2028Öl", "2": "", "c": ""}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not a JSON object"),
        ("[1]", "not a JSON object"),
        ('{"title": "x"}', "not a JSON object with an id"),
        ('{"id": "a", "title": "x"}', "duplicate document 'a'"),
        ('{"id": "b", "title": 7}', "title 7 is not a string: document 'b'"),
        ('{"id": "b", "title": null}', "title None is not a string: document 'b'"),
        ('{"id": null}', "not a JSON object with an id"),
        ('{"id": 1.5}', "not a JSON object with an id"),
        ('{"id": true}', "not a JSON object with an id"),
    ],
)
def test_bad_lines(tmp_path: Path, line: str, reason: str) -> None:
    (tmp_path / "docs.jsonl").write_text(f'{{"id": "a", "title": "x"}}\n{line}\n')
    with pytest.raises(FormatError, match=r"docs\.jsonl:2: ") as caught:
        read_titles(tmp_path / "docs.jsonl")
    assert reason in str(caught.value)


def test_reads_aspects() -> None:
    aspects = read_aspects(DEMO / "subtopics.tsv")
    assert aspects["1"][:2] == ("the big cat of the Americas", "the British car maker")
    assert len(aspects) == 24


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("1\ta\n", "1: not of the form QID TAB NAME TAB TEXT"),
        ("1\ta\tcats\n1\tb\t \n", "2: not of the form"),
        ("1\ta\tcats\n1\ta\tdogs\n", "2: query '1' has the aspect 'a' twice"),
        ("", "empty"),
    ],
)
def test_bad_aspects(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "aspects.tsv").write_text(text)
    with pytest.raises(FormatError, match=reason):
        read_aspects(tmp_path / "aspects.tsv")
