"""The study of manifold ranking as a stage: the choice of alpha, and the whole on the demonstration collection."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from greylag import FormatError, Ranking, Run
from greylag.evaluation import evaluate
from greylag.index import PositionalIndex
from greylag.manifold import ManifoldRanker
from greylag.studies import Context
from greylag_papers.beyond import manifold_stage
from tests.greylag.studies import samples
from tests.greylag.studies.samples import DEMO, Page


def test_each_fold_has_the_alpha_that_is_best_on_the_others() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(40)]
    index = PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(words, size=15)) for i in range(60)})
    docids = [f"d{i}" for i in range(60)]
    qids = [str(q) for q in range(9)]
    first = Run(
        tuple(
            Ranking(
                qid,
                " ".join(rng.choice(words, 3)),
                tuple(rng.permutation(docids)[:30].tolist()),
                np.arange(30.0, 0, -1),
            )
            for qid in qids
        ),
        "first",
    )
    qrels = {qid: dict.fromkeys(rng.permutation(docids)[:12].tolist(), 1) for qid in [*qids[1:], "missing"]}
    folds, alphas = [qids[:3], qids[3:6], qids[6:]], (0.1, 0.5, 0.9)
    stage = ManifoldRanker(index, depth=20, confidence="query")
    found = manifold_stage.tune(stage, first, qrels, alphas, folds, 1)
    assert found.run.tag == "first-knn-query"
    assert list(found.run) == qids
    ap = {}
    for alpha in alphas:
        own = ManifoldRanker(index, depth=20, alpha=alpha, confidence="query")
        scores = evaluate(Run(tuple(own(ranking) for ranking in first.values())), qrels, ["AP"])
        ap[alpha] = scores.by_query
        assert found.curve[alpha] == pytest.approx(scores.means[0])
    for test, chosen in zip(folds, found.alphas, strict=True):
        means = {alpha: np.mean([ap[alpha][qid] for qid in qrels if qid not in test]) for alpha in alphas}
        assert means[chosen] == max(means.values())
        for qid in test:
            own = ManifoldRanker(index, depth=20, alpha=chosen, confidence="query")
            assert found.run[qid] == own(first[qid])
    assert len(set(found.alphas)) > 1


@pytest.mark.usefixtures("own_data")
def test_the_stage_on_the_demonstration_collection(tmp_path: Path) -> None:
    (tmp_path / "stage.yaml").write_text(
        f"name: x\nstudy: manifold_stage\npipeline: demo.yaml\ndata: {DEMO}\n"
        "alphas: [0.3, 0.7]\ngraphs: [full]\ndepth: 50\n"
    )
    out = tmp_path / "out"
    scores = samples.run_file(tmp_path / "stage.yaml", out).scores
    assert scores["bm25"]["AP"] == pytest.approx(0.8670, abs=5e-5)
    assert scores["mrf"]["AP"] == pytest.approx(0.9220, abs=5e-5)
    assert scores["bm25-full-scores"]["AP"] > 0.8
    results = samples.results(out)
    assert {len(alphas) for alphas in results["alphas"].values()} == {6}
    page = Page((out / "report.html").read_text())
    assert len(page.texts["svg"]) == 1
    stages = [f"{baseline}-full-{confidence}" for baseline in ("bm25", "mrf") for confidence in ("query", "scores")]
    assert page.rows[1:5] == [[stage, *map(str, results["alphas"][stage])] for stage in stages]
    assert "bm25 has AP 0.8670 over 24 queries" in page.text
    difference = scores["mrf-full-scores"]["AP"] - scores["mrf"]["AP"]
    assert any(
        row[:3] == ["mrf-full-scores", "mrf", "AP"] and row[3].rstrip("*") == f"{difference:+.4f}" for row in page.rows
    )
    times = json.loads((out / "times.json").read_text())
    assert next(iter(times)) == "full, 50 documents"
    assert ["full", *(f"{1e3 * seconds / 20:.1f}" for seconds in times.values())] in page.rows


@pytest.mark.usefixtures("sum_study")
def test_the_stage_needs_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("name: x\nstudy: sum\nnumbers: n\n")
    settings = manifold_stage.Settings(name="x", data_folder=tmp_path, pipeline="x.yaml")
    with pytest.raises(FormatError, match=r"x.yaml: study 'sum': use an experiment file of the study 'pipeline'"):
        manifold_stage.open_pipeline(settings, Context(tmp_path))
