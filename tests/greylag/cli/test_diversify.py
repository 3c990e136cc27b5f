from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from greylag import PositionalIndex, read_run, read_subtopic_qrels, read_topics
from greylag.cli.training_topics import MARK
from greylag.diversity import (
    CSSVM,
    MMR,
    Candidates,
    Coverage,
    CoverageGain,
    DiversityModel,
    EssentialPages,
    RandomOrder,
    SVMDiv,
    word_coverage,
)
from greylag.errors import ModelError
from greylag.evaluation import evaluate_by_subtopic
from greylag.pipeline import run_step
from greylag.ranking import FloatArray
from greylag.trec import read_titles
from tests.greylag.cli.conftest import DEMO, Command, Refused, unremarked


def test_from_judgements_to_a_diverse_run(
    command: Command, learn: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    model, out, qrels = tmp_path / "div.json", tmp_path / "div.run", made / "qrels.subtopics.txt"
    options = ["--method", "svmdiv", "--preset", "svmdiv2", "--C", "1", "--k", "3", "--depth", "25"]
    more = ["--titles", DEMO / "docs.jsonl", "--document-features", "score,SD/ordered/LM-O-4"]
    code, told, _ = learn(qrels, model, *options, *more)
    assert (code, told.split(":")[0]) == (0, "svmdiv2 on 8 queries")
    learned = DiversityModel.load(model)
    assert (learned.preset, learned.k, learned.titles) == ("svmdiv2", 3, True)
    assert learned.features.document_features == ("score", "SD/ordered/LM-O-4")
    assert learned.provenance["C"] == 1.0
    words = [*few, "--method", "svmdiv", "--model", model, "--titles", DEMO / "docs.jsonl", "--k", "10", "--out", out]
    assert unremarked(command("diversify", *words)) == (0, "", "")
    index, run = PositionalIndex.from_lucene(made / "index"), read_run(few[-1], read_topics(made / "topics.tsv"))
    stage = SVMDiv(learned, index, titles=read_titles(DEMO / "docs.jsonl"), k=10)
    assert read_run(out).tag == f"bm25-svmdiv{MARK}"
    assert all(read_run(out)[qid].docids == stage(run[qid]).docids for qid in run)


def test_from_judgements_to_the_runs_of_an_ensemble(
    command: Command, made: Path, few: list[object], tmp_path: Path, ensemble: Path
) -> None:
    learned = DiversityModel.load(ensemble)
    made_by = {"method": "cssvm", "M": 3, "alpha": 2.0, "assignment": "all", "seed": 5, "C": 1.0, "depth": 100}
    assert {key: learned.provenance[key] for key in made_by} == made_by
    assert 0 < learned.provenance["mean_angle"] <= 180
    words = [*few, "--method", "cssvm", "--model", ensemble, "--k", "5"]
    paths = [tmp_path / f"div.{member}.run" for member in (1, 2, 3)]
    assert unremarked(command("diversify", *words, "--out", tmp_path / "div.run")) == (
        0,
        f"{' '.join(map(str, paths))}\n",
        "",
    )
    assert not (tmp_path / "div.run").exists()
    assert unremarked(command("diversify", *words, "--out", tmp_path / "div.run", "--fuse")) == (0, "", "")
    index, before = PositionalIndex.from_lucene(made / "index"), read_run(few[-1], read_topics(made / "topics.tsv"))
    for number, (path, member) in enumerate(zip(paths, learned.members, strict=True), 1):
        assert read_run(path).tag == f"bm25-cssvm{MARK}-{number}"
        stage = SVMDiv(member, index, k=5)
        assert all(read_run(path)[qid].docids == stage(ranking).docids for qid, ranking in before.items())
    fused, stage = read_run(tmp_path / "div.run"), CSSVM(learned, index, k=5)
    assert fused.tag == f"bm25-cssvm{MARK}"
    assert all(fused[qid].docids == stage(ranking).docids for qid, ranking in before.items())

    # On every query, no run loses less than the best of them.
    qrels, measure = made / "qrels.subtopics.txt", "subtopic-loss@5"
    code, told, _ = command("evaluate", "--qrels", qrels, "--subtopics", *paths, "--pick-best", "-m", measure, "--json")
    assert code == 0
    picked = json.loads(told)["pick_best"]
    best = picked["runs"]["best of 3"]
    scores = [evaluate_by_subtopic(read_run(path), read_subtopic_qrels(qrels), [measure]) for path in paths]
    least = np.min([run.values[:, 0] for run in scores], axis=0)
    assert dict(zip(scores[0].qids, least.tolist(), strict=True)) == {
        qid: values[measure] for qid, values in best["per_query"].items()
    }
    assert best["means"][measure] == pytest.approx(least.mean())
    assert sum(wins[measure] for wins in picked["wins"].values()) == pytest.approx(1.0)
    assert list(picked["wins"]) == [str(path) for path in paths]


def test_names_of_packed_runs_and_tags(command: Command, few: list[object], tmp_path: Path, ensemble: Path) -> None:
    words = [*few, "--method", "cssvm", "--model", ensemble, "--tag", "mine", "--jobs", "2"]
    for name in ("a.b.run.gz", "plain"):
        assert command("diversify", *words, "--out", tmp_path / name)[0] == 0
    for member in (1, 2, 3):
        assert read_run(tmp_path / f"a.b.{member}.run.gz").tag == f"mine-{member}"
        assert (tmp_path / f"a.b.{member}.run.gz").read_bytes().startswith(b"\x1f\x8b")
        assert read_run(tmp_path / f"plain.{member}").tag == f"mine-{member}"


def test_an_ensemble_that_cannot_rank_writes_nothing(
    command: Command, few: list[object], tmp_path: Path, ensemble: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = DiversityModel.load(ensemble).weights[2]

    def fail_on_the_third(x: Candidates, weights: FloatArray) -> CoverageGain:
        if tuple(weights) == third:
            raise ModelError("no third")
        return word_coverage(x, weights)

    monkeypatch.setattr("greylag.diversity.svmdiv.word_coverage", fail_on_the_third)
    words = [*few, "--method", "cssvm", "--model", ensemble, "--out", tmp_path / "div.run"]
    assert unremarked(command("diversify", *words)) == (2, "", "greylag: error: no third\n")
    assert not list(tmp_path.glob("div*"))


def test_models_are_told_apart(
    command: Command, learn: Command, made: Path, few: list[object], tmp_path: Path, ensemble: Path
) -> None:
    out = tmp_path / "out.run"
    code, _, err = command("diversify", *few, "--method", "svmdiv", "--model", ensemble, "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "the model is an ensemble of 3: use all of it (CSSVM, --method cssvm)" in err
    old = tmp_path / "old.json"
    old.write_text(json.dumps({**json.loads(ensemble.read_text()), "schema": 1}))
    code, _, err = command("diversify", *few, "--method", "cssvm", "--model", old, "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "old.json: schema 1, but this version reads 3: train it again" in err
    # One model is an ensemble of one.
    assert learn(made / "qrels.subtopics.txt", tmp_path / "one.json")[0] == 0
    words = [*few, "--model", tmp_path / "one.json", "--out", out, "--tag", "x", "--method"]
    assert unremarked(command("diversify", *words, "svmdiv")) == (0, "", "")
    assert command("diversify", *words, "cssvm")[0] == 0
    assert read_run(tmp_path / "out.1.run").rankings == read_run(out).rankings


@pytest.mark.parametrize("method", ["essential-pages", "coverage", "mmr", "random"])
def test_methods_that_learn_nothing(
    command: Command, made: Path, few: list[object], tmp_path: Path, method: str
) -> None:
    index, out = PositionalIndex.from_lucene(made / "index"), tmp_path / "out.run"
    stages = {
        "essential-pages": (EssentialPages(index, depth=20, k=5), []),
        "coverage": (Coverage(index, depth=20, k=5), []),
        "mmr": (MMR(index, relevance_weight=0.3, depth=20, k=5), ["--relevance-weight", "0.3"]),
        "random": (RandomOrder(4, depth=20, k=5), ["--seed", "4"]),
    }
    stage, own = stages[method]
    words = [*few, "--method", method, "--depth", "20", "--k", "5", *own, "--out", out]
    assert command("diversify", *words) == (0, "", "")
    expected = run_step(stage, read_run(few[-1]))
    assert [ranking.docids for ranking in read_run(out).rankings] == [r.docids for r in expected.rankings]


def test_few_candidates_and_documents_without_words(
    command: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    run, model, out = tmp_path / "tiny.run", tmp_path / "div.json", tmp_path / "out.run"
    lines = (made / "bm25.run").read_text().splitlines()
    kept = [line for line in lines if int(line.split()[3]) <= 3]
    unknown = [f"{line.split()[0]} Q0 elsewhere 4 -1 bm25" for line in kept if line.split()[3] == "3"]
    run.write_text("\n".join(sorted([*kept, *unknown], key=lambda line: int(line.split()[0]))) + "\n")
    words = [*few[:-1], run]
    assert (
        command("train-diversity", *words, "--qrels", made / "qrels.subtopics.txt", "--out", model, "--k", "6")[0] == 0
    )
    told = unremarked(command("diversify", *words, "--method", "svmdiv", "--model", model, "--out", out))
    assert told[:2] == (0, "")
    assert told[2].count("\n") == 1
    assert "24 of 96 documents of 24 queries are unknown" in told[2]
    before, after = read_run(run), read_run(out)
    assert all(sorted(after[qid].docids) == sorted(before[qid].docids) for qid in before)


def test_models_bring_their_preset(
    command: Command, learn: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    paths = [tmp_path / f"{preset}.json" for preset in ("svmdiv", "svmdiv2")]
    for path in paths:
        assert learn(made / "qrels.subtopics.txt", path, "--preset", path.stem)[0] == 0
    words = [*few, "--method", "svmdiv", "--out", tmp_path / "out.run", "--model"]
    assert [command("diversify", *words, path)[0] for path in paths] == [0, 0]
    small, large = (json.loads(path.read_text()) for path in paths)
    paths[0].write_text(json.dumps({**small, "criteria": large["criteria"]}))
    code, _, err = command("diversify", *words, paths[0])
    assert (code, err.count("\n")) == (2, 1)
    assert "svmdiv.json: the names of the weights do not match the criteria" in err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--method", "svmdiv"], "--method svmdiv needs a --model"),
        (["--method", "cssvm"], "--method cssvm needs a --model"),
        (["--method", "svmdiv", "--fuse"], "--fuse is for --method cssvm, not for svmdiv"),
        (["--method", "coverage", "--model", "m"], "--model is for --method svmdiv or cssvm, not for coverage"),
        (["--method", "mmr", "--titles", "t"], "--titles is for --method svmdiv or cssvm, not for mmr"),
        (["--method", "svmdiv", "--model", "SUB"], "not a model file"),
        (["--seed", "1"], "--seed is for --method random, not for mmr"),
        (
            ["--method", "random", "--relevance-weight", "1"],
            "--relevance-weight is for --method mmr or xquad, not for random",
        ),
        (["--method", "random", "--seed", "-1"], "Invalid value for '--seed'"),
        (["--transfer"], "--transfer is for --method svmdiv or cssvm, not for mmr"),
        (["--method", "tea"], "'tea' is not one of"),
        (["--relevance-weight", "7"], "relevance_weight"),
        (["--k", "0"], "k "),
        (["--depth", "0"], "depth "),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, few: list[object], tmp_path: Path, words: list[str], reason: str
) -> None:
    words = [word if word != "SUB" else str(made / "qrels.subtopics.txt") for word in words]
    assert reason in refused("diversify", *few, "--out", tmp_path / "x", *words)
