"""The study of the stack, on the demonstration collection."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from greylag.evaluation import Measure, Scores, compare, parse_measure
from greylag.experiments.config import shipped_file
from greylag.features import FeatureParameters
from greylag.features.spelling import parse_feature
from greylag.ltr import LinearModel
from greylag.ltr.stack import TunedRM3
from greylag_papers.beyond.stack import (
    choice_table,
    diversity_table,
    feature_table,
    file_name,
    names,
    part_table,
    system_tables,
)
from greylag_papers.beyond.stack_systems import Fold
from tests.greylag.experiments.samples import DEMO, results, run_file

SMALL = """
training:
  max_features: 2
  folds: 2
  inner_folds: 2
  depth: 50
  alphas: [0.6]
  grid: {k1: [0.9], b: [0.4], mu: [1000], fb_docs: [5], fb_terms: [10], original_weight: [0.5]}
"""


def test_file_names() -> None:
    assert file_name("stack, then PM-2") == "stack-then-pm-2"


@pytest.mark.slow
def test_the_demonstration_collection(tmp_path: Path) -> None:
    text = shipped_file("demo.stack").read_text()
    head, _, tail = text.partition("training:")
    tail = tail[tail.index("diversify:") :]
    small = shutil.copytree(DEMO, tmp_path / "demo") / "small.yaml"
    small.write_text(f"{head}{SMALL}{tail}")
    finished = run_file(small, tmp_path / "out")
    assert finished.scores["stack"]["AP"] > finished.scores["BM25"]["AP"]
    assert finished.scores["stack, then xQuAD"]["alpha-nDCG@10"] > finished.scores["stack"]["alpha-nDCG@10"]
    found = results(tmp_path / "out")
    assert len(found["chosen"]) == len(found["features"]) == 2
    assert all(1 <= len(chosen) <= 2 * 2 for chosen in found["features"])
    assert (tmp_path / "out" / "stack.run").exists()
    assert (tmp_path / "out" / "models" / "stack" / "fold-2.json").exists()


MEASURES = (parse_measure("AP"), parse_measure("P@10"))
QIDS = tuple(f"q{q}" for q in range(10))
SYSTEMS = ("BM25", "RM3 tuned", "stack", "RM3 with MRF", "stack without MRF", "stack, then MMR")
RNG = np.random.default_rng(5)


def scored(measures: tuple[Measure, ...], values: np.ndarray) -> Scores:
    """Scores of all queries."""
    return Scores(measures, QIDS, values, missing=(), unjudged=())


SCORES = {system: scored(MEASURES, RNG.random((10, 2))) for system in SYSTEMS}
TUNED = TunedRM3(FeatureParameters(k1=1.2, fb_docs=5), 0.25)
MODEL = LinearModel(
    tuple(map(parse_feature, (f"stage:{TUNED.rm3}>>manifold@minmax", f"stage:{TUNED.bm25}", "score"))), (1.0, 2.0, 3.0)
)


def test_features_are_named_without_parameters() -> None:
    assert names(Fold(TUNED, MODEL)) == ["rm3>>manifold@minmax", "bm25", "score"]


def test_parts_and_diversifiers_are_in_tables_of_their_own() -> None:
    scores, tests = system_tables(SCORES)
    assert [row[0] for row in scores.rows] == ["BM25", "RM3 tuned", "stack"]
    assert [row[0] for row in tests.rows] == ["BM25", "RM3 tuned"]
    difference = SCORES["BM25"].values[:, 0].mean() - SCORES["stack"].values[:, 0].mean()
    assert tests.rows[0][3].value == pytest.approx(difference)  # type: ignore[union-attr]


def test_what_parts_add_and_take_away() -> None:
    table = part_table(SCORES)
    ((part, added, gain, can_gain, p_gain, left, loss, can_lose, p_loss),) = table.rows
    mean = {system: own.values[:, 0].mean() for system, own in SCORES.items()}
    assert part == "MRF"
    assert (added, left) == (pytest.approx(mean["RM3 with MRF"]), pytest.approx(mean["stack without MRF"]))
    assert float(str(gain)) == pytest.approx(mean["RM3 with MRF"] - mean["RM3 tuned"], abs=5e-5)
    assert float(str(loss)) == pytest.approx(mean["stack without MRF"] - mean["stack"], abs=5e-5)
    first = {system: scored(MEASURES[:1], own.values[:, :1]) for system, own in SCORES.items()}
    expected = [
        compare({system: first[system] for system in pair}, pair[0]).comparisons[0]
        for pair in (("RM3 tuned", "RM3 with MRF"), ("stack", "stack without MRF"))
    ]
    assert [(can_gain, p_gain), (can_lose, p_loss)] == [(c.detectable, c.corrected_p) for c in expected]


def test_what_folds_chose() -> None:
    folds = [Fold(TUNED, MODEL, chosen={"alpha": 0.3}), Fold(TUNED, MODEL, chosen={"alpha": 0.9})]
    table = choice_table(folds)
    assert table.header == ("", "fold 1", "fold 2")
    assert table.rows[0] == ("k1", "1.2", "1.2")
    assert table.rows[3] == ("fb_docs", "5", "5")
    assert table.rows[5:] == [
        ("original_weight", "0.25", "0.25"), ("alpha", "0.3", "0.9"), ("features of the stack", "3", "3"),
    ]  # fmt: skip
    assert feature_table(folds).rows == [("rm3>>manifold@minmax", 2), ("bm25", 2), ("score", 2)]


def test_diversity_is_shown_beside_relevance() -> None:
    diverse = {"stack": scored((parse_measure("alpha-nDCG@10"),), np.full((10, 1), 0.5))}
    table = diversity_table(SCORES, diverse)
    assert table.header == ("", "AP", "P@10", "alpha-nDCG@10")
    assert table.rows == [("stack", *map(float, SCORES["stack"].means), 0.5)]
