"""The systems of the study of the stack."""

from __future__ import annotations

import numpy as np
import pytest

from greylag import ParameterError
from greylag.features import FeatureParameters
from greylag.fusion import reciprocal_rank_fusion
from greylag.ltr import GreedySelection, MRFRanker
from greylag.ltr.stack import StackCandidates, TunedRM3
from greylag_papers.beyond.stack_systems import Collected, ablations, fitted, learn, mean_measure, ranked
from tests.greylag.ltr.test_stack import INDEX, QRELS, RANKINGS, RECIPE, mean

SHARED = Collected(StackCandidates(RECIPE, RANKINGS[:8], QRELS, INDEX), (0.3, 0.9), 1)
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
    other = Collected(StackCandidates(RECIPE, RANKINGS[:8], turned, INDEX), (0.3, 0.9), 1)
    first, second = learn(SHARED, TRAINING), learn(other, TRAINING)
    assert (first.tuned, first.model, first.chosen) == (second.tuned, second.model, second.chosen)
    assert first.rankings == second.rankings


def test_scores_of_all_rows_by_what_some_rows_taught() -> None:
    fold = learn(SHARED, TRAINING)
    data = SHARED.candidates.data(fold.tuned)
    rows = SHARED.candidates.training(fold.tuned, TRAINING)
    scores = fitted(data, rows, ("FI/term/BM25",), GreedySelection("AP"), 1)
    assert np.array_equal(np.abs(scores), np.abs(data.features[:, data.names.index("FI/term/BM25")]))
    run = ranked(data, RANKINGS[:8], scores)
    assert mean_measure(SHARED, run) == pytest.approx(mean(run))  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="some candidates are not in the index"):
        ranked(data, RANKINGS, scores)


def test_what_is_left_out_and_what_is_added() -> None:
    tuned = TunedRM3(FeatureParameters(), 0.5)
    groups = {name: list(map(str, part)) for name, part in RECIPE.features(tuned).items()}
    found = ablations(groups, tuned)
    assert list(found) == [f"{what}{part}" for part in groups for what in ("stack without ", "RM3 with ")]
    everything = {feature for part in groups.values() for feature in part}
    assert set(found["stack without MRF"]) == everything - set(groups["MRF"])
    assert not any(tuned.rm3 in feature or "expansion" in feature for feature in found["stack without expansion"])
    assert f"stage:{tuned.bm25}>>manifold@minmax" in found["stack without expansion"]
    assert found["RM3 with manifold"] == [f"stage:{tuned.rm3}", *groups["manifold"]]
    assert len(set(found["RM3 with expansion"])) == len(groups["expansion"]) == len(found["RM3 with expansion"])
