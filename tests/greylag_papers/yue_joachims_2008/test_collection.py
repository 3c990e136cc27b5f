import json
from pathlib import Path

import pytest

import greylag
from greylag.studies.runner import run_study
from greylag_papers.yue_joachims_2008.collection import STUDY, Settings
from greylag_papers.yue_joachims_2008.comparison import ORACLE

DEMO = Path(greylag.__file__).parent / "demo"


def test_study(tmp_path):
    settings = Settings(
        name="demo", study="svmdiv_collection", docs="docs.jsonl", topics="topics.tsv",
        subtopic_qrels="qrels.subtopics.txt", depth=20, k=3, spaces=("svmdiv",), grid=(1.0, 10.0), n_training=3,
        n_validation=1, n_orders=3, training_sizes=(1, 3), data_folder=DEMO,
    )  # fmt: skip
    scores = run_study(STUDY, settings, tmp_path).scores
    results = json.loads((tmp_path / "results.json").read_text())
    for name in ("relevant", "all"):
        found = results[name]
        assert found["loss by training queries"]["3"] == pytest.approx(scores["svmdiv"][name])
        assert list(found["training loss by C"]) == list(found["test loss by C"]) == ["1.0", "10.0"]
        assert scores[ORACLE][name] < scores["svmdiv"][name]
        assert found["runs"]["svmdiv"]["means"]["subtopic-loss@3"] == scores["svmdiv"][name]
        assert 0 <= found["greedy loss on training queries"] <= min(found["training loss by C"].values())
    assert scores["random"]["relevant"] < scores["random"]["all"]
    row = scores["svmdiv / random, relevant"]
    assert row["least p"] <= row["p"] <= row["most p"]
    assert row["least difference"] <= row["mean"] - row["against"] <= row["most difference"]
    assert row["least difference"] < row["most difference"]
    assert "least p" not in scores["svmdiv / random, all"]
    report = (tmp_path / "report.html").read_text()
    assert report.count("<svg") == 2
    assert "Training by C" in report
    times = json.loads((tmp_path / "times.json").read_text())
    assert all(seconds > 0 for part in times.values() for seconds in part.values())
