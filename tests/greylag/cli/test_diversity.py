"""Diversifying and learning to from the command line, and what they say to bad input."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from greylag import PositionalIndex, read_run, read_subtopic_qrels, read_topics
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
    read_titles,
    word_coverage,
)
from greylag.errors import ModelError
from greylag.evaluation import evaluate_by_subtopic
from greylag.ranking import FloatArray, run_step
from tests.greylag.cli import test_retrieval as test_cli

Command = test_cli.Command
command, made = test_cli.command, test_cli.made
DOCS = test_cli.DEMO / "docs.jsonl"


@pytest.fixture
def shared(made: Path, tmp_path: Path) -> list[str | Path]:
    """The options that both commands have, for the first 30 documents of eight queries."""
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    few = [line for line in lines if int(line.split()[0]) <= 8 and int(line.split()[3]) <= 30]
    (tmp_path / "few.run").write_text("".join(few))
    return ["--index", made / "index", "--topics", made / "topics.tsv", "--run", tmp_path / "few.run"]


def train(
    command: Command, shared: list[str | Path], qrels: Path, out: Path, *words: str | Path
) -> tuple[int, str, str]:
    return command("train-diversity", *shared, "--qrels", qrels, "--out", out, *words)


def test_from_judgements_to_a_diverse_run(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path
) -> None:
    model, out, qrels = tmp_path / "div.json", tmp_path / "div.run", made / "qrels.subtopics.txt"
    options = ["--method", "svmdiv", "--preset", "svmdiv2", "--C", "10", "--k", "3", "--depth", "25"]
    more = ["--titles", DOCS, "--document-features", "score,SD/ordered/LM-O-4"]
    code, told, _ = train(command, shared, qrels, model, *options, *more)
    assert (code, told.split(":")[0]) == (0, "svmdiv2 on 8 queries")
    learned = DiversityModel.load(model)
    assert (learned.preset, learned.k, learned.titles) == ("svmdiv2", 3, True)
    assert learned.features.document_features == ("score", "SD/ordered/LM-O-4")
    assert learned.provenance["C"] == 10.0
    words = [*shared, "--method", "svmdiv", "--model", model, "--titles", DOCS, "--k", "10", "--out", out]
    assert command("diversify", *words) == (0, "", "")
    index, run = PositionalIndex.from_lucene(made / "index"), read_run(shared[-1], read_topics(made / "topics.tsv"))
    stage = SVMDiv(learned, index, titles=read_titles(DOCS), k=10)
    assert read_run(out).tag == "bm25-svmdiv"
    assert all(read_run(out)[qid].docids == stage(run[qid]).docids for qid in run)


def test_validation_holds_every_fourth_query_out(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path
) -> None:
    code, told, _ = train(command, shared, made / "qrels.subtopics.txt", tmp_path / "div.json", "--validate")
    assert (code, told.split(": ")[0]) == (0, "svmdiv on 6 queries, C by 2 more")
    provenance = DiversityModel.load(tmp_path / "div.json").provenance
    assert (provenance["queries"], provenance["validation"]) == (["1", "2", "3", "5", "6", "7"], ["4", "8"])


@pytest.fixture
def ensemble(command: Command, made: Path, shared: list[str | Path], tmp_path: Path) -> Path:
    """A model of three members."""
    words = ["--method", "cssvm", "--models", "3", "--alpha", "2", "--seed", "5", "--C", "10", "--k", "3"]
    code, told, err = train(command, shared, made / "qrels.subtopics.txt", tmp_path / "ens.json", *words)
    assert (code, err) == (0, "")
    assert re.fullmatch(r"svmdiv on 8 queries: C 10, 3 models, alpha 2, mean angle \d+\.\d degrees\n", told)
    return tmp_path / "ens.json"


def test_from_judgements_to_the_runs_of_an_ensemble(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path, ensemble: Path
) -> None:
    learned = DiversityModel.load(ensemble)
    made_by = {"method": "cssvm", "M": 3, "alpha": 2.0, "assignment": "all", "seed": 5, "C": 10.0, "depth": 100}
    assert {key: learned.provenance[key] for key in made_by} == made_by
    assert 0 < learned.provenance["mean_angle"] <= 180
    words = [*shared, "--method", "cssvm", "--model", ensemble, "--k", "5"]
    paths = [tmp_path / f"div.{member}.run" for member in (1, 2, 3)]
    assert command("diversify", *words, "--out", tmp_path / "div.run") == (0, f"{' '.join(map(str, paths))}\n", "")
    assert not (tmp_path / "div.run").exists()
    assert command("diversify", *words, "--out", tmp_path / "div.run", "--fuse") == (0, "", "")
    index, before = PositionalIndex.from_lucene(made / "index"), read_run(shared[-1], read_topics(made / "topics.tsv"))
    for number, (path, member) in enumerate(zip(paths, learned.members, strict=True), 1):
        assert read_run(path).tag == f"bm25-cssvm-{number}"
        stage = SVMDiv(member, index, k=5)
        assert all(read_run(path)[qid].docids == stage(ranking).docids for qid, ranking in before.items())
    fused, stage = read_run(tmp_path / "div.run"), CSSVM(learned, index, k=5)
    assert fused.tag == "bm25-cssvm"
    assert all(fused[qid].docids == stage(ranking).docids for qid, ranking in before.items())

    # On every query, no run loses less than the best of them.
    qrels, measure = made / "qrels.subtopics.txt", "subtopic-loss@5"
    code, told, _ = command("evaluate", "--qrels", qrels, *paths, "--pick-best", "-m", measure, "--json")
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


def test_the_seed_decides_the_bytes(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path, ensemble: Path
) -> None:
    words = ["--method", "cssvm", "--models", "3", "--alpha", "2", "--C", "10", "--k", "3", "--seed"]
    for seed in ("5", "6"):
        assert train(command, shared, made / "qrels.subtopics.txt", tmp_path / f"{seed}.json", *words, seed)[0] == 0
    assert (tmp_path / "5.json").read_bytes() == ensemble.read_bytes()
    assert DiversityModel.load(tmp_path / "6.json").weights != DiversityModel.load(ensemble).weights


def test_names_of_packed_runs_and_tags(
    command: Command, shared: list[str | Path], tmp_path: Path, ensemble: Path
) -> None:
    words = [*shared, "--method", "cssvm", "--model", ensemble, "--tag", "mine", "--jobs", "2"]
    for name in ("a.b.run.gz", "plain"):
        assert command("diversify", *words, "--out", tmp_path / name)[0] == 0
    for member in (1, 2, 3):
        assert read_run(tmp_path / f"a.b.{member}.run.gz").tag == f"mine-{member}"
        assert (tmp_path / f"a.b.{member}.run.gz").read_bytes().startswith(b"\x1f\x8b")
        assert read_run(tmp_path / f"plain.{member}").tag == f"mine-{member}"


def test_an_ensemble_that_cannot_rank_writes_nothing(
    command: Command, shared: list[str | Path], tmp_path: Path, ensemble: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = DiversityModel.load(ensemble).weights[2]

    def fail_on_the_third(x: Candidates, weights: FloatArray) -> CoverageGain:
        if tuple(weights) == third:
            raise ModelError("no third")
        return word_coverage(x, weights)

    monkeypatch.setattr("greylag.diversity.cssvm.word_coverage", fail_on_the_third)
    words = [*shared, "--method", "cssvm", "--model", ensemble, "--out", tmp_path / "div.run"]
    assert command("diversify", *words) == (2, "", "greylag: error: no third\n")
    assert not list(tmp_path.glob("div*"))


def test_models_are_told_apart(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path, ensemble: Path
) -> None:
    out = tmp_path / "out.run"
    code, _, err = command("diversify", *shared, "--method", "svmdiv", "--model", ensemble, "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "the model is an ensemble of 3: use all of it (CSSVM, --method cssvm)" in err
    old = tmp_path / "old.json"
    old.write_text(json.dumps({**json.loads(ensemble.read_text()), "schema": 1}))
    code, _, err = command("diversify", *shared, "--method", "cssvm", "--model", old, "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "old.json: schema 1, but this version reads 2: train it again" in err
    # One model is an ensemble of one.
    assert train(command, shared, made / "qrels.subtopics.txt", tmp_path / "one.json")[0] == 0
    words = [*shared, "--model", tmp_path / "one.json", "--out", out, "--tag", "x", "--method"]
    assert command("diversify", *words, "svmdiv") == (0, "", "")
    assert command("diversify", *words, "cssvm")[0] == 0
    assert read_run(tmp_path / "out.1.run").rankings == read_run(out).rankings


@pytest.mark.parametrize("assignment", ["best", "sampled", "stochastic"])
def test_assignments_and_validation_of_an_ensemble(
    command: Command,
    made: Path,
    shared: list[str | Path],
    tmp_path: Path,
    assignment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("greylag.diversity.training.C_GRID", (0.1, 10.0))
    words = ["--method", "cssvm", "--models", "2", "--assignment", assignment, "--validate"]
    code, told, _ = train(command, shared, made / "qrels.subtopics.txt", tmp_path / "div.json", *words)
    assert (code, told.split(": ")[0]) == (0, "svmdiv on 6 queries, C by 2 more")
    model = DiversityModel.load(tmp_path / "div.json")
    assert (len(model.weights), model.provenance["assignment"]) == (2, assignment)
    assert model.provenance["C"] in (0.1, 10.0)


@pytest.mark.parametrize("method", ["essential-pages", "coverage", "mmr", "random"])
def test_methods_that_learn_nothing(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path, method: str
) -> None:
    index, out = PositionalIndex.from_lucene(made / "index"), tmp_path / "out.run"
    stages = {
        "essential-pages": (EssentialPages(index, depth=20, k=5), []),
        "coverage": (Coverage(index, depth=20, k=5), []),
        "mmr": (MMR(index, relevance_weight=0.3, depth=20, k=5), ["--relevance-weight", "0.3"]),
        "random": (RandomOrder(4, depth=20, k=5), ["--seed", "4"]),
    }
    stage, own = stages[method]
    words = [*shared, "--method", method, "--depth", "20", "--k", "5", *own, "--out", out]
    assert command("diversify", *words) == (0, "", "")
    expected = run_step(stage, read_run(shared[-1]))
    assert [ranking.docids for ranking in read_run(out).rankings] == [r.docids for r in expected.rankings]


def test_queries_without_labels_are_left_out(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path
) -> None:
    qrels, model = tmp_path / "qrels.txt", tmp_path / "div.json"
    lines = (made / "qrels.subtopics.txt").read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if line.split()[0] in ("1", "2")))
    code, told, err = train(command, shared, qrels, model)
    assert (code, told.split(":")[0]) == (0, "svmdiv on 2 queries")
    assert "left out, for no candidate covers a subtopic: 6 queries (3, 4, 5, 6, 7, 8)" in err
    qrels.write_text("99 1 demo-001 1\n99 2 demo-002 1\n")
    code, _, err = train(command, shared, qrels, model)
    assert code == 2
    assert "nothing to learn from" in err


def test_subtopics_without_documents_change_nothing(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path
) -> None:
    qrels, first, second = tmp_path / "qrels.txt", tmp_path / "first.json", tmp_path / "second.json"
    text = (made / "qrels.subtopics.txt").read_text()
    qrels.write_text(f"{text}1 bare demo-001 0\n")
    assert train(command, shared, made / "qrels.subtopics.txt", first)[0] == 0
    assert train(command, shared, qrels, second)[0] == 0
    assert first.read_bytes() == second.read_bytes()


def test_few_candidates_and_documents_without_words(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path
) -> None:
    run, model, out = tmp_path / "tiny.run", tmp_path / "div.json", tmp_path / "out.run"
    lines = (made / "bm25.run").read_text().splitlines()
    kept = [line for line in lines if int(line.split()[3]) <= 3]
    unknown = [f"{line.split()[0]} Q0 elsewhere 4 -1 bm25" for line in kept if line.split()[3] == "3"]
    run.write_text("\n".join(sorted([*kept, *unknown], key=lambda line: int(line.split()[0]))) + "\n")
    words = [*shared[:-1], run]
    assert train(command, words, made / "qrels.subtopics.txt", model, "--k", "6")[0] == 0
    assert command("diversify", *words, "--method", "svmdiv", "--model", model, "--out", out) == (0, "", "")
    before, after = read_run(run), read_run(out)
    assert all(sorted(after[qid].docids) == sorted(before[qid].docids) for qid in before)


def test_models_bring_their_preset(command: Command, made: Path, shared: list[str | Path], tmp_path: Path) -> None:
    paths = [tmp_path / f"{preset}.json" for preset in ("svmdiv", "svmdiv2")]
    for path in paths:
        assert train(command, shared, made / "qrels.subtopics.txt", path, "--preset", path.stem)[0] == 0
    words = [*shared, "--method", "svmdiv", "--out", tmp_path / "out.run", "--model"]
    assert [command("diversify", *words, path)[0] for path in paths] == [0, 0]
    small, large = (json.loads(path.read_text()) for path in paths)
    paths[0].write_text(json.dumps({**small, "criteria": large["criteria"]}))
    code, _, err = command("diversify", *words, paths[0])
    assert (code, err.count("\n")) == (2, 1)
    assert "svmdiv.json: its weights are not those of its criteria" in err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["train-diversity", "--qrels", "qrels.txt", "--out", "x"], "qrels.txt: the judgements are not by subtopic"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--C", "1", "--validate"], "either --C or --validate"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--C", "0"], "C must be a finite number above 0, not 0.0"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--k", "0"], "k must be at least 1"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--document-features", "tea"], "tea"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--models", "3"], "--models is for --method cssvm"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--seed", "0"], "--seed is for --method cssvm"),
        (
            ["train-diversity", "--qrels", "SUB", "--out", "x", "--method", "cssvm", "--models", "0"],
            "M must be at least 1",
        ),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--method", "cssvm", "--alpha", "-1"], "alpha must be"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--method", "cssvm", "--assignment", "tea"], "not one of"),
        (["diversify", "--method", "svmdiv", "--out", "x"], "give the --model"),
        (["diversify", "--method", "cssvm", "--out", "x"], "give the --model"),
        (["diversify", "--method", "svmdiv", "--fuse", "--out", "x"], "--fuse is for --method cssvm"),
        (
            ["diversify", "--method", "coverage", "--model", "m", "--out", "x"],
            "--model is for --method svmdiv or cssvm",
        ),
        (["diversify", "--method", "svmdiv", "--model", "SUB", "--out", "x"], "not a model file"),
        (["diversify", "--seed", "1", "--out", "x"], "--seed is for --method random"),
        (["diversify", "--method", "random", "--relevance-weight", "1", "--out", "x"], "--relevance-weight is for"),
        (["diversify", "--transfer", "--out", "x"], "--transfer is for --method svmdiv or cssvm"),
        (["diversify", "--method", "tea", "--out", "x"], "'tea' is not one of"),
    ],
)
def test_mistakes_get_one_line_and_code_2(
    command: Command, made: Path, shared: list[str | Path], words: list[str], reason: str
) -> None:
    places = {"SUB": made / "qrels.subtopics.txt", "qrels.txt": made / "qrels.txt"}
    code, out, err = command(words[0], *shared, *(places.get(word, word) for word in words[1:]))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert reason in err


def test_validation_needs_queries(command: Command, made: Path, shared: list[str | Path], tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    lines = (made / "qrels.subtopics.txt").read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if line.split()[0] in ("1", "2", "3")))
    code, _, err = train(command, shared, qrels, tmp_path / "x", "--validate")
    assert code == 2
    assert "--validate needs at least 4 queries with subtopics, not 3" in err
