from __future__ import annotations

from pathlib import Path

import pytest

from greylag.diversity import DiversityModel
from tests.greylag.cli.conftest import Command, Refused


def test_validation_holds_every_fourth_query_out(learn: Command, made: Path, tmp_path: Path) -> None:
    code, told, _ = learn(made / "qrels.subtopics.txt", tmp_path / "div.json", "--validate")
    assert (code, told.split(": ")[0]) == (0, "svmdiv on 6 queries, C chosen on 2 more")
    provenance = DiversityModel.load(tmp_path / "div.json").provenance
    assert (provenance["queries"], provenance["validation"]) == (["1", "2", "3", "5", "6", "7"], ["4", "8"])


def test_the_seed_decides_the_bytes(learn: Command, made: Path, tmp_path: Path, ensemble: Path) -> None:
    words = ["--method", "cssvm", "--models", "3", "--alpha", "2", "--C", "1", "--k", "3", "--seed"]
    for seed in ("5", "6"):
        assert learn(made / "qrels.subtopics.txt", tmp_path / f"{seed}.json", *words, seed)[0] == 0
    assert (tmp_path / "5.json").read_bytes() == ensemble.read_bytes()
    assert DiversityModel.load(tmp_path / "6.json").weights != DiversityModel.load(ensemble).weights


def test_forms_and_exponents_of_the_repulsion(learn: Command, made: Path, tmp_path: Path) -> None:
    words = ["--method", "cssvm", "--models", "3", "--alpha", "2", "--C", "0.1", "--k", "2", "--repulsion"]
    found = set()
    for form, s in (("displacement", ()), ("gradient", (1,)), ("gradient", (2,))):
        code, told, _ = learn(
            made / "qrels.subtopics.txt", tmp_path / "a", *words, form, *(word for own in s for word in ("--s", own))
        )
        assert code == 0
        assert f"{form} with alpha 2, mean angle" in told
        provenance = DiversityModel.load(tmp_path / "a").provenance
        assert provenance["repulsion"] == form
        assert provenance["s"] == (s[0] if s else 1)
        found.add((tmp_path / "a").read_bytes())
    assert len(found) == 3


@pytest.mark.parametrize("assignment", ["best", "sampled", "stochastic"])
def test_assignments_and_validation_of_an_ensemble(
    command: Command,
    learn: Command,
    made: Path,
    few: list[object],
    tmp_path: Path,
    assignment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("greylag.diversity.training.C_GRID", (0.1, 10.0))
    words = ["--method", "cssvm", "--models", "2", "--assignment", assignment, "--validate"]
    code, told, _ = learn(made / "qrels.subtopics.txt", tmp_path / "div.json", *words)
    assert (code, told.split(": ")[0]) == (0, "svmdiv on 6 queries, C chosen on 2 more")
    model = DiversityModel.load(tmp_path / "div.json")
    assert (len(model.weights), model.provenance["assignment"]) == (2, assignment)
    assert model.provenance["C"] in (0.1, 10.0)


def test_queries_without_labels_are_left_out(learn: Command, made: Path, tmp_path: Path) -> None:
    qrels, model = tmp_path / "qrels.txt", tmp_path / "div.json"
    lines = (made / "qrels.subtopics.txt").read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if line.split()[0] in ("1", "2")))
    code, told, err = learn(qrels, model)
    assert (code, told.split(":")[0]) == (0, "svmdiv on 2 queries")
    assert "dropped 6 queries in which no candidate covers a subtopic: 3, 4, 5, 6, 7, 8" in err
    qrels.write_text("99 1 demo-001 1\n99 2 demo-002 1\n")
    code, _, err = learn(qrels, model)
    assert code == 2
    assert "nothing to learn from" in err


def test_subtopics_without_documents_change_nothing(learn: Command, made: Path, tmp_path: Path) -> None:
    qrels, first, second = tmp_path / "qrels.txt", tmp_path / "first.json", tmp_path / "second.json"
    text = (made / "qrels.subtopics.txt").read_text()
    qrels.write_text(f"{text}1 bare demo-001 0\n")
    assert learn(made / "qrels.subtopics.txt", first)[0] == 0
    assert learn(qrels, second)[0] == 0
    assert first.read_bytes() == second.read_bytes()


def test_validation_needs_queries(learn: Command, made: Path, tmp_path: Path) -> None:
    qrels = tmp_path / "qrels.txt"
    lines = (made / "qrels.subtopics.txt").read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if line.split()[0] in ("1", "2", "3")))
    code, _, err = learn(qrels, tmp_path / "x", "--validate")
    assert code == 2
    assert "--validate needs at least 4 queries with subtopics, not 3" in err


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--C", "1", "--validate"], "--C and --validate cannot be combined"),
        (["--C", "0"], "C must be a finite number above 0, not 0.0"),
        (["--k", "0"], "k must be at least 1"),
        (["--document-features", "tea"], "tea"),
        (["--models", "3"], "--models is for --method cssvm, not for svmdiv"),
        (["--seed", "0"], "--seed is for --method cssvm, not for svmdiv"),
        (["--method", "cssvm", "--models", "0"], "M must be at least 1"),
        (["--method", "cssvm", "--alpha", "-1"], "alpha must be"),
        (["--method", "cssvm", "--s", "0"], "s must be a finite number above 0, not 0.0"),
        (["--method", "cssvm", "--repulsion", "tea"], "'tea' is not one of 'displacement', 'gradient'"),
        (["--repulsion", "gradient"], "--repulsion is for --method cssvm, not for svmdiv"),
        (["--s", "2"], "--s is for --method cssvm, not for svmdiv"),
        (["--method", "cssvm", "--seed", "-1"], "Invalid value for '--seed'"),
        (["--method", "cssvm", "--assignment", "tea"], "'tea' is not one of 'all', 'best'"),
        (["--preset", "tea"], "'tea' is not one of 'svmdiv', 'svmdiv2'"),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, few: list[object], tmp_path: Path, words: list[str], reason: str
) -> None:
    judged = ["--qrels", made / "qrels.subtopics.txt", "--out", tmp_path / "x"]
    assert reason in refused("train-diversity", *few, *judged, *words)


def test_judgements_must_be_by_subtopic(refused: Refused, made: Path, few: list[object], tmp_path: Path) -> None:
    words = [*few, "--qrels", made / "qrels.txt", "--out", tmp_path / "x"]
    assert "is relevant to subtopic 0, which means no subtopic" in refused("train-diversity", *words)
