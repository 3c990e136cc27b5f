"""Folds, what is fitted to the queries outside of each, and the rankings of those inside."""

import numpy as np
import pytest
from joblib import parallel_config

from greylag.base import Ranking, Run
from greylag.evaluation import fit_by_fold, read_folds, rerank_by_fold, split_folds

QIDS = [str(number) for number in range(11)]
FIRST = Run(tuple(Ranking(qid, "text", ("a", "b", "c"), np.array([3.0, 2.0, 1.0])) for qid in QIDS), "first")


def test_qids_of_other_queries_in_a_file_of_folds_are_told(tmp_path, caplog):
    path = tmp_path / "folds.txt"
    path.write_text("1 a\n2 b\n03 a\n4 b\n")
    assert read_folds(path, ["4", "1", "2"]) == [["1"], ["4", "2"]]
    assert caplog.messages == [f"{path}: 1 of 4 qids are not among the queries, such as '03'"]


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_a_fold_is_held_out_from_what_is_fitted_for_it(backend):
    folds, weights = split_folds(QIDS, 3, 1), {qid: float(qid) for qid in QIDS}

    def fit(training, weights):
        return training, sum(weights[qid] for qid in training)

    with parallel_config(backend=backend, n_jobs=2):
        found = [*fit_by_fold(fit, QIDS, folds, weights)]
    for fold, (training, total) in zip(folds, found, strict=True):
        assert training == tuple(qid for qid in QIDS if qid not in fold)
        assert total == sum(map(float, QIDS)) - sum(map(float, fold))
    ((training, _),) = fit_by_fold(fit, QIDS, [QIDS[:2]], weights)  # a split is a single fold
    assert training == tuple(QIDS[2:])


def test_each_query_is_ranked_by_the_stage_of_its_fold_in_the_order_of_the_run():
    def reverse(ranking):
        return ranking.permute(range(len(ranking))[::-1])

    run = rerank_by_fold([lambda ranking: ranking, reverse], [["3", "1"], ["2"]], FIRST, tag="x")
    assert (list(run), run.tag) == (["1", "2", "3"], "x")
    assert run["2"].docids == FIRST["2"].docids[::-1]
    assert run["3"] == FIRST["3"]
