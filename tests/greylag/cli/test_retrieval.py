"""The command line, from a user's first index to a checked experiment, and what it says to mistakes."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.cli import main

DEMO = Path(greylag.__file__).parent / "demo"
Command = Callable[..., tuple[int, str, str]]
FEATURES = ["features", "--index", "{i}", "--topics", "{topics}", "--run", "{r}"]


@pytest.fixture
def command(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Run a command in this process: its exit code, output and errors."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["greylag", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return int(stop.value.code or 0), out, err

    return run


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demonstration collection's files, its index and BM25's run."""
    folder = tmp_path_factory.mktemp("made")
    for file in DEMO.glob("*.t*"):
        shutil.copy(file, folder)
    program = Path(sys.executable).with_name("greylag")
    for words in (
        ["index", DEMO / "docs.jsonl", "--out", folder / "index"],
        ["search", "--index", folder / "index", "--topics", DEMO / "topics.tsv", "--out", folder / "bm25.run"],
    ):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=True)
        assert not done.stderr
    return folder


def test_from_run_to_scores(command: Command, made: Path, tmp_path: Path) -> None:
    shared = ["--index", made / "index", "--topics", made / "topics.tsv", "--run"]
    model, reranked, diverse = tmp_path / "model.json", tmp_path / "mrf.run.gz", tmp_path / "mmr.run"
    code, out, _ = command(
        "train", *shared, made / "bm25.run", "--qrels", made / "qrels.txt", "--pool", "sd", "--out", model
    )
    assert code == 0
    assert re.match(r"AP 0\.9\d+  [+-]\d\S*  SD/", out)
    assert command("rerank", *shared, made / "bm25.run", "--model", model, "--out", reranked) == (0, "", "")
    assert gzip.decompress(reranked.read_bytes()).endswith(b" bm25-mrf\n")
    assert command("diversify", *shared, reranked, "--method", "mmr", "--k", "10", "--out", diverse) == (0, "", "")
    code, out, _ = command(
        "evaluate", "--qrels", made / "qrels.txt", reranked, "--baseline", made / "bm25.run", "-m", "map"
    )
    assert code == 0
    assert re.search(r"mrf\.run\.gz +0\.9\d+ +\+0\.\d+ +<0\.001\*", out)
    code, out, _ = command("evaluate", "--qrels", made / "qrels.subtopics.txt", diverse, "--json")
    scores = json.loads(out)["runs"][str(diverse)]["means"]
    assert scores["S-recall@10"] > 0.9


def test_manifold_ranking_needs_no_model(command: Command, made: Path, tmp_path: Path) -> None:
    from greylag import ManifoldRanker, PositionalIndex, read_qrels, read_run, read_topics

    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--run", made / "bm25.run", "--out"]
    plain, told = tmp_path / "plain.run", tmp_path / "told.run"
    assert command("rerank", *words, plain, "--method", "manifold") == (0, "", "")
    assert plain.read_text().split("\n")[0].endswith(" bm25-manifold")
    options = ["--method", "manifold", "--depth", "30", "--alpha", "0.9", "--graph", "full", "--confidence", "query"]
    assert command("rerank", *words, told, *options, "--feedback", made / "qrels.txt") == (0, "", "")
    stage = ManifoldRanker(
        PositionalIndex.from_lucene(made / "index"),
        depth=30,
        alpha=0.9,
        graph="full",
        confidence="query",
        feedback=read_qrels(made / "qrels.txt"),
    )
    for qid, ranking in read_run(made / "bm25.run", read_topics(made / "topics.tsv")).items():
        assert read_run(told)[qid].docids == stage(ranking).docids
    assert plain.read_text() != told.read_text()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_models_have_the_same_bytes_on_any_number_of_threads(
    command: Command, made: Path, tmp_path: Path, jobs: str
) -> None:
    """Against one file written by the first of the two."""
    out = tmp_path / "model.json"
    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--qrels", made / "qrels.txt"]
    assert command("train", *words, "--jobs", jobs, "--max-features", "3", "--retrain", "--out", out)[0] == 0
    first = made / "first.json"
    if not first.exists():
        shutil.copy(out, first)
    assert out.read_bytes() == first.read_bytes()


def test_features_as_text_and_arrays_agree(command: Command, made: Path, tmp_path: Path) -> None:
    from sklearn.datasets import load_svmlight_file

    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--run", made / "bm25.run"]
    for name in ("f.txt.gz", "f.npz"):
        out = tmp_path / name
        done = command("features", *words, "--pool", "fd", "--qrels", made / "qrels.txt", "--out", out)
        assert done == (0, "", "")
    arrays = np.load(tmp_path / "f.npz")
    values, grades, qids = load_svmlight_file(str(tmp_path / "f.txt.gz"), query_id=True)
    np.testing.assert_array_equal(values.toarray(), arrays["features"])
    np.testing.assert_array_equal(grades, arrays["grades"])
    np.testing.assert_array_equal(qids, arrays["qids"].astype(int))
    lines = gzip.decompress((tmp_path / "f.txt.gz").read_bytes()).decode().splitlines()
    assert " 1=FI/term/LM " in lines[0]
    assert arrays["names"][0] == "FI/term/LM"
    assert f"# {arrays['docids'][0]} 1=" in lines[0]
    assert lines[1].endswith(f"# {arrays['docids'][1]}")


def test_one_feature_list(command: Command, made: Path, tmp_path: Path) -> None:
    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--run", made / "bm25.run"]
    out = tmp_path / "f.npz"
    assert command("features", *words, "--features", "SD/ordered/LM-O-4,FI/term/BM25", "--out", out)[0] == 0
    assert np.load(out)["names"].tolist() == ["SD/ordered/LM-O-4", "FI/term/BM25"]


def test_query_likelihood_and_cut(command: Command, made: Path, tmp_path: Path) -> None:
    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--out", tmp_path / "ql.run"]
    assert command("search", *words, "--model", "ql", "--hits", "7", "--tag", "mine") == (0, "", "")
    lines = (tmp_path / "ql.run").read_text().splitlines()
    assert len(lines) == 24 * 7
    assert all(line.endswith(" mine") for line in lines)


def test_doctor(command: Command, made: Path, tmp_path: Path) -> None:
    code, out, _ = command("doctor", "--index", made / "index")
    assert code == 0
    assert [line.split(":")[0].split() for line in out.splitlines()] == [
        ["ok", name] for name in ("versions", "Java", "Pyserini", "JVM", "index", "positions")
    ]
    code, out, _ = command("doctor", "--index", tmp_path)
    assert code == 1
    assert re.search(r"missing +index: .* is not a Lucene index", out)


def test_the_demo_and_its_expected_scores(command: Command, tmp_path: Path) -> None:
    code, out, _ = command("demo", "--out", tmp_path)
    assert code == 0
    for step in ("bm25", "mrf", "mmr"):
        assert re.search(rf"^{step} +0\.\d+", out, re.MULTILINE)
        assert (tmp_path / f"{step}.run").exists()
    assert (tmp_path / "models" / "fold-6.json").exists()
    code, out, _ = command("experiment", DEMO / "demo.yaml", "--out", tmp_path, "--check")
    assert code == 0
    assert out.endswith("the expected scores came out\n")


def test_a_check_that_fails(command: Command, tmp_path: Path) -> None:
    text = (DEMO / "demo.yaml").read_text()
    changed = re.sub(r"(bm25: \{AP: 0\.\d\d)\d\d", r"\g<1>99", text)
    assert changed != text
    config = tmp_path / "wrong.yaml"
    config.write_text(f"data: {DEMO}\n{changed}")
    code, _, err = command("experiment", config, "--out", tmp_path / "out", "--check")
    assert code == 1
    assert re.fullmatch(r"bm25 AP: expected 0\.\d\d99, got 0\.\d+\n", err.splitlines()[-1] + "\n")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["serch"], "No such command 'serch'"),
        (["train", "--index", "x"], "Missing option '--topics'"),
        (["evaluate", "--qrels", "{q}", "nowhere.run"], "nowhere.run: cannot be read"),
        (["evaluate", "--qrels", "{q}", "{r}", "-m", "mapp"], "unknown measure 'mapp'; did you mean AP"),
        (["evaluate", "--qrels", "{q}", "{r}", "--pick-best"], "bm25.run; give two or more"),
        (["search", "--index", "{t}", "--topics", "{topics}", "--out", "x"], "is not a Lucene index"),
        (["search", "--index", "{i}", "--topics", "{topics}", "--out", "{t}/no/x"], "cannot be written"),
        (["search", "--index", "{i}", "--topics", "{topics}", "--out", "x", "--b", "2"], "b is 2.0"),
        (["rerank", *FEATURES[1:], "--model", "{q}", "--out", "x"], "not a model"),
        (["rerank", "--index", "{i}", "--topics", "{topics}", "--run", "{r}", "--out", "x"], "--method manifold"),
        (["rerank", "--index", "{i}", "--topics", "{topics}", "--run", "{r}", "--out", "x", "--model", "{q}",
          "--neighbours", "3"], "--neighbours is for --method manifold"),
        (["rerank", "--index", "{i}", "--topics", "{topics}", "--run", "{r}", "--out", "x", "--model", "{q}",
          "--method", "manifold"], "--model is for --method mrf"),
        (["train", *FEATURES[1:-2], "--qrels", "{q}", "--out", "x", "--restarts", "2"],
          "--restarts is for --learner coordinate-ascent"),
        (["train", *FEATURES[1:-2], "--qrels", "{q}", "--out", "x", "--learner", "coordinate-ascent", "--max-features",
          "2"], "--max-features is for --learner greedy"),
        (["rerank", "--index", "{i}", "--topics", "{topics}", "--run", "{r}", "--out", "x", "--method", "manifold",
          "--graph", "ring"], "graph is 'ring'"),
        (["rerank", "--index", "{i}", "--topics", "{topics}", "--run", "{r}", "--out", "x", "--method", "manifold",
          "--feedback", "{r}"], "qid iteration-or-subtopic docid grade"),
        (["diversify", "--index", "{i}", "--run", "{r}", "--out", "x", "--relevance-weight", "7"], "relevance_weight"),
        ([*FEATURES, "--out", "x"], "either --features or --pool"),
        ([*FEATURES, "--out", "x", "--features", "SD/a"], "not of the form"),
        (["experiment", "{t}/none.yaml"], "no such experiment file"),
        (["experiment", "{q}"], "an experiment file is a mapping"),
        (["index", "{t}/none", "--out", "{t}/index"], "none"),
        (["index", "{t}", "--out", "{t}/index"], ""),
    ],
)  # fmt: skip
def test_mistakes_get_one_line_and_code_2(
    command: Command, made: Path, tmp_path: Path, words: list[str], reason: str
) -> None:
    (tmp_path / "empty").mkdir()
    places = {
        "q": made / "qrels.txt",
        "r": made / "bm25.run",
        "i": made / "index",
        "topics": made / "topics.tsv",
        "t": tmp_path / "empty",
    }
    code, out, err = command(*[word.format(**places) for word in words])
    assert (code, out) == (2, "")
    assert err.startswith("greylag: error: ")
    assert err.count("\n") == 1
    assert reason in err


def test_pick_best(command: Command, made: Path, tmp_path: Path) -> None:
    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--out", tmp_path / "ql.run", "--model", "ql"]
    assert command("search", *words)[0] == 0
    runs, judged = [made / "bm25.run", tmp_path / "ql.run"], ["evaluate", "--qrels", made / "qrels.txt", "-m", "AP"]
    code, out, _ = command(*judged, *runs, "--json")
    found = [list(run["per_query"].values()) for run in json.loads(out)["runs"].values()]
    values = np.array([[query["AP"] for query in run] for run in found])
    code, out, _ = command(*judged, *runs, "--pick-best")
    assert code == 0
    shown = {row[0]: row[1] for row in (re.split(r"  +", line) for line in out.splitlines()) if len(row) == 2}
    assert shown["best of 2"] == f"{values.max(axis=0).mean():.4f}"
    assert shown["rank 2 of 2"] == f"{values.min(axis=0).mean():.4f}"
    assert shown["mean of 2"] == f"{values.mean():.4f}"
    code, out, _ = command(*judged, *runs, "--pick-best", "--per-query")
    lines = [line.split("\t") for line in out.splitlines()]
    assert [float(ap) for run, _, ap in lines[1:] if run == "best of 2"] == values.max(axis=0).round(4).tolist()
    # A baseline is compared with, not chosen.
    assert command(*judged, runs[1], "--pick-best", "--baseline", runs[0])[:2] == (2, "")
    code, out, _ = command(*judged, *runs, "--pick-best", "--baseline", runs[0])
    assert re.search(r"^best of 2 +0\.\d+ +\+0\.\d+", out, re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("name: x\nstudy: tea", "unknown study 'tea'"),
        ("name: x\ntopics: t\nqrels: q", "collection: field required"),
        ("name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\nfold: 3", "fold: extra inputs are not permitted"),
        (
            "name: x\ncollection: {docs: d}\ntopics: t\nqrels: q\ntraining: {folds: 1}",
            "training.folds: input should be",
        ),
        ("name: [", "bad.yaml:1: not YAML"),
    ],
)
def test_bad_experiment_files(command: Command, tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    code, _, err = command("experiment", tmp_path / "bad.yaml")
    assert code == 2
    assert reason in err


def test_lenient_reading_says_what_it_did(command: Command, made: Path, tmp_path: Path) -> None:
    twice = tmp_path / "twice.run"
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    twice.write_text("".join([lines[0], *lines]))
    code, _, err = command("evaluate", "--qrels", made / "qrels.txt", twice)
    assert code == 2
    assert f"{twice}:2: document" in err
    code, out, err = command("evaluate", "--qrels", made / "qrels.txt", twice, "--lenient")
    assert code == 0
    assert err.startswith(f"greylag: warning: {twice}:2: document")
    assert re.search(r"twice\.run +0\.\d+", out)


def test_no_query_in_common(command: Command, made: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("999 0 d1 1\n")
    code, _, err = command("evaluate", "--qrels", other, made / "bm25.run")
    assert code == 2
    assert "no query in common" in err
    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--run", made / "bm25.run"]
    for task in (["train", "--qrels", other], ["rerank", "--method", "manifold", "--feedback", other]):
        code, _, err = command(task[0], *words, *task[1:], "--out", tmp_path / "out")
        assert code == 2
        assert "no query in common" in err


def test_named_features_beside_a_pool_or_alone(command: Command, made: Path, tmp_path: Path) -> None:
    words = ["--index", made / "index", "--topics", made / "topics.tsv", "--run", made / "bm25.run"]
    prior = tmp_path / "prior.tsv"
    prior.write_text("demo-001 0.5\ndemo-002 2\n")
    named = f"FI/expansion/LM,prior:{prior}:log:0.1"
    out = tmp_path / "f.npz"
    for pool, count in ((["--pool", "sd"], 28 + 2), ([], 2)):
        assert command("features", *words, *pool, "--features", named, "--fb-terms", "5", "--out", out)[0] == 0
        names = np.load(out)["names"].tolist()
        assert len(names) == count
        assert names[-2:] == named.split(",")
    model = tmp_path / "model.json"
    words += ["--qrels", made / "qrels.txt", "--features", f"{named},FI/term/BM25", "--out", model]
    code, out_text, _ = command("train", *words, "--learner", "coordinate-ascent", "--restarts", "2", "--seed", "7")
    assert code == 0
    assert [line.split()[-1] for line in out_text.splitlines()] == [*named.split(","), "FI/term/BM25"]
    provenance = json.loads(model.read_text())["provenance"]
    assert (provenance["learner"], provenance["restarts"], provenance["seed"]) == ("CoordinateAscent", 2, 7)
