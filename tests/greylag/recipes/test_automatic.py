"""The automatic choice.

Tests `choice`.
"""

import re
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from greylag.base import Run
from greylag.base.runtime.encoding import decode, encode
from greylag.base.runtime.parallel import keeping
from greylag.evaluation import evaluate, split_folds
from greylag.evaluation.scoring.significance import holm, p_text
from greylag.features import FeatureParameters
from greylag.learning import GreedySelection, ListwiseRegression, Objective
from greylag.learning.data import linear_scores
from greylag.rankers import ModelRanker, RankingModel, RM3Stage, explain
from greylag.recipes import Automatic, AutomaticRecipe, cross_validate, train
from greylag.recipes.automatic import INCUMBENT
from greylag.recipes.choice import LEAD_IN_ERRORS, Candidate, System, choose, cross_folds, learners, title
from greylag.recipes.general import GeneralRanker, general_model
from greylag.recipes.sources import TunedRM3
from greylag.recipes.spelling import MODEL_KINDS
from tests.greylag.learning.samples import random_data, spreads
from tests.greylag.recipes.test_sources import INDEX, QIDS, QRELS, RANKINGS, SOURCES

AP = Objective.parse("AP")
RUN = Run(tuple(RANKINGS), "first")
GENERAL = general_model(texts=INDEX.words is not None).at_length(INDEX.average_length)
RECIPE = AutomaticRecipe(sources=SOURCES, folds=2)


def sample():
    return random_data(3, queries=12, documents=30, features=5)


def chosen(data, candidates, **options):
    return choose(cross_folds(data, split_folds(data.qids, 3, 1)), data.qids, candidates, AP, **options)


def test_candidates_are_scored_on_queries_that_they_have_not_seen():
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


def test_of_each_family_the_best_is_averaged_in_the_order_of_their_means():
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


def test_what_cannot_be_learned_is_left_out():
    data = sample()
    hopeless = System("hopeless")
    candidates = [
        Candidate(System("first"), (data.names[0],), (1.0,)),
        Candidate(hopeless, (data.names[1],), learner=GreedySelection(AP), most=9),
        Candidate(System("later"), (data.names[2],), learner=GreedySelection(AP), most=9),
    ]
    flat = replace(data, features=np.concatenate([data.features[:, :1], 0 * data.features[:, 1:]], axis=1))
    for qid in [None, *split_folds(data.qids, 3, 1)[-1]]:  # it fails in all folds, and then in the last alone
        rows = slice(0) if qid is None else slice(*data.spans[qid])
        flat.features[rows] = data.features[rows]
        choice = chosen(flat, candidates[:2])
        assert (choice.chosen, [*choice.left_out]) == ((System("first"),), [hopeless])
    assert not chosen(data, candidates).left_out


def test_the_learner_gives_the_scores_of_what_it_chose():
    data = sample()
    found = Automatic("AP", folds=3).fit(data)
    assert found.training_scores[-1] == AP.evaluate(data, linear_scores(data, found.columns, found.weights)).mean()
    assert Automatic("AP", folds=3).fit(data, n_jobs=2) == found


def test_the_recipe_sees_the_training_queries_alone_and_saves_a_model(tmp_path):
    validated = cross_validate(RECIPE, RUN, QRELS, INDEX, folds=2, seed=1)
    for fitted, part in zip(validated.fitted, validated.folds, strict=True):
        own = Run(tuple(ranking for ranking in RANKINGS if ranking.qid not in part), "own")
        alone, model, choice = RECIPE.fit(own, QRELS, INDEX), fitted.model, fitted.choice
        assert (alone.model.features, alone.model.weights) == (model.features, model.weights)
        assert {title(members) for members in choice.shown} >= {"BM25", "QL", "SDM", "RM3", "general", *fitted.chosen}
        assert fitted.chosen == (title(choice.chosen),)
        assert choice.qids == fitted.queries == tuple(qid for qid in QIDS if qid not in part)
        made = model.provenance["choice"]
        assert (made["queries"], " + ".join(made["chosen"])) == (len(fitted.queries), *fitted.chosen)
        # A baseline is the model that its features would make alone, and ranks as its stage does.
        assert tuple(fitted.baselines) == MODEL_KINDS["automatic"].baselines
        assert all(baseline.parameters == model.parameters for baseline in fitted.baselines.values())
        written = {name: sorted(weights) for name, weights in model.provenance["baselines"].items()}
        assert written == {name: sorted(map(str, of.features)) for name, of in fitted.baselines.items()}
    model.save(tmp_path / "model.json")
    read = RankingModel.load(tmp_path / "model.json")
    ranked = ModelRanker(read, INDEX)(RANKINGS[0])
    assert ranked == ModelRanker(model, INDEX)(RANKINGS[0])
    assert explain(read, INDEX, RANKINGS[0], ranked.docids[0]).score == pytest.approx(ranked.scores[0], abs=1e-9)
    result = train(RUN, QRELS, INDEX, RECIPE, folds=2, seed=1)
    assert result.held_out == validated
    scores = {name: found for name, found in result.scores.items() if name.startswith("tuned ")}
    bm25 = RankingModel.load(tmp_path / "model.json").parameters
    assert {"tuned BM25", "tuned QL", "tuned SDM", "tuned RM3"} == set(scores) == set(result.baselines)
    others = {name: of for name, of in result.scores.items() if name not in ("held out", "general model")}
    assert result.baseline == max(others, key=lambda name: others[name].means[0])
    assert f"than {result.baseline}:" in result.verdict
    unjudged = evaluate(GeneralRanker(INDEX).run(RUN, tag="general"), QRELS, ["AP"])
    assert result.scores["general model"].by_query == unjudged.by_query
    gain = result.scores["held out"].means[0] - unjudged.means[0]
    held_out = f"its mean AP of {result.scores['held out'].means[0]:.4f} is {abs(gain):.4f}"
    assert f"the general model, without judgements: {held_out}" in result.verdict
    tests = result.significance
    assert [(c.run, c.baseline) for c in tests.comparisons][-1] == ("held out", "general model")
    together = zip(tests.comparisons, holm([c.p for c in tests.comparisons]), strict=True)
    told = [p_text(p) for c, p in together if c.run == "held out"]
    assert re.findall(r"corrected p (<?[\d.]+\d)", result.verdict) == told
    own = Run(tuple(r for r in RANKINGS if r.qid in validated.folds[-1]), "x")
    expected = evaluate(RM3Stage(INDEX, original_weight=1.0, k1=bm25.k1, b=bm25.b).run(own), QRELS, ["AP"])
    for qid, value in zip(expected.qids, expected.values[:, 0], strict=True):
        if qid in validated.folds[-1]:
            assert scores["tuned BM25"].values[scores["tuned BM25"].qids.index(qid), 0] == value


def test_a_pool_without_the_features_of_sdm_has_no_sdm():
    recipe = replace(RECIPE, sources=replace(SOURCES, pool="fd"))
    tuned = TunedRM3(FeatureParameters(), 0.5)
    candidates = recipe.candidates(tuned, GENERAL, recipe.features(RUN, QRELS, INDEX).data(tuned).names)
    assert [str(candidate.system) for candidate in candidates][:4] == ["BM25", "QL", "RM3", "general"]


def test_one_judged_topic_adapts_the_general_model_and_none_is_refused():
    result = train(RUN, {"q1": QRELS["q1"]}, INDEX, RECIPE)
    assert (result.choice, result.fitted.queries, result.fitted.baselines) == (None, ("q1",), {})
    assert result.fitted.chosen == (title(INCUMBENT),)
    assert "judging more pays" in result.advice
    general = dict(zip(map(str, GENERAL.features), GENERAL.weights, strict=True))
    learned = dict(zip(map(str, result.model.features), result.model.weights, strict=True))
    features = RECIPE.features(RUN, {"q1": QRELS["q1"]}, INDEX)
    rows = features.training(features.tune(["q1"]), ["q1"])
    total = np.zeros(len(rows.docids))
    for names in (rows.names, tuple(general)):
        some = rows.select_features([rows.names.index(name) for name in names])
        regression = ListwiseRegression(AP, centre=general).path(some, (300.0, 30.0))[-1]
        scores = linear_scores(some, regression.columns, np.array(regression.weights))
        total += scores / (scores - scores.mean()).std() / 2
    columns = [rows.names.index(name) for name in learned]
    np.testing.assert_allclose(linear_scores(rows, columns, np.array(list(learned.values()))), total)


def test_a_system_named_beforehand_stays_unless_another_leads_clearly():
    data = sample()
    candidates = [Candidate(System(name), (name,), (1.0,)) for name in data.names]
    free = chosen(data, candidates)
    for candidate in candidates:
        choice = chosen(data, candidates, incumbent=(candidate.system,))
        leads = free.values[free.chosen] - free.values[(candidate.system,)]
        clear = leads.mean() > LEAD_IN_ERRORS * leads.std(ddof=1) / np.sqrt(len(leads))
        assert choice.chosen == (free.chosen if clear else (candidate.system,))
    kept = [chosen(data, candidates, incumbent=(c.system,)).chosen == (c.system,) for c in candidates]
    assert len(set(kept)) == 2, "both cases occur"


def test_others_are_compared_with_the_best_of_the_baselines():
    data = sample()
    candidates = [Candidate(System(name), (name,), (1.0,)) for name in data.names]
    systems = [candidate.system for candidate in candidates[:3]]
    choice = chosen(data, candidates, baselines=systems)
    assert choice.baseline == max(systems, key=lambda system: choice.values[(system,)].mean())
    assert choice.compared((choice.baseline,)) is None
    assert choice.table().header[2] == f"minus {choice.baseline}"


def test_the_table_and_the_sentence_are_of_the_choice():
    result = train(RUN, QRELS, INDEX, RECIPE)
    choice = result.choice
    assert result.fitted == RECIPE.fit(RUN, QRELS, INDEX)
    rows = {str(row[0])[2:]: row for row in choice.table().rows}
    marks = [str(row[0])[0] for row in rows.values()]
    assert marks.count(">") == 1
    assert marks.count("+") == (len(choice.chosen) if len(choice.chosen) > 1 else 0)
    corrected = choice.best.comparison
    assert INCUMBENT in choice.values
    mean, difference, low, high = rows["the choice, corrected"][1:]
    assert mean == choice.best.mean <= choice.values[choice.chosen].mean()
    assert (difference.value, low.value, high.value) == (corrected.difference, *corrected.interval)
    assert replace(corrected, run="The automatic choice", baseline=f"tuned {choice.baseline}").verdict in result.verdict
    written = result.model.provenance["choice"]["corrected"]
    assert written == {"mean": mean, "difference": difference.value, "interval": [low.value, high.value],
                       "p": corrected.corrected_p}  # fmt: skip
    printed = " ".join(str(result).split())
    assert printed.endswith(f"{result.verdict} {result.advice}")
    assert "judging more pays" in result.advice


def test_the_default_is_the_automatic_choice(monkeypatch):
    monkeypatch.setattr("greylag.recipes.training.AutomaticRecipe", lambda: RECIPE)
    assert train(RUN, QRELS, INDEX).fitted == RECIPE.fit(RUN, QRELS, INDEX)


@dataclass
class Memory:
    """A keeper of results in memory, as bytes."""

    kept: dict[str, bytes] = field(default_factory=dict)

    def load_result(self, key):
        return decode(self.kept[key]) if key in self.kept else None

    def save_result(self, key, result):
        self.kept[key] = encode(result)
        return True


def test_an_interrupted_choice_computes_no_features_again(monkeypatch):
    """Of a command that was killed in its last fold, everything is kept but the folds from then on."""
    memory, expected = Memory(), train(RUN, QRELS, INDEX, RECIPE, folds=3)
    with keeping(memory):
        assert train(RUN, QRELS, INDEX, RECIPE, folds=3).model == expected.model
    memory.kept = {key: result for key, result in memory.kept.items() if not re.search(r":folds:[12]$|:run ", key)}
    for name in ("sources.CountedRankings.data", "sources.training_data", "cross_fitting.learn_translation"):
        monkeypatch.delattr(f"greylag.recipes.{name}")
    with keeping(memory):
        prepared = RECIPE.prepare(RUN, QRELS, INDEX)
        again = cross_validate(RECIPE, RUN, QRELS, INDEX, folds=3, prepared=prepared)
    assert again == expected.held_out


def test_learners_have_families_and_labels():
    assert [candidate.system.family for candidate in learners(AP)] == ["listwise", "greedy"]
    data, (listwise, _) = sample(), learners(AP)
    fitted = listwise.fit(data)
    assert [system.label for system in fitted] == [f"penalty {penalty:g}" for penalty in listwise.penalties]
    for penalty, weights in zip(listwise.penalties, fitted.values(), strict=True):
        alone = ListwiseRegression(AP, penalty=penalty).fit(data)
        scale = np.linalg.norm(alone.weights) / np.linalg.norm(weights)
        np.testing.assert_allclose(weights * scale, alone.weights, rtol=1e-3, atol=1e-4)
