"""Titles from files of documents."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from greylag.diversity import read_titles
from greylag.errors import FormatError


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
