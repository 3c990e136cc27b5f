"""Training without an index on the command line: runs, and feature files."""

import json
import re

import numpy as np
import pytest

from greylag.base import Run
from greylag.evaluation import evaluate, read_qrels, read_run, run_tag, write_run
from greylag.learning import ListwiseRegression, read_letor
from greylag.learning.letor import listed_grades
from greylag.rankers import RankingModel
from greylag.recipes.index_free import with_relevant
from tests.greylag.cli.conftest import spelt, unremarked
from tests.greylag.cli.test_train import TINY

ALL_IN_ONE = "".join(f"{100 * n + topic} one\n" for n in range(3) for topic in range(10))
NAMES = "1=bm25 2=pagerank 3=noise"


def letor(path, seed, *, topics=12, first=1, names="", empty=0):
    """A file of three columns, of which the first tells much of relevance and the last nothing."""
    rng, lines = np.random.default_rng(seed), [f"# {names}\n"] if names else []
    for qid in range(first, first + topics):
        grades = rng.choice(3, p=[0.6, 0.3, 0.1], size=15) * (qid >= first + empty)
        values = rng.normal(size=(15, 3)) + np.outer(grades, [1.5, 0.5, 0])
        for number, (grade, row) in enumerate(zip(grades, values, strict=True)):
            cells = " ".join(f"{column}:{value:.6f}" for column, value in enumerate(row, 1))
            lines.append(f"{grade} qid:{qid} {cells} #docid = d{qid}-{number} inc = 1 prob = 0.5\n")
    path.write_text("".join(lines))
    return path


@pytest.fixture
def files(tmp_path):
    """A file to learn from, and one of other topics, two of which have no relevant document."""
    return letor(tmp_path / "train.txt", 1), letor(tmp_path / "test.txt", 2, first=101, topics=8, empty=2)


def test_from_a_file_to_scores_and_their_evaluation(command, files, tmp_path):
    train, test = files
    model, run, scores, again = (tmp_path / name for name in ("m.json", "r.run", "r.scores", "again.run"))
    code, told, err = command("train", "--letor", train, "--model", "listwise", "--out", model)
    assert (code, err) == (0, "")
    assert re.match(r"AP 0\.\d{4} on training topics with\n\+\S+  column:1\n", told)
    assert command("rerank", "--letor", test, "--model", model, "--out", run) == (0, "", "")
    assert command("rerank", "--letor", test, "--model", model, "--out", scores) == (0, "", "")
    data, learned = read_letor(test), RankingModel.load(model)
    weights = dict(zip(map(str, learned.features), learned.weights, strict=True))
    expected = data.X @ np.array([weights.get(f"column:{number}", 0.0) for number in (1, 2, 3)])
    np.testing.assert_allclose(np.loadtxt(scores), expected, rtol=1e-12)
    assert command("fuse", "--run", scores, "--scores-of", test, "--out", again)[0] == 0
    assert [one.docids for one in read_run(run).rankings] == [one.docids for one in read_run(again).rankings]
    code, told, err = command("evaluate", "--qrels", test, run, "-m", "AP", "-m", "nDCG@10")
    assert (code, err) == (0, f"greylag: info: {test}: 2 of 8 topics have no relevant document, and count as 0\n")
    means = evaluate(read_run(run), listed_grades(data), ["AP", "nDCG@10"]).means
    assert re.search(rf"^{run} +{means[0]:.4f} +{means[1]:.4f}$", told, re.MULTILINE)
    told = command("explain", model)[1]
    assert "learned by ListwiseRegression from 12 queries\n" in told
    assert "parameters" not in told


def test_documents_sorted_by_grade_are_warned_of(command, folds, tmp_path):
    """Where they are learned from or scored; not if one topic is in another order, or of fewer than ten topics."""
    whole, model, scores = folds / "all.txt", tmp_path / "m.json", tmp_path / "x.scores"
    lines, warned = whole.read_text().splitlines(keepends=True), "{}: the documents of all 24 topics"
    by_grade = sorted(lines, key=lambda line: (int(line.split()[1][4:]), -int(line[0])))
    whole.write_text("".join(by_grade))
    commands = [
        ["train", "--model", "listwise", "--letor", whole, "--out", model],
        ["rerank", "--letor", whole, "--model", model, "--out", scores],
        ["fuse", "--run", scores, "--scores-of", whole, "--out", tmp_path / "x.run"],
    ]
    for words in commands:
        assert command(*words)[2].count(warned.format(whole)) == 1, words
    whole.write_text("".join([*by_grade[:-15], *reversed(by_grade[-15:])]))
    for words in commands:
        assert "descending order" not in command(*words)[2]
    whole.write_text("".join(by_grade[: 15 * 9]))
    assert "descending order" not in command(*commands[0])[2]
    for part in folds.glob("MQ/*/test.txt"):
        rows = part.read_text().splitlines(keepends=True)
        part.write_text("".join(sorted(rows, key=lambda line: (int(line.split()[1][4:]), -int(line[0])))))
    told = command("train", "--model", "listwise", "--letor", folds / "MQ", "--out", model)[2]
    assert told.count(warned.format(folds / "MQ")) == told.count("descending order") == 1


def test_the_choice_with_folds(command, files, tmp_path):
    """On eight topics, two of which say nothing."""
    _, test = files
    model, held = tmp_path / "m.json", tmp_path / "held.run"
    words = ["--out", model, "--out-run", held, "--folds", 3, "--measure", "nDCG@10"]
    code, told, err = command("train", "--letor", test, *words)
    assert (code, "left out are 2 of 8 topics, which have no relevant document" in err) == (0, True)
    assert re.search(r"^best column +0\.\d{4}", told, re.MULTILINE)
    assert "first stage" not in told, "the order of a file means nothing"
    own = evaluate(read_run(held), listed_grades(read_letor(test)), ["nDCG@10"]).by_measure
    assert RankingModel.load(model).provenance["held_out"] == {"folds": 3, **own}
    assert len(read_run(held)) == 8


@pytest.mark.parametrize("model", ["automatic(folds=3)", "mrf(max_features=2)"])
def test_validation_and_named_columns(command, tmp_path, model):
    train = letor(tmp_path / "train.txt", 1, names=NAMES)
    other, out = letor(tmp_path / "v.txt", 2, first=50, topics=6, names=NAMES, empty=1), tmp_path / "m.json"
    words = ["--letor", train, "--validation", other, "--features", "1", "--features", "column:noise"]
    code, told, err = command("train", *words, "--model", model, "--out", out, "--measure", "nDCG@10")
    assert (code, err.count("\n")) == (0, 1)
    assert f"{other}: left out are 1 of 6 topics, which have no relevant document" in err
    learned = RankingModel.load(out)
    assert {str(feature) for feature in learned.features} <= {"column:bm25", "column:noise"}
    assert (len(learned.provenance["validation"]), learned.provenance["columns"]) == (5, ["bm25", "pagerank", "noise"])
    assert f"nDCG@10 {learned.provenance['validation_score']:.4f} on 5 topics for validation\n" in told


def test_trees_of_a_file(command, files, tmp_path):
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    train, test = files
    model, run = tmp_path / "m.json", tmp_path / "r.run"
    words = ["--letor", train, "--validation", test, *spelt("lambdamart", "trees=30 min_documents=5"), "--out", model]
    code, told, err = command("train", *words)
    assert code == 0, err
    assert re.search(r"trees:\w{12}\nAP 0\.\d{4} on 6 topics for validation\n", told)
    assert unremarked(command("rerank", "--letor", test, "--model", model, "--out", run))[0] == 0
    assert re.search(r"trees; of the gain in training:\n.*column:1  \d+ splits", command("explain", model)[1])


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--letor TRAIN --validation WIDE", "wide.txt: the columns are 1, 2, ..., 4 (4 of them)"),
        ("--letor TRAIN --validation TRAIN", "12 of its topics, such as '1', are in"),
        ("--letor TRAIN --validation TEST --folds 2", "--validation excludes --folds"),
        ("--letor TRAIN --features 1-10", "has no column 4; its columns are 1, 2, 3"),
        ("--letor TRAIN --features 3-1", "unknown feature '3-1': columns of a file are 1,2, 1-10"),
        ("--letor TRAIN --folds 1", "--folds 1 is neither a number from 2 on"),
        ("--letor TRAIN --folds absent.tsv", "absent.tsv"),
        ("--letor TRAIN --features score", "--features score"),
        ("--letor TRAIN --qrels QRELS", "--letor excludes --qrels"),
        ("--letor TRAIN --pool sd", "--pool needs --index"),
        ("--letor TRAIN --model svmdiv", "--letor is for models that rank, not for svmdiv"),
        ("--letor TRAIN --model 'mrf(mu=2)'", "mrf has the option mu with --index only"),
        ("--validation TEST", "--validation needs --letor"),
        ("", "--qrels is missing"),
    ],
)
def test_refusals_with_files(refused, files, tmp_path, words, reason):
    train, test = files
    wide = letor(tmp_path / "wide.txt", 3, first=300)
    wide.write_text(wide.read_text().replace(" #docid", " 4:1 #docid"))
    for name, path in (("TRAIN", train), ("TEST", test), ("WIDE", wide)):
        words = words.replace(name, str(path))
    assert reason in refused(f"train --out TMP/x {words}")


@pytest.mark.parametrize("model", ["mrf(max_features=2)", "lambdamart(trees=9,min_documents=5)"])
def test_documents_of_a_file_are_explained(command, refused, files, tmp_path, model):
    pytest.importorskip("lightgbm", reason="needs LightGBM")
    train, test = files
    learned, scores = tmp_path / "m.json", tmp_path / "x.scores"
    assert command("train", "--letor", train, "--model", model, "--out", learned)[0] == 0
    assert command("rerank", "--letor", test, "--model", learned, "--out", scores)[0] == 0
    words = ["explain", learned, "--letor", test, "--qid", "102", "--docid", "d102-3"]
    code, told, err = command(*words, "--format", "json")
    assert (code, err) == (0, "")
    (one,) = json.loads(told)
    assert one["score"] == float(scores.read_text().split()[15 + 3])
    assert sum(share["contribution"] for share in one["features"]) == pytest.approx(one["score"], abs=1e-12)
    code, told, err = command(*words, "--docid", "d102-4")
    assert (code, "Query 102, document d102-3 against d102-4" in told) == (0, True)
    assert re.search(r"^feature, its cliques +difference +d102-3 +d102-4$", told, re.MULTILINE)  # no column of counts
    page = command(*words, "--format", "html")[1]
    assert "Query 102</title>" in page
    assert not re.search("<th>tf|-0.000000", page)
    command("rerank", "--letor", test, "--model", learned, "--out", tmp_path / "x.run")
    assert run_tag(tmp_path / "x.run") == f"test-{model.partition('(')[0]}"
    for wrong, reason in (
        (["--letor", test, "--qid", "1", "--docid", "d1-1"], "topic '1' is not in"),
        (["--letor", test, "--qid", "102", "--docid", "d1"], "'d1' is not ranked for query 102"),
        (["--letor", test, "--qid", "102"], "give --docid, too"),
        (["--letor", test, "--qid", "102", "--docid", "d", "--run", test], "--letor excludes --run"),
        (["--qid", "102", "--docid", "d"], "give --index, --topics (or --letor)"),
    ):
        assert reason in refused("explain", learned, *wrong), wrong
    assert "--letor needs a model of the columns" in refused("explain", "general", *words[2:])


@pytest.fixture
def folds(tmp_path):
    """LETOR's folder with three folds, whose test files have all topics once, in one file, and a file of the folds."""
    parts = [letor(tmp_path / f"S{n}.txt", n, first=100 * n, topics=8 + n, empty=1).read_text() for n in range(3)]
    lines = []
    for n in range(3):
        fold = tmp_path / "MQ" / f"Fold{n + 1}"
        fold.mkdir(parents=True)
        for name, part in (("train", parts[n - 2]), ("vali", parts[n - 1]), ("test", parts[n])):
            (fold / f"{name}.txt").write_text(part)
        lines += [f"{100 * n + topic}\tpart{n}\n" for topic in range(8 + n)]
    (tmp_path / "all.txt").write_text("".join(parts))
    (tmp_path / "folds.tsv").write_text("".join(reversed(lines)) + "unknown\t9\n")
    return tmp_path


def by_hand(run, data, topics):
    """The means of each fold's topics by nDCG@10, and the mean of these."""
    scores = evaluate(run, listed_grades(data), ["nDCG@10"])
    scores = dict(zip(scores.qids, scores.values[:, 0], strict=True))
    means = [np.mean([scores[qid] for qid in part]) for part in topics]
    return [*means, np.mean(means)]


def printed(told):
    """The first measure of each row of the table by fold."""
    rows = re.findall(r"^(?:[123]|mean of folds) +\d+ +(0\.\d{4}) ", told, re.MULTILINE)
    return [*map(float, rows)]


def test_letors_folds(command, folds, tmp_path):
    """Each fold is what a train with its validation file gives for its test file."""
    held, out = tmp_path / "held.run", tmp_path / "m.json"
    model = ["--model", "mrf(max_features=2)", "--measure", "nDCG@10"]
    code, told, err = command("train", "--letor", folds / "MQ", *model, "--out", out, "--out-run", held)
    assert code == 0, err
    expected = []
    for n in (1, 2, 3):
        files = {name: folds / "MQ" / f"Fold{n}" / f"{name}.txt" for name in ("train", "vali", "test")}
        words = ["--letor", files["train"], "--validation", files["vali"], *model, "--out", tmp_path / "one.json"]
        assert command("train", *words)[0] == 0
        assert (
            command(
                "rerank", "--letor", files["test"], "--model", tmp_path / "one.json", "--out", held.with_suffix(".1")
            )[0]
            == 0
        )
        expected += [*read_run(held.with_suffix(".1")).rankings]
    run, data = read_run(held), read_letor(folds / "all.txt")
    assert [one.docids for one in run.rankings] == [one.docids for one in expected]
    topics = [[str(100 * n + topic) for topic in range(8 + n)] for n in range(3)]
    np.testing.assert_allclose(printed(told), by_hand(run, data, topics), atol=5e-5)
    assert command("train", "--letor", folds / "all.txt", *model, "--out", tmp_path / "whole.json")[0] == 0
    learned, whole = (RankingModel.load(path) for path in (out, tmp_path / "whole.json"))
    assert (learned.features, learned.weights) == (whole.features, whole.weights)
    assert learned.provenance["held_out"].keys() == {"folds", "nDCG@10"}


def test_folds_of_a_file(command, folds, tmp_path):
    held, out = tmp_path / "held.run", tmp_path / "m.json"
    words = ["--letor", folds / "all.txt", "--model", "listwise", "--measure", "nDCG@10", "--out", out]
    code, told, err = command("train", *words, "--out-run", held, "--folds", folds / "folds.tsv")
    assert code == 0, err
    data, topics = read_letor(folds / "all.txt"), [[str(100 * n + t) for t in range(8 + n)] for n in (2, 1, 0)]
    np.testing.assert_allclose(printed(told), by_hand(read_run(held), data, topics), atol=5e-5)
    for part in topics:
        others = data.select_queries([qid for qid in data.qids if qid not in part])
        learned = ListwiseRegression("nDCG@10").fit(with_relevant(others, 1))
        for qid in part:
            one = data.select_queries([qid])
            order = np.argsort(-learned.predict(one), kind="stable")
            assert read_run(held)[qid].docids == tuple(one.docids[place] for place in order)


@pytest.mark.parametrize(
    ("damage", "words", "reason"),
    [
        (("folds.tsv", "0 one\n"), "--letor all.txt --folds folds.tsv", "query '1' has no fold"),
        (("folds.tsv", "0 one\n0 two\n"), "--letor all.txt --folds folds.tsv", "tsv:2: qid '0' has two"),
        (("folds.tsv", "0 one two\n"), "--letor all.txt --folds folds.tsv", "folds.tsv:1:"),
        (("folds.tsv", ALL_IN_ONE), "--letor all.txt --folds folds.tsv", "all queries are in one fold"),
        (None, "--letor MQ --folds 3", "leave out --folds and --validation"),
        (None, "--letor MQ --validation all.txt", "leave out --folds and --validation"),
        (None, "--letor MQ/Fold1", "has no folders Fold1, Fold2, ..."),
        (("MQ/Fold1/train.txt", "1 qid:2 1:1 2:1 3:1\n"), "--letor MQ --model listwise", "test.txt: topic '2' is in"),
        (("MQ/Fold3/vali.txt", "1 qid:203 1:1 2:1 3:1\n"), "--letor MQ --model listwise", "topic '203' is in vali.txt"),
        (("MQ/Fold2/vali.txt", None), "--letor MQ --model listwise", "Fold2/vali.txt: is missing, but other folds"),
        (("MQ/Fold2", None), "--letor MQ --model listwise", "MQ: has the folds 1, 3: add"),
        (("MQ/Fold1", None), "--letor MQ --model listwise", "MQ: has the folds 2, 3: add"),
        (("MQ/Fold2/test.txt", "1 qid:2 1:1 2:1 3:1\n"), "--letor MQ --model listwise", "topic '2' is in two test.txt"),
        (("MQ/Fold3/test.txt", "1 qid:2 1:1 2:1\n"), "--letor MQ --model listwise", "test.txt have different columns"),
        (None, "--run RUN --qrels SUBTOPICS --index INDEX --model svmdiv --folds folds.tsv", "svmdiv takes a number"),
    ],
)
def test_refusals_of_folds(refused, folds, damage, words, reason):
    if damage and damage[1] is None:
        (folds / damage[0]).rename(folds / "away")
    elif damage:
        (folds / damage[0]).write_text(damage[1])
    for name in ("all.txt", "folds.tsv", "MQ"):
        words = re.sub(rf" {name}", f" {folds / name}", words)
    assert reason in refused(f"train --out TMP/x {words}")


def test_models_are_for_files_of_the_same_columns(command, refused, made, files, tmp_path):
    train, test = files
    model, x = tmp_path / "m.json", tmp_path / "x"
    wide, named = tmp_path / "wide.txt", letor(tmp_path / "named.txt", 1, first=200, names=NAMES)
    wide.write_text(test.read_text().replace(" #docid", " 4:1 #docid"))
    assert command("train", "--letor", train, "--model", "listwise", "--out", model)[0] == 0
    rerank = ["rerank", "--model", model, "--out", x]
    for words, reason in (
        ([*rerank, "--letor", wide], "wide.txt: the file has the columns 1, 2, ..., 4 (4 of them), but the model was"),
        ([*rerank, "--letor", named], "named.txt: the model has the column 1, which is not among the file's: bm25,"),
        ([*rerank, "--run", made / "bm25.run"], "feature column:1 is a column of a feature file: rank the documents"),
        ([*rerank, "--letor", test, "--run", made / "bm25.run"], "--letor excludes --run"),
        (["rerank", "--letor", test, "--out", x], "--letor needs --model"),
        ([*rerank[:4], f"{x}.scores", "--letor", test, "--stage", "random"], "leave out --stage"),
    ):
        assert reason in refused(*words), words
        assert not x.exists()


@pytest.fixture
def runs(made, tmp_path):
    """The options for BM25's run with two others: one that puts half of the relevant documents first, and noise."""
    rng, qrels, others = np.random.default_rng(1), read_qrels(made / "qrels.txt"), {"good": 2.0, "noise": 0.0}
    for name, strength in others.items():
        rankings = []
        for ranking in read_run(made / "bm25.run").rankings:
            relevant = np.array([qrels[ranking.qid].get(docid, 0) > 0 for docid in ranking.docids])
            rankings.append(ranking.rescore(rng.normal(size=len(ranking)) + strength * relevant))
        write_run(Run(tuple(rankings), name), tmp_path / f"{name}.run")
    features = [f"--features=run:{tmp_path / name}.run" for name in others]
    return ["--run", made / "bm25.run", "--qrels", made / "qrels.txt", *features]


def test_from_runs_to_a_run(command, made, runs, tmp_path):
    first, model, held = ["--run", made / "bm25.run"], tmp_path / "m.json", tmp_path / "held.run"
    code, told, err = command("train", *runs, "--out", model, "--folds", 3, "--out-run", held)
    assert (code, "without --index: windows, expansion, translation and all other features" in err) == (0, True)
    for line in (r"first stage +0\.\d{4}", r"run:\S+good\.run +0\.\d{4}", r"without runs +0\.\d{4} +-0\.\d{4}"):
        assert re.search(f"^{line}", told, re.MULTILINE), line
    own = evaluate(read_run(held), read_qrels(made / "qrels.txt"), ["AP"]).by_measure
    assert RankingModel.load(model).provenance["held_out"] == {"folds": 3, **own}
    outs = [tmp_path / f"{number}.run" for number in range(3)]
    words, good = ["rerank", *first, "--model", model, "--out"], tmp_path / "good.run"
    assert unremarked(command(*words, outs[0])) == (0, "", "")
    assert command(*words, outs[1], "--index", made / "index", "--topics", made / "topics.tsv")[0] == 0
    good.rename(tmp_path / "new.run")
    assert unremarked(command(*words, outs[2], "--file", f"good.run={tmp_path / 'new.run'}"))[0] == 0
    assert len({out.read_bytes() for out in outs}) == 1


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--run RUN --model listwise", "has no features but its own scores"),
        ("--model listwise", "give a --run"),
        ("--run RUN --model listwise --features FI/term/LM", "feature FI/term/LM needs an index"),
        ("--run RUN --model bm25", "bm25 needs --index: without one, use automatic"),
        ("--run RUN --model svmdiv", "--model svmdiv needs --index and --qrels"),
    ],
)
def test_refusals_with_runs(command, made, tmp_path, words, reason):
    given = words.replace("RUN", str(made / "bm25.run")).split()
    code, told, err = command("train", "--qrels", made / "qrels.txt", *given, "--out", tmp_path / "x")
    assert (code, told, [*tmp_path.iterdir()], reason in err.splitlines()[-1]) == (2, "", [], True)


def test_runs_beside_an_index_say_what_each_source_adds(command, few, runs, tmp_path, monkeypatch):
    monkeypatch.setattr("greylag.recipes.sources.GRID", TINY)
    words = ["train", *few, *runs[2:], "--model", "automatic(folds=2,depth=20,translate=false)"]
    code, told, err = command(*words, "--out", tmp_path / "m.json")
    assert code == 0, err
    for source in ("MRF", "expansion", "latent", "the index", "runs", f"run:{tmp_path / 'good.run'}"):
        assert re.search(rf"^without {source} +0\.\d{{4}} +[+-]0\.\d{{4}}", told, re.MULTILINE), source
    alone = [word for word in words if not str(word).startswith("--features")]
    assert "without MRF" not in command(*alone, "--out", tmp_path / "m.json")[1]
