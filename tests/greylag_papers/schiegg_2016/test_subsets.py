"""Ensembles for subset prediction: the report, synthetic sets and a test collection."""

import json

import numpy as np
import pytest

from greylag.studies.runner import run_study
from greylag_papers.schiegg_2016.subsets import COLLECTION, SHOWN, SYNTHETIC, SubsetSettings, random_trials, tasks
from greylag_papers.schiegg_2016.trials import TrialTable
from greylag_papers.yue_joachims_2008.queries import folds
from tests.greylag.studies.samples import DEMO
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
        name: [" ".join(truths[id(truth)] for _, truth in (*t.training, *t.validation, *t.test.values())) for t in part]
        for name, part in found.items()
    }
    assert seen == {  # to train on, to validate on, to test
        "3 queries": ["2 3 4 5 0 1", "4 5 0 1 2 3", "0 1 2 3 4 5"],
        "1 query": ["2 5 0 1", "3 5 0 1", "4 1 2 3", "5 1 2 3", "0 3 4 5", "1 3 4 5"],
    }
    names = [t.name for part in found.values() for t in part]
    assert len(set(names)) == len(names)


@pytest.mark.long
@pytest.mark.parametrize(
    ("study", "fields"),
    [
        (
            COLLECTION,
            {"docs": "docs.jsonl", "topics": "topics.tsv", "subtopic_qrels": "qrels.subtopics.txt", "depth": 20},
        ),
        (SYNTHETIC, {"n_sets": 6}),
    ],
)
def test_studies(study, fields, tmp_path):
    numbers = {"k": 3, "sizes": (1, 2), "n_training": 2, "n_validation": 2, "n_single": 1}
    settings = study.settings(name="s", data_folder=DEMO, **fields, **numbers, **ONE)
    scores = run_study(study, settings, tmp_path).scores
    assert tuple(scores) == SHOWN
    results = json.loads((tmp_path / "results.json").read_text())
    for name in ("2 queries", "1 query"):
        for method in SHOWN:
            M = 1 if method == "ssvm" else 2
            losses = np.array([*results[name][method][str(M)].values()])
            assert losses.shape == (results[name]["tests"]["cssvm-all / ssvm, mean"]["n"], M)
            assert scores[method][f"pick-best@{M} from {name}"] == pytest.approx(losses.min(axis=1).mean())
            assert scores[method][f"mean@{M} from {name}"] == pytest.approx(losses.mean())
