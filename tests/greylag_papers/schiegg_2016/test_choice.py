"""The study of the choice of a member: its folds, its scores, and the whole on the demonstration collection."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from greylag.experiments import deviations, load
from greylag_papers.schiegg_2016 import choice
from tests.greylag.experiments import samples
from tests.greylag.experiments.samples import CONFIGS, DEMO


def test_no_query_is_used_twice_in_a_fold() -> None:
    qids = [str(number) for number in range(23)]
    settings = choice.Settings.model_construct(folds=5, repetitions=3, seed=1)
    folds = choice.make_folds(settings, qids)
    assert len(folds) == 15
    for fold in folds:
        assert sorted(fold.test + fold.ensemble + fold.chooser) == sorted(qids)
        assert min(map(len, (fold.ensemble, fold.chooser))) >= 8
    for repetition in range(3):
        tested = [qid for fold in folds[5 * repetition : 5 * repetition + 5] for qid in fold.test]
        assert sorted(tested) == sorted(qids)


def test_losses_are_means_over_repetitions() -> None:
    parts = [dict.fromkeys(choice.SYSTEMS, losses) for losses in ({"1": 0.2}, {"2": 0.5, "1": 0.4})]
    assert choice.mean_losses(parts)["chosen"] == pytest.approx({"1": 0.3, "2": 0.5})


def test_the_study_on_the_demonstration_collection(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GREYLAG_DATA", raising=False)  # the file names its own data
    (tmp_path / "x.yaml").write_text(
        f"name: x\nstudy: cssvm_choice\ndata: {DEMO}\ndocs: docs.jsonl\ntopics: topics.tsv\n"
        "subtopic_qrels: qrels.subtopics.txt\ndepth: 20\nM: 2\nC: 0.01\nfolds: 3\nrepetitions: 1\n"
    )
    out = tmp_path / "out"
    loss = {name: own["subtopic-loss@5"] for name, own in samples.run_file(tmp_path / "x.yaml", out).scores.items()}
    assert tuple(loss) == choice.SYSTEMS
    assert loss["pick-best"] <= min(loss["chosen"], loss["best on average"], loss["mean member"])
    assert loss["pick-best"] < loss["mean member"] < 1
    assert len(samples.results(out)["penalties"]) == 3
    again = samples.run_file(tmp_path / "x.yaml", tmp_path / "again", n_jobs=3).scores
    assert {name: own["subtopic-loss@5"] for name, own in again.items()} == loss


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ambient", "div400"])
def test_expected_scores(data: Callable[[str], Path], tmp_path: Path, name: str) -> None:
    data({"div400": "div400_dev"}.get(name, name))
    _, settings = load(CONFIGS / f"{name}.choice.yaml")
    assert deviations(samples.run_file(CONFIGS / f"{name}.choice.yaml", tmp_path).scores, settings.expected) == []
