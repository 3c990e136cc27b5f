"""Learned fusion, and its rankings beside those of rules.

Tests `fused`, `learned_fusion`, `union`.
"""

import gc
import gzip
import logging
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from greylag import fuse_runs
from greylag.base import ModelError, ParameterError, Query, Ranking, Run
from greylag.evaluation import LEARNED, PooledSources, evaluate, read_run, split_folds, write_run
from greylag.evaluation.fusion import FUSIONS, GivenRun, PooledRankings
from greylag.evaluation.trec.runs import JoinedRuns, RunFile, write_rankings
from greylag.features.fused_runs import FusedRuns, run_columns
from greylag.features.spec import FeatureSpec
from greylag.rankers import FusionRanker, ModelRanker, RankingModel
from greylag.recipes import union as module
from greylag.recipes.choice import System
from greylag.recipes.fused import FusionRecipe
from greylag.recipes.learned_fusion import learn_fusion
from greylag.recipes.union import FusionWeights
from tests.refusals import refuses

ONE = Ranking("q", "tea", ("a", "b", "c"), [10.0, 5.0, 0.0])
TWO = Ranking("q", "tea", ("d", "b"), [4.0, 2.0])
NONE = Ranking("q", "tea", (), [])


def runs_of(topics=30, noise=(0.5, 1.0), documents=40):
    """Runs that see a document's relevance through more or less noise, each of other documents, and judgements."""
    rng = np.random.default_rng(topics)
    rankings = [[] for _ in noise]
    qrels = {}
    for number in range(topics):
        latent = rng.standard_normal(documents)
        names = [f"d{number}.{i}" for i in range(documents)]
        qrels[f"t{number}"] = {names[i]: int(latent[i] > 1.0) + int(latent[i] > 1.8) for i in range(documents)}
        qrels[f"t{number}"][names[int(latent.argmax())]] = 2
        for own, spread in zip(rankings, noise, strict=True):
            scores = latent + spread * rng.standard_normal(documents)
            chosen = rng.permutation(documents)[: documents * 3 // 4]
            own.append(Ranking.sort(f"t{number}", "", [names[i] for i in chosen], scores[chosen]))
    return [Run(tuple(own), f"run{i}") for i, own in enumerate(rankings)], qrels


def columns_of(rankings, names):
    """The documents of any of the rankings, and the columns that fusion is learned from."""
    pooled = PooledRankings(rankings)
    return [*pooled.rows], np.column_stack([feature.of_pooled(pooled, names) for feature in run_columns(names)])


def fused_by(model, runs):
    return fuse_runs(runs, FusionRanker(model))


def test_columns_and_a_weighted_sum_by_hand():
    names = ("one", "two")
    docids, columns = columns_of([ONE, TWO], names)
    assert docids == ["a", "b", "c", "d"]
    np.testing.assert_allclose(
        columns, [[1, 1 / 61, 0, 0], [0.5, 1 / 62, 0, 1 / 62], [0, 1 / 63, 0, 0], [0, 0, 1, 1 / 61]], rtol=1e-15
    )
    fuse = FusionRanker(RankingModel(run_columns(names), (1.0, 30.0, 2.0, -60.0), runs=names))
    fused = fuse([ONE, TWO])
    expected = {"a": 1 + 30 / 61, "b": 0.5 + 30 / 62 - 60 / 62, "c": 30 / 63, "d": 2 - 60 / 61}
    assert fused.docids == tuple(sorted(expected, key=lambda docid: -expected[docid]))
    np.testing.assert_allclose(fused.scores, sorted(expected.values(), reverse=True), rtol=1e-14)
    assert fuse([NONE, NONE]).docids == ()
    source = PooledSources((GivenRun(Run((ONE,))), GivenRun(Run((TWO,)))), method=fuse)
    assert source(Query("q", "tea")) == fused
    assert fuse_runs([Run((ONE,)), Run((TWO,))], fuse).head(2).rankings[0] == fused.head(2)
    for method in FUSIONS:
        rule = RankingModel((FusedRuns(method, names),), (1.0,), runs=names)
        assert FusionRanker(rule)([ONE, TWO]) == FUSIONS[method]([ONE, TWO])


def test_weights_minimise_the_penalised_likelihood():
    """Its definition, written out over rankings, minimised by another method."""
    runs, qrels = runs_of(12)
    model = learn_fusion(runs, qrels, penalty=5.0).model
    tables = []
    for qid in runs[0]:
        docids, columns = columns_of([run[qid] for run in runs], ("run0", "run1"))
        tables.append((columns, np.array([qrels[qid][docid] for docid in docids], dtype=float)))
    spread = np.sqrt(np.mean(np.concatenate([(x - x.mean(axis=0)) ** 2 for x, _ in tables]), axis=0))

    def loss(weights):
        total = 2.5 * weights @ weights
        for x, gains in tables:
            scores = x @ (weights / spread)
            total -= gains / gains.sum() @ (scores - np.log(np.exp(scores).sum()))
        return float(total)

    expected = minimize(loss, np.zeros(4), method="Powell", options={"xtol": 1e-10, "ftol": 1e-14}).x / spread
    np.testing.assert_allclose(model.weights, expected, rtol=1e-3, atol=2e-4)


def test_held_out_topics_do_not_tell_of_themselves():
    """The judgements of a fold do not change its rankings, though they change those of all other topics."""
    runs, qrels = runs_of(30)
    learned = learn_fusion(runs, qrels, folds=5)
    fold = split_folds(list(runs[0]), 5, 0)[0]
    other = {qid: dict.fromkeys(grades, 1) if qid in fold else grades for qid, grades in qrels.items()}
    changed = learn_fusion(runs, other, folds=5)
    before, after = (fuse_runs(runs, each) for each in (learned.held_out, changed.held_out))
    assert all(before[qid] == after[qid] for qid in fold)
    assert any(before[qid] != after[qid] for qid in runs[0] if qid not in fold)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "P@5", "RR", "AP(rel=2)", "ERR@10"])
def test_scores_are_those_of_the_held_out_run(measure):
    runs, qrels = runs_of(20)
    learned = learn_fusion(runs, qrels, measure, folds=4)
    systems = {"run0": runs[0], "run1": runs[1], **{method: fuse_runs(runs, method) for method in FUSIONS}}
    systems[LEARNED] = fuse_runs(runs, learned.held_out)
    assert set(learned.scores) == set(systems)
    means = [float(scores.means[0]) for scores in learned.scores.values()]
    assert means == sorted(means, reverse=True)
    for name, run in systems.items():
        found = evaluate(run, qrels, [measure])
        by_qid = found.by_query
        expected = [by_qid[qid] for qid in learned.scores[name].qids]
        np.testing.assert_allclose(learned.scores[name].values[:, 0], expected, atol=1e-9, err_msg=name)
        assert {by_qid[qid] for qid in set(by_qid) - set(learned.scores[name].qids)} <= {0.0}
    assert learned.model.provenance["held_out"][measure] == pytest.approx(learned.scores[LEARNED].means[0])


def test_without_folds_the_scores_are_those_of_a_cross_validation():
    runs, qrels = runs_of(20)
    scores = learn_fusion(runs, qrels).scores[LEARNED]
    for part in split_folds(list(runs[0]), 5, 0):
        model = learn_fusion(runs, {qid: grades for qid, grades in qrels.items() if qid not in part}).model
        found = evaluate(fused_by(model, runs), {qid: qrels[qid] for qid in part}, ["nDCG@10"])
        for qid, (value,) in zip(found.qids, found.values.tolist(), strict=True):
            assert scores.values[scores.qids.index(qid), 0] == pytest.approx(value, abs=1e-12)


def test_a_run_that_is_noise_gets_little_weight():
    runs, qrels = runs_of(30, (0.3, 30.0))
    learned = learn_fusion(runs, qrels, folds=5)
    means = {name: float(scores.means[0]) for name, scores in learned.scores.items()}
    assert learned.best_run == "run0"
    assert means[LEARNED] > means["run0"] - 0.02 > means["rrf"] + 0.05
    good, _, noise, _ = learned.model.weights
    assert good > 5 * abs(noise)


def top_heavy():
    """A run with one relevant document, the first, and one with three others first: likelihood prefers it, RR that."""
    rng, rankings, qrels = np.random.default_rng(0), list[tuple[Ranking, Ranking]](), dict[str, dict[str, int]]()
    for qid in (f"t{number}" for number in range(25)):
        relevant, others = [f"r{number}" for number in range(12)], [f"o{number}" for number in range(40)]
        rng.shuffle(others)
        lists = [relevant[0], *others[:30]], [*others[-3:], *relevant[1:], *others[:20]]
        one, two = (Ranking(qid, "", tuple(docids), np.arange(len(docids), 0.0, -1.0)) for docids in lists)
        rankings.append((one, two))
        qrels[qid] = dict.fromkeys(relevant, 1)
    return [Run(of_run, f"run{number}") for number, of_run in enumerate(zip(*rankings, strict=True))], qrels


def test_a_run_is_chosen_if_it_leads_by_two_standard_errors():
    runs, qrels = top_heavy()
    recipe = FusionRecipe({run.tag: run for run in runs}, FusionWeights("RR"))
    recipe, _, data = recipe.read_runs(qrels)
    fitted = recipe.learn(data, data.qids)
    values = {system.family: each for (system,), each in fitted.choice.values.items()}
    assert list(values) == ["run0", "run1", *FUSIONS, LEARNED]  # no averages
    gains = values["run0"] - values[LEARNED]
    assert gains.mean() > 2 * gains.std(ddof=1) / 5
    assert (fitted.chosen, list(map(str, fitted.model.features))) == (("run0",), ["fused:rrf(run0)"])
    fused = fused_by(fitted.model, runs)
    assert all(fused[qid].docids[: len(ranking)] == ranking.docids for qid, ranking in runs[0].items())
    assert all(set(runs[1][qid].docids) <= set(fused[qid].docids) for qid in runs[1])
    fewer = recipe.learn(data, data.qids[1:])
    assert (fewer.chosen, fewer.choice) == ((LEARNED,), None)


def test_a_rule_that_is_chosen_fuses_alone(monkeypatch):
    choose = module.choose
    monkeypatch.setattr(
        module, "choose", lambda *given, **options: replace(choose(*given, **options), chosen=(System("combmnz"),))
    )
    runs, qrels = runs_of(25)
    model = learn_fusion(runs, qrels).model
    assert fused_by(model, runs).rankings == fuse_runs(runs, "combmnz").rankings
    assert "fused:combmnz(run0,run1)" in model.summary()


def test_the_penalty_is_by_the_number_of_runs():
    for noise, penalty in (((0.5, 1.0, 1.5), 5.0), ((0.5, 1.0, 1.5, 2.0), 30.0)):
        runs, qrels = runs_of(8, noise)
        assert learn_fusion(runs, qrels).model.provenance["penalty"] == penalty


def test_with_little_room_topics_at_equal_distances_are_learned_from(monkeypatch):
    runs, qrels = runs_of(120, documents=20)
    known = [qid for qid in qrels if any(qrels[qid][docid] > 0 for run in runs for docid in run[qid].docids)]
    assert learn_fusion(runs, qrels).model.provenance["queries"] == known
    monkeypatch.setattr(module, "MAX_BYTES", 60 * 20 * 4 * 8)
    learned = learn_fusion(runs, qrels, folds=3)
    chosen = learned.model.provenance["queries"]
    assert len(chosen) <= 60
    assert chosen == known[:: -(-len(known) // len(chosen))]
    assert set(learned.held_out.by_qid) == set(chosen)
    assert len(learned.scores[LEARNED].qids) == 120


def test_documents_below_rank_100_are_not_learned_from():
    runs, qrels = runs_of(6, documents=200)
    deep = [Run(tuple(Ranking(r.qid, "", r.docids, r.scores) for r in run.rankings), run.tag) for run in runs]
    top = {qid: {docid for run in runs for docid in run[qid].docids[:100]} for qid in qrels}
    changed = {qid: {d: g if d in top[qid] else 0 for d, g in grades.items()} for qid, grades in qrels.items()}
    assert learn_fusion(deep, changed).model.weights == learn_fusion(deep, qrels).model.weights


EIGHT, GRADES = runs_of(8)
FLAT = Run(tuple(Ranking(r.qid, "", r.docids, np.ones(len(r))) for r in EIGHT[0].rankings), "flat")
ELSEWHERE = Run(tuple(Ranking(f"x{r.qid}", "", r.docids, r.scores) for r in EIGHT[0].rankings), "elsewhere")
THREE, FOUR = ({qid: GRADES[qid] for qid in list(GRADES)[:most]} for most in (3, 4))


@pytest.mark.parametrize(
    ("runs", "qrels", "options", "parts"),
    [
        (EIGHT[:1], GRADES, {}, "two runs 1"),
        ([EIGHT[0], EIGHT[0]], GRADES, {}, "'run0' NAME=FILE"),
        ({"a": EIGHT[0], "b": EIGHT[0]}, GRADES, {}, "b: a: once"),
        ([EIGHT[0], FLAT], GRADES, {}, "flat: one score"),
        ([EIGHT[1], FLAT.head(3)], GRADES, {}, "flat: one score"),
        ([EIGHT[0], ELSEWHERE], GRADES, {}, "elsewhere: no topic 'xt0' 't0'"),
        ({"rrf": EIGHT[0], "b": EIGHT[1]}, GRADES, {}, "'rrf' method"),
        ({1: EIGHT[0], 2: EIGHT[1]}, GRADES, {}, "1 name"),
        (EIGHT, GRADES, {"penalty": 0}, "penalty 0"),
        (EIGHT, GRADES, {"seed": -1}, "seed -1"),
        ({"a.run", "b.run"}, GRADES, {}, "runs: set"),
        ("ab", GRADES, {}, "runs: 'ab'"),
        (EIGHT, {"z": {"d": 1}}, {}, "none 8 'z' 't0'"),
        (EIGHT, {"t0": {"d": 1}, "t1": {"d": 1}}, {}, "no run relevant 100"),
        (EIGHT, {qid: GRADES[qid] for qid in ("t0", "t1")}, {}, "2 topics 3"),
        (EIGHT, GRADES, {"folds": 9}, "8 9 folds"),
        (EIGHT, THREE, {"folds": 3}, "2 topics --folds"),  # of which a fold leaves one out
    ],
)
def test_refusals(runs, qrels, options, parts):
    refuses(lambda: learn_fusion(runs, qrels, **options), ParameterError, parts)


def test_few_topics_are_enough():
    assert learn_fusion(EIGHT, THREE).held_out is None
    assert learn_fusion(EIGHT, FOUR, folds=4).held_out is not None
    assert learn_fusion(EIGHT, GRADES, folds=8).held_out is not None


def test_a_run_that_lacks_topics_is_told(caplog):
    runs, qrels = runs_of(8)
    part = Run(runs[1].rankings[:5], "run1")
    with caplog.at_level(logging.WARNING):
        learned = learn_fusion([runs[0], part], qrels, folds=4)
    assert "run1 lacks 3 of 8 topics, such as 't5'" in caplog.text
    assert set(fuse_runs([runs[0], part], learned.held_out)) == set(runs[0])


def test_a_single_document_a_topic_is_no_constant_run():
    runs, qrels = runs_of(8)
    top = Run(tuple(ranking.head(1) for ranking in runs[1].rankings), "top")
    assert min(learn_fusion([runs[0], top], qrels).model.weights[2:]) > 0


def test_model_files(tmp_path):
    runs, qrels = runs_of(8)
    model = learn_fusion(runs, qrels, folds=4).model
    model.save(tmp_path / "fusion.json")
    assert RankingModel.load(tmp_path / "fusion.json") == model
    assert "fused:combsum(run0)" in model.summary()
    refuses(lambda: FusionRanker(model)([ONE]), ParameterError, "run0, run1| 2 rankings", "|")
    refuses(lambda: ModelRanker(model), ModelError, "run0, run1", "|")
    refuses(lambda: FusionRanker(replace(model, runs=())), ModelError, "none")
    for change in ({"runs": ("a", "a")}, {"runs": ("run0",)}, {"features": (FeatureSpec("FI", "term", "LM"),) * 4}):
        with pytest.raises(ModelError):
            replace(model, **change)


def test_joined_runs_of_files_in_any_order(tmp_path):
    runs, _ = runs_of(6)
    shuffled = Run(tuple(runs[1].rankings[number] for number in (3, 0, 5, 1)), "run1")
    paths = [tmp_path / "a.run", tmp_path / "b.run.gz"]
    for run, path in zip((runs[0], shuffled), paths, strict=True):
        write_run(run, path)
    assert gzip.decompress(paths[1].read_bytes())
    joined = JoinedRuns(tuple(map(RunFile, paths)))
    assert list(joined) == list(runs[0])
    read = [read_run(path) for path in paths]
    for qid, (first, second) in zip(joined, joined.rankings, strict=True):
        assert first == read[0][qid]
        assert second == read[1].get(qid, Ranking(qid, "", (), []))
    write_rankings(FUSIONS["rrf"], joined, tmp_path / "out.run", tag="rrf")
    write_run(fuse_runs(read, "rrf"), tmp_path / "expected.run")
    assert (tmp_path / "out.run").read_bytes() == (tmp_path / "expected.run").read_bytes()


def test_runs_are_read_a_query_at_a_time(tmp_path, monkeypatch):
    """Passes that learn, score and write have the rankings of a few queries in memory."""
    runs, qrels = runs_of(40)
    for run in runs:
        write_run(run, tmp_path / run.tag)
    files, alive, read = [RunFile(tmp_path / run.tag) for run in runs], list[int](), RunFile.rankings.fget

    def counted(self):
        for number, ranking in enumerate(read(self)):
            if number % 13 == 12:
                alive.append(sum(type(kept) is Ranking for kept in gc.get_objects()))
            yield ranking

    monkeypatch.setattr(RunFile, "rankings", property(counted))
    gc.collect()
    before = sum(type(kept) is Ranking for kept in gc.get_objects())
    learned = learn_fusion(files, qrels, folds=3)
    write_rankings(learned.held_out, JoinedRuns(tuple(files)), tmp_path / "out.run", tag="fused")
    assert len(alive) == 3 * 2 * 3
    assert max(alive) - before < 12
