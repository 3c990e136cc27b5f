"""Training on the command line.

Tests `train` and `train_diversifier`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import comb
from pathlib import Path

import pytest

from greylag import MMR, LuceneIndex, PositionalIndex, Run
from greylag.cli.search import search_first
from greylag.core.spelling import parameters
from greylag.diversity import DiversityModel, SVMDiv
from greylag.diversity.recipe import VALIDATION
from greylag.evaluation import evaluate, evaluate_by_subtopic
from greylag.evaluation.subtopics import relevant_documents
from greylag.fusion import PooledSources
from greylag.index import RM3Search
from greylag.index.analysis import QueryForm
from greylag.learning.structured import Coulomb, CuttingPlane
from greylag.pipeline import run_step
from greylag.rankers import ModelRanker, RankingModel
from greylag.recipes.training import train as train_by
from greylag.trec import read_qrels, read_run, read_subtopic_qrels, read_topics
from tests.greylag.cli.conftest import Command, Refused, spelt, unremarked

SD = ["--model", "mrf", "--pool", "sd"]
ONE = [*spelt("mrf", "max_features=1"), "--pool", "sd"]


def test_models_have_the_same_bytes_on_any_number_of_threads(
    command: Command, made: Path, collection: list[object], tmp_path: Path
) -> None:
    words = [*collection, "--qrels", made / "qrels.txt", *spelt("mrf", "max_features=3 retrain=true")]
    paths = [tmp_path / f"{jobs}.json" for jobs in (1, 2)]
    for path in paths:
        assert command("--jobs", path.stem, "train", *words, "--out", path)[0] == 0
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize("model", ["mrf(max_features=2)", "listwise", "bm25(k1=[0.6,0.9],b=0.4)"])
def test_what_was_learned_is_shown_as_in_python(
    command: Command, made: Path, ranked: list[object], tmp_path: Path, model: str
) -> None:
    words = ["--qrels", made / "qrels.txt", "--model", model, "--out", tmp_path / "model.json"]
    code, told, _ = command("train", *ranked, *words)
    index, first = PositionalIndex.from_lucene(made / "index"), read_run(made / "bm25.run")
    first = Run(tuple(replace(r, query=read_topics(made / "topics.tsv")[r.qid]) for r in first.rankings), first.tag)
    assert (code, told) == (0, f"{train_by(first, read_qrels(made / 'qrels.txt'), index, model)}\n")


def test_coordinate_ascent_over_named_features(
    command: Command, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    prior, model = tmp_path / "prior.tsv", tmp_path / "model.json"
    prior.write_text("demo-001 0.5\ndemo-002 2\n")
    named = f"FI/expansion/LM,prior:{prior}:log:0.1,FI/term/BM25"
    words = [*ranked, "--qrels", made / "qrels.txt", "--features", named, "--out", model]
    code, told, _ = command("train", *words, *spelt("coordinate-ascent", "restarts=2 seed=7"))
    assert code == 0
    whole, *weighted, hint = told.splitlines()
    assert "--folds 5" in hint
    assert re.fullmatch(r"AP 0\.\d{4} on training topics with", whole)
    assert [line.split()[-1] for line in weighted] == named.split(",")
    provenance = json.loads(model.read_text())["provenance"]
    assert (provenance["learner"], provenance["restarts"], provenance["seed"]) == ("CoordinateAscent", 2, 7)


def test_preselection_is_recorded(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    out = tmp_path / "model.json"
    model = [*spelt("mrf", "max_features=1 preselect=4 preselect_weight=0.7"), "--pool", "sd"]
    assert command("train", *ranked, "--qrels", made / "qrels.txt", *model, "--out", out)[0] == 0
    provenance = json.loads(out.read_text())["provenance"]
    assert (provenance["pool"], provenance["preselect"], provenance["candidates"]) == (
        28,
        "mmr(n_features=4,relevance_weight=0.7)",
        4,
    )


def test_shortened_queries(
    command: Command, refused: Refused, ranked: list[object], made: Path, tmp_path: Path
) -> None:
    """Topics that are sentences give the model of the topics that are their words, here and where it is applied."""
    topics, stop = tmp_path / "topics.tsv", tmp_path / "stop.txt"
    plain = read_topics(made / "topics.tsv")
    topics.write_text("".join(f"{qid}\tWhat is {text}? Nothing else.\n" for qid, text in plain.items()))
    stop.write_text("what\nis\n")
    asked = [topics if word == made / "topics.tsv" else word for word in ranked]
    learned, runs = [], []
    for words, more in ((ranked, ""), (asked, f" first_sentence=true stop_words={stop}")):
        model, run = tmp_path / f"{len(runs)}.json", tmp_path / f"{len(runs)}.run"
        options = ["--qrels", made / "qrels.txt", "--folds", 3, "--out-run", tmp_path / f"{run.name}.held"]
        one = [*spelt("mrf", f"max_features=1{more}"), "--pool", "sd", "--out", model]
        assert command("train", *words, *options, *one)[0] == 0
        assert command("rerank", *words, "--model", model, "--out", run)[0] == 0
        learned.append(RankingModel.load(model))
        runs.append([read_run(path).rankings for path in (run, tmp_path / f"{run.name}.held")])
    assert learned[1].query_form == QueryForm(True, frozenset(["what", "is"]))
    assert replace(learned[1], query_form=QueryForm()) == learned[0]
    assert runs[0] == runs[1]
    words = [*asked, "--qrels", made / "qrels.txt", "--out", tmp_path / "x", *spelt("automatic", "first_sentence=true")]
    assert "automatic has no option 'first_sentence'" in refused("train", *words)


def test_no_query_in_common(refused: Refused, ranked: list[object], tmp_path: Path) -> None:
    other = tmp_path / "other.txt"
    other.write_text("999 0 d1 1\n")
    assert "no query in common" in refused("train", *ranked, "--qrels", other, "--out", tmp_path / "x")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (spelt("mrf", "restarts=2"), "mrf has no option 'restarts': did you mean retrain?"),
        (spelt("mrf", "max_feature=2"), "mrf has no option 'max_feature': did you mean max_features"),
        (spelt("coordinate-ascent", "retrain=true"), "has no option 'retrain': did you mean"),
        (spelt("coordinate-ascent", "seed=-1"), "seed is -1"),
        (spelt("listwise", "penalty=0"), "penalty is 0.0; it must be a finite number above 0"),
        (spelt("mrf", "max_features=0"), "max_features"),
        (spelt("mrf", "tune=true b=0.2"), "b and tune=true cannot be combined"),
        (spelt("mrf", "mu=1 mu=2"), "mrf has the option mu twice"),
        (["--model", "mrf(mu=1"], "is not of the form NAME(OPTION=VALUE,...)"),
        (["--measure", "mapp"], "mapp"),
        (spelt("mrf", "preselect=0"), "preselection must keep at least 1 feature, not 0"),
        (spelt("mrf", "preselect_weight=1"), "preselect_weight needs preselect"),
        (spelt("mrf", "titles=t"), "mrf has no option 'titles'"),
        (spelt("bm25", "mu=3"), "bm25 has no option 'mu': use k1, b"),
        (spelt("bm25", "k1=[3,x]"), ": it must be a number"),
        (spelt("bm25", "k1=1_0"), ": it must be a number"),
        (spelt("bm25", "b=3"), "b is 3.0: it must be a number in [0, 1]"),
        (spelt("rm3", "fb_docs=0"), "fb_docs is 0"),
        (["--model", "bm25", "--pool", "sd"], "bm25 takes no pool"),
        (["--model", "bm25", "--features", "score"], "bm25 takes no features"),
        (["--model", "tfidf"], "unknown model 'tfidf': use automatic, mrf"),
        (["--model", "lamdamart"], "unknown model 'lamdamart': did you mean lambdamart?"),
        (spelt("automatic", "folds=1"), "folds is 1; it must be at least 2"),
        (["--model", "bm25", "--measure", "mapp"], "mapp"),
        (["--model", "ql", "--folds", "300", "--out-run", "x"], "24 queries cannot be split into 300 folds"),
        (["--model", "svmdiv", "--measure", "map"], "--measure is for models that rank, not for svmdiv"),
    ],
)
def test_mistakes(
    refused: Refused, made: Path, ranked: list[object], tmp_path: Path, words: list[str], reason: str
) -> None:
    assert reason in refused("train", *ranked, "--qrels", made / "qrels.txt", "--out", tmp_path / "x", *words)


def test_a_model_of_tuned_sources(
    command: Command, refused: Refused, few: list[object], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    grid = {
        "k1": (0.9,),
        "b": (0.4,),
        "mu": (1000.0,),
        "fb_docs": (5,),
        "fb_terms": (10,),
        "original_weight": (0.3, 0.6),
    }
    monkeypatch.setattr("greylag.recipes.sources.GRID", grid)
    model, out = tmp_path / "model.json", tmp_path / "trees.run"
    words = [*few, "--qrels", made / "qrels.txt", "--out", model, *spelt("lambdamart", "trees=5 min_documents=5")]
    folds = ["--folds", "4", "--out-run", tmp_path / "held-out.run"]
    options = ["--features", "score@z"]
    code, told, err = command("train", *words, *options, *folds)
    assert (code, err) == (0, "")
    learned = RankingModel.load(model)
    assert learned.provenance["held_out"]["folds"] == 4
    assert "the top 200" not in told, "of rankings of 30 documents, all are learned from"
    assert len(read_run(tmp_path / "held-out.run")) == 8
    assert f"  +1  {learned.features[0]}\n" in told
    assert command("rerank", *few, "--model", model, "--out", out, "--transfer")[0] == 0
    assert len(read_run(out)) == 8
    assert "give a --run" in refused("rerank", *few[:4], "--model", model, "--out", out), "it was trained on a run"
    code, told, _ = command("train", *few[:4], *words[6:], *options)
    assert (code, "cover the top 200 documents" in told) == (0, True)
    learned = RankingModel.load(model)
    assert command("rerank", *few[:4], "--model", model, "--out", out, "--tag", "x")[0] == 0
    lucene, topics = LuceneIndex(made / "index"), read_topics(made / "topics.tsv")
    candidates = PooledSources((lucene.bm25(), RM3Search(lucene.bm25())), k=1000).run(topics)
    expected = ModelRanker(learned, PositionalIndex.from_lucene(lucene)).run(candidates)
    assert {qid: own.docids for qid, own in read_run(out).items()} == {qid: own.docids for qid, own in expected.items()}
    for more, reason in (
        (spelt("lambdamart", "preselect=4"), "lambdamart has no option 'preselect'"),
        (spelt("lambdamart", "mu=20"), "lambdamart has no option 'mu': use depth, trees"),
    ):
        assert reason in refused("train", *words[:-2], *more)


def test_bm25_and_its_union_with_rm3(made: Path, caplog: pytest.LogCaptureFixture) -> None:
    topics = read_topics(made / "topics.tsv")
    bm25, both = (search_first(made / "index", topics, 1, union=union) for union in (False, True))
    given = read_run(made / "bm25.run")
    assert {qid: own.docids for qid, own in bm25.items()} == {qid: own.docids for qid, own in given.items()}
    assert all(set(both[qid].docids) > set(own.docids) for qid, own in bm25.items() if len(own) < len(both[qid]))
    assert any(len(both[qid]) > len(own) for qid, own in bm25.items())
    assert (bm25.tag, both.tag) == ("bm25", "candidates")
    assert "no documents" not in caplog.text
    search_first(made / "index", {**topics, "99": "of the"}, 1)
    assert "1 of 25 queries have no documents: '99'" in caplog.text


def test_without_folds_judged_topics_alone_are_searched(
    command: Command, made: Path, collection: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model is the one of a run of all topics; with folds, whose rankings are written, all topics are searched."""
    searched: list[int] = []

    def spy(index: Sequence[Path], topics: Mapping[str, str], jobs: int, *, union: bool = False) -> Run:
        searched.append(len(topics))
        return search_first(index, topics, jobs, union=union)

    monkeypatch.setattr("greylag.cli.training_inputs.search_first", spy)
    lines = (made / "qrels.txt").read_text().splitlines()
    few, names = tmp_path / "few.qrels", sorted({line.split()[0] for line in lines})[:10]
    few.write_text("".join(f"{line}\n" for line in lines if line.split()[0] in names))
    words = [*collection, "--qrels", few, *ONE]
    alone, given = tmp_path / "alone.json", tmp_path / "given.json"
    assert command("train", *words, "--out", alone)[0] == 0
    assert command("train", *words, "--run", made / "bm25.run", "--out", given)[0] == 0
    assert alone.read_bytes() == given.read_bytes()
    assert command("train", *words, "--folds", 2, "--out-run", tmp_path / "out.run", "--out", given)[0] == 0
    assert searched == [10, 24]
    monkeypatch.setattr("greylag.cli.training_inputs.MAX_TOPICS", 6)
    monkeypatch.setattr("greylag.cli.train.train_by", partial(train_by, most_topics=6))
    for run in ([], ["--run", made / "bm25.run"]):  # topics that were not drawn are not scored
        options = ["--folds", 2, "--out-run", tmp_path / "out.run", "--out", given]
        told = command("train", *words, *run, *options)[1]
        assert "Means over 6 judged queries.\n" in told
        assert "missing" not in told
    assert searched == [10, 24, 6]


def test_held_out_rankings_do_not_warn(command: Command, made: Path, ranked: list[object], tmp_path: Path) -> None:
    out, run = tmp_path / "model.json", tmp_path / "held-out.run"
    words = [*ranked, "--qrels", made / "qrels.txt", *ONE, "--out", out]
    code, told, _ = command("train", *words, "--folds", "6", "--out-run", run)
    assert code == 0
    means = {
        line[:11].strip(): float(line.split()[2].rstrip("*"))
        for line in told.splitlines()
        if re.match(r"(held out|first stage) +0", line)
    }
    code, shown, err = command("evaluate", "--qrels", made / "qrels.txt", run, made / "bm25.run", "-m", "AP")
    assert (code, err) == (0, "")
    found = {line.split()[0]: float(line.split()[1]) for line in shown.splitlines()[1:3]}
    assert found == {str(run): means["held out"], str(made / "bm25.run"): means["first stage"]}
    held_out = RankingModel.load(out).provenance["held_out"]
    assert held_out == {"folds": 6, "AP": pytest.approx(means["held out"], abs=5e-5)}


SMALL = "k1=[0.3,0.9,1.5] b=[0.2,0.4]"


def test_a_tuned_baseline_and_its_held_out_rankings(
    command: Command, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    model, held_out, qrels = tmp_path / "bm25.json", tmp_path / "held-out.run", made / "qrels.txt"
    words = [*ranked, "--qrels", qrels, *spelt("bm25", SMALL), "--folds", "4", "--out-run", held_out]
    code, told, err = command("train", *words, "--out", model)
    assert (code, err) == (0, "")
    assert (
        len(re.findall(r"^fold \d: AP 0\.\d{4} on 18 training queries with k1 \S+, b 0\.\d$", told, re.MULTILINE)) == 4
    )
    run = read_run(held_out)
    score = evaluate(run, read_qrels(qrels), ["AP"]).by_measure["AP"]
    assert re.search(rf"^held out +{score:.4f}", told, re.MULTILINE)
    assert run.tag == "bm25-tuned-bm25"
    tuned = RankingModel.load(model)
    assert tuned.provenance["held_out"] == {"folds": 4, "AP": score}
    code, shown, _ = command("explain", model)
    assert "BM25 with k1, b tuned on 24 queries, AP 0." in shown
    again = tmp_path / "again.json"
    assert command("train", "--jobs", "1", *words, "--out", again)[0] == 0
    assert again.read_bytes() == model.read_bytes()


def test_a_tuned_baseline_reranks_to_its_training_score(
    command: Command, made: Path, ranked: list[object], tmp_path: Path
) -> None:
    model, out, qrels = tmp_path / "bm25.json", tmp_path / "bm25.run", made / "qrels.txt"
    code, told, _ = command(
        "train", *spelt("bm25", SMALL), *ranked, "--qrels", qrels, "--measure", "nDCG@10", "--out", model
    )
    assert code == 0
    assert unremarked(command("rerank", *ranked, "--model", model, "--out", out))[0] == 0
    score = evaluate(read_run(out), read_qrels(qrels), ["nDCG@10"]).by_measure["nDCG@10"]
    assert json.loads(model.read_text())["provenance"]["training_score"] == pytest.approx(score, abs=1e-12)
    assert told.startswith(f"nDCG@10 {score:.4f} on 24 training queries with k1 ")


def test_rm3_from_a_run_of_its_own(command: Command, made: Path, collection: list[object], tmp_path: Path) -> None:
    words = [*collection, "--qrels", made / "qrels.txt", *spelt("rm3", f"{SMALL} fb_docs=[5,10] fb_terms=5")]
    code, told, err = command("train", *words, "--out", tmp_path / "rm3.json")
    assert (code, err) == (0, "")
    assert re.search(r"with k1 \S+, b 0\.\d, fb_docs (5|10), fb_terms 5, original_weight 0\.\d\n", told)
    assert "fb_docs is at an end of its values, 5 to 10: try more" in told
    assert "fb_terms is at" not in told


def test_validation_holds_every_fourth_query_out(
    learn: Command, made: Path, few: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The expected loss of k of n documents is the sum over subtopics s of weight_s C(n - n_s, k) / C(n, k)."""
    monkeypatch.setattr("greylag.diversity.recipe.RANDOM_ORDERS", 400)
    qrels = made / "qrels.subtopics.txt"
    code, told, _ = learn(qrels, tmp_path / "div.json", *spelt("svmdiv", "validate=true"))
    assert (code, told.split(": ")[0]) == (0, "svmdiv on 6 queries, C chosen on 2 more")
    model = DiversityModel.load(tmp_path / "div.json")
    assert (model.provenance["queries"], model.provenance["validation"]) == (["1", "2", "3", "5", "6", "7"], ["4", "8"])
    shown = {name: float(mean) for name, mean in re.findall(r"^(\S.*?) {2,}(0\.\d+)", told, re.MULTILINE)}
    first, index = read_run(few[-1]), PositionalIndex.from_lucene(made / "index")
    judged = {qid: subtopics for qid, subtopics in read_subtopic_qrels(qrels).items() if qid in ("4", "8")}
    held_out = [first["4"], first["8"]]
    expected = []
    for ranking in held_out:
        relevant = relevant_documents(judged[ranking.qid])
        total, n = sum(map(len, relevant)), len(ranking)
        left = [comb(n - len(docids & set(ranking.docids)), 5) / comb(n, 5) for docids in relevant]
        expected.append(sum(len(docids) / total * missed for docids, missed in zip(relevant, left, strict=True)))
    assert shown.pop("chance") == pytest.approx(sum(expected) / 2, abs=0.02)
    stages = {"first stage": lambda ranking: ranking, "MMR": MMR(index, k=5), VALIDATION: SVMDiv(model, index, k=5)}
    assert shown == {
        name: pytest.approx(
            evaluate_by_subtopic(run_step(stage, held_out), judged, ["subtopic-loss@5"]).means[0], abs=5e-5
        )
        for name, stage in stages.items()
    }


def test_warnings_name_what_can_be_set(learn: Command, made: Path, tmp_path: Path) -> None:
    for words in (spelt("cssvm", "M=2 epochs=1 C=10 alpha=50"), spelt("svmdiv", "max_iterations=1 C=100")):
        _, _, err = learn(made / "qrels.subtopics.txt", tmp_path / "x.json", *words)
        (named,) = re.findall(r": raise (\w+)(?: or (\w+),)? or lower (\w+)$", err, re.MULTILINE)
        known = parameters(Coulomb if "cssvm" in words[1] else CuttingPlane)
        assert set(filter(None, named)) <= set(known)


def test_the_seed_decides_the_bytes(learn: Command, made: Path, tmp_path: Path, ensemble: Path) -> None:
    for seed in ("5", "6"):
        words = spelt("cssvm", f"M=3 alpha=2 C=1 k=3 seed={seed}")
        assert learn(made / "qrels.subtopics.txt", tmp_path / f"{seed}.json", *words)[0] == 0
    assert (tmp_path / "5.json").read_bytes() == ensemble.read_bytes()
    assert DiversityModel.load(tmp_path / "6.json").weights != DiversityModel.load(ensemble).weights


def test_forms_and_exponents_of_the_repulsion(learn: Command, made: Path, tmp_path: Path) -> None:
    found = set()
    for form, s in (("displacement", ()), ("gradient", (1,)), ("gradient", (2,))):
        more = f"repulsion={form}" + "".join(f" s={exponent}" for exponent in s)
        words = spelt("cssvm", f"M=3 alpha=2 C=0.1 k=2 {more}")
        code, told, _ = learn(made / "qrels.subtopics.txt", tmp_path / "a", *words)
        assert code == 0
        assert "3 models, mean angle" in told
        provenance = DiversityModel.load(tmp_path / "a").provenance
        assert provenance["repulsion"] == form
        assert provenance["s"] == (s[0] if s else 1)
        found.add((tmp_path / "a").read_bytes())
    assert len(found) == 3


@pytest.mark.parametrize("assignment", ["best", "sampled", "stochastic"])
def test_assignments_and_validation_of_an_ensemble(
    command: Command,
    learn: Command,
    made: Path,
    few: list[object],
    tmp_path: Path,
    assignment: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("greylag.diversity.training.C_GRID", (0.1, 10.0))
    words = spelt("cssvm", f"M=2 assignment={assignment} validate=true")
    code, told, _ = learn(made / "qrels.subtopics.txt", tmp_path / "div.json", *words)
    assert (code, told.split(": ")[0]) == (0, "svmdiv on 6 queries, C chosen on 2 more")
    model = DiversityModel.load(tmp_path / "div.json")
    assert (len(model.weights), model.provenance["assignment"]) == (2, assignment)
    assert model.provenance["C"] in (0.1, 10.0)


def test_queries_without_labels_are_left_out(learn: Command, made: Path, tmp_path: Path) -> None:
    qrels, model = tmp_path / "qrels.txt", tmp_path / "div.json"
    lines = (made / "qrels.subtopics.txt").read_text().splitlines(keepends=True)
    qrels.write_text("".join(line for line in lines if line.split()[0] in ("1", "2")))
    code, told, err = learn(qrels, model)
    assert (code, told.split(":")[0]) == (0, "svmdiv on 2 queries")
    assert "dropped 6 queries without judgements: 3, 4, 5, 6, 7, 8" in err
    assert "in which no candidate" not in err
    qrels.write_text("99 1 demo-001 1\n99 2 demo-002 1\n")
    code, _, err = learn(qrels, model)
    assert code == 2
    assert "nothing to learn from" in err


def test_subtopics_without_documents_change_nothing(learn: Command, made: Path, tmp_path: Path) -> None:
    qrels, first, second = tmp_path / "qrels.txt", tmp_path / "first.json", tmp_path / "second.json"
    text = (made / "qrels.subtopics.txt").read_text()
    qrels.write_text(f"{text}1 bare demo-001 0\n")
    assert learn(made / "qrels.subtopics.txt", first)[0] == 0
    assert learn(qrels, second)[0] == 0
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize(
    ("model", "texts", "reason"),
    [
        ("svmdiv", "C=1 validate=true", "C and validate=true cannot be combined"),
        ("svmdiv", "C=0", "C must be a number above 0"),
        ("svmdiv", "C=1e308", "C must be a number above 0 and at most 1e"),
        ("svmdiv", "k=0", "k must be an integer of at least 1"),
        ("svmdiv", "M=3", "svmdiv has no option 'M': use C, epsilon"),
        ("svmdiv", "preset=tea", "preset is 'tea': it must be svmdiv, svmdiv2"),
        ("cssvm", "M=0", "M must be an integer of at least 1"),
        ("cssvm", "alpha=-1", "alpha must be"),
        ("cssvm", "s=0", "s must be a number above 0"),
        ("cssvm", "repulsion=tea", ": it must be displacement, gradient"),
        ("cssvm", "assignment=tea", ": it must be all, best"),
        ("cssvm", "seed=-1", "seed"),
    ],
)
def test_mistakes_in_settings_of_diversity(
    refused: Refused, made: Path, few: list[object], tmp_path: Path, model: str, texts: str, reason: str
) -> None:
    judged = ["--qrels", made / "qrels.subtopics.txt", "--out", tmp_path / "x"]
    assert reason in refused("train", *few, *judged, *spelt(model, texts))


def test_judgements_must_be_by_subtopic(refused: Refused, made: Path, few: list[object], tmp_path: Path) -> None:
    words = [*few, "--qrels", made / "qrels.txt", "--out", tmp_path / "x"]
    assert "all judgements are of subtopic 0" in refused("train", "--model", "svmdiv", *words)


def test_held_out_baselines_are_written_beside_the_held_out_run(
    command: Command, few: list[object], made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    grid = {
        name: (value,) for name, value in (("k1", 0.9), ("b", 0.4), ("mu", 1000.0), ("fb_docs", 5), ("fb_terms", 10))
    } | {"original_weight": (0.5,)}
    monkeypatch.setattr("greylag.recipes.sources.GRID", grid)
    out = tmp_path / "held-out.run"
    folds = ["--folds", "2", "--out-run", out, *spelt("automatic", "folds=2,depth=20,translate=false")]
    code, told, err = command("train", *few, "--qrels", made / "qrels.txt", "--out", tmp_path / "m.json", *folds)
    assert (code, err) == (0, "")
    runs = {path.name: read_run(path) for path in tmp_path.glob("held-out*.run")}
    names = [f"tuned-{name}" for name in ("bm25", "ql", "sdm", "rm3")]
    assert set(runs) == {"held-out.run", *(f"held-out.{name}.run" for name in names)}
    assert {run.tag.split("+")[0].lower() for name, run in runs.items() if "tuned" in name} == set(names)
    assert {tuple(run) for run in runs.values()} == {tuple(runs["held-out.run"])}
    assert "Each topic was held out." in " ".join(told.split())


def test_one_judged_topic_is_told_what_more_are_worth(
    command: Command, few: list[object], made: Path, tmp_path: Path
) -> None:
    lines = [line for line in (made / "qrels.txt").read_text().splitlines() if line.startswith("1 ")]
    (tmp_path / "one.txt").write_text("\n".join(lines) + "\n")
    code, told, _ = command("train", *few, "--qrels", tmp_path / "one.txt", "--out", tmp_path / "m.json")
    assert code == 0
    assert "judging more pays" in " ".join(told.split())


def test_folds_are_scored_without_a_run_and_five_with_one(
    command: Command, made: Path, few: list[object], tmp_path: Path
) -> None:
    words = [*few, "--qrels", made / "qrels.txt", *spelt("bm25", "k1=[0.9,1.2] b=0.4"), "--out", tmp_path / "x.json"]
    code, told, _ = command("train", *words, "--folds", 4)
    assert (code, "against" in told, sorted(tmp_path.glob("*held*"))) == (0, True, [])
    assert RankingModel.load(tmp_path / "x.json").provenance["held_out"]["folds"] == 4
    assert command("train", *words, "--out-run", tmp_path / "held.run")[0] == 0
    assert RankingModel.load(tmp_path / "x.json").provenance["held_out"]["folds"] == 5
    assert len(read_run(tmp_path / "held.run")) == 8
