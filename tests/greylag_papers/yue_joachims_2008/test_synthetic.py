import json

from greylag.studies.runner import run_study
from greylag_papers.yue_joachims_2008.comparison import METHODS
from greylag_papers.yue_joachims_2008.synthetic import STUDY, Settings, count_significant


def test_what_is_to_the_contrary_is_counted_after_a_correction():
    better, worse = {"mean": 0.1, "against": 0.2}, {"mean": 0.2, "against": 0.1}
    rows = [{**better, "p": 0.04}, {**worse, "p": 0.04}, {**worse, "p": 0.001}, {**better, "p": 0.2}]
    assert count_significant(rows) == {"significant": 1, "contrary": 1, "of": 4}


def test_study(tmp_path):
    settings = Settings(
        name="s", study="svmdiv_synthetic", n_sets=6, n_training=3, n_validation=1, ks=(1, 3), grid=(1.0,)
    )
    scores = dict(run_study(STUDY, settings, tmp_path).scores)
    found = dict(scores.pop("svmdiv below essential-pages"))
    assert set(scores) == {*METHODS, "svmdiv"}
    below = json.loads((tmp_path / "results.json").read_text())["below essential-pages"]
    lower = [row["mean"] < row["against"] and row["p"] < 0.05 for row in below.values()]
    assert found == {"significant": sum(lower), "contrary": 0, "of": 2}
    assert all(by_k["3"] < by_k["1"] for by_k in scores.values())
    assert json.loads((tmp_path / "results.json").read_text())["means"] == scores
    assert "Loss by K" in (tmp_path / "report.html").read_text()
