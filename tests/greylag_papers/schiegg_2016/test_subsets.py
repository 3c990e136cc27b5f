"""Ensembles held against each other: what is chosen and counted, what a split sees, and both studies, small."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import greylag
from greylag.errors import ParameterError
from greylag.evaluation import Subtopics
from greylag.experiments.study import load
from greylag.structured import CuttingPlane
from greylag_papers.schiegg_2016 import subsets_collection as cssvm_subsets_collection
from greylag_papers.schiegg_2016 import subsets_synthetic as cssvm_subsets_synthetic
from greylag_papers.schiegg_2016.ensembles import COULOMB, METHODS, Grid, Perturbed, Task, Trial, TrialTable, run_trials
from greylag_papers.schiegg_2016.subsets import ENSEMBLES, SHOWN, by_alpha, fold_splits, random_trials, tasks
from greylag_papers.schiegg_2016.tables import (
    angle_table,
    compare_methods,
    comparison_table,
    limit_table,
    rank_table,
    size_table,
    wins_table,
)
from greylag_papers.yue_joachims_2008.comparison import StudyQuery, first_split, synthetic_queries
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics
from tests.greylag.diversity import samples
from tests.greylag.structured.models import Table, random_tables

DEMO = Path(greylag.__file__).parent / "demo"
CONFIGS = Path(greylag.__file__).parents[2] / "configs"
GRID = {
    "costs": (1.0, 10.0),
    "ensemble_costs": (10.0,),
    "alphas": (0.01, 0.1),
    "diversities": (0.1, 1.0),
    "spreads": (0.1, 1.0),
    "rounds": 2,
}
ONE = {name: values[:1] if isinstance(values, tuple) else values for name, values in GRID.items()}


def trial(task: str, validation: float, losses: list[list[float]], method: str = "mcl") -> Trial:
    ids = tuple(f"q{i}" for i in range(len(losses[0])))
    return Trial(method, len(losses), task, None, validation, method != "mcl", 30.0, ids, np.array(losses))


def query(qid: str) -> StudyQuery:
    """Two documents, of which the first covers 0.3 of the weight, and the second the rest."""
    empty, truth = csr_matrix((2, 1)), Subtopics(csr_matrix(np.eye(2)), np.array([0.3, 0.7]))
    return StudyQuery(qid, truth, empty, empty, np.zeros(2), {"svmdiv": samples.candidates(0, 2)})


def test_the_least_validation_loss_chooses_and_of_equal_ones_the_first() -> None:
    table = TrialTable((
        trial("a", 0.4, [[0.0, 0.0], [0.0, 0.0]]),
        trial("a", 0.2, [[0.5, 0.2], [0.3, 0.6]]),
        trial("a", 0.2, [[1.0, 1.0], [1.0, 1.0]]),
        trial("b", 0.9, [[0.1, 0.4], [0.3, 0.4]]),
        trial("a", 0.0, [[0.0, 0.0]]),
    ))  # fmt: skip
    assert [found.validation for found in table.chosen("mcl", 2)] == [0.2, 0.9]
    assert table.sizes("mcl") == [1, 2]
    # By hand: the means over tasks a and b of the lower and of the higher loss.
    ordered = table.ordered("mcl", 2)
    np.testing.assert_allclose(ordered["q0"], [(0.3 + 0.1) / 2, (0.5 + 0.3) / 2])
    np.testing.assert_allclose(ordered["q1"], [(0.2 + 0.4) / 2, (0.6 + 0.4) / 2])
    assert table.score("mcl", 2) == pytest.approx(0.25)
    assert table.score("mcl", 2, "mean") == pytest.approx(0.35)
    # In a each member wins one example; in b the first wins one and shares the other.
    np.testing.assert_allclose(table.wins("mcl", 2), [(0.5 + 0.75) / 2, (0.5 + 0.25) / 2])
    with pytest.raises(ParameterError, match="no losses of 'mcl' with 3 members"):
        table.chosen("mcl", 3)


def test_tables() -> None:
    table = TrialTable((
        trial("a", 0.0, [[0.5, 0.2], [0.3, 0.6]]),
        trial("a", 0.0, [[0.4, 0.4]]),
        trial("a", 0.0, [[0.7, 0.5]], "ssvm"),
    ))  # fmt: skip
    shown = size_table(table, ("ssvm", "mcl"), "")
    assert shown.header == ("M", "1", "2")
    assert [list(row) for row in shown.rows] == [["ssvm", pytest.approx(0.6), None], ["mcl", 0.4, pytest.approx(0.25)]]
    ranks = rank_table(table, ("ssvm", "mcl"), "")
    assert ranks.header == ("", "angle", "mean", "1", "2")
    assert list(ranks.rows[0]) == ["ssvm", 30.0, *[pytest.approx(0.6)] * 2, None]
    assert list(ranks.rows[1]) == ["mcl", 30.0, *map(pytest.approx, (0.4, 0.25, 0.55))]
    assert wins_table(table, ("mcl",), "").rows == [("mcl", 0.5, 0.5)]
    assert limit_table(table, ("ssvm", "mcl"), "").rows == [("ssvm", 1, 0), ("mcl", 2, 2)]
    (test,) = compare_methods(table, ("ssvm",), ("mcl",), "pick-best")
    (row,) = comparison_table("", [test]).rows
    assert row[:6] == ("mcl", "ssvm", pytest.approx(-0.35), 2, 0, 0)
    assert row[6:] == (pytest.approx(0.5), pytest.approx(0.5))  # both of one sign: 2 of 2^2 ways


def test_perturbed_is_the_svm_and_as_far_from_it_as_it_is_told() -> None:
    model, examples = Table(), random_tables(0, 4, 5, 20)
    optimum = CuttingPlane(10.0).fit(model, examples).weights
    np.testing.assert_array_equal(Perturbed(1, 10.0, 0.0).fit(model, examples).weights, [optimum])
    members = Perturbed(6, 10.0, 0.5, seed=1).fit(model, examples).weights
    distances = np.linalg.norm(members - optimum, axis=1)
    np.testing.assert_allclose(distances, 0.5 * np.linalg.norm(optimum))
    assert len(np.unique(members.round(6), axis=0)) == 6


def test_no_method_has_more_candidates_than_another() -> None:
    grid = Grid(**GRID)
    assert {len(candidates(grid, 3)) for candidates in METHODS.values()} == {2}
    assert len(
        set(map(str, (learner for candidates in METHODS.values() for learner in candidates(grid, 3))))
    ) == 2 * len(METHODS)
    with pytest.raises(ParameterError, match=r"each method needs as many candidates as any other, not \[2, 3\]"):
        Grid(**GRID | {"alphas": (0.01, 0.1, 1.0)})


def test_trials_do_not_depend_on_processes_and_test_what_they_say() -> None:
    examples = random_tables(1, 12, 5, 8)
    tasks = [
        Task(name, examples[at : at + 3], examples[9:], {"x": examples[8], "y": examples[7]})
        for name, at in (("a", 0), ("b", 3))
    ]
    methods = ("ssvm", "perturbed", "cssvm-all")
    trials = run_trials(Table(), tasks, (1, 3), Grid(**GRID), methods=methods)
    assert [(t.method, t.M) for t in trials[:: 2 * len(tasks)]] == [
        ("ssvm", 1), *((method, M) for method in methods[1:] for M in (1, 3))
    ]  # fmt: skip
    for found in trials:
        weights = found.learner.fit(Table(), tasks[found.task == "b"].training).weights
        expected = [[truth[int(np.argmax(x @ member))] for x, truth in tasks[0].test.values()] for member in weights]
        np.testing.assert_array_equal(found.losses, expected)
        validated = [[truth[int(np.argmax(x @ member))] for x, truth in examples[9:]] for member in weights]
        assert found.validation == pytest.approx(np.min(validated, axis=0).mean())
    again = run_trials(Table(), tasks, (1, 3), Grid(**GRID), methods=methods, n_jobs=2)
    assert [t.losses.tobytes() for t in again] == [t.losses.tobytes() for t in trials]
    angles = angle_table(TrialTable(tuple(trials)), 3, "")
    assert [row[:3] for row in angles.rows] == [("cssvm-all", "10", "0.01"), ("cssvm-all", "10", "0.1")]
    for row, part in zip(angles.rows, (trials[-4:-2], trials[-2:]), strict=True):
        assert row[3] == pytest.approx(np.mean([found.mean_angle for found in part]))
        assert row[4] == pytest.approx(np.mean([found.losses.min(axis=0).mean() for found in part]))
        assert row[5] == pytest.approx(np.mean([found.losses.mean() for found in part]))


@pytest.mark.parametrize(("n", "blocks"), [(44, [22, 22]), (25, [9, 8, 8]), (17, [1] * 17), (40, [20, 20])])
def test_every_query_is_tested_once_by_what_has_not_seen_it(n: int, blocks: list[int]) -> None:
    splits = fold_splits([query(str(i)) for i in range(n)], 12, 4)
    assert [len(split.test) for split in splits] == blocks
    assert [q.qid for split in splits for q in split.test] == [str(i) for i in range(n)]
    for split in splits:
        assert (len(split.training), len(split.validation)) == (12, 4)
        qids = [q.qid for part in split for q in part]
        assert len(set(qids)) == len(qids)
    with pytest.raises(ParameterError, match="16 queries cannot be split into 12 to train on, 4 to validate, and 1"):
        fold_splits([query(str(i)) for i in range(16)], 12, 4)


def test_the_best_of_random_orders() -> None:
    queries = [query(str(i)) for i in range(200)]
    table = TrialTable(tuple(random_trials(queries, (1, 3), k=1)))
    # One of two documents is picked: 0.3 is lost unless all M orders have the other one first.
    for M in (1, 3):
        assert table.score("random", M) == pytest.approx(0.3 + 0.4 * 0.5**M, abs=0.01)
        assert table.score("random", M, "mean") == pytest.approx(0.5, abs=0.01)


def test_one_query_trains_alone() -> None:
    queries = [query(str(i)) for i in range(6)]
    settings = cssvm_subsets_synthetic.Settings(name="s", n_training=3, n_validation=1, **GRID)
    found = tasks(fold_splits(queries, 3, 1), settings)
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


def test_members_are_further_apart_the_larger_alpha() -> None:
    split = first_split(synthetic_queries(SyntheticSubtopics(n_sets=4, n_documents=20, n_words=50)), 2, 1)
    settings = cssvm_subsets_synthetic.Settings(
        name="s", sizes=(1, 3), n_training=2, alpha_curve=(0.0, 0.01, 1.0), **ONE
    )
    table = by_alpha([split], settings)
    assert {(found.M, found.task) for found in table.trials} == {(3, "0, 1 for 3")}
    rows = angle_table(table, 3, "").rows
    assert [row[2] for row in rows] == ["0", "0.01", "1"]
    angles = [row[3] for row in rows]
    assert angles[0] < 1 < angles[1] < angles[2]  # alpha = 0 is the structured SVM, three times


def test_synthetic(tmp_path: Path) -> None:
    settings = cssvm_subsets_synthetic.Settings(
        name="s",
        study="cssvm_subsets_synthetic",
        n_sets=6,
        sizes=(1, 2),
        n_training=2,
        n_validation=2,
        n_single=1,
        alpha_curve=(0.0, 0.1),
        **ONE,
    )
    result = cssvm_subsets_synthetic.run(settings, tmp_path / "new", n_jobs=1, say=lambda _: None)
    assert tuple(result.scores) == SHOWN
    assert set(COULOMB) < set(SHOWN)
    content = json.loads((tmp_path / "new" / "results.json").read_text())
    for name in ("2 queries", "1 query"):
        for method, scores in result.scores.items():
            M = 1 if method == "ssvm" else 2
            losses = np.array([*content[name][method][str(M)]["losses"].values()])
            assert losses.shape == (2, M)
            assert scores[f"pick-best@{M} from {name}"] == pytest.approx(losses.min(axis=1).mean())
            assert scores[f"mean@{M} from {name}"] == pytest.approx(losses.mean())
    assert (tmp_path / "new" / "report.html").read_text().count("<svg") == 2


def test_collection(tmp_path: Path) -> None:
    settings = cssvm_subsets_collection.Settings(
        name="demo", study="cssvm_subsets_collection", docs="docs.jsonl", topics="topics.tsv",
        subtopic_qrels="qrels.subtopics.txt", depth=20, k=3, sizes=(2,), n_training=3, n_validation=1, n_single=1,
        data_folder=DEMO, alpha_curve=(0.0, 0.1),
        **ONE,
    )  # fmt: skip
    result = cssvm_subsets_collection.run(settings, tmp_path, n_jobs=1, say=lambda _: None)
    for method in ENSEMBLES:
        scores = result.scores[method]
        for name in ("3 queries", "1 query"):
            assert 0 < scores[f"pick-best@2 from {name}"] <= scores[f"mean@2 from {name}"] < 1
    assert "Mean angle in degrees" in (tmp_path / "report.html").read_text()


@pytest.mark.parametrize("name", ["synthetic", "ambient", "div400"])
def test_experiment_files_are_valid(name: str) -> None:
    _, settings = load(CONFIGS / f"{name}.cssvm.yaml")
    assert settings.name == f"{name}.cssvm"
    assert set(settings.expected) == set(SHOWN)
    assert np.isfinite([value for scores in settings.expected.values() for value in scores.values()]).all()
