"""Tests `rerank`, `ranking_inputs`, `model_inputs`."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
import pytrec_eval

from greylag import (
    GeneralRanker,
    LuceneIndex,
    PositionalIndex,
    Ranking,
    Run,
    evaluate,
    read_qrels,
    read_run,
    read_topics,
    write_run,
)
from greylag.cli.model_inputs import seen_topics
from greylag.diversity import (
    CSSVM,
    DPP,
    MMR,
    MSD,
    Candidates,
    Coverage,
    DiversityModel,
    EssentialPages,
    GroupLimit,
    RandomOrder,
    SVMDiv,
    XQuAD,
)
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage import CoverageGain
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures, word_coverage
from greylag.diversity.training import train, training_examples
from greylag.errors import ModelError
from greylag.evaluation import split_folds
from greylag.features.evidence import RunScore
from greylag.features.spelling import parse_feature
from greylag.index.vectors import ArrayVectors
from greylag.learning.structured import Coulomb, CuttingPlane
from greylag.manifold import ManifoldRanker
from greylag.pipeline import Stage, run_step
from greylag.rankers import RankingModel
from greylag.ranking import SEEN, FloatArray
from greylag.runtime import read_json_lines
from greylag.trec import read_subtopic_qrels, read_titles
from tests.greylag.cli.conftest import DEMO, Command, Refused, spelt, unremarked, write_qrels


def test_queries_that_are_documents_are_left_out_as_in_beir(command: Command, made: Path, tmp_path: Path) -> None:
    """Of searching, training and scoring; the figures are pytrec_eval's without identical identifiers."""
    texts = {doc["id"]: doc["contents"] for _, doc in read_json_lines(DEMO / "docs.jsonl")}
    relevant = [[d for d, grade in judged.items() if grade > 0] for judged in read_qrels(made / "qrels.txt").values()]
    qrels = {docids[0]: dict.fromkeys(docids[1:], 1) for docids in relevant if len(docids) > 2}
    write_qrels(qrels, tmp_path / "qrels")
    (tmp_path / "topics.tsv").write_text("".join(f"{qid}\t{texts[qid]}\n" for qid in qrels))
    searched = ["--index", made / "index", "--topics", tmp_path / "topics.tsv"]
    runs = [tmp_path / "bm25.run", tmp_path / "others.run", tmp_path / "held-out.run"]
    assert command("search", *searched, "--hits", 20, "--out", runs[0])[0] == 0
    assert command("rerank", "--run", runs[0], "--stage", "leave-out-self", "--out", runs[1]) == (0, "", "")
    words = ["--qrels", tmp_path / "qrels", "--model", "mrf", "--features", "score", "--folds", 2]
    words += ["--out", tmp_path / "model.json", "--out-run", runs[2]]
    assert command("train", *searched, "--run", runs[1], *words)[0] == 0
    first, others, held_out = map(read_run, runs)
    assert all(first[qid].docids[0] == qid for qid in qrels)
    assert [held_out[qid].docids for qid in qrels] == [others[qid].docids for qid in qrels]  # by the score alone
    scores = {qid: {d: s for d, s in zip(r.docids, r.scores, strict=True) if d != qid} for qid, r in first.items()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(scores)
    expected = np.mean([of_query["ndcg_cut_10"] for of_query in theirs.values()])
    assert evaluate(others, qrels, "nDCG@10").means[0] == pytest.approx(expected, abs=1e-12)
    assert evaluate(first, qrels, "nDCG@10").means[0] < expected - 0.05


def test_with_a_model(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    model, out = tmp_path / "model.json", tmp_path / "mrf.run.gz"
    words = ["--qrels", made / "qrels.txt", "--model", "mrf", "--pool", "sd", "--out", model]
    assert command("train", *ranked, *words)[0] == 0
    assert unremarked(command("rerank", *ranked, "--model", model, "--out", out)) == (0, "", "")
    assert gzip.decompress(out.read_bytes()).endswith(b" bm25-mrf+training-topics\n")


def test_manifold_ranking_needs_no_model(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    words = [*ranked, "--out"]
    plain, tuned = tmp_path / "plain.run", tmp_path / "tuned.run"
    assert command("rerank", *words, plain, "--stage", "manifold") == (0, "", "")
    assert plain.read_text().split("\n")[0].endswith(" bm25-manifold")
    options = f"depth=30,alpha=0.9,graph=mutual_knn,neighbours=7,confidence=query,feedback={made / 'qrels.txt'}"
    assert command("rerank", *words, tuned, "--stage", f"manifold({options})") == (0, "", "")
    stage = ManifoldRanker(
        PositionalIndex.from_lucene(made / "index"),
        depth=30,
        alpha=0.9,
        graph="mutual_knn",
        neighbours=7,
        confidence="query",
        feedback=read_qrels(made / "qrels.txt"),
    )
    for qid, ranking in read_run(made / "bm25.run", read_topics(made / "topics.tsv")).items():
        assert read_run(tuned)[qid].docids == stage(ranking).docids
    assert plain.read_text() != tuned.read_text()


def test_features_read_from_other_files(
    command: Command, refused: Refused, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    old, new, model, out = (tmp_path / name for name in ("old.run", "new.run", "model.json", "out.run"))
    old.write_text((made / "bm25.run").read_text())
    given = read_run(made / "bm25.run")
    turned = [Ranking(qid, "", own.docids[::-1], -np.arange(len(own))) for qid, own in given.items()]
    write_run(Run(tuple(turned)), new)
    RankingModel((parse_feature(f"run:{old}"),), (1.0,)).save(model)
    words = ["rerank", *ranked, "--model", model, "--out", out]
    assert command(*words, "--file", f"old.run={new}") == (0, "", "")
    assert all(own.docids[0] == given[qid].docids[-1] for qid, own in read_run(out).items())
    assert "0 of the model's files are called 'x.run'; its files" in refused(*words, "--file", f"x.run={new}")
    assert "--file old.run is not of the form NAME=FILE" in refused(*words, "--file", "old.run")
    twice = ["--file", f"old.run={new}", "--file", f"old.run={old}"]
    assert f"--file old.run is given twice: {new} and {old}" in refused(*words, *twice)
    words = ["rerank", *ranked, "--stage", "manifold", "--out", out, "--file", "a=b"]
    assert "--file and --transfer go with --model" in refused(*words)


def test_what_needs_a_run(refused: Refused, collection: list[object], tmp_path: Path) -> None:
    RankingModel((parse_feature("score"),), (1.0,)).save(tmp_path / "model.json")
    for words in (["--stage", "manifold"], ["--model", tmp_path / "model.json"]):
        assert "give a --run" in refused("rerank", *collection, *words, "--out", tmp_path / "x")


def test_no_query_in_common(refused: Refused, ranked: list[object], tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("999 0 d1 1\n")
    words = [*ranked, "--stage", f"manifold(feedback={other})", "--out", tmp_path / "x"]
    assert "no query in common" in refused("rerank", *words)


def test_from_judgements_to_a_diverse_run(
    command: Command, learn: Command, refused: Refused, made: Path, few: list[object], tmp_path: Path
) -> None:
    model, out, qrels = tmp_path / "div.json", tmp_path / "div.run", made / "qrels.subtopics.txt"
    options = spelt("svmdiv", f"preset=svmdiv2 C=1 k=3 depth=25 titles={DEMO / 'docs.jsonl'}")
    more = ["--features", "score,SD/ordered/LM-O-4"]
    code, told, _ = learn(qrels, model, *options, *more)
    assert (code, told.split(":")[0]) == (0, "svmdiv2 on 8 queries")
    learned = DiversityModel.load(model)
    assert (learned.preset, learned.k, learned.titles) == ("svmdiv2", 3, True)
    assert learned.features.document_features == ("score", "SD/ordered/LM-O-4")
    assert learned.provenance["C"] == 1.0
    words = [*few, "--stage", f"svmdiv(model={model},titles={DEMO / 'docs.jsonl'},k=10)", "--out", out]
    assert unremarked(command("rerank", *words)) == (0, "", "")
    assert "give --topics: svmdiv needs" in refused("rerank", *words[:2], *words[4:])
    index, run = PositionalIndex.from_lucene(made / "index"), read_run(few[-1], read_topics(made / "topics.tsv"))
    stage = SVMDiv(learned, index, titles=read_titles(DEMO / "docs.jsonl"), k=10)
    assert read_run(out).tag == f"bm25-svmdiv{SEEN}"
    assert all(read_run(out)[qid].docids == stage(run[qid]).docids for qid in run)


def test_learning_to_diversify_in_cross_validation_with_own_criteria(
    command: Command, learn: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    model, out, qrels = tmp_path / "div.json", tmp_path / "held.run", made / "qrels.subtopics.txt"
    criteria = "thresholds=[0.1,0.5] criteria=[count>=2,title>=1,start>=2]"
    docs, titles = tmp_path / "fields.jsonl", {}
    options = spelt("svmdiv", f"k=3 depth=20 C=1 candidates=relevant loss=unweighted titles={docs} {criteria}")
    for docid, title in read_titles(DEMO / "docs.jsonl").items():
        titles[docid] = {"id": docid, "title": title, "start": f"{title[:9]} {title[:9]}"}
    docs.write_text("\n".join(map(json.dumps, titles.values())))
    code, told, err = learn(qrels, model, *options, "--folds", 4, "--out-run", out)
    assert (code, err) == (0, "")
    assert "subtopic-loss@3" in told
    learned = DiversityModel.load(model)
    assert learned.features == CoverageFeatures((("count", 2), ("title", 1), ("start", 2)), (0.1, 0.5))
    index = PositionalIndex.from_lucene(made / "index")
    make = CandidateMaker(index, learned.features, titles=titles, depth=20)
    run = read_run(few[-1], read_topics(made / "topics.tsv"))
    examples = training_examples(run, read_subtopic_qrels(qrels), make, relevant_only=True, weighted=False)
    for x, truth in examples.values():
        assert len(x) == truth.coverage.shape[0] == np.count_nonzero(truth.coverage.sum(axis=1))
        assert np.ptp(truth.weights) == 0
    held_out = read_run(out)
    assert sorted(held_out) == sorted(examples)
    for test in split_folds(list(examples), 4, 0):
        rest = {qid: example for qid, example in examples.items() if qid not in test}
        stage = SVMDiv(train(rest, make, CuttingPlane(C=1.0), k=3).model, index, titles=titles, k=3)
        assert all(held_out[qid].docids == stage(run[qid]).docids for qid in test)
    again = tmp_path / "again.run"
    stage = f"svmdiv(model={model},titles={docs},k=3)"
    assert command("rerank", *few, "--stage", stage, "--out", again)[0] == 0
    assert read_run(again)[test[0]].docids == SVMDiv(learned, index, titles=titles, k=3)(run[test[0]]).docids
    code, told, _ = learn(qrels, model, *spelt("svmdiv", "k=3 validate=true retrain=true"))
    learned = DiversityModel.load(model)
    assert len(learned.provenance["queries"]) == 8
    C = learned.provenance["C"]
    every = training_examples(run, read_subtopic_qrels(qrels), CandidateMaker(index, PRESETS["svmdiv"]))
    order = {qid: every[qid] for qid in learned.provenance["queries"]}
    again = train(order, CandidateMaker(index, PRESETS["svmdiv"]), CuttingPlane(C=C), k=3)
    assert again.model.weights == learned.weights
    for wrong in ("criteria=colour>=1", "criteria=count<=2", "thresholds=a", "retrain=true"):
        assert learn(qrels, model, *spelt("svmdiv", wrong))[0] == 2


def test_ensembles_in_cross_validation(learn: Command, made: Path, few: list[object], tmp_path: Path) -> None:
    out, qrels = tmp_path / "held.run", made / "qrels.subtopics.txt"
    words = [*spelt("cssvm", "k=3 depth=20 M=2 C=1 epochs=5"), "--folds", 2, "--out-run", out]
    assert learn(qrels, tmp_path / "div.json", *words)[0] == 0
    make = CandidateMaker(PositionalIndex.from_lucene(made / "index"), PRESETS["svmdiv"], depth=20)
    held_out, run = read_run(out), read_run(few[-1], read_topics(made / "topics.tsv"))
    examples = training_examples(run, read_subtopic_qrels(qrels), make)
    for test in split_folds(list(examples), 2, 0):
        rest = {qid: example for qid, example in examples.items() if qid not in test}
        stage = CSSVM(train(rest, make, Coulomb(2, C=1.0, epochs=5), k=3).model, make.index, k=3)
        assert all(held_out[qid].docids == stage(run[qid]).docids for qid in test)


def test_from_judgements_to_the_runs_of_an_ensemble(
    command: Command, made: Path, few: list[object], tmp_path: Path, ensemble: Path
) -> None:
    learned = DiversityModel.load(ensemble)
    made_by = {"method": "cssvm", "M": 3, "alpha": 2.0, "assignment": "all", "seed": 5, "C": 1.0}
    assert {key: learned.provenance[key] for key in made_by} == made_by
    assert learned.depth == 100
    assert 0 < learned.provenance["mean_angle"] <= 180
    index, before = PositionalIndex.from_lucene(made / "index"), read_run(few[-1], read_topics(made / "topics.tsv"))
    stages: dict[str, Stage] = {f"cssvm(model={ensemble},k=5)": CSSVM(learned, index, k=5)}
    for number, member in enumerate(learned.members, 1):
        stages[f"svmdiv(model={ensemble},member={number},k=5)"] = SVMDiv(member, index, k=5)
    orders = []
    for text, stage in stages.items():
        words = ["rerank", *few, "--stage", text, "--out", tmp_path / "div.run"]
        assert unremarked(command(*words)) == (0, "", "")
        run = read_run(tmp_path / "div.run")
        assert run.tag == f"bm25-{text.partition('(')[0]}{SEEN}"
        orders.append([ranking.docids for ranking in run.rankings])
        assert orders[-1] == [stage(before[qid]).docids for qid in run]
    assert len({*map(tuple, orders)}) > 1


def test_an_ensemble_that_cannot_rank_writes_nothing(
    command: Command, few: list[object], tmp_path: Path, ensemble: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    third = DiversityModel.load(ensemble).weights[2]

    def fail_on_the_third(x: Candidates, weights: FloatArray) -> CoverageGain:
        if tuple(weights) == third:
            raise ModelError("no third")
        return word_coverage(x, weights)

    monkeypatch.setattr("greylag.diversity.svmdiv.word_coverage", fail_on_the_third)
    words = [*few, "--model", ensemble, "--out", tmp_path / "div.run"]
    assert unremarked(command("rerank", *words)) == (2, "", "greylag: error: no third\n")
    assert not list(tmp_path.glob("div*"))


def test_models_are_told_apart(
    command: Command, learn: Command, made: Path, few: list[object], tmp_path: Path, ensemble: Path
) -> None:
    out = tmp_path / "out.run"
    code, _, err = command("rerank", *few, "--stage", f"svmdiv(model={ensemble})", "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert (
        "the model is an ensemble of 3: use all of it (CSSVM, --stage cssvm), or one of its models, member=1 to 3 ("
        in err
    )
    old = tmp_path / "old.json"
    old.write_text(json.dumps({**json.loads(ensemble.read_text()), "schema": 1}))
    code, _, err = command("rerank", *few, "--model", old, "--out", out)
    assert (code, err.count("\n")) == (2, 1)
    assert "old.json: schema 1, but this version reads 4: train it again" in err
    # One model is an ensemble of one.
    assert learn(made / "qrels.subtopics.txt", tmp_path / "one.json")[0] == 0
    words = ["rerank", *few, "--out", out, "--tag", "x"]
    assert unremarked(command(*words, "--model", tmp_path / "one.json")) == (0, "", "")
    alone = read_run(out)
    assert command(*words, "--stage", f"cssvm(model={tmp_path / 'one.json'})")[0] == 0
    assert [r.docids for r in read_run(out).rankings] == [r.docids for r in alone.rankings]


@pytest.mark.parametrize("method", ["essential-pages", "coverage", "mmr", "random"])
def test_methods_that_learn_nothing(
    command: Command, made: Path, few: list[object], tmp_path: Path, method: str
) -> None:
    index, out = PositionalIndex.from_lucene(made / "index"), tmp_path / "out.run"
    stages = {
        "essential-pages": (EssentialPages(index, depth=20, k=5), ""),
        "coverage": (Coverage(index, depth=20, k=5), ""),
        "mmr": (MMR(index, relevance_weight=0.3, depth=20, k=5), ",relevance_weight=0.3"),
        "random": (RandomOrder(4, depth=20, k=5), ",seed=4"),
    }
    stage, more = stages[method]
    words = [*few[:2], *few[4:], "--stage", f"{method}(depth=20,k=5{more})", "--out", out]
    assert command("rerank", *words) == (0, "", "")
    expected = run_step(stage, read_run(few[-1]))
    assert [ranking.docids for ranking in read_run(out).rankings] == [r.docids for r in expected.rankings]


def test_few_candidates_and_documents_without_words(
    command: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    run, model, out = tmp_path / "tiny.run", tmp_path / "div.json", tmp_path / "out.run"
    lines = (made / "bm25.run").read_text().splitlines()
    kept = [line for line in lines if int(line.split()[3]) <= 3]
    unknown = [f"{line.split()[0]} Q0 elsewhere 4 -1 bm25" for line in kept if line.split()[3] == "3"]
    run.write_text("\n".join(sorted([*kept, *unknown], key=lambda line: int(line.split()[0]))) + "\n")
    words = [*few[:-1], run]
    learned = [*words, "--qrels", made / "qrels.subtopics.txt", "--out", model, "--model", "svmdiv(k=6)"]
    assert command("train", *learned)[0] == 0
    told = unremarked(command("rerank", *words, "--model", model, "--out", out))
    assert told[:2] == (0, "")
    assert told[2].count("\n") == 1
    assert "24 of 96 documents of 24 queries are unknown" in told[2]
    before, after = read_run(run), read_run(out)
    assert all(sorted(after[qid].docids) == sorted(before[qid].docids) for qid in before)


def test_models_bring_their_preset(
    command: Command, learn: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    paths = [tmp_path / f"{preset}.json" for preset in ("svmdiv", "svmdiv2")]
    for path in paths:
        assert learn(made / "qrels.subtopics.txt", path, *spelt("svmdiv", f"preset={path.stem}"))[0] == 0
    words = [*few, "--out", tmp_path / "out.run", "--model"]
    assert [command("rerank", *words, path)[0] for path in paths] == [0, 0]
    small, large = (json.loads(path.read_text()) for path in paths)
    paths[0].write_text(json.dumps({**small, "criteria": large["criteria"]}))
    code, _, err = command("rerank", *words, paths[0])
    assert (code, err.count("\n")) == (2, 1)
    assert "svmdiv.json: the names of the weights do not match the criteria" in err


def test_stages_one_after_another(command: Command, made: Path, few: list[object], tmp_path: Path) -> None:
    out, index = tmp_path / "out.run", PositionalIndex.from_lucene(made / "index")
    words = [*few, "--stage", "manifold(alpha=0.8)", "--stage", "mmr(k=5)", "--out", out]
    assert command("rerank", *words) == (0, "", "")
    stages = ManifoldRanker(index, alpha=0.8) >> MMR(index, k=5)
    given = read_run(few[-1], read_topics(made / "topics.tsv"))
    assert read_run(out).tag == "bm25-manifold-mmr"
    assert all(read_run(out)[qid].docids == stages(ranking).docids for qid, ranking in given.items())


def test_methods_over_an_index_and_a_cap(command: Command, made: Path, few: list[object], tmp_path: Path) -> None:
    out, index = tmp_path / "out.run", PositionalIndex.from_lucene(made / "index")
    given = read_run(few[-1], read_topics(made / "topics.tsv"))
    docids = sorted({docid for ranking in given.values() for docid in ranking.docids})
    groups = {docid: f"site {place % 3}" for place, docid in enumerate(docids) if place % 4}
    lines = [json.dumps({"id": docid} | ({"group": groups[docid]} if docid in groups else {})) for docid in docids]
    (tmp_path / "groups.jsonl").write_text("\n".join(lines) + "\n")
    for step, stage in (
        ("msd(k=5)", MSD(index, k=5)),
        ("dpp", DPP(index)),
        (f"group-limit(groups={tmp_path / 'groups.jsonl'},max_per_group=2)", GroupLimit(groups, 2)),
    ):
        assert command("rerank", *few, "--stage", step, "--out", out) == (0, "", "")
        assert {qid: r.docids for qid, r in read_run(out).items()} == {q: stage(r).docids for q, r in given.items()}
        assert any(stage(ranking).docids != ranking.docids for ranking in given.values())


def test_topics_that_a_model_was_trained_on(
    few: list[object], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run, path = read_run(few[-1]), tmp_path / "model.json"
    for provenance, fingerprint, seen in (
        ({"queries": ["1", "2", "99"]}, "abc", 2),
        ({"queries": ["1"], "validation": ["2", "3"]}, "abc", 3),
        ({"queries": ["99"]}, "abc", 0),
        ({"queries": ["1"]}, "another", 0),
    ):
        caplog.clear()
        RankingModel((), (), fingerprint=fingerprint, provenance=provenance).save(path)
        assert seen_topics([path], run, "abc") == (SEEN if seen else "")
        assert [message.split()[0] for message in caplog.messages] == ([str(seen)] if seen else [])
    assert seen_topics([few[-1], tmp_path, tmp_path / "none"], run, "abc") == ""


def test_the_mark_of_training_topics_is_not_lost(
    command: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    """By --tag, fuse, stages, features of runs and models, folds; evaluate tells it; another --file is another run."""
    model, seen, out = tmp_path / "m.json", tmp_path / "seen.run", tmp_path / "out.run"
    learned = ["--qrels", made / "qrels.txt", "--model", "mrf(max_features=1)", "--out"]
    assert command("train", *few, *learned, model, "--features", "score")[0] == 0
    assert unremarked(command("rerank", *few, "--model", model, "--tag", "mine", "--out", seen))[0] == 0
    assert read_run(seen).tag == f"mine{SEEN}"
    fused = ["fuse", "--run", few[-1], "--run", seen, "--out", out]
    over = ["rerank", *few[:-1], seen, "--stage", "mmr(k=3)", "--tag", "x", "--out", out]
    with_run = ["--features", f"run:{seen}"]
    held_out = ["train", *few, *learned, tmp_path / "n.json", *with_run, "--folds", 2, "--out-run", out]
    for words in (fused, [*fused, "--tag", "x"], over, [*over[:-4], *over[-2:]], held_out):
        code, _, err = command(*words)
        assert (code, f"{seen}: its tag has {SEEN}" in err) == (0, True)
        assert SEEN in read_run(out).tag
    code, told, _ = command("evaluate", "--qrels", made / "qrels.txt", out, few[-1], "-m", "AP", "--format", "html")
    assert (code, f"{out}: a model ranked topics" in told, f"{few[-1]}: a model ranked" in told) == (0, True, False)
    assert f"its tag has {SEEN}" in command("features", *few, *with_run, "--out", tmp_path / "f.npz")[2]
    asked = f"stage:mrf(model={model})"
    assert unremarked(command("features", *few, "--features", asked, "--out", tmp_path / "f.npz"))[0] == 0
    # A model of other topics; in place of its run, one that no model saw.
    for named, tag in (([], f"x{SEEN}"), (["--file", f"{seen}={few[-1]}"], "x")):
        RankingModel((RunScore(str(seen)),), (1.0,)).save(tmp_path / "other.json")
        assert command("rerank", *few, "--model", tmp_path / "other.json", "--tag", "x", "--out", out, *named)[0] == 0
        assert read_run(out).tag == tag


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--transfer"], "--file and --transfer go with --model"),
        (["--model", "QRELS"], "not a model"),
        (["--stage", "mrf"], "model=FILE"),
        (["--stage", "mrf(model=QRELS)"], "not a model"),
        (["--stage", "manifold", "--transfer"], "--file and --transfer go with --model"),
        (["--stage", "manifold(feedback=RUN)"], "qid iteration-or-subtopic docid grade"),
        (["--stage", "manifold(feedback=3)"], "3: cannot be read"),
        (["--stage", "manifold(alpha=1)"], "alpha"),
        (["--stage", "xquad"], "aspects=FILE"),
        (["--stage", "mmr(seed=1)"], "seed"),
        (["--stage", "mmr(k=0"], "not of the form"),
        (["--stage", "tea"], "unknown stage 'tea'"),
        (
            ["--stage", "mmr", "--stage", "sdm(mu=9)"],
            "sdm is a model, not a stage: train it by `greylag train --model sdm",
        ),
        (["--model", "mrf(mu=9)"], "a model is a file, which `greylag train --model mrf --out FILE` writes"),
        (["--model", "absent.json"], "absent.json: cannot be read"),
        (["--stage", "mmr", "--tag", ""], "tag"),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, ranked: list[object], tmp_path: Path, words: list[str], reason: str
) -> None:
    places = {"QRELS": made / "qrels.txt", "RUN": made / "bm25.run"}
    for name, path in places.items():
        words = [word.replace(name, str(path)) for word in words]
    assert reason in refused("rerank", *ranked, "--out", tmp_path / "x", *words)


def test_the_general_model_needs_neither_run_nor_judgements(
    command: Command, refused: Refused, made: Path, tmp_path: Path
) -> None:
    """Without options it reranks BM25's top 1000, as in Python."""
    out, given = tmp_path / "out.run", ["--index", made / "index", "--out", tmp_path / "out.run"]
    assert command("rerank", *given, "--topics", made / "topics.tsv")[0] == 0
    lucene, topics = LuceneIndex(made / "index"), read_topics(made / "topics.tsv")
    pipeline = lucene.bm25(1000) >> GeneralRanker(PositionalIndex.from_lucene(lucene))
    write_run(pipeline.run(topics, tag="bm25-general"), tmp_path / "expected.run")
    assert out.read_bytes() == (tmp_path / "expected.run").read_bytes()
    assert "give --topics" in refused("rerank", *given)
    assert "it needs an index" in refused("rerank", "--topics", made / "topics.tsv", "--out", out)


def test_without_an_index(command: Command, refused: Refused, tmp_path: Path) -> None:
    """Given vectors and given scores of aspects need no index; what needs one says so."""
    rng = np.random.default_rng(3)
    docids, out = [f"d{i}" for i in range(12)], tmp_path / "out.run"
    first = Run((Ranking("1", "", docids, np.arange(12.0, 0.0, -1.0)),), "first")
    write_run(first, tmp_path / "first.run")
    vectors, scores = rng.standard_normal((12, 4)), rng.random((12, 2))
    np.savez(tmp_path / "vectors.npz", ids=docids, vectors=vectors)
    rows = [f"1 a{a} {docid} {float(scores[d, a])}\n" for a in range(2) for d, docid in enumerate(docids)]
    (tmp_path / "aspects").write_text("".join(rows))
    given = ["--run", tmp_path / "first.run", "--out", out]
    mmr = MMR(vectors=ArrayVectors(docids, vectors), k=5)
    for stage, expected in (
        ("mmr(k=5)", mmr),
        (f"xquad(aspects={tmp_path / 'aspects'})", XQuAD(aspects=lambda _: scores)),
    ):
        embeddings = ["--vectors", tmp_path / "vectors.npz"] if stage.startswith("mmr") else []
        assert command("rerank", *given, *embeddings, "--stage", stage) == (0, "", "")
        assert read_run(out)["1"].docids == expected(first["1"]).docids
    spelt = f"mmr(k=5,vectors={tmp_path / 'vectors.npz'})"
    assert command("rerank", *given, "--stage", spelt) == (0, "", "")
    assert read_run(out)["1"].docids == mmr(first["1"]).docids
    assert "MMR needs an index or vectors=" in refused("rerank", *given, "--stage", "mmr")
    assert "stage coverage: it needs an index" in refused("rerank", *given, "--stage", "coverage")
    words = ["--stage", "random", "--vectors", tmp_path / "vectors.npz"]
    assert "--vectors is for dpp, mmr, msd" in refused("rerank", *given, *words)
    (tmp_path / "other").write_text("2 a d1 0.5\n")
    assert "aspects: no query in common" in refused("rerank", *given, "--stage", f"pm2(aspects={tmp_path / 'other'})")
