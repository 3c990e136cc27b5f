from __future__ import annotations

from pathlib import Path

import pytest

from greylag import LinearModel, read_run
from greylag.cli.training_topics import MARK, mark_training_topics, next_tag
from tests.greylag.cli.conftest import Command


def test_tags() -> None:
    assert next_tag("bm25", "mmr") == "bm25-mmr"
    assert next_tag(f"bm25-mrf{MARK}", "mmr") == f"bm25-mrf-mmr{MARK}"
    model = LinearModel((), (), fingerprint="abc", provenance={"queries": ["1", "2"]})
    assert mark_training_topics(model, ["1", "3"], "abc", "t") == f"t{MARK}"
    assert mark_training_topics(model, ["1", "3"], "abc", f"t{MARK}") == f"t{MARK}"
    assert mark_training_topics(model, ["1", "3"], "another", "t") == "t"
    assert mark_training_topics(model, ["3"], "abc", "t") == "t"
    chosen = LinearModel((), (), fingerprint="abc", provenance={"queries": ["1"], "validation": ["2"]})
    assert mark_training_topics(chosen, ["2", "3"], "abc", "t") == f"t{MARK}"
    assert mark_training_topics(LinearModel((), (), fingerprint="abc"), ["1"], "abc", "t") == "t"


@pytest.mark.parametrize(
    ("provenance", "advice"),
    [
        ({"learner": "GreedySelection"}, "use greylag train --folds"),
        ({"learner": "GreedySelection", "preset": "stack"}, "use greylag experiment with a file from --init stack"),
        ({"baseline": "BM25"}, "use greylag tune --folds"),
        ({"method": "svmdiv"}, "train on other topics"),
    ],
)
def test_advice_for_each_kind_of_model(
    provenance: dict[str, str], advice: str, caplog: pytest.LogCaptureFixture
) -> None:
    model = LinearModel((), (), fingerprint="abc", provenance={"queries": ["1"], **provenance})
    mark_training_topics(model, ["1"], "abc", "t")
    assert caplog.messages[0].endswith(f"for held-out rankings, {advice}")


def test_runs_of_training_topics_warn(
    command: Command, made: Path, ranked: list[object], collection: list[object], tmp_path: Path
) -> None:
    model, run, last = tmp_path / "model.json", tmp_path / "mrf.run", tmp_path / "mmr.run"
    learned = [*ranked, "--qrels", made / "qrels.txt", "--pool", "sd", "--max-features", "1"]
    assert command("train", *learned, "--out", model)[0] == 0
    code, _, err = command("rerank", *ranked, "--model", model, "--out", run)
    assert (code, read_run(run).tag) == (0, f"bm25-mrf{MARK}")
    assert "24 of 24 topics are among those that the model was trained on" in err
    assert command("diversify", *collection, "--run", run, "--method", "mmr", "--out", last)[0] == 0
    assert read_run(last).tag == f"bm25-mrf-mmr{MARK}"
    code, _, err = command("evaluate", "--qrels", made / "qrels.txt", run, last, made / "bm25.run")
    assert code == 0
    assert [line.split(":")[2].strip() for line in err.splitlines()] == [str(run), str(last)]
    assert command("rerank", *ranked, "--model", model, "--tag", "own", "--out", run)[0] == 0
    assert read_run(run).tag == "own"


def test_held_out_rankings_do_not_warn(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    out, run = tmp_path / "model.json", tmp_path / "held-out.run"
    words = [*ranked, "--qrels", made / "qrels.txt", "--pool", "sd", "--max-features", "1", "--out", out]
    code, told, _ = command("train", *words, "--folds", "6", "--out-run", run)
    assert code == 0
    means = {
        line.split("  ")[0]: float(line.split()[2]) for line in told.splitlines() if line.startswith(("held", "first"))
    }
    code, shown, err = command("evaluate", "--qrels", made / "qrels.txt", run, made / "bm25.run", "-m", "AP")
    assert (code, err) == (0, "")
    found = {line.split()[0]: float(line.split()[1]) for line in shown.splitlines()[1:3]}
    assert found == {str(run): means["held out"], str(made / "bm25.run"): means["first stage"]}
    held_out = LinearModel.load(out).provenance["held_out"]
    assert held_out == {"folds": 6, "AP": pytest.approx(means["held out"], abs=5e-5)}


def test_folds_and_a_run_go_together(refused, ranked, made, tmp_path) -> None:  # type: ignore[no-untyped-def]
    words = [*ranked, "--qrels", made / "qrels.txt", "--out", tmp_path / "x"]
    for more in (["--folds", "3"], ["--out-run", tmp_path / "y"]):
        assert "--folds and --out-run go together" in refused("train", *words, *more)
    assert "replace" in refused("train", *words, "--folds", "3", "--out-run", made / "bm25.run")
