"""Learned fusion of runs: weights by hand and by search, the choice, held-out topics, and what is refused.

Tests `greylag.rankers.fusion_model`.
"""

from __future__ import annotations

import gzip
import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from greylag import fuse_runs
from greylag.errors import ModelError, ParameterError
from greylag.evaluation import evaluate, split_folds
from greylag.fusion import FUSIONS, GivenRun, PooledSources, fusion_columns
from greylag.rankers.fusion_model import LEARNED, FusionModel
from greylag.ranking import Query, Ranking, Run
from greylag.recipes import learned_fusion as module
from greylag.recipes.learned_fusion import chosen_system, learn_fusion
from greylag.trec import read_run, write_run
from greylag.trec.runs import JoinedRuns, RunFile, write_rankings

ONE = Ranking("q", "tea", ("a", "b", "c"), [10.0, 5.0, 0.0])
TWO = Ranking("q", "tea", ("d", "b"), [4.0, 2.0])
NONE = Ranking("q", "tea", (), [])


def runs_of(
    topics: int = 30, noise: tuple[float, ...] = (0.5, 1.0), documents: int = 40
) -> tuple[list[Run], dict[str, dict[str, int]]]:
    """Runs that see a document's relevance through more or less noise, each of other documents, and judgements."""
    rng = np.random.default_rng(topics)
    rankings: list[list[Ranking]] = [[] for _ in noise]
    qrels: dict[str, dict[str, int]] = {}
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


def test_columns_and_a_weighted_sum_by_hand() -> None:
    docids, columns = fusion_columns([ONE, TWO])
    assert docids == ("a", "b", "c", "d")
    np.testing.assert_allclose(
        columns,
        [[1, 60 / 61, 0, 0], [0.5, 60 / 62, 0, 60 / 62], [0, 60 / 63, 0, 0], [0, 0, 1, 60 / 61]],
        rtol=1e-15,
    )
    model = FusionModel(("one", "two"), weights=((1.0, 0.5), (2.0, -1.0)))
    fused = model([ONE, TWO])
    expected = {"a": 1 + 30 / 61, "b": 0.5 + 30 / 62 - 60 / 62, "c": 30 / 63, "d": 2 - 60 / 61}
    assert fused.docids == tuple(sorted(expected, key=lambda docid: -expected[docid]))
    np.testing.assert_allclose(fused.scores, sorted(expected.values(), reverse=True), rtol=1e-14)
    assert model([NONE, NONE]).docids == ()
    source = PooledSources((GivenRun(Run((ONE,))), GivenRun(Run((TWO,)))), method=model)
    assert source(Query("q", "tea")) == fused
    assert fuse_runs([Run((ONE,)), Run((TWO,))], model, k=2).rankings[0] == fused.head(2)
    for method in FUSIONS:
        assert FusionModel(("one", "two"), method)([ONE, TWO]) == FUSIONS[method]([ONE, TWO])


def test_weights_minimise_the_penalised_likelihood() -> None:
    """Its definition, written out over rankings, minimised by another method."""
    runs, qrels = runs_of(12)
    model = learn_fusion(runs, qrels, penalty=5.0).model
    tables = []
    for qid in runs[0]:
        docids, columns = fusion_columns([run[qid] for run in runs])
        tables.append((columns, np.array([qrels[qid][docid] for docid in docids], dtype=float)))
    spread = np.sqrt(np.mean(np.concatenate([(x - x.mean(axis=0)) ** 2 for x, _ in tables]), axis=0))

    def loss(weights: np.ndarray) -> float:
        total = 2.5 * weights @ weights
        for x, gains in tables:
            scores = x @ (weights / spread)
            total -= gains / gains.sum() @ (scores - np.log(np.exp(scores).sum()))
        return float(total)

    expected = minimize(loss, np.zeros(4), method="Powell", options={"xtol": 1e-10, "ftol": 1e-14}).x / spread
    np.testing.assert_allclose(np.ravel(model.weights), expected, atol=2e-4)


def test_held_out_topics_do_not_tell_of_themselves() -> None:
    """The judgements of a fold do not change its rankings, though they change those of all other topics."""
    runs, qrels = runs_of(30)
    learned = learn_fusion(runs, qrels, folds=5)
    assert learned.held_out is not None
    fold = split_folds(list(runs[0]), 5, 0)[0]
    other = {qid: dict.fromkeys(grades, 1) if qid in fold else grades for qid, grades in qrels.items()}
    changed = learn_fusion(runs, other, folds=5)
    assert changed.held_out is not None
    before, after = (fuse_runs(runs, each) for each in (learned.held_out, changed.held_out))
    assert all(before[qid] == after[qid] for qid in fold)
    assert any(before[qid] != after[qid] for qid in runs[0] if qid not in fold)


@pytest.mark.parametrize("measure", ["nDCG@10", "AP", "P@5", "RR", "AP(rel=2)", "ERR@10"])
def test_scores_are_those_of_the_held_out_run(measure: str) -> None:
    runs, qrels = runs_of(20)
    learned = learn_fusion(runs, qrels, measure, folds=4)
    assert learned.held_out is not None
    systems = {"run0": runs[0], "run1": runs[1], **{method: fuse_runs(runs, method) for method in FUSIONS}}
    systems[LEARNED] = fuse_runs(runs, learned.held_out)
    assert list(learned.scores) == list(systems)
    for name, run in systems.items():
        found = evaluate(run, qrels, [measure])
        by_qid = found.by_query
        expected = [by_qid[qid] for qid in learned.scores[name].qids]
        np.testing.assert_allclose(learned.scores[name].values[:, 0], expected, atol=1e-9, err_msg=name)
        assert {by_qid[qid] for qid in set(by_qid) - set(learned.scores[name].qids)} <= {0.0}
    assert learned.model.provenance["held_out"][measure] == pytest.approx(learned.scores[LEARNED].means[0])


def test_without_folds_the_scores_are_those_of_a_cross_validation() -> None:
    runs, qrels = runs_of(20)
    scores = learn_fusion(runs, qrels).scores[LEARNED]
    for part in split_folds(list(runs[0]), 5, 0):
        model = learn_fusion(runs, {qid: grades for qid, grades in qrels.items() if qid not in part}).model
        found = evaluate(fuse_runs(runs, model), {qid: qrels[qid] for qid in part}, ["nDCG@10"])
        for qid, (value,) in zip(found.qids, found.values.tolist(), strict=True):
            assert scores.values[scores.qids.index(qid), 0] == pytest.approx(value, abs=1e-12)


def test_a_run_that_is_noise_gets_little_weight() -> None:
    runs, qrels = runs_of(30, (0.3, 30.0))
    learned = learn_fusion(runs, qrels, folds=5)
    means = {name: float(scores.means[0]) for name, scores in learned.scores.items()}
    assert learned.best_run == "run0"
    assert means[LEARNED] > means["run0"] - 0.02 > means["rrf"] + 0.05
    (good, _), (noise, _) = learned.model.weights
    assert good > 5 * abs(noise)


def test_the_choice_needs_two_standard_errors() -> None:
    rng = np.random.default_rng(0)
    learned = rng.random(25)
    gains = rng.standard_normal(25)
    gains -= gains.mean()
    error = gains.std(ddof=1) / 5
    for gain, chosen in ((1.9, LEARNED), (2.1, "rrf")):
        values = {"a": learned - 0.1, "rrf": learned + gains + gain * error, LEARNED: learned}
        assert chosen_system(values) == chosen


@pytest.mark.parametrize(("chosen", "method"), [("run1", LEARNED), ("rrf", "rrf")])
def test_what_is_chosen_in_its_place(chosen: str, method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "chosen_system", lambda values: chosen)
    runs, qrels = runs_of(25)
    model = learn_fusion(runs, qrels).model
    fused = fuse_runs(runs, model)
    assert model.method == method
    assert f"{chosen} in its place" in model.summary()
    if chosen == "rrf":
        assert fused.rankings == fuse_runs(runs, "rrf").rankings
    else:
        assert all(fused[qid].docids[: len(runs[1][qid])] == runs[1][qid].docids for qid in runs[1])
    assert learn_fusion(*runs_of(24)).model.method == LEARNED


def test_the_penalty_is_by_the_number_of_runs() -> None:
    for noise, penalty in (((0.5, 1.0, 1.5), 5.0), ((0.5, 1.0, 1.5, 2.0), 30.0)):
        runs, qrels = runs_of(8, noise)
        assert learn_fusion(runs, qrels).model.provenance["penalty"] == penalty


def test_with_little_room_topics_at_equal_distances_are_learned_from(monkeypatch: pytest.MonkeyPatch) -> None:
    runs, qrels = runs_of(120, documents=20)
    monkeypatch.setattr(module, "MAX_BYTES", 60 * 20 * 4 * 8)
    learned = learn_fusion(runs, qrels, folds=3)
    assert learned.held_out is not None
    known = [qid for qid in qrels if any(qrels[qid][docid] > 0 for run in runs for docid in run[qid].docids)]
    chosen = learned.model.provenance["queries"]
    assert len(chosen) <= 60
    assert chosen == known[:: -(-len(known) // len(chosen))]
    assert set(learned.held_out.by_qid) == set(chosen)
    assert len(learned.scores[LEARNED].qids) == 120


def test_documents_below_rank_100_are_not_learned_from() -> None:
    runs, qrels = runs_of(6, documents=200)
    deep = [Run(tuple(Ranking(r.qid, "", r.docids, r.scores) for r in run.rankings), run.tag) for run in runs]
    top = {qid: {docid for run in runs for docid in run[qid].docids[:100]} for qid in qrels}
    changed = {qid: {d: g if d in top[qid] else 0 for d, g in grades.items()} for qid, grades in qrels.items()}
    assert learn_fusion(deep, changed).model.weights == learn_fusion(deep, qrels).model.weights


def refused(runs: object, qrels: dict[str, dict[str, int]], **options: int) -> str:
    with pytest.raises(ParameterError) as caught:
        learn_fusion(runs, qrels, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_refusals() -> None:
    runs, qrels = runs_of(8)
    constant = Run(tuple(Ranking(r.qid, "", r.docids, np.ones(len(r))) for r in runs[0].rankings), "constant")
    elsewhere = Run(tuple(Ranking(f"x{r.qid}", "", r.docids, r.scores) for r in runs[0].rankings), "elsewhere")
    assert "two runs or more" in refused(runs[:1], qrels)
    assert "two runs have the tag 'run0'" in refused([runs[0], runs[0]], qrels)
    assert "a and b are the same run" in refused({"a": runs[0], "b": runs[0]}, qrels)
    assert "constant gives all documents of a topic one score" in refused([runs[0], constant], qrels)
    assert "elsewhere has no documents for the topics" in refused([runs[0], elsewhere], qrels)
    assert "'rrf' is a method of fusion" in refused({"rrf": runs[0], "b": runs[1]}, qrels)
    assert "none of 8 topics has a relevant document; the judgements are of others, 'z' against" in refused(
        runs, {"z": {"d": 1}}
    )
    assert "2 topics" in refused(runs, {qid: qrels[qid] for qid in ("t0", "t1")})
    assert "8 queries cannot be split into 9 folds" in refused(runs, qrels, folds=9)
    assert learn_fusion(runs, qrels, folds=8).held_out is not None
    assert learn_fusion(runs, {qid: qrels[qid] for qid in ("t0", "t1", "t2")}, folds=3).held_out is not None


def test_a_run_that_lacks_topics_is_told(caplog: pytest.LogCaptureFixture) -> None:
    runs, qrels = runs_of(8)
    part = Run(runs[1].rankings[:5], "run1")
    with caplog.at_level(logging.WARNING):
        learned = learn_fusion([runs[0], part], qrels, folds=4)
    assert "run1 lacks 3 of 8 topics, such as 't5'" in caplog.text
    assert learned.held_out is not None
    assert set(fuse_runs([runs[0], part], learned.held_out)) == set(runs[0])


def test_a_single_document_a_topic_is_no_constant_run() -> None:
    runs, qrels = runs_of(8)
    top = Run(tuple(ranking.head(1) for ranking in runs[1].rankings), "top")
    (_, _), (of_scores, of_ranks) = learn_fusion([runs[0], top], qrels).model.weights
    assert (of_scores, of_ranks > 0) == (0.0, True)


def test_model_files(tmp_path: Path) -> None:
    runs, qrels = runs_of(8)
    model = learn_fusion(runs, qrels, folds=4).model
    model.save(tmp_path / "fusion.json")
    assert FusionModel.load(tmp_path / "fusion.json") == model
    assert "run0" in model.summary()
    with pytest.raises(ParameterError, match=r"run0, run1.* 2 rankings"):
        model([ONE])
    for change in ({"method": "borda"}, {"method": "rrf"}, {"weights": ((1.0, np.nan),) * 2}, {"runs": ("a", "a")}):
        with pytest.raises(ModelError):
            replace(model, **change)  # type: ignore[arg-type]


def test_joined_runs_of_files_in_any_order(tmp_path: Path) -> None:
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
