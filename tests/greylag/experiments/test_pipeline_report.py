"""The report of the main study, on the demonstration collection."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.greylag.experiments.samples import DEMO, Page, run_file


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    run_file(DEMO / "demo.yaml", folder)
    return folder


def test_scores_models_and_queries_are_those_of_the_results(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf-8")
    parsed, results = Page(page), json.loads((out / "results.json").read_text())
    means = {name: run["means"] for name, run in results["relevance"]["runs"].items()}
    for name in ("bm25", "ql", "mrf", "mmr"):
        assert [name, *(f"{value:.4f}" for value in means[name].values())] in parsed.rows
    per_query = {name: results["relevance"]["runs"][name]["per_query"] for name in ("bm25", "mrf")}
    changes = [float(value or "") for _, name, value in parsed.attributes if name == "data-change"]
    assert changes == [per_query["mrf"][qid]["AP"] - per_query["bm25"][qid]["AP"] for qid in per_query["mrf"]]
    model = json.loads((out / "models" / "fold-1.json").read_text())
    first = model["features"][0]
    assert f"1:\N{NO-BREAK SPACE}{first['weight']:+.4g}" in parsed.text
    assert first["feature"] in parsed.text
    assert "24 topics over 634 documents" in page


def test_reasons_are_differences_from_the_average_of_the_first_stage(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf-8")
    reasons = [row[-1] for row in Page(page).rows if len(row) == 5 and "/" in row[-1]]
    assert len(reasons) == 240
    assert all(re.fullmatch(r"([+-][\d.e+-]+ \S+( \([^)]*\))?(; )?)+", reason) for reason in reasons)
