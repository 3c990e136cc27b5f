"""Feature files without docids, from training on given folds to tests between models.

Tests `evaluate`.
"""

import json

import numpy as np
import pytest
import pytrec_eval
from scipy import stats
from sklearn.metrics import ndcg_score

from greylag.base import ParameterError
from greylag.evaluation import compare, evaluate, read_run
from greylag.evaluation.scoring.holes import score_holes
from greylag.learning import listed_grades, read_letor
from tests.refusals import refuses

FOLDS, TOPICS, DOCUMENTS = 5, 6, 12
MODELS = {"one": ["--features", "1", "--model", "listwise"], "all": ["--model", "mrf(max_features=3)"]}


def write_topics(path, qids, rng):
    """Rows of topics without docids; two of each topic are equal, and their grades, too."""
    lines = []
    for qid in qids:
        grades = rng.choice(3, p=[0.5, 0.3, 0.2], size=DOCUMENTS)
        values = rng.normal(size=(DOCUMENTS, 3)) + np.outer(grades, [0.4, 0.8, 0])
        grades[-1], values[-1] = grades[0], values[0]
        cells = [" ".join(f"{n}:{x:.6f}" for n, x in enumerate(row, 1)) for row in values]
        lines += [f"{grades[place]} qid:{qid} {cells[place]}\n" for place in rng.permutation(DOCUMENTS)]
    path.write_text("".join(lines))


@pytest.fixture
def folder(tmp_path):
    """LETOR's five folds: each topic is in one test part, one part for validation and three to learn from."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "MQ"
    for part in range(FOLDS):
        write_topics(tmp_path / str(part), range(100 * part, 100 * part + TOPICS), rng)
    for fold in range(FOLDS):
        (folder / f"Fold{fold + 1}").mkdir(parents=True)
        parts = [(tmp_path / str((fold + n) % FOLDS)).read_text() for n in range(FOLDS)]
        for name, text in (("test", parts[0]), ("vali", parts[1]), ("train", "".join(parts[2:]))):
            (folder / f"Fold{fold + 1}" / f"{name}.txt").write_text(text)
    return folder


def test_parts(folder):
    return sorted(folder.glob("Fold*/test.txt"))


test_parts.__test__ = False


def rows_of(path):
    """The query and grade of each line, by splitting it."""
    return [(line.split()[1].removeprefix("qid:"), int(line.split()[0])) for line in path.read_text().splitlines()]


def own_scores(command, folder, words, tmp_path):
    """Each fold's model learned alone and its scores, a line for each row: nDCG@10 and AP by topic."""
    ndcg, ap = {}, {}
    for part in sorted(folder.iterdir()):
        model, scores = tmp_path / "fold.json", tmp_path / "fold.scores"
        given = ["--letor", part / "train.txt", "--validation", part / "vali.txt", "--measure", "nDCG@10"]
        assert command("train", *given, *words, "--out", model)[0] == 0
        assert command("rerank", "--letor", part / "test.txt", "--model", model, "--out", scores)[0] == 0
        rows, numbers = rows_of(part / "test.txt"), np.loadtxt(scores)
        for qid in dict.fromkeys(qid for qid, _ in rows):
            places = [place for place, (other, _) in enumerate(rows) if other == qid]
            grades = [rows[place][1] for place in places]
            ndcg[qid] = ndcg_score([grades], [numbers[places]], k=10)
            judged = {qid: {str(place): int(grade > 0) for place, grade in zip(places, grades, strict=True)}}
            ranked = {qid: {str(place): float(numbers[place]) for place in places}}
            ap[qid] = pytrec_eval.RelevanceEvaluator(judged, ["map"]).evaluate(ranked)[qid]["map"]
    return {"nDCG@10": ndcg, "AP": ap}


def shuffle(path, seed):
    """Shuffle the documents within topics."""
    lines, rng = path.read_text().splitlines(keepends=True), np.random.default_rng(seed)
    order = [first + place for first in range(0, len(lines), DOCUMENTS) for place in rng.permutation(DOCUMENTS)]
    path.write_text("".join(lines[place] for place in order))


def test_two_models_on_given_folds_are_tested_against_each_other(command, folder, tmp_path):
    """The figures of each fold's scores, and SciPy's test; whatever the order of lines and the division into files."""
    runs, own = {}, {}
    for name, words in MODELS.items():
        runs[name] = tmp_path / f"{name}.run"
        given = ["--letor", folder, "--measure", "nDCG@10", "--out", tmp_path / f"{name}.json"]
        code, _, err = command("train", *given, *words, "--out-run", runs[name])
        assert code == 0, err
        own[name] = own_scores(command, folder, words, tmp_path)
    words = [*runs.values(), "-m", "nDCG@10", "-m", "AP", "--baseline", runs["one"], "--format", "json"]
    code, shown, err = command("evaluate", "--qrels", folder, *words)
    assert (code, err) == (0, "")
    found = json.loads(shown)
    assert len(found["runs"]) == 2
    for name, run in runs.items():
        by_query = found["runs"][str(run)]["per_query"]
        for measure, expected in own[name].items():
            assert {qid: of[measure] for qid, of in by_query.items()} == pytest.approx(expected, abs=1e-9)
    (test, _) = found["significance"]["comparisons"]
    pairs = [[own[name]["nDCG@10"][qid] for qid in own["one"]["nDCG@10"]] for name in ("all", "one")]
    assert test["difference"] == pytest.approx(np.mean(pairs[0]) - np.mean(pairs[1]), abs=1e-9)
    assert test["p"] == pytest.approx(stats.ttest_rel(*pairs).pvalue, abs=1e-9)

    whole = tmp_path / "whole.txt"
    whole.write_text("".join(part.read_text() for part in reversed(test_parts(folder))))
    files = [word for part in test_parts(folder) for word in ("--qrels", part)]
    for seed in range(3):
        for qrels in (["--qrels", folder], ["--qrels", whole], files):
            again = json.loads(command("evaluate", *qrels, *words)[1])
            for run in found["runs"]:
                assert again["runs"][run]["per_query"] == found["runs"][run]["per_query"]
        for part in [*test_parts(folder), whole]:
            shuffle(part, seed)


def test_a_run_is_of_documents_and_not_of_lines(command, folder, tmp_path):
    """The example of a file that is shuffled after it was ranked."""
    train, model, run = folder / "Fold1" / "train.txt", tmp_path / "m.json", tmp_path / "a.run"
    assert command("train", "--letor", train, *MODELS["one"], "--out", model)[0] == 0
    assert command("rerank", "--letor", train, "--model", model, "--out", run)[0] == 0
    before = command("evaluate", "--qrels", train, run, "--per-query")
    shuffle(train, 1)
    assert command("evaluate", "--qrels", train, run, "--per-query") == before
    assert before[0] == 0


def by_lines(path, tag="t"):
    """A run of numbers of lines, from 1."""
    rows = enumerate(rows_of(path), 1)
    return "".join(f"{qid} Q0 {line} {line} {1 / line!r} {tag}\n" for line, (qid, _) in rows)


def test_a_run_by_line_numbers_is_refused(refused, folder, tmp_path):
    path, run = folder / "Fold2" / "test.txt", tmp_path / "lines.run"
    run.write_text(by_lines(path))
    reason = (
        "query 100: the run has document '1', the number of a line, but documents without docids are named by their"
    )
    assert f"{run}: {reason}" in refused("evaluate", "--qrels", path, run)
    grades = listed_grades(read_letor(path))
    refuses(lambda: evaluate(read_run(run), grades), ParameterError, "query 100 '1' line row- again docids")
    refuses(lambda: score_holes({"a": read_run(run)}, grades, ["P@5"]), ParameterError, "a: query 100 '1' line")
    compare({"a": read_run(run)}, {"100": {"row-1": 1, "row-2": 0, "1": 0}})  # whose docids are names that were given
    # Of a file with docids for some, too
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([lines[0].replace("\n", " # 1\n"), lines[1].replace("\n", " # d\n"), *lines[2:]]))
    refuses(lambda: compare({"a": run}, listed_grades(read_letor(path))), ParameterError, "a: query 100 '2' line")


EQUAL = "1 qid:3 1:1\n", "2 qid:3 1:1\n"


@pytest.mark.parametrize("long", [False, True])
def test_equal_rows_of_different_grades_are_refused_where_a_run_ranks_them(command, refused, tmp_path, long):
    path, run = tmp_path / "f.txt", tmp_path / "a.run"
    more = [f"0 qid:1 1:{number}\n" for number in range(9, 99)] if long else []  # below what is kept of a run in parts
    path.write_text("".join([*more, "1 qid:1 1:2 2:0\n", "0 qid:1 1:2.0\n", "1 qid:2 1:1\n", "0 qid:2 1:7\n", *EQUAL]))
    data = read_letor(path)
    pair = data.docids[len(more) : len(more) + 2]
    assert pair[1] == f"{pair[0]}-2"
    ranked = [*data.docids[: len(more)], pair[0]]
    run.write_text("".join(f"1 Q0 {docid} {rank} {1 / rank} t\n" for rank, docid in enumerate(ranked, 1)))
    for words in ([], ["-m", "ERR@5"]):  # in parts, and whole
        told = refused("evaluate", "--qrels", path, run, *words)
        assert f"{run}: query 1: {pair[0]} and {pair[1]} have equal values but other grades" in told
        assert told.endswith("leave out all queries with such documents: 1, 3\n")
    refuses(lambda: evaluate(read_run(run), listed_grades(data)), ParameterError, "query 1 grades docids leave out")
    # Neither where it ranks others, nor in other topics, nor in training
    (tmp_path / "topics.tsv").write_text("2\tx\n")
    with run.open("a") as file:
        file.write(f"2 Q0 {data.docids[-3]} 1 1.0 t\n")
    assert command("evaluate", "--qrels", path, run, "--topics", tmp_path / "topics.tsv")[0] == 0
    assert evaluate(read_run(run).select_queries(["2"]), listed_grades(data), ["RR"]).by_query == {
        "1": 0,
        "2": 0,
        "3": 0,
    }
    path.write_text(path.read_text().replace("0 qid:1 1:2.0", "1 qid:1 1:2.0"))
    assert command("evaluate", "--qrels", path, run)[0] == 0


def test_a_model_is_learned_from_equal_rows_of_different_grades(command, folder, tmp_path):
    for part in folder.iterdir():
        text = (part / "train.txt").read_text()
        first = text.splitlines()[0]
        (part / "train.txt").write_text(f"{int(first[0]) + 1}{first[1:]}\n{text}")
    code, _, err = command("train", "--letor", folder, *MODELS["all"], "--out", tmp_path / "m.json")
    assert code == 0, err


@pytest.mark.parametrize(
    ("qrels", "reason"),
    [
        ("MQ MQ/Fold3/test.txt", "Fold3/test.txt: topic '200' is in a --qrels before it, too: give each topic once"),
        ("MQ/Fold1/test.txt MQ/Fold1/test.txt", "Fold1/test.txt: topic '0' is in a --qrels before it"),
        ("MQ/Fold1/test.txt plain.txt", "plain.txt is no feature file, as others are: judgements correct"),
        ("plain.txt MQ", "plain.txt is no feature file"),
        ("MQ/Fold1", "Fold1: cannot be read: a folder without BEIR's qrels/NAME.tsv; name a file of judgements"),
        ("gaps", "gaps: has the folds 1, 3: add or rename what is missing"),
        ("lacking", "Fold2/test.txt: cannot be read: No such file"),
    ],
)
def test_refusals_of_files_and_folders(refused, folder, tmp_path, qrels, reason):
    (tmp_path / "plain.txt").write_text("0 0 d1 1\n")
    (tmp_path / "a.run").write_text("0 Q0 d1 1 1 t\n")
    for name, folds in (("gaps", (1, 3)), ("lacking", (1, 2))):
        for fold in folds:
            (tmp_path / name / f"Fold{fold}").mkdir(parents=True)
        (tmp_path / name / "Fold1" / "test.txt").write_text((folder / "Fold1" / "test.txt").read_text())
    words = [word for name in qrels.split() for word in ("--qrels", tmp_path / name)]
    assert reason in refused("evaluate", *words, tmp_path / "a.run")
