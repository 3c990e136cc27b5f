"""The systems of the study of the stack."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.experiments.stack_systems import Collected, fitted, learn, mean_measure, ranked
from greylag.fusion import reciprocal_rank_fusion
from greylag.ltr import GreedySelection, MRFRanker
from greylag.ltr.stack import stack_data, training_rows
from tests.greylag.ltr.test_stack import INDEX, QRELS, RANKINGS, RECIPE, mean

SHARED = Collected(RECIPE, tuple(RANKINGS[:8]), QRELS, INDEX, (0.3, 0.9), 1)
TRAINING = [f"q{q}" for q in range(6)]


def test_a_fold_ranks_every_query_by_every_system() -> None:
    fold = learn(SHARED, TRAINING)
    assert {"RM3 tuned", "MRF-FS", "stack", "manifold after RM3 tuned", "RRF of all"} < fold.rankings.keys()
    for rankings in fold.rankings.values():
        assert {qid: len(ranking) for qid, ranking in rankings.items()} == {f"q{q}": 60 for q in range(8)}
    stack = MRFRanker(fold.model, INDEX).run(RANKINGS[:8])
    assert {qid: ranking.docids for qid, ranking in stack.items()} == {
        qid: ranking.docids for qid, ranking in fold.rankings["stack"].items()
    }
    parts = [name for name in fold.rankings if name.split("after ")[-1] in {"BM25 tuned", "RM3 tuned", "MRF-FS"}]
    parts += ["MRF-FS expansion", "manifold after MRF-FS expansion"]
    fused = reciprocal_rank_fusion([fold.rankings[name]["q7"] for name in parts])
    assert dict(zip(fused.docids, fused.scores, strict=True)) == pytest.approx(
        dict(zip(fold.rankings["RRF of all"]["q7"].docids, fold.rankings["RRF of all"]["q7"].scores, strict=True))
    )


def test_nothing_is_learned_from_the_test_queries() -> None:
    turned = {qid: grades if qid in TRAINING else {"d1": 1} for qid, grades in QRELS.items()}
    other = Collected(RECIPE, tuple(RANKINGS[:8]), turned, INDEX, (0.3, 0.9), 1)
    first, second = learn(SHARED, TRAINING), learn(other, TRAINING)
    assert (first.tuned, first.model, first.alphas) == (second.tuned, second.model, second.alphas)
    assert first.rankings == second.rankings


def test_scores_of_all_rows_by_what_some_rows_taught() -> None:
    fold = learn(SHARED, TRAINING)
    data = stack_data(RECIPE, fold.tuned, RANKINGS[:8], QRELS, INDEX)
    rows = training_rows(RECIPE, fold.tuned, data.select_queries(TRAINING))
    scores = fitted(data, rows, ("FI/term/BM25",), GreedySelection("AP"), 1)
    assert np.array_equal(np.abs(scores), np.abs(data.features[:, data.names.index("FI/term/BM25")]))
    run = ranked(data, RANKINGS[:8], scores)
    assert mean_measure(SHARED, run) == pytest.approx(mean(run))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="some candidates are not in the index"):
        ranked(data, RANKINGS, scores)
