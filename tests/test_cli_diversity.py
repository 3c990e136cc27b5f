"""Diversifying and learning to from the command line, and what they say to bad input."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from greylag import PositionalIndex, read_run, read_topics
from greylag.diversity.mmr import MMR
from greylag.diversity.model import DiversityModel
from greylag.diversity.stage import Coverage, EssentialPages, Random, SVMDiv
from greylag.diversity.titles import read_titles
from greylag.ranking import run_step
from tests import test_cli

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
    stage = SVMDiv(learned, index, read_titles(DOCS), k=10)
    assert read_run(out).tag == "bm25-svmdiv"
    assert all(read_run(out)[qid].docids == stage(run[qid]).docids for qid in run)


def test_validation_holds_every_fourth_query_out(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path
) -> None:
    code, told, _ = train(command, shared, made / "qrels.subtopics.txt", tmp_path / "div.json", "--validate")
    assert (code, told.split(": ")[0]) == (0, "svmdiv on 6 queries, C by 2 more")
    provenance = DiversityModel.load(tmp_path / "div.json").provenance
    assert (provenance["queries"], provenance["validation"]) == (["1", "2", "3", "5", "6", "7"], ["4", "8"])


@pytest.mark.parametrize("method", ["essential-pages", "coverage", "mmr", "random"])
def test_methods_that_learn_nothing(
    command: Command, made: Path, shared: list[str | Path], tmp_path: Path, method: str
) -> None:
    index, out = PositionalIndex.from_lucene(made / "index"), tmp_path / "out.run"
    stages = {
        "essential-pages": (EssentialPages(index, 20, 5), []),
        "coverage": (Coverage(index, 20, 5), []),
        "mmr": (MMR(index, 0.3, 20, 5), ["--relevance-weight", "0.3"]),
        "random": (Random(4, 20, 5), ["--seed", "4"]),
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
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--C", "0"], "C has to be a number above 0, not 0.0"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--k", "0"], "k has to be at least 1"),
        (["train-diversity", "--qrels", "SUB", "--out", "x", "--document-features", "tea"], "tea"),
        (["diversify", "--method", "svmdiv", "--out", "x"], "give the --model"),
        (["diversify", "--method", "coverage", "--model", "m", "--out", "x"], "--model is for --method svmdiv"),
        (["diversify", "--method", "svmdiv", "--model", "SUB", "--out", "x"], "not a model file"),
        (["diversify", "--seed", "1", "--out", "x"], "--seed is for --method random"),
        (["diversify", "--method", "random", "--relevance-weight", "1", "--out", "x"], "--relevance-weight is for"),
        (["diversify", "--transfer", "--out", "x"], "--transfer is for --method svmdiv"),
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
