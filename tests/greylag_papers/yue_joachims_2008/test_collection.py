import json

import pytest

from greylag.studies.runner import run_study
from greylag_papers.yue_joachims_2008.collection import STUDY, Settings
from greylag_papers.yue_joachims_2008.comparison import ORACLE
from tests.greylag.studies.samples import DEMO


def test_comparisons_have_their_range_over_orders_of_the_queries(tmp_path):
    settings = Settings(
        name="demo", study="svmdiv_collection", docs="docs.jsonl", topics="topics.tsv",
        subtopic_qrels="qrels.subtopics.txt", depth=20, k=3, spaces=("svmdiv",), grid=(1.0, 10.0), n_training=3,
        n_validation=1, n_orders=3, training_sizes=(1, 3), data_folder=DEMO,
    )  # fmt: skip
    scores = run_study(STUDY, settings, tmp_path).scores
    results = json.loads((tmp_path / "results.json").read_text())
    for name in ("relevant", "all"):
        assert results[name]["loss by training queries"]["3"] == pytest.approx(scores["svmdiv"][name])
        assert list(scores[f"test loss, {name}"]) == ["C = 1", "C = 10"]
        assert scores[ORACLE][name] < scores["svmdiv"][name]
    row = scores["svmdiv / random, relevant"]
    assert row["least p"] <= row["p"] <= row["most p"]
    assert row["least difference"] <= row["mean"] - row["against"] <= row["most difference"]
    assert row["least difference"] < row["most difference"]
    assert "least p" not in scores["svmdiv / random, all"]
