from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from greylag import LuceneIndex, PositionalIndex, Union
from greylag.index import RM3Search
from greylag.ltr import LinearModel, MRFRanker
from greylag.trec import read_run, read_topics
from tests.greylag.cli.conftest import Command, Refused


def test_models_have_the_same_bytes_on_any_number_of_threads(
    command: Command, made: Path, collection: list[object], tmp_path: Path
) -> None:
    words = [*collection, "--qrels", made / "qrels.txt", "--max-features", "3", "--retrain"]
    paths = [tmp_path / f"{jobs}.json" for jobs in (1, 2)]
    for path in paths:
        assert command("train", *words, "--jobs", path.stem, "--out", path)[0] == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_what_was_learned_is_shown(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    code, told, _ = command("train", *ranked, "--qrels", made / "qrels.txt", "--pool", "sd", "--out", out)
    assert code == 0
    assert re.match(r"AP 0\.9\d+  [+-]\d\S*  SD/", told)


def test_coordinate_ascent_over_named_features(
    command: Command, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    prior, model = tmp_path / "prior.tsv", tmp_path / "model.json"
    prior.write_text("demo-001 0.5\ndemo-002 2\n")
    named = f"FI/expansion/LM,prior:{prior}:log:0.1,FI/term/BM25"
    words = [*ranked, "--qrels", made / "qrels.txt", "--features", named, "--out", model]
    code, told, _ = command("train", *words, "--learner", "coordinate-ascent", "--restarts", "2", "--seed", "7")
    assert code == 0
    assert [line.split()[-1] for line in told.splitlines()] == named.split(",")
    provenance = json.loads(model.read_text())["provenance"]
    assert (provenance["learner"], provenance["restarts"], provenance["seed"]) == ("CoordinateAscent", 2, 7)


def test_preselection_is_recorded(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    words = [*ranked, "--qrels", made / "qrels.txt", "--pool", "sd", "--max-features", "1", "--out", out]
    assert command("train", *words, "--preselect", "mmr:4:0.7")[0] == 0
    provenance = json.loads(out.read_text())["provenance"]
    assert (provenance["pool"], provenance["preselect"], provenance["candidates"]) == (28, "mmr:4:0.7", 4)


def test_no_query_in_common(refused: Refused, ranked: list[object], tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("999 0 d1 1\n")
    assert "no query in common" in refused("train", *ranked, "--qrels", other, "--out", tmp_path / "x")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--restarts", "2"], "--restarts is for --learner coordinate-ascent, not for greedy"),
        (["--learner", "coordinate-ascent", "--max-features", "2"], "--max-features is for --learner greedy"),
        (["--learner", "coordinate-ascent", "--retrain"], "--retrain is for --learner greedy"),
        (["--learner", "coordinate-ascent", "--seed", "-1"], "Invalid value for '--seed'"),
        (["--learner", "forest"], "'forest' is not one of"),
        (["--max-features", "0"], "max_features"),
        (["--measure", "mapp"], "mapp"),
        (["--preselect", "16"], "is not of the form mmr:16"),
        (["--jobs", "0"], "0 is neither -1 nor from 1 to 1024"),
        (["--jobs", "-2"], "-2 is neither -1 nor from 1 to 1024"),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, ranked: list[object], tmp_path: Path, words: list[str], reason: str
) -> None:
    assert reason in refused("train", *ranked, "--qrels", made / "qrels.txt", "--out", tmp_path / "x", *words)


def test_the_preset_stack(
    command: Command, refused: Refused, few: list[object], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = {
        "k1": (0.9,),
        "b": (0.4,),
        "mu": (1000.0,),
        "fb_docs": (5,),
        "fb_terms": (10,),
        "original_weight": (0.3, 0.6),
    }
    monkeypatch.setattr("greylag.ltr.stack.GRID", grid)
    model, out = tmp_path / "stack.json", tmp_path / "stack.run"
    words = [*few, "--qrels", made / "qrels.txt", "--out", model, "--preset", "stack"]
    options = ["--max-features", 2, "--features", "score@z"]
    folds = ["--folds", "4", "--out-run", tmp_path / "held-out.run"]
    code, told, err = command("train", *words, *options, *folds)
    assert (code, err) == (0, "")
    learned = LinearModel.load(model)
    assert learned.provenance["preset"] == "stack"
    assert learned.provenance["held_out"]["folds"] == 4
    assert len(read_run(tmp_path / "held-out.run")) == 8
    assert len(re.findall(r"^AP 0\.\d+  [+-]", told, re.MULTILINE)) == len(learned.features) <= 5 * 2 + 1
    assert command("rerank", *few, "--model", model, "--out", out, "--transfer")[0] == 0
    assert len(read_run(out)) == 8
    assert "give a --run" in refused("rerank", *few[:4], "--model", model, "--out", out), "it was trained on a run"
    assert command("train", *few[:4], *words[6:], *options)[0] == 0
    learned = LinearModel.load(model)
    assert command("rerank", *few[:4], "--model", model, "--out", out, "--tag", "x")[0] == 0
    lucene, topics = LuceneIndex(made / "index"), read_topics(made / "topics.tsv")
    candidates = Union((lucene.bm25(), RM3Search(lucene.bm25())), k=1000).run(topics)
    expected = MRFRanker(learned, PositionalIndex.from_lucene(lucene)).run(candidates)
    assert {qid: own.docids for qid, own in read_run(out).items()} == {qid: own.docids for qid, own in expected.items()}
    for more, reason in (
        (["--preselect", "mmr:4"], "--preset stack takes no --preselect"),
        (["--mu", "20"], "chooses the features' parameters itself"),
        (["--retrain"], "only --max-features can be given"),
    ):
        assert reason in refused("train", *words, *more)
