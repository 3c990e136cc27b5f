from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from greylag import (
    LinearModel,
    ManifoldRanker,
    PositionalIndex,
    Ranking,
    Run,
    read_qrels,
    read_run,
    read_topics,
    write_run,
)
from greylag.features import parse_feature
from tests.greylag.cli.conftest import Command, Refused, unremarked


def test_with_a_model(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    model, out = tmp_path / "model.json", tmp_path / "mrf.run.gz"
    words = ["--qrels", made / "qrels.txt", "--pool", "sd", "--out", model]
    assert command("train", *ranked, *words)[0] == 0
    assert unremarked(command("rerank", *ranked, "--model", model, "--out", out)) == (0, "", "")
    assert gzip.decompress(out.read_bytes()).endswith(b" bm25-mrf+training-topics\n")


def test_manifold_ranking_needs_no_model(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    words = [*ranked, "--method", "manifold", "--out"]
    plain, tuned = tmp_path / "plain.run", tmp_path / "tuned.run"
    assert command("rerank", *words, plain) == (0, "", "")
    assert plain.read_text().split("\n")[0].endswith(" bm25-manifold")
    options = ["--depth", "30", "--alpha", "0.9", "--graph", "mutual_knn", "--neighbours", "7", "--confidence", "query"]
    assert command("rerank", *words, tuned, *options, "--feedback", made / "qrels.txt") == (0, "", "")
    stage = ManifoldRanker(
        PositionalIndex.from_lucene(made / "index"),
        depth=30,
        alpha=0.9,
        graph="mutual_knn",
        neighbours=7,
        confidence="query",
        feedback=read_qrels(made / "qrels.txt"),
    )
    for qid, ranking in read_run(made / "bm25.run", read_topics(made / "topics.tsv")).items():
        assert read_run(tuned)[qid].docids == stage(ranking).docids
    assert plain.read_text() != tuned.read_text()


def test_features_read_from_other_files(
    command: Command, refused: Refused, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    old, new, model, out = (tmp_path / name for name in ("old.run", "new.run", "model.json", "out.run"))
    old.write_text((made / "bm25.run").read_text())
    given = read_run(made / "bm25.run")
    turned = [Ranking(qid, "", own.docids[::-1], -np.arange(len(own))) for qid, own in given.items()]
    write_run(Run(tuple(turned)), new)
    LinearModel((parse_feature(f"run:{old}"),), (1.0,)).save(model)
    words = ["rerank", *ranked, "--model", model, "--out", out]
    assert command(*words, "--file", f"old.run={new}") == (0, "", "")
    assert all(own.docids[0] == given[qid].docids[-1] for qid, own in read_run(out).items())
    assert "0 of the model's files are called 'x.run'; its files" in refused(*words, "--file", f"x.run={new}")
    assert "--file old.run is not of the form NAME=FILE" in refused(*words, "--file", "old.run")
    twice = ["--file", f"old.run={new}", "--file", f"old.run={old}"]
    assert f"--file old.run is given twice: {new} and {old}" in refused(*words, *twice)
    assert "--file is for --method mrf" in refused(
        "rerank", *ranked, "--method", "manifold", "--out", out, "--file", "a=b"
    )


def test_what_needs_a_run(refused: Refused, collection: list[object], tmp_path: Path) -> None:
    LinearModel((parse_feature("score"),), (1.0,)).save(tmp_path / "model.json")
    for words in (["--method", "manifold"], ["--model", tmp_path / "model.json"]):
        assert "give a --run" in refused("rerank", *collection, *words, "--out", tmp_path / "x")


def test_no_query_in_common(refused: Refused, ranked: list[object], tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("999 0 d1 1\n")
    words = [*ranked, "--method", "manifold", "--feedback", other, "--out", tmp_path / "x"]
    assert "no query in common" in refused("rerank", *words)


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ([], "--method mrf needs a --model"),
        (["--model", "QRELS"], "not a model"),
        (["--model", "QRELS", "--neighbours", "3"], "--neighbours is for --method manifold, not for mrf"),
        (["--method", "manifold", "--model", "QRELS"], "--model is for --method mrf, not for manifold"),
        (["--method", "manifold", "--transfer"], "--transfer is for --method mrf"),
        (["--method", "manifold", "--graph", "ring"], "'ring' is not one of 'connecting', 'knn'"),
        (["--method", "manifold", "--confidence", "none"], "'none' is not one of 'query', 'scores'"),
        (["--method", "manifold", "--feedback", "RUN"], "qid iteration-or-subtopic docid grade"),
        (["--method", "manifold", "--alpha", "1"], "alpha"),
        (["--method", "manifold", "--depth", "0"], "depth"),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, ranked: list[object], tmp_path: Path, words: list[str], reason: str
) -> None:
    places = {"QRELS": made / "qrels.txt", "RUN": made / "bm25.run"}
    line = refused("rerank", *ranked, "--out", tmp_path / "x", *(places.get(word, word) for word in words))
    assert reason in line
