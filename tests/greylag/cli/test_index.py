from __future__ import annotations

from pathlib import Path

import pytest

from greylag import PositionalIndex
from tests.greylag.cli.conftest import DEMO, Command, Refused


def test_the_index_has_positions_whatever_the_number_of_threads(command: Command, made: Path, tmp_path: Path) -> None:
    expected = PositionalIndex.from_lucene(made / "index")
    for jobs in (1, 3):
        out = tmp_path / f"index{jobs}"
        options = ["--collection", "JsonCollection", "--jobs", jobs, "--out", out]
        code, told, err = command("index", DEMO / "docs.jsonl", *options)
        counts = f"{expected.n_documents} documents, {expected.n_tokens} tokens, {expected.n_terms} terms"
        assert (code, told, err) == (0, f"{out}: {counts}\n", "")
        assert PositionalIndex.from_lucene(out).fingerprint == expected.fingerprint


@pytest.mark.parametrize("docs", ["none", "empty"])
def test_no_documents(refused: Refused, tmp_path: Path, docs: str) -> None:
    (tmp_path / "empty").mkdir()
    assert docs in refused("index", tmp_path / docs, "--out", tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_mistakes(refused: Refused, tmp_path: Path) -> None:
    words = ["index", DEMO / "docs.jsonl", "--out", tmp_path / "index"]
    assert "'Json' is not one of 'JsonCollection'" in refused(*words, "--collection", "Json")
    (tmp_path / "index").mkdir()
    (tmp_path / "index" / "thesis.txt").write_text("x")
    assert "exists already" in refused(*words)
