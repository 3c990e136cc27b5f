"""Ensembles for subset prediction: the report, synthetic sets and a test collection."""

import json
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.studies.runner import run_study
from greylag_papers.schiegg_2016.subsets import (
    COLLECTION,
    ENSEMBLES,
    SHOWN,
    SYNTHETIC,
    CollectionSubsets,
    SubsetSettings,
    SyntheticSubsets,
    random_trials,
    tasks,
)
from greylag_papers.schiegg_2016.trials import COULOMB, TrialTable
from greylag_papers.yue_joachims_2008.queries import folds
from tests.greylag_papers.schiegg_2016.samples import GRID, ONE
from tests.greylag_papers.yue_joachims_2008 import samples


def test_pick_best_of_random_orders():
    table = TrialTable(tuple(random_trials(samples.queries(200), (1, 3), k=1)))
    # One of two documents is picked: the loss is 0.3, or 0.7 if all M orders begin with the first document.
    for M in (1, 3):
        assert table.score("random", M) == pytest.approx(0.3 + 0.4 * 0.5**M, abs=0.01)
        assert table.score("random", M, "mean") == pytest.approx(0.5, abs=0.01)


def test_queries_are_trained_on_together_and_alone():
    queries = samples.queries(6)
    settings = SubsetSettings(name="s", n_training=3, n_validation=1, **GRID)
    found = tasks(folds(queries, 3, 1), settings)
    truths = {id(query.truth): query.qid for query in queries}
    seen = {
        name: [
            [[truths[id(truth)] for _, truth in part] for part in (t.training, t.validation, t.test.values())]
            for t in part
        ]
        for name, part in found.items()
    }
    assert seen == {
        "3 queries": [
            [["2", "3", "4"], ["5"], ["0", "1"]],
            [["4", "5", "0"], ["1"], ["2", "3"]],
            [["0", "1", "2"], ["3"], ["4", "5"]],
        ],
        "1 query": [
            [["2"], ["5"], ["0", "1"]],
            [["3"], ["5"], ["0", "1"]],
            [["4"], ["1"], ["2", "3"]],
            [["5"], ["1"], ["2", "3"]],
            [["0"], ["3"], ["4", "5"]],
            [["1"], ["3"], ["4", "5"]],
        ],
    }
    names = [t.name for part in found.values() for t in part]
    assert len(set(names)) == len(names)


DEMO = Path(greylag.__file__).parent / "demo"


@pytest.mark.long
def test_study_of_a_collection(tmp_path):
    settings = CollectionSubsets(
        name="demo", study="cssvm_subsets_collection", docs="docs.jsonl", topics="topics.tsv",
        subtopic_qrels="qrels.subtopics.txt", depth=20, k=3, sizes=(2,), n_training=3, n_validation=1, n_single=1,
        data_folder=DEMO, **ONE,
    )  # fmt: skip
    result = run_study(COLLECTION, settings, tmp_path).scores
    for method in ENSEMBLES:
        scores = result[method]
        for name in ("3 queries", "1 query"):
            assert 0 < scores[f"pick-best@2 from {name}"] <= scores[f"mean@2 from {name}"] < 1


@pytest.mark.long
def test_study_of_synthetic_sets(tmp_path):
    settings = SyntheticSubsets(
        name="s", study="cssvm_subsets_synthetic", n_sets=6, sizes=(1, 2), n_training=2, n_validation=2, n_single=1,
        **ONE,
    )  # fmt: skip
    result = run_study(SYNTHETIC, settings, tmp_path / "new").scores
    assert tuple(result) == SHOWN
    assert set(COULOMB) < set(SHOWN)
    content = json.loads((tmp_path / "new" / "results.json").read_text())
    for name in ("2 queries", "1 query"):
        assert content[name]["tests"]["cssvm-all / ssvm, mean"]["n"] == 2
        for method, scores in result.items():
            M = 1 if method == "ssvm" else 2
            losses = np.array([*content[name][method][str(M)]["losses"].values()])
            assert losses.shape == (2, M)
            assert scores[f"pick-best@{M} from {name}"] == pytest.approx(losses.min(axis=1).mean())
            assert scores[f"mean@{M} from {name}"] == pytest.approx(losses.mean())
    assert (tmp_path / "new" / "report.html").read_text().count("<svg") == 1
