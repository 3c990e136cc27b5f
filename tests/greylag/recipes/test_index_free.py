"""Models without an index: their learners, choices and sources by hand, and by LightGBM itself.

Tests `index_free`, `source_gains`, `greylag.features.column`.
"""

import logging
import pickle
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from greylag import Ranking, Run, train, write_run
from greylag.base import ModelError, ParameterError
from greylag.base.core.tables import as_text
from greylag.base.runtime.encoding import decode, encode
from greylag.evaluation.scoring.folds import split_folds, without
from greylag.features import FeatureExtractor
from greylag.features.column import Column
from greylag.features.spelling import parse_feature, parse_features
from greylag.index.positional import PositionalIndex
from greylag.learning import (
    CoordinateAscent,
    GreedySelection,
    ListwiseRegression,
    Objective,
    RankingData,
    training_data,
)
from greylag.learning.letor import listed_grades, listed_run
from greylag.rankers import ModelRanker, RankingModel
from greylag.recipes import Automatic, ColumnRecipe, IndexFreeRecipe, MRFRecipe, train_on_data
from greylag.recipes.index_free import FIRST_STAGE, with_runs
from greylag.recipes.lambdamart import LambdaMART
from greylag.recipes.source_gains import sources, sources_table
from tests.refusals import refuses

NDCG = Objective("nDCG", 10)


def listed(seed=3, *, queries=12, features=5, names=()):
    """Data as it is read from a file, in which the first two columns tell something of relevance."""
    rng, sizes = np.random.default_rng(seed), np.full(queries, 20)
    y = rng.choice(3, p=[0.6, 0.3, 0.1], size=sizes.sum())
    values = rng.normal(size=(len(y), features))
    values[:, 0] += y
    values[:, 1] += 0.5 * y
    return RankingData.from_arrays(values, y, sizes, names=names or None)


def rank(model, data):
    return ModelRanker(model.with_columns(data)).run(listed_run(data, "listed"))


@pytest.mark.parametrize("learner", [ListwiseRegression(NDCG), GreedySelection(NDCG, max_features=2), Automatic(NDCG)])
def test_a_model_of_columns_is_that_of_the_learner_and_ranks_by_a_product(learner, tmp_path):
    data, other = listed(), listed(4)
    result = train(listed_run(data, "first"), listed_grades(data), None, ColumnRecipe.of(data, learner))
    result.model.save(tmp_path / "m.json")
    model = RankingModel.load(tmp_path / "m.json")
    assert model == result.model
    columns = [int(str(feature).removeprefix("column:")) - 1 for feature in model.features]
    if not isinstance(learner, Automatic):  # which averages with the best column here
        selection = learner.fit(data)
        assert columns == [*selection.columns]
        assert model.weights == pytest.approx(selection.weights, rel=1e-9)
        assert train_on_data(data, learner).features == model.features
    scores = other.X[:, columns] @ np.array(model.weights)
    for ranking, (first, end) in zip(rank(model, other).rankings, pairwise(other.offsets), strict=True):
        expected = sorted(range(first, end), key=lambda row: -scores[row])
        assert ranking.docids == tuple(other.docids[row] for row in expected)
        np.testing.assert_allclose(ranking.scores, scores[expected], rtol=1e-12, atol=1e-12)


def test_trees_of_columns_are_those_of_lightgbm(tmp_path):
    lightgbm = pytest.importorskip("lightgbm", reason="needs LightGBM")
    data, other = listed(queries=30), listed(4, queries=9)
    learner = LambdaMART(NDCG, trees=40, leaves=4, learning_rate=0.3, min_documents=5)
    settings = {
        "objective": "lambdarank", "num_leaves": 4, "learning_rate": 0.3, "min_data_in_leaf": 5, "verbosity": -1,
        "label_gain": [0, 1, 2], "num_threads": 1, "deterministic": True, "force_row_wise": True, "seed": 0,
    }  # fmt: skip
    booster = lightgbm.train(settings, lightgbm.Dataset(data.X, data.y, group=data.groups, params=settings), 40)
    means = [NDCG.evaluate(other, booster.predict(other.X, num_iteration=n)).mean() for n in range(1, 41)]
    best = int(np.argmax(means)) + 1
    assert 1 < best < 40
    for validation, trees in ((None, 40), (other, best)):
        recipe = ColumnRecipe.of(data, learner, validation=validation)
        train(listed_run(data, "first"), listed_grades(data), None, recipe).model.save(tmp_path / "m.json")
        model = RankingModel.load(tmp_path / "m.json")
        run = rank(model, other)
        expected = booster.predict(other.X, num_iteration=trees)
        for ranking, (first, end) in zip(run.rankings, pairwise(other.offsets), strict=True):
            rows = [other.docids.index(docid) for docid in ranking.docids]
            assert sorted(rows) == list(range(first, end))
            np.testing.assert_array_equal(ranking.scores, expected[rows])
        if validation is not None:
            assert model.provenance["validation_score"] == pytest.approx(max(means), abs=1e-12)


def test_as_many_rounds_as_are_best_for_validation():
    data, other = listed(1, features=8), listed(2)
    wide = RankingData.from_arrays(
        np.hstack([other.X, np.random.default_rng(0).normal(size=(len(other.y), 3))]), other.y, other.groups
    )
    learner = GreedySelection(NDCG, max_features=8)
    selection = learner.fit(data)
    means = [NDCG.evaluate(wide, selection.head(n).predict(wide)).mean() for n in range(1, len(selection.history) + 1)]
    best = int(np.argmax(means)) + 1
    assert best < len(means)
    recipe = ColumnRecipe.of(data, learner, validation=wide)
    model = train(listed_run(data, "first"), listed_grades(data), None, recipe).model
    assert model.weights == selection.head(best).weights
    assert model.provenance["validation"] == list(wide.qids)
    assert f"{max(means):.4f} on 12 queries for validation" in model.summary()


def test_validation_chooses_in_place_of_cross_validation():
    data, other = listed(1), listed(2, queries=7)
    recipe = ColumnRecipe.of(data, Automatic(NDCG), validation=other)
    choice = train(listed_run(data, "first"), listed_grades(data), None, recipe).choice
    assert choice.qids == other.qids
    assert "Chosen by 7 topics for validation" in choice.table().caption
    for members, values in choice.values.items():
        if str(members[0]) == "listwise, penalty 10" and len(members) == 1:
            learned = ListwiseRegression(NDCG, penalty=10).fit(data)
            np.testing.assert_allclose(values, NDCG.evaluate(other, learned.predict(other)))
    (alone,) = next(iter(choice.values))
    means = [NDCG.evaluate(data, column).mean() for column in data.X.T]
    assert str(alone) == f"column:{int(np.argmax(means)) + 1} alone"


def test_folds_hold_topics_out_and_leave_out_those_without_a_relevant_document(caplog):
    data, learner = listed(), ListwiseRegression(NDCG)
    empty = data.y.copy()
    for first, end in (data.spans["3"], data.spans["8"]):
        empty[first:end] = 0
    data = RankingData.from_arrays(data.X, empty, data.groups)
    judged = without(data.qids, ["3", "8"])
    with caplog.at_level(logging.INFO):
        recipe = ColumnRecipe.of(data, learner)
        result = train(listed_run(data, "first"), listed_grades(data), None, recipe, folds=4)
    assert "left out are 2 of 12 topics, which have no relevant document" in caplog.text
    assert result.model.weights == pytest.approx(learner.fit(data.select_queries(judged)).weights, rel=1e-9)
    assert set(result.scores) == {"held out", "best column"}
    held_out, best = {}, {}
    for part in split_folds(data.qids, 4, 0):
        training, test = data.select_queries(without(judged, part)), data.select_queries(part)
        scores = learner.fit(training).predict(test)
        column = max(range(5), key=lambda c: NDCG.evaluate(training, training.X[:, c]).mean())
        held_out |= dict(zip(part, NDCG.evaluate(test, scores), strict=True))
        best |= dict(zip(part, NDCG.evaluate(test, test.X[:, column]), strict=True))
    for name, expected in (("held out", held_out), ("best column", best)):
        found = result.scores[name]
        assert found.by_query == pytest.approx(expected)
    assert held_out["3"] == 0


@pytest.mark.parametrize("learner", [ListwiseRegression(NDCG), LambdaMART(NDCG, trees=3)])
def test_what_is_kept_of_a_fold_has_no_values_of_the_file(learner):
    data = listed(queries=40, features=30)
    recipe = ColumnRecipe.of(data, learner)
    fitted = recipe.prepare(listed_run(data, "x"), listed_grades(data))(data.qids)
    kept = encode(fitted)
    assert len(kept) < data.features.nbytes / 2
    bound = recipe.bound(decode(kept))
    for model in (bound.model, *bound.baselines.values()):  # which rank the file as a model that was given it
        assert ModelRanker(model).run(listed_run(data, "listed")).rankings == rank(model, data).rankings


def test_columns_other_than_the_model_s_are_refused():
    data, letters, learner = listed(), listed(names=tuple("abcde")), ListwiseRegression("AP")
    model = train(listed_run(data, "x"), listed_grades(data), None, ColumnRecipe.of(data, learner)).model
    few, twice = listed(features=3), listed(features=2, names=("a", "a"))
    column = replace(model, features=(Column("1"),), weights=(1.0,))
    for call, error, parts in (
        (lambda: model.with_columns(listed(features=4)), ModelError, "1, 2, ..., 5 (5 of them)"),
        (lambda: model.with_columns(listed(features=6)), ModelError, "1, 2, ..., 5 (5 of them)"),
        (lambda: model.with_columns(letters), ModelError, "a, b, ..., e (5 of them)"),
        (lambda: ModelRanker(column)(Ranking("1", "", ("1",), np.zeros(1))), ParameterError, "column:1"),
        (lambda: ModelRanker(model.with_columns(data))(Ranking("x", "", ("1",), [0.0])), ParameterError, "query 'x'"),
        (lambda: ColumnRecipe.of(data, learner, validation=few), ParameterError, "1, 2, 3,|1, 2, ..., 5"),
        (lambda: ColumnRecipe.of(twice, learner), ParameterError, "column:a"),
    ):
        refuses(call, error, parts, "|")
    swapped = replace(letters.select_features([4, 3, 2, 1, 0]), docids=letters.docids)
    named = train_on_data(letters, learner)
    assert rank(named, swapped).rankings == rank(named, letters).rankings


def test_too_few_topics():
    data = listed(queries=2)
    recipe = ColumnRecipe.of(data, Automatic("AP"))
    refuses(lambda: train(listed_run(data, "x"), listed_grades(data), None, recipe), ParameterError, "2 topics too few")
    data = listed(queries=8)
    for learner in (ListwiseRegression("AP"), Automatic("AP", folds=3)):
        recipe = ColumnRecipe.of(data, learner)
        assert train(listed_run(data, "x"), listed_grades(data), None, recipe, folds=8).scores


def test_values_are_those_of_the_documents_in_any_order():
    """A document that the file lacks has the least value of the others."""
    data = listed()
    model = train_on_data(data, ListwiseRegression("AP")).with_columns(data)
    ranking = listed_run(data, "x").rankings[2]
    docids = (*ranking.docids[::-1], "unknown")
    found = dict(zip(docids, ModelRanker(model).scores(Ranking("3", "", docids, np.zeros(21))), strict=True))
    scores = ModelRanker(pickle.loads(pickle.dumps(model))).scores(ranking)
    assert [found[docid] for docid in ranking.docids] == pytest.approx(scores)
    first, end = data.spans["3"]
    assert found["unknown"] == pytest.approx(
        sum(
            w * data.X[first:end, int(str(f).removeprefix("column:")) - 1].min()
            for f, w in zip(model.features, model.weights, strict=True)
        )
    )


@pytest.mark.parametrize("name", ["score@minmax", "a", "a:b", "7", "x y"])
def test_any_name_of_a_column_is_a_feature(name, tmp_path):
    assert parse_feature(str(Column(name))) == Column(name)
    assert parse_features("7,column:a") == (Column("7"), Column("a"))


def runs(folder):
    """A first stage, judgements, and the files of two other runs, which lack some documents; the first is good."""
    rng, rankings, qrels = np.random.default_rng(5), [], {}
    others = {"good": [], "bad": []}
    for number in range(10):
        qid, docids = str(number), [f"d{n:02d}" for n in range(20)]
        y = rng.choice(2, p=[0.7, 0.3], size=20)
        y[0] = 1
        qrels[qid] = dict(zip(docids, map(int, y), strict=True))
        rankings.append(Ranking.sort(qid, "", docids, rng.normal(size=20) + 0.5 * y))
        for name, strength in (("good", 2.0), ("bad", 0.0)):
            kept = [n for n in range(20) if rng.random() < 0.9]
            scores = rng.normal(size=20) + strength * y
            others[name].append(Ranking.sort(qid, "", [docids[n] for n in kept], scores[kept]))
    for name, of_one in others.items():
        write_run(Run(tuple(of_one), name), folder / f"{name}.run")
    return Run(tuple(rankings), "first"), qrels, [str(folder / "good.run"), str(folder / "bad.run")]


def test_runs_give_the_model_that_they_give_beside_an_index(tmp_path):
    """Nothing of an index is used: one that has no word of any query makes no difference."""
    first, qrels, files = runs(tmp_path)
    features = with_runs(parse_features(",".join(f"run:{file}" for file in files)))
    assert len(features) == 3 + 2 * 3
    index = PositionalIndex.from_texts({f"d{n:02d}": "words" for n in range(20)})
    learner = CoordinateAscent("AP")
    alone = train(first, qrels, None, IndexFreeRecipe(features, learner), folds=3)
    beside = train(first, qrels, index, MRFRecipe(features, learner), folds=3)
    assert (alone.model.features, alone.model.weights) == (beside.model.features, beside.model.weights)
    assert (alone.model.fingerprint, alone.model.collection) == ("", {})
    assert alone.held_out.run.rankings == beside.held_out.run.rankings
    ranker = ModelRanker(alone.model)
    assert not ranker.reads_query
    assert ranker.run(first).rankings == ModelRanker(beside.model, index).run(first).rankings
    assert alone.scores[f"run:{files[0]}"].means[0] > alone.scores["first stage"].means[0]
    assert "Each topic was held out." in alone.verdict
    assert f"run:{files[0]}" in alone.verdict, "the best run is what it is held against"


def test_the_choice_beside_single_runs_and_what_each_source_adds(tmp_path):
    first, qrels, files = runs(tmp_path)
    named = parse_features(",".join(f"run:{file}" for file in files))
    result = train(first, qrels, None, IndexFreeRecipe(with_runs(named), Automatic("AP")))
    data = training_data(first, qrels, FeatureExtractor(None, with_runs(named)))
    good, score = (data.X[:, data.names.index(name)] for name in (f"run:{files[0]}", "score"))
    singles = {str(members[0]): values for members, values in result.choice.values.items() if len(members) == 1}
    objective = Objective.parse("AP")
    assert next(iter(singles)) == f"run:{files[0]}"
    np.testing.assert_allclose(singles[f"run:{files[0]}"], objective.evaluate(data, good))
    np.testing.assert_allclose(singles["first stage"], objective.evaluate(data, score))
    scaled = sum(data.X[:, data.names.index(f"{name}@minmax")] for name in ("score", *map(str, named)))
    np.testing.assert_allclose(singles["sum of scaled runs"], objective.evaluate(data, np.asarray(scaled)))
    gains = result.fitted.gains
    assert result.model.provenance["sources"] == gains
    assert set(gains["without"]) == {"first stage", *map(str, named), "runs"}
    for source, left_out in {**sources(data.specs, {"first stage": FIRST_STAGE}), "all": frozenset[str]()}.items():
        kept, values = [data.names.index(name) for name in data.names if name not in left_out], dict[str, float]()
        for part in split_folds(data.qids, 5, 0):
            training, test = (
                data.select_queries(qids).select_features(kept) for qids in (without(data.qids, part), part)
            )
            scores = ListwiseRegression("AP").fit(training).predict(test)
            values |= dict(zip(part, objective.evaluate(test, scores), strict=True))
        mean = np.mean([*values.values()])
        told = gains["mean"] + (0 if source == "all" else gains["without"][source]["difference"])
        assert told == pytest.approx(mean, abs=1e-9), source
    assert f"without run:{files[0]}  " in str(result)
    assert gains["without"][f"run:{files[0]}"]["difference"] < -0.1


def test_sources_of_the_features_of_an_index():
    groups = {"first": parse_features("score,reciprocal-rank"), "written": parse_features("written:words@minmax")}
    named = "score@z,score,reciprocal-rank,written:words,FI/term/LM,run:a.run,run:a.run@rank,run:b.run"
    assert {name: len(features) for name, features in sources(parse_features(named), groups).items()} == {
        "first": 3, "written": 1, "FI/term/LM": 1, "run:a.run": 2, "run:b.run": 1, "runs": 3, "the index": 2
    }  # fmt: skip


def test_runs_that_cannot_be_learned_from(tmp_path, caplog):
    first, qrels, (good, bad) = runs(tmp_path)
    write_run(Run(tuple(Ranking(f"9{r.qid}", "", r.docids, r.scores) for r in first.rankings), "x"), tmp_path / "other")
    write_run(Run(first.rankings, "x"), tmp_path / "same")
    (tmp_path / "copy").write_bytes(Path(bad).read_bytes())
    lines = [line.split() for line in Path(good).read_text().splitlines()]
    (tmp_path / "flat").write_text("".join(f"{' '.join(words[:4])} 1 x\n" for words in lines))

    def learned(*names, first=first):
        features = with_runs([parse_feature(f"run:{tmp_path / name}") for name in names])
        return train(first, qrels, None, IndexFreeRecipe(features, ListwiseRegression("AP"))).model

    for names, reason in (
        (("good.run", "other"), "other: no topic '90' '0'"),
        (("bad.run", "copy"), "copy: bad.run: once"),
        (("flat",), "flat: one score"),
    ):
        refuses(lambda names=names: learned(*names), ParameterError, reason)
    # The scores of a written run are those of float32.
    flat = Run(tuple(Ranking(r.qid, "", r.docids, np.ones(len(r))) for r in first.rankings), "flat")
    assert {str(feature.base) for feature in learned("good.run", first=flat).features} == {f"run:{good}"}
    assert "its scores and ranks are left out" in caplog.text


def test_a_source_whose_loss_is_the_same_everywhere_has_no_interval():
    gains = {"queries": 5, "mean": 0.5, "without": {"runs": {"difference": -0.1, "interval": [None, None]}}}
    assert as_text(sources_table(gains, "AP")).splitlines()[-1].split() == ["without", "runs", "0.4000", "-0.1000"]
