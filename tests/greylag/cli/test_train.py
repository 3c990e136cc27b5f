"""Training on the command line."""

import re
import shutil
from dataclasses import replace
from functools import partial

import pytest

from greylag import LuceneIndex, PositionalIndex, Run
from greylag.base.core.spelling import parameters
from greylag.cli.search import search_first
from greylag.evaluation import PooledSources, evaluate, read_qrels, read_run, read_topics
from greylag.features.spelling import parse_features
from greylag.index import RM3Search
from greylag.index.lucene import lucene_index
from greylag.learning import CuttingPlane
from greylag.rankers import ModelRanker, RankingModel
from greylag.recipes.spelling import parse_model
from greylag.recipes.training import train as train_by
from greylag_papers.schiegg_2016.coulomb import Coulomb
from tests.greylag.cli.conftest import ON_BOTH_INDEXES, spelt

TINY = {"k1": (0.9,), "b": (0.4,), "mu": (1000.0,), "fb_docs": (5,), "fb_terms": (10,), "original_weight": (0.3, 0.6)}
ONE = [*spelt("mrf", "max_features=1"), "--pool", "sd"]


@ON_BOTH_INDEXES
@pytest.mark.parametrize(
    ("model", "options"),
    [
        ("mrf(max_features=2,retrain=true)", {"pool": "sd"}),
        ("coordinate-ascent(restarts=2,preselect=2,first_sentence=true)", {"features": "FI/expansion/LM,FI/term/BM25"}),
        ("bm25(k1=[0.6,0.9],b=0.4)", {}),
        ("rm3(k1=0.9,b=0.4,fb_docs=[5,10],fb_terms=5)", {}),
    ],
)
def test_models_and_what_is_told_of_them_are_as_in_python(command, made, ranked, tmp_path, model, options):
    out, given = tmp_path / "model.json", [word for name, value in options.items() for word in (f"--{name}", value)]
    code, told, _ = command("train", *ranked, "--qrels", made / "qrels.txt", "--model", model, *given, "--out", out)
    first, texts = read_run(made / "bm25.run"), read_topics(made / "topics.tsv")
    first = Run(tuple(replace(ranking, query=texts[ranking.qid]) for ranking in first.rankings), first.tag)
    parsed = {"features": parse_features(options["features"])} if "features" in options else options
    recipe, form = parse_model(model, **parsed)
    index = PositionalIndex.from_lucene(made / "index")
    expected = train_by(first, read_qrels(made / "qrels.txt"), index, recipe, query_form=form)
    assert (code, told) == (0, f"{expected}\n")
    assert RankingModel.load(out) == expected.model
    assert ("fb_docs is at an end of its values, 5 to 10: try more" in told) == model.startswith("rm3")


LEARN = "train --index INDEX --topics TOPICS --run RUN --qrels QRELS --out TMP/x "


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--measure mapp", "mapp"),
        ("--model lamdamart", "'lamdamart': did you mean lambdamart?"),
        ("--model svmdiv --measure map", "--measure is for models that rank, not for svmdiv"),
        ("--model svmdiv", "all judgements are of subtopic 0"),
    ],
)
def test_refusals(refused, words, reason):
    assert reason in refused(LEARN + words)


def test_a_model_of_tuned_sources(command, refused, few, made, tmp_path, monkeypatch):
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    monkeypatch.setattr("greylag.recipes.sources.GRID", TINY)
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


def test_bm25_and_its_union_with_rm3(made, caplog):
    topics = read_topics(made / "topics.tsv")
    bm25, both = (search_first(LuceneIndex(made / "index"), topics, 1, union=union) for union in (False, True))
    given = read_run(made / "bm25.run")
    assert {qid: own.docids for qid, own in bm25.items()} == {qid: own.docids for qid, own in given.items()}
    assert all(set(both[qid].docids) > set(own.docids) for qid, own in bm25.items() if len(own) < len(both[qid]))
    assert any(len(both[qid]) > len(own) for qid, own in bm25.items())
    assert (bm25.tag, both.tag) == ("bm25", "candidates")
    assert "no documents" not in caplog.text
    search_first(LuceneIndex(made / "index"), {**topics, "99": "of the"}, 1)
    assert "1 of 25 queries have no documents, as none has a word of theirs: '99'" in caplog.text


def test_an_index_is_opened_once_to_export_and_to_search_it(command, made, tmp_path, monkeypatch):
    opened, open_reader = [], lucene_index.open_reader
    monkeypatch.setattr(lucene_index, "open_reader", lambda *given: opened.append(given) or open_reader(*given))
    index = shutil.copytree(made / "index", tmp_path / "index")  # without its export
    words = ["--index", index, "--topics", made / "topics.tsv", "--qrels", made / "qrels.txt", *ONE]
    assert command("train", *words, "--out", tmp_path / "model.json")[0] == 0
    assert len(opened) == 1


def test_without_folds_judged_topics_alone_are_searched(command, made, collection, tmp_path, monkeypatch):
    """The model is the one of a run of all topics; with folds, whose rankings are written, all topics are searched."""
    searched = []

    def spy(lucene, topics, jobs, *, union=False):
        searched.append(len(topics))
        return search_first(lucene, topics, jobs, union=union)

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


SMALL = "k1=[0.3,0.9,1.5] b=[0.2,0.4]"


def test_a_tuned_baseline_and_its_held_out_rankings(command, made, ranked, tmp_path):
    model, held_out, qrels = tmp_path / "bm25.json", tmp_path / "held-out.run", ["--qrels", made / "qrels.txt"]
    words = [*ranked, *qrels, *spelt("bm25", SMALL), "--folds", "4", "--out-run", held_out]
    code, told, err = command("train", *words, "--out", model)
    assert (code, err) == (0, "")
    fold = r"^fold \d: AP 0\.\d{4} on 18 training queries with k1 \S+, b 0\.\d$"
    assert len(re.findall(fold, told, re.MULTILINE)) == 4
    run = read_run(held_out)
    score = evaluate(run, read_qrels(made / "qrels.txt"), ["AP"]).by_measure["AP"]
    assert re.search(rf"^held out +{score:.4f}", told, re.MULTILINE)
    assert (run.tag, RankingModel.load(model).provenance["held_out"]) == ("bm25-tuned-bm25", {"folds": 4, "AP": score})
    code, shown, err = command("evaluate", *qrels, held_out, made / "bm25.run", "-m", "AP")
    assert (code, err) == (0, "")  # held-out rankings do not warn
    assert f"{held_out}  {score:.4f}" in re.sub(" +", "  ", shown)


def test_warnings_name_what_can_be_set(learn, made, tmp_path):
    for words in (spelt("cssvm", "M=2 epochs=1 C=10 alpha=50"), spelt("svmdiv", "max_iterations=1 C=100")):
        _, _, err = learn(made / "qrels.subtopics.txt", tmp_path / "x.json", *words)
        (named,) = re.findall(r": raise (\w+)(?: or (\w+),)? or lower (\w+)$", err, re.MULTILINE)
        known = parameters(Coulomb if "cssvm" in words[1] else CuttingPlane)
        assert set(filter(None, named)) <= set(known)


def test_held_out_baselines_are_written_beside_the_held_out_run(command, few, made, tmp_path, monkeypatch):
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    monkeypatch.setattr("greylag.recipes.sources.GRID", TINY)
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


@ON_BOTH_INDEXES
def test_folds_are_scored_without_a_run_and_five_with_one(command, made, few, tmp_path):
    words = [*few, "--qrels", made / "qrels.txt", *spelt("bm25", "k1=[0.9,1.2] b=0.4"), "--out", tmp_path / "x.json"]
    for given, folds in ((["--folds", 4], 4), (["--out-run", tmp_path / "held.run"], 5)):
        code, told, _ = command("train", *words, *given)
        assert (code, "against" in told, (tmp_path / "held.run").exists()) == (0, True, folds == 5)
        assert RankingModel.load(tmp_path / "x.json").provenance["held_out"]["folds"] == folds
