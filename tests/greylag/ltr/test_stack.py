"""The stack of RM3, MRF features and manifold ranking."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr import RM3, LinearModel, MRFRanker, Objective, RankingData
from greylag.ltr.stack import StackRecipe, Tuned, stack_data, top_rows, train_stack, training_rows, tune_rm3
from greylag.ranking import Ranking, Run

RNG = np.random.default_rng(3)
WORDS = [f"w{i}x" for i in range(40)]
INDEX = PositionalIndex.from_texts(
    {f"d{i}": " ".join(WORDS[w - 1] for w in RNG.zipf(1.3, size=30).clip(1, 40)) for i in range(60)}
)
RANKINGS = [
    Ranking(
        f"q{q}", " ".join(RNG.choice(WORDS[3:20], size=3)), tuple(f"d{d}" for d in RNG.permutation(60)), np.zeros(60)
    )
    for q in range(9)
]
QRELS = {f"q{q}": {f"d{d}": 1 for d in RNG.choice(60, size=6, replace=False)} for q in range(8)}
GRID = {"k1": (0.6, 2.0), "b": (0.2, 0.8), "fb_docs": (3, 5), "fb_terms": (4,), "original_weight": (0.3, 0.7)}
RECIPE = StackRecipe(grid=GRID, max_features=3, inner_folds=2, depth=25)


def mean(rankings: Run) -> float:
    """Mean AP, by its definition."""
    values = []
    for qid, relevant in QRELS.items():
        hits = [docid in relevant for docid in rankings[qid].docids]
        values.append(sum(sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit) / len(relevant))
    return float(np.mean(values))


def test_rm3_is_the_best_of_the_grid() -> None:
    judged = RANKINGS[:8]
    tuned = tune_rm3(RECIPE, judged, QRELS, INDEX)

    def bm25(k1: float, b: float) -> Run:
        return RM3(INDEX, original_weight=1.0, k1=k1, b=b).run(judged)

    by_bm25 = {(k1, b): mean(bm25(k1, b)) for k1 in GRID["k1"] for b in GRID["b"]}
    k1, b = max(by_bm25, key=by_bm25.__getitem__)
    assert (tuned.parameters.k1, tuned.parameters.b) == (k1, b)
    scores = {
        (docs, weight): mean(RM3(INDEX, original_weight=weight, k1=k1, b=b, fb_docs=docs, fb_terms=4).run(bm25(k1, b)))
        for docs in GRID["fb_docs"]
        for weight in GRID["original_weight"]
    }
    assert scores[tuned.parameters.fb_docs, tuned.original_weight] == pytest.approx(max(scores.values()))


def test_the_stack_is_one_model_that_ranks_alone(tmp_path: Path) -> None:
    model = train_stack(RECIPE, RANKINGS, QRELS, INDEX)
    assert 1 <= len(model.features) <= 3
    assert model == train_stack(RECIPE, RANKINGS, QRELS, INDEX, n_jobs=2)
    model.save(tmp_path / "stack.json")
    ranked = MRFRanker(LinearModel.load(tmp_path / "stack.json"), INDEX).run(RANKINGS)
    tuned = tune_rm3(RECIPE, RANKINGS[:8], QRELS, INDEX)
    data = stack_data(RECIPE, tuned, RANKINGS[:8], QRELS, INDEX)
    columns = [data.names.index(str(feature)) for feature in model.features]
    scores = data.features[:, columns] @ np.array(model.weights)
    assert Objective("AP").evaluate(data, scores).mean() == pytest.approx(mean(ranked))
    assert list(ranked) == [ranking.qid for ranking in RANKINGS], "queries without judgements are ranked, too"


def test_training_takes_the_top_by_rm3() -> None:
    tuned = Tuned(FeatureParameters(fb_docs=3, fb_terms=4), 0.5)
    data = stack_data(RECIPE, tuned, RANKINGS[:8], QRELS, INDEX)
    rm3 = data.names.index(f"stage:{tuned.rm3}")
    kept = training_rows(RECIPE, tuned, data)
    assert np.diff(kept.offsets).tolist() == [25] * 8
    for first, end, own in zip(data.offsets[:-1], data.offsets[1:], kept.offsets[:-1], strict=True):
        assert kept.features[own : own + 25, rm3].min() >= np.sort(data.features[first:end, rm3])[-25]
    assert kept.relevant_grades == data.relevant_grades


def test_rows_keep_their_order_and_ties_go_to_the_earlier() -> None:
    data = RankingData(
        ("x",), ("a", "b"), np.array([0, 3, 5]), tuple("uvwyz"), np.arange(5.0)[:, None], np.array([0, 1, 0, 1, 0]),
        (np.array([1]), np.array([1])),
    )  # fmt: skip
    kept = top_rows(data, np.array([1.0, 2.0, 1.0, 0.0, 0.0]), 2)
    assert (kept.docids, kept.offsets.tolist(), kept.grades.tolist()) == (tuple("uvyz"), [0, 2, 4], [0, 1, 1, 0])


def test_bad_recipes() -> None:
    with pytest.raises(ParameterError, match="depth 0 must be at least 1"):
        StackRecipe(depth=0)
    with pytest.raises(ParameterError, match="the grid has no values for fb_docs"):
        tune_rm3(StackRecipe(grid={"k1": (1.0,), "b": (0.4,)}), RANKINGS[:8], QRELS, INDEX)
