"""The automatic choice.

Tests `choice`.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.evaluation import evaluate, split_folds
from greylag.features import FeatureParameters
from greylag.learning import GreedySelection, ListwiseRegression
from greylag.linesearch import Objective, RankingData
from greylag.linesearch.data import linear_scores
from greylag.models import (
    Automatic,
    AutomaticRecipe,
    ModelRanker,
    RankingModel,
    RM3Stage,
    cross_validate,
    explain,
    train,
)
from greylag.models.choice import Candidate, Choice, Fold, System, choose, learners
from greylag.models.stack import TunedRM3
from greylag.ranking import Run
from tests.greylag.learning.samples import random_data, spreads
from tests.greylag.models.test_stack import GRID, INDEX, QIDS, QRELS, RANKINGS

AP = Objective.parse("AP")
RUN = Run(tuple(RANKINGS), "first")
RECIPE = AutomaticRecipe(grid=GRID, depth=25, folds=2)


def sample() -> RankingData:
    return random_data(3, queries=12, documents=30, features=5)


def chosen(data: RankingData, candidates: list[Candidate], **options: float) -> Choice:
    parts = split_folds(data.qids, 3, 1)
    folds = (
        Fold(candidates, data.select_queries([q for q in data.qids if q not in part]), data.select_queries(part))
        for part in parts
    )
    return choose(folds, data.qids, AP, n_folds=3, **options)


def test_candidates_are_scored_on_queries_that_they_have_not_seen() -> None:
    data = sample()
    learned = {"greedy": GreedySelection(AP), "listwise": ListwiseRegression(AP)}
    candidates = [Candidate(System("first"), (data.names[0],), (1.0,))]
    candidates += [Candidate(System(name), learner=learner) for name, learner in learned.items()]
    choice = chosen(data, candidates)
    for name, learner in learned.items():
        for part in split_folds(data.qids, 3, 1):
            found = learner.fit(data.select_queries([qid for qid in data.qids if qid not in part]))
            held = data.select_queries(part)
            expected = AP.evaluate(held, linear_scores(held, found.columns, np.array(found.weights)))
            values = choice.values[(System(name),)]
            np.testing.assert_allclose(values[[data.qids.index(qid) for qid in part]], expected)
    assert choice.values[choice.chosen].mean() == pytest.approx(max(v.mean() for v in choice.values.values()))
    assert [*map(len, choice.values)] == [1, 1, 1, 2, 3]


def test_of_each_family_the_best_is_averaged_in_the_order_of_their_means() -> None:
    """Fixed weights are the same in all folds, so that averages are sums of scaled features."""
    data = sample()
    names = [System("a", "one"), System("a", "two"), System("b"), System("c, not a label")]
    choice = chosen(data, [Candidate(s, (f,), (1.0,)) for s, f in zip(names, data.names, strict=False)])
    means = {system: choice.values[(system,)].mean() for system in names}
    best = sorted({max(names[:2], key=lambda s: means[s]), *names[2:]}, key=lambda s: -means[s])
    assert [members for members in choice.values if len(members) > 1] == [tuple(best[:2]), tuple(best)]
    assert choice.families == [system for system in names if system in best]
    for part in split_folds(data.qids, 3, 1):
        training = data.select_queries([qid for qid in data.qids if qid not in part])
        held = data.select_queries(part)
        scores = sum(held.features[:, i] / spreads(training)[i] for i, s in enumerate(names) if s in best)
        rows = [data.qids.index(qid) for qid in part]
        np.testing.assert_allclose(choice.values[tuple(best)][rows], AP.evaluate(held, np.asarray(scores)))


def test_what_cannot_be_learned_or_has_no_time_is_left_out() -> None:
    data = sample()
    hopeless = System("hopeless")
    candidates = [
        Candidate(System("first"), (data.names[0],), (1.0,)),
        Candidate(hopeless, (data.names[1],), learner=GreedySelection(AP), most=9),
        Candidate(System("later"), (data.names[2],), learner=GreedySelection(AP), most=9),
    ]
    flat = replace(data, features=np.concatenate([data.features[:, :1], 0 * data.features[:, 1:]], axis=1))
    choice = chosen(flat, candidates[:2])
    assert (choice.chosen, [*choice.left_out]) == ((System("first"),), [hopeless])
    choice = chosen(data, candidates, seconds=1e-9)
    assert set(choice.left_out) == {hopeless, System("later")}
    assert [*choice.values] == [(System("first"),)]
    assert not chosen(data, candidates, seconds=3600.0).left_out


def test_the_learner_gives_the_scores_of_what_it_chose() -> None:
    data = sample()
    found = Automatic("AP", folds=3).fit(data)
    assert found.training_scores[-1] == AP.evaluate(data, linear_scores(data, found.columns, found.weights)).mean()
    assert Automatic("AP", folds=3).fit(data, n_jobs=2) == found
    with pytest.raises(ParameterError, match="folds is 1"):
        Automatic("AP", folds=1)
    with pytest.raises(ParameterError, match="seed must be"):
        AutomaticRecipe("AP", seed=-1)


def test_the_recipe_sees_the_training_queries_alone_and_saves_a_model(tmp_path: Path) -> None:
    validated = cross_validate(RECIPE, RUN, QRELS, INDEX, folds=2, seed=1)
    for model, part in zip(validated.models, validated.folds, strict=True):
        own = Run(tuple(ranking for ranking in RANKINGS if ranking.qid not in part), "own")
        alone = RECIPE.fit(own, QRELS, INDEX)
        assert (alone.features, alone.weights) == (model.features, model.weights)
        made = model.provenance["choice"]
        assert set(made["tried"]) >= {"BM25", "QL", "SDM", "RM3", "greedy", " + ".join(made["chosen"])}
        assert made["queries"] == len(model.provenance["queries"]) < len(QIDS)
    model.save(tmp_path / "model.json")
    read = RankingModel.load(tmp_path / "model.json")
    ranked = ModelRanker(read, INDEX)(RANKINGS[0])
    assert ranked == ModelRanker(model, INDEX)(RANKINGS[0])
    assert explain(read, INDEX, RANKINGS[0], ranked.docids[0]).score == pytest.approx(ranked.scores[0], abs=1e-9)
    result = train(RUN, QRELS, INDEX, RECIPE, folds=2, seed=1)
    assert result.held_out == validated
    scores = {name: found for name, found in result.scores.items() if name.startswith("tuned ")}
    bm25 = RankingModel.load(tmp_path / "model.json").parameters
    assert {"tuned BM25", "tuned RM3"} == set(scores)
    own = Run(tuple(r for r in RANKINGS if r.qid in validated.folds[-1]), "x")
    expected = evaluate(RM3Stage(INDEX, original_weight=1.0, k1=bm25.k1, b=bm25.b).run(own), QRELS, ["AP"])
    for qid, value in zip(expected.qids, expected.values[:, 0], strict=True):
        if qid in validated.folds[-1]:
            assert scores["tuned BM25"].values[scores["tuned BM25"].qids.index(qid), 0] == value


def test_a_pool_without_the_features_of_sdm_has_no_sdm() -> None:
    prepared = replace(RECIPE, pool="fd").prepare(RUN, QRELS, INDEX)
    tuned = TunedRM3(FeatureParameters(), 0.5)
    candidates = prepared.recipe.candidates(tuned, prepared.stack.data(tuned).names)
    assert [str(one.system) for one in candidates][:4] == ["BM25", "QL", "RM3", "listwise, penalty 1"]


def test_one_judged_topic_is_too_few() -> None:
    with pytest.raises(ParameterError, match="needs two topics with a relevant document, not 1"):
        RECIPE.fit(RUN, {"q1": QRELS["q1"]}, INDEX)


def test_the_table_and_the_sentence_are_of_the_choice() -> None:
    result = train(RUN, QRELS, INDEX, RECIPE)
    choice = result.choice
    assert choice is not None
    assert result.model == RECIPE.fit(RUN, QRELS, INDEX)
    rows = {str(row[0])[2:]: row for row in choice.table().rows}
    marks = [str(row[0])[0] for row in rows.values()]
    assert marks.count(">") == 1
    assert marks.count("+") == (len(choice.chosen) if len(choice.chosen) > 1 else 0)
    corrected = choice.best.comparison
    assert corrected is not None
    mean, difference, low, high = rows["the choice, corrected"][1:]
    assert mean == choice.best.mean <= choice.values[choice.chosen].mean()
    assert (difference.value, low.value, high.value) == (corrected.difference, *corrected.interval)
    assert replace(corrected, baseline="tuned BM25").verdict in result.verdict
    written = result.model.provenance["choice"]["corrected"]
    assert written == {"mean": mean, "difference": difference.value, "interval": [low.value, high.value],
                       "p": corrected.corrected_p}  # fmt: skip
    assert " ".join(str(result).split()).endswith(result.verdict)


def test_the_default_is_the_automatic_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("greylag.models.training.AutomaticRecipe", lambda: RECIPE)
    assert train(RUN, QRELS, INDEX).model == RECIPE.fit(RUN, QRELS, INDEX)


def test_learners_have_families_and_labels() -> None:
    systems = [candidate.system for candidate in learners(AP, folds=2, seed=0)]
    assert systems[:2] == [System("listwise", "penalty 1"), System("listwise", "penalty 10")]
    assert [system.family for system in systems[-2:]] == ["greedy", "committee"]
