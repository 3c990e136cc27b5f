"""``greylag train --also``."""

from __future__ import annotations

from pathlib import Path

import pytest

from greylag import LuceneIndex, PositionalIndex
from greylag.rankers import RankingModel
from greylag.recipes import general_data, general_model, learn_general
from greylag.trec import read_qrels, read_topics
from tests.greylag.cli.conftest import Command, Refused


def test_a_model_of_several_collections_is_that_of_the_library(command: Command, made: Path, tmp_path: Path) -> None:
    """Of two parts of the demonstration's topics, on one index."""
    lines = (made / "topics.tsv").read_text().splitlines(keepends=True)
    parts = tmp_path / "one.tsv", tmp_path / "two.tsv"
    for path, some in zip(parts, (lines[:12], lines[12:]), strict=True):
        path.write_text("".join(some))
    index, qrels, out = made / "index", made / "qrels.txt", tmp_path / "model.json"
    words = ["--index", index, "--topics", parts[0], "--qrels", qrels, "--also", f"{index}:{parts[1]}:{qrels}"]
    code, told, _ = command("train", *words, "--out", out)
    assert code == 0
    positions, judged = PositionalIndex.from_lucene(index), read_qrels(qrels)
    with LuceneIndex(index) as lucene:
        runs = [lucene.bm25().run(read_topics(path)) for path in parts]
    expected = learn_general({str(i): general_data(run, judged, positions) for i, run in enumerate(runs)})
    model = RankingModel.load(out)
    assert (model.features, model.weights) == (expected.features, expected.weights)
    assert model.features == general_model().features
    assert model.fingerprint == ""
    assert "12 topics" in told


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (["--also", "index:topics.tsv"], "--also 'index:topics.tsv' is not of the form INDEX:TOPICS:QRELS"),
        (["--also", "a:b:c", "--model", "mrf"], "--also excludes --model"),
        (["--also", "a:b:c", "--features", "score", "--model", "mrf"], "--also excludes --features"),
        (["--also", "a:b:c", "--folds", "2", "--out-run", "x"], "--also excludes --folds"),
    ],
)
def test_what_does_not_go_together_is_refused(
    refused: Refused, made: Path, tmp_path: Path, more: list[str], reason: str
) -> None:
    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--qrels", made / "qrels.txt"]
    assert reason in refused("train", *words, *more, "--out", tmp_path / "model.json")
    assert not (tmp_path / "model.json").exists()


@pytest.mark.parametrize(("lacking", "named"), [("--index", "--index"), ("--topics --qrels", "--topics and --qrels")])
def test_a_first_collection_that_is_not_whole_is_refused(
    refused: Refused, made: Path, tmp_path: Path, lacking: str, named: str
) -> None:
    first = {"--index": made / "index", "--topics": made / "topics.tsv", "--qrels": made / "qrels.txt"}
    words = [word for flag, file in first.items() if flag not in lacking.split() for word in (flag, file)]
    assert f"--also needs {named}, too" in refused("train", *words, "--also", "a:b:c", "--out", tmp_path / "x")
