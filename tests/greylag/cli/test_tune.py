from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from greylag.evaluation import evaluate
from greylag.ltr import LinearModel
from greylag.trec import read_qrels, read_run
from tests.greylag.cli.conftest import Command, Refused, unremarked

SMALL = ["--grid", "k1=0.3,0.9,1.5", "--grid", "b=0.2,0.4"]


def test_a_tuned_baseline_and_its_held_out_rankings(
    command: Command, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    model, held_out, qrels = tmp_path / "bm25.json", tmp_path / "held-out.run", made / "qrels.txt"
    words = [*ranked, "--qrels", qrels, *SMALL, "--folds", "4", "--out-run", held_out]
    code, told, err = command("tune", *words, "--out", model)
    assert (code, err) == (0, "")
    assert (
        len(re.findall(r"^fold \d: AP 0\.\d{4} on 18 training queries with k1 \S+, b 0\.\d$", told, re.MULTILINE)) == 4
    )
    run = read_run(held_out)
    score = evaluate(run, read_qrels(qrels), ["AP"]).by_measure["AP"]
    assert f"held out     {score:.4f}" in told
    assert run.tag == "bm25-tuned-bm25"
    tuned = LinearModel.load(model)
    assert tuned.provenance["held_out"] == {"folds": 4, "AP": score}
    code, shown, _ = command("show", model)
    assert "BM25 with k1, b tuned on 24 queries, AP 0." in shown
    again = tmp_path / "again.json"
    assert command("tune", *words, "--out", again, "--jobs", "1")[0] == 0
    assert again.read_bytes() == model.read_bytes()


def test_a_tuned_baseline_reranks_to_its_training_score(
    command: Command, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    model, out, qrels = tmp_path / "bm25.json", tmp_path / "bm25.run", made / "qrels.txt"
    code, told, _ = command("tune", *ranked, "--qrels", qrels, *SMALL, "--measure", "nDCG@10", "--out", model)
    assert code == 0
    assert unremarked(command("rerank", *ranked, "--model", model, "--out", out))[0] == 0
    score = evaluate(read_run(out), read_qrels(qrels), ["nDCG@10"]).by_measure["nDCG@10"]
    assert json.loads(model.read_text())["provenance"]["training_score"] == pytest.approx(score, abs=1e-12)
    assert told.startswith(f"nDCG@10 {score:.4f} on 24 training queries with k1 ")


def test_rm3_from_a_run_of_its_own(command: Command, made: Path, collection: list[object], tmp_path: Path) -> None:
    words = [*collection, "--qrels", made / "qrels.txt", *SMALL, "--model", "rm3"]
    more = ["--grid", "fb_docs=5,10", "--grid", "fb_terms=5"]
    code, told, err = command("tune", *words, *more, "--out", tmp_path / "rm3.json")
    assert (code, err) == (0, "")
    assert re.search(r"with k1 \S+, b 0\.\d, fb_docs (5|10), fb_terms 5\n", told)
    assert "fb_docs is at an end of its values, 5 to 10: try more with --grid\n" in told
    assert "fb_terms is at" not in told


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--grid", "mu=3"], "--grid 'mu=3': 'mu' is not tuned: use one of k1, b"),
        (["--grid", "k1=3", "--grid", "k1=4"], "'k1' is given twice"),
        (["--grid", "k1=3,x"], "is not of the form k1=0.6,0.9,1.2: could not convert string to float: 'x'"),
        (["--grid", "k1"], "is not of the form"),
        (["--grid", "b=3"], "b is 3.0: it must be in [0, 1]"),
        (["--model", "rm3", "--grid", "fb_docs=0"], "fb_docs is 0"),
        (["--model", "tfidf"], "'tfidf' is not one of"),
        (["--measure", "mapp"], "mapp"),
        (["--folds", "3"], "--folds and --out-run go together"),
        (["--folds", "300", "--out-run", "x"], "24 queries cannot be split into 300 folds"),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, ranked: list[object], tmp_path: Path, words: list[str], reason: str
) -> None:
    assert reason in refused("tune", *ranked, "--qrels", made / "qrels.txt", "--out", tmp_path / "x", *words)
    assert not (tmp_path / "x").exists()
