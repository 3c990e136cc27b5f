"""The automatic choice, and listwise regression."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import check_grad

from greylag.errors import ParameterError
from greylag.evaluation import evaluate, split_folds
from greylag.features import FeatureParameters
from greylag.ltr import (
    RM3,
    Automatic,
    AutomaticRecipe,
    GreedySelection,
    LinearModel,
    ListwiseRegression,
    MRFRanker,
    Objective,
    RankingData,
    cross_validate,
    explain,
)
from greylag.ltr.automatic import choice_table, held_out_baselines
from greylag.ltr.choice import Candidate, View, choose
from greylag.ltr.data import linear_scores
from greylag.ltr.listwise import _loss
from greylag.ltr.stack import TunedRM3
from greylag.ranking import FloatArray, Run
from tests.greylag.ltr.samples import random_data
from tests.greylag.ltr.test_stack import GRID, INDEX, QIDS, QRELS, RANKINGS

AP = Objective.parse("AP")
RUN = Run(tuple(RANKINGS), "first")
RECIPE = AutomaticRecipe(grid=GRID, depth=25, folds=2)


def sample() -> RankingData:
    return random_data(3, queries=12, documents=30, features=5)


def by_definition(weights: FloatArray, data: RankingData, penalty: float) -> float:
    """The function that listwise regression minimises, document by document."""
    values, total = data.features / spreads(data), penalty / 2 * float(weights @ weights)
    for first, end in pairwise(data.offsets):
        scores, relevant = values[first:end] @ weights, data.grades[first:end] > 0
        if relevant.any():
            total -= float(np.mean([np.log(np.exp(s) / np.exp(scores).sum()) for s in scores[relevant]]))
    return total


def spreads(data: RankingData) -> FloatArray:
    rows = [data.features[a:b] - data.features[a:b].mean(axis=0) for a, b in pairwise(data.offsets)]
    return np.asarray(np.sqrt(np.mean(np.concatenate(rows) ** 2, axis=0)))


@pytest.mark.parametrize("penalty", [0.3, 30.0])
def test_listwise_regression_is_at_the_minimum(penalty: float) -> None:
    data = sample()
    found = np.array(ListwiseRegression("AP", penalty=penalty).fit(data).weights) * spreads(data)
    least, rng = by_definition(found, data, penalty), np.random.default_rng(0)
    for _ in range(50):
        assert by_definition(found + rng.normal(scale=0.02, size=len(found)), data, penalty) > least - 1e-6
    gains = AP.gains(data)
    totals = np.add.reduceat(gains, data.offsets[:-1])
    given = data, gains, totals, 1 / spreads(data), penalty
    assert _loss(found, *given)[0] == pytest.approx(least)
    assert check_grad(lambda w: _loss(w, *given)[0], lambda w: _loss(w, *given)[1], found + 0.1) < 1e-3


def test_a_larger_penalty_gives_smaller_weights_and_constant_features_none() -> None:
    data = sample()
    sizes = [
        np.linalg.norm(np.array(ListwiseRegression("AP", penalty=p).fit(data).weights) * spreads(data))
        for p in (1.0, 10.0, 100.0)
    ]
    assert sizes[0] > sizes[1] > sizes[2] > 0
    constant = replace(
        data,
        features=np.concatenate([data.features, np.full((len(data.docids), 1), 7.0)], axis=1),
        specs=(*data.specs, "constant"),
    )
    assert ListwiseRegression("AP").fit(constant).weights[-1] == 0
    with pytest.raises(ParameterError, match="there is nothing to learn from"):
        ListwiseRegression("AP").fit(replace(data, grades=np.zeros_like(data.grades)))


def test_features_with_small_weights_are_dropped_by_halves() -> None:
    data = random_data(10, queries=12, documents=30, features=9)
    everything = ListwiseRegression("AP", penalty=2.0).fit(data)
    order = np.argsort(-np.abs(np.array(everything.weights) * spreads(data)))
    some = data.select_features(sorted(order[:4].tolist()))
    again = ListwiseRegression("AP", penalty=2.0).fit(some)
    left = np.argsort(-np.abs(np.array(again.weights) * spreads(some)))[:3]
    expected = sorted(int(data.names.index(some.names[column])) for column in left)
    found = ListwiseRegression("AP", penalty=2.0, max_features=3).fit(data)
    assert list(found.columns) == expected != sorted(order[:3].tolist())
    alone = ListwiseRegression("AP", penalty=2.0).fit(data.select_features(expected))
    np.testing.assert_allclose(found.weights, alone.weights, rtol=1e-2, atol=1e-4)
    assert ListwiseRegression("AP", penalty=2.0, max_features=9).fit(data) == everything
    with pytest.raises(ParameterError, match="max_features is 0"):
        ListwiseRegression("AP", max_features=0)


def test_candidates_are_scored_on_queries_that_they_have_not_seen() -> None:
    data = sample()
    learners = {"greedy": GreedySelection(AP), "listwise": ListwiseRegression(AP)}
    candidates = [Candidate("first", (data.names[0],), (1.0,))]
    candidates += [Candidate(name, learner=learner) for name, learner in learners.items()]
    tried = choose(
        data.qids, lambda qids: View(candidates, data.select_queries(qids), data.select_queries), AP, folds=3, seed=1
    )
    for name, learner in learners.items():
        for part in split_folds(data.qids, 3, 1):
            found = learner.fit(data.select_queries([qid for qid in data.qids if qid not in part]))
            held = data.select_queries(part)
            expected = AP.evaluate(held, linear_scores(held, found.columns, np.array(found.weights)))
            np.testing.assert_allclose(tried.values[name][[data.qids.index(qid) for qid in part]], expected)
    best = max(tried.values, key=lambda name: tried.values[name].mean())
    assert tried.values[tried.best].mean() == pytest.approx(tried.values[best].mean())


def test_what_cannot_be_learned_or_has_no_time_is_left_out() -> None:
    data = sample()
    candidates = [
        Candidate("first", (data.names[0],), (1.0,)),
        Candidate("hopeless", (data.names[1],), learner=GreedySelection(AP), most=9),
    ]
    flat = replace(data, features=np.concatenate([data.features[:, :1], 0 * data.features[:, 1:]], axis=1))
    tried = choose(
        data.qids, lambda qids: View(candidates, flat.select_queries(qids), flat.select_queries), AP, folds=3, seed=1
    )
    assert (tried.best, [*tried.left_out]) == ("first", ["hopeless"])
    tried = choose(
        data.qids,
        lambda qids: View(candidates, data.select_queries(qids), data.select_queries),
        AP,
        folds=3,
        seed=1,
        seconds=1e-9,
    )
    assert tried.left_out == {"hopeless": "the time was over"}


def test_the_learner_gives_the_scores_of_what_it_chose() -> None:
    data = sample()
    found = Automatic("AP", folds=3).fit(data)
    assert found.training_scores[-1] == AP.evaluate(data, linear_scores(data, found.columns, found.weights)).mean()
    assert Automatic("AP", folds=3).fit(data, n_jobs=2) == found
    with pytest.raises(ParameterError, match="folds is 1"):
        Automatic("AP", folds=1)


def test_the_recipe_sees_the_training_queries_alone_and_saves_a_model(tmp_path: Path) -> None:
    validated = cross_validate(RECIPE, RUN, QRELS, INDEX, folds=2, seed=1)
    for model, part in zip(validated.models, validated.folds, strict=True):
        own = Run(tuple(ranking for ranking in RANKINGS if ranking.qid not in part), "own")
        alone = RECIPE.fit(own, QRELS, INDEX)
        assert (alone.features, alone.weights) == (model.features, model.weights)
        made = model.provenance["choice"]
        assert set(made["tried"]) >= {"BM25", "QL", "SDM", "RM3", "greedy", made["chosen"]}
        assert made["queries"] == len(model.provenance["queries"]) < len(QIDS)
        parts = made["chosen"].split(" + ")
        marked = [(str(row[0])[0], str(row[0])[2:]) for row in choice_table(model).rows]
        assert [name for mark, name in marked if mark == ">"] == ["average of +" if parts[1:] else made["chosen"]]
        assert sorted(name for mark, name in marked if mark == "+") == (sorted(parts) if parts[1:] else [])
    model.save(tmp_path / "model.json")
    read = LinearModel.load(tmp_path / "model.json")
    ranked = MRFRanker(read, INDEX)(RANKINGS[0])
    assert ranked == MRFRanker(model, INDEX)(RANKINGS[0])
    assert explain(read, INDEX, RANKINGS[0], ranked.docids[0]).score == pytest.approx(ranked.scores[0], abs=1e-9)
    scores = held_out_baselines(validated, RUN, QRELS, INDEX)
    bm25 = LinearModel.load(tmp_path / "model.json").parameters
    assert {"tuned BM25", "tuned RM3"} == set(scores)
    own = Run(tuple(r for r in RANKINGS if r.qid in validated.folds[-1]), "x")
    expected = evaluate(RM3(INDEX, original_weight=1.0, k1=bm25.k1, b=bm25.b).run(own), QRELS, ["AP"])
    for qid, value in zip(expected.qids, expected.values[:, 0], strict=True):
        if qid in validated.folds[-1]:
            assert scores["tuned BM25"].values[scores["tuned BM25"].qids.index(qid), 0] == value


def test_a_pool_without_the_features_of_sdm_has_no_sdm() -> None:
    prepared = replace(RECIPE, pool="fd").prepare(RUN, QRELS, INDEX)
    tuned = TunedRM3(FeatureParameters(), 0.5)
    candidates = prepared.recipe.candidates(tuned, prepared.stack.data(tuned).names)
    assert [one.name for one in candidates][:4] == ["BM25", "QL", "RM3", "listwise, penalty 1"]


def test_one_judged_topic_is_too_few() -> None:
    with pytest.raises(ParameterError, match="needs two topics with a relevant document, not 1"):
        RECIPE.fit(RUN, {"q1": QRELS["q1"]}, INDEX)
