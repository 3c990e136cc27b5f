"""The study of preselection on the demonstration collection."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from greylag import FormatError
from greylag.studies import load
from greylag_papers.beyond.preselection import WHOLE, time_table
from tests.greylag.studies import samples
from tests.greylag.studies.samples import DEMO


def write_config(folder: Path, **options: object) -> Path:
    demo = yaml.safe_load((DEMO / "demo.yaml").read_text())
    fields = {name: demo[name] for name in ("collection", "topics", "qrels", "training")}
    content = {"name": "small", "study": "preselection", "data": str(DEMO), **fields, **options}
    (folder / "small.yaml").write_text(yaml.safe_dump(content))
    return folder / "small.yaml"


@pytest.mark.usefixtures("own_data")
def test_the_whole_pool_is_that_of_the_main_study_and_results_do_not_depend_on_threads(tmp_path: Path) -> None:
    path = write_config(
        tmp_path, preselect=["mmr(n_features=4)", "mmr(n_features=4,relevance_weight=1)"], measures=["AP", "nDCG@10"]
    )
    one, two = samples.run_file(path, tmp_path / "out"), samples.run_file(path, tmp_path / "out2", n_jobs=2)
    assert one.scores == two.scores
    assert (tmp_path / "out" / "results.json").read_bytes() == (tmp_path / "out2" / "results.json").read_bytes()
    _, demo = load(DEMO / "demo.yaml")
    for measure in ("AP", "nDCG@10"):
        assert one.scores["bm25"][measure] == pytest.approx(demo.expected["bm25"][measure], abs=5e-5)
        assert one.scores[WHOLE][measure] == pytest.approx(demo.expected["mrf"][measure], abs=5e-5)
    results = samples.results(tmp_path / "out")
    assert {len(models) for models in results["features"].values()} == {6}
    assert all(len(features) <= 4 for features in results["features"]["mmr(n_features=4)"])
    assert results["features"]["mmr(n_features=4)"] != results["features"]["mmr(n_features=4,relevance_weight=1)"]
    times = json.loads((tmp_path / "out" / "times.json").read_text())
    assert times["mmr(n_features=4)"] < times[WHOLE]
    page = (tmp_path / "out" / "report.html").read_text()
    for text in (
        f"{one.scores['mmr(n_features=4)']['AP']:.4f}",
        "speedup",
        results["features"]["mmr(n_features=4)"][0][0],
    ):
        assert text in page


def test_times() -> None:
    assert time_table({WHOLE: 8.0, "mmr(n_features=4)": 4.0}).rows == [
        (WHOLE, 8.0, 1.0),
        ("mmr(n_features=4)", 4.0, 2.0),
    ]


@pytest.mark.usefixtures("own_data")
@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"preselect": ["mmr"]}, "preselect.0: mmr needs the option n_features"),
        ({"preselect": []}, "preselect: "),
    ],
)
def test_preselections_that_cannot_be_read(tmp_path: Path, options: dict[str, object], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        load(write_config(tmp_path, **options))
