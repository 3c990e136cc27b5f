from __future__ import annotations

import re
from pathlib import Path

import pytest

from greylag import LinearModel
from greylag.features.spec import parse_features
from tests.greylag.cli.conftest import Command, Refused


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A model of two features by hand."""
    LinearModel(parse_features("FI/term/BM25,SD/ordered/LM-O-4"), (1.0, 0.5)).save(tmp_path / "model.json")
    return tmp_path / "model.json"


@pytest.fixture
def expanding(tmp_path: Path) -> Path:
    """A model with an expansion feature."""
    LinearModel(parse_features("FI/expansion/LM"), (1.0,)).save(tmp_path / "expanding.json")
    return tmp_path / "expanding.json"


def test_contributions_add_up(command: Command, collection: list[object], model: Path, expanding: Path,
                              ranked: list[object]) -> None:  # fmt: skip
    for words in (
        [*collection, "--model", model],
        [*ranked, "--model", model],
        [*ranked, "--model", expanding],
    ):
        code, out, err = command("explain", *words, "--qid", "3", "--docid", "demo-501")
        assert (code, err) == (0, "")
        lines = out.splitlines()
        score = float(re.fullmatch(r"query 3, document demo-501: score (\S+)", lines[0])[1])  # type: ignore[index]
        rows = [line for line in lines[3:-1] if not re.search(r"\d {6}", line)]
        assert sum(float(row.split()[0]) for row in rows) == pytest.approx(score, abs=1e-6)
        assert float(lines[-1].split()[0]) == pytest.approx(score, abs=1e-6)
        cliques = [row for row in lines[3:-1] if re.search(r": tf \d+, cf \d+, df \d+$", row)]
        assert len(cliques) + len(rows) == len(lines) - 4
        assert ("(probability " in out) == (expanding in words)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--qid", "99", "--docid", "demo-501"], "topic '99' is not in"),
        (["--qid", "3", "--docid", "lost"], "'lost' is not in the index"),
        (["--qid", "3", "--docid", "lost", "--run", "RUN"], "'lost'"),
        (["--qid", "3", "--docid", "demo-501", "--run", "OTHER"], "topic '3' has no documents in"),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, collection: list[object], tmp_path: Path, model: Path, words: list[str], reason: str
) -> None:
    (tmp_path / "other.run").write_text("4 Q0 demo-501 1 1.0 x\n")
    places = {"RUN": made / "bm25.run", "OTHER": tmp_path / "other.run"}
    line = refused("explain", *collection, "--model", model, *(places.get(word, word) for word in words))
    assert reason in line


def test_expansion_needs_the_run(refused: Refused, collection: list[object], expanding: Path) -> None:
    words = [*collection, "--model", expanding, "--qid", "3", "--docid", "demo-501"]
    assert "depend on the run that is reranked (FI/expansion/LM): give --run" in refused("explain", *words)
