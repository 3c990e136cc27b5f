import json
import re

import numpy as np
import pyndeval
import pytest

from greylag.base import FormatError, Ranking, Run
from greylag.evaluation import evaluate_by_subtopic, read_qrels, read_subtopic_qrels, read_topics


def write(tmp_path, text):
    path = tmp_path / "qrels"
    path.write_text(text)
    return path


def test_ad_hoc_judgements(tmp_path):
    path = write(tmp_path, "2 Q0 b 1\n1 0 a -2\n2 Q0 a 0\n1 ITER b 4\n")
    assert read_qrels(path) == {"2": {"b": 1, "a": 0}, "1": {"a": -2, "b": 4}}
    assert list(read_qrels(path)) == ["2", "1"]


def test_later_files_correct_earlier_ones_and_are_counted(tmp_path, caplog):
    paths = [tmp_path / name for name in ("first", "second", "third")]
    texts = "1 0 a 1\n1 0 b 0\n2 0 c 1\n", "1 0 b 2\n3 0 a 1\n2 0 c 1\n", "1 0 b 0\n"
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    with caplog.at_level("INFO"):
        assert read_qrels(paths) == {"1": {"a": 1, "b": 0}, "2": {"c": 1}, "3": {"a": 1}}
    told = [re.findall(r"\d+", line.partition(": ")[2]) for line in caplog.messages]
    assert told == [["3", "1", "1", "1"], ["1", "1", "0", "0"]]
    assert read_qrels(tuple(map(str, paths[1::-1])))["1"] == {"b": 0, "a": 1}
    assert not [one for one in caplog.records if one.levelname == "WARNING"]
    read_qrels([paths[0], write(tmp_path, "9 0 a 1\n")])
    assert "no topic in common" in caplog.messages[-1]


def test_beir_folders(tmp_path):
    """A single file of judgements is that of the folder; of several, one has to be chosen."""
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nPLAIN-2\tMED-10\t2\nPLAIN-2\tMED-2\t0\n")
    assert read_qrels(tmp_path) == {"PLAIN-2": {"MED-10": 2, "MED-2": 0}}
    (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n1\ta\t1\n")
    with pytest.raises(FormatError, match=r"several .*test\.tsv, .*train\.tsv"):
        read_qrels(tmp_path)
    (tmp_path / "queries.jsonl").write_text('{"_id": "PLAIN-2", "text": "statin", "metadata": {"url": "x"}}\n')
    assert read_topics(tmp_path) == {"PLAIN-2": "statin"}


def test_subtopic_0_without_a_relevant_document_means_no_subtopic(tmp_path):
    path = write(tmp_path, "1 2 a 1\n1 0 b 0\n1 1 a 2\n1 2 c 0\n1 0 b 0\n2 0 a 0\n3 Q0 a 0\n")
    none = {"": {"a": 0}}
    first = {"2": {"a": 1, "c": 0}, "": {"b": 0}, "1": {"a": 2}}
    assert read_subtopic_qrels(path) == {"1": first, "2": none, "3": none}


def test_subtopic_0_with_a_relevant_document_is_a_subtopic_as_for_ndeval(tmp_path):
    text = "1 0 a 1\n1 0 b 0\n1 1 b 1\n1 2 c 1\n2 0 b 0\n2 1 a 1\n"
    qrels = read_subtopic_qrels(write(tmp_path, text))
    assert qrels == {"1": {"0": {"a": 1, "b": 0}, "1": {"b": 1}, "2": {"c": 1}}, "2": {"": {"b": 0}, "1": {"a": 1}}}
    ranked = {"1": ["b", "x", "a", "c"], "2": ["b", "a"]}
    run = Run(tuple(Ranking(qid, "", tuple(ids), np.arange(len(ids), 0.0, -1.0)) for qid, ids in ranked.items()))
    judged = [pyndeval.SubtopicQrel(*line.split()[:3], int(line.split()[3])) for line in text.splitlines()]
    retrieved = [(r.qid, docid, r.scores[i]) for r in run.rankings for i, docid in enumerate(r.docids)]
    expected = pyndeval.ndeval(judged, retrieved, measures=["alpha-nDCG@10", "ERR-IA@10", "strec@10"])
    scores = evaluate_by_subtopic(run, qrels, ["alpha-nDCG@10", "ERR-IA@10", "S-recall@10"])
    for qid, values in zip(scores.qids, scores.values, strict=True):
        assert list(expected[qid].values()) == pytest.approx(values.tolist(), abs=1e-6)


def test_nuggets_may_be_numbered_from_0(tmp_path):
    """Even one that no document supports, since coverage counts it."""
    keys = "_id", "relevant_corpus_ids", "non_relevant_corpus_ids"
    nuggets = [dict(zip(keys, row, strict=True)) for row in (("0", [], ["a"]), ("1", ["a"], []))]
    qrels = read_subtopic_qrels(write(tmp_path, json.dumps({"query_id": "q", "nuggets": nuggets})))
    assert qrels == {"q": {"0": {"a": 0}, "1": {"a": 1}}}
    run = Run((Ranking("q", "", ("a",), np.ones(1)),))
    assert evaluate_by_subtopic(run, qrels, ["Coverage@5"]).means.tolist() == [0.5]


@pytest.mark.parametrize("seconds", ["0 0", "Q0 0", "7 7", "0 1", "1 2", "Q0 b", "0.5 1", "4.5 5"])
def test_the_second_column_of_ad_hoc_judgements_is_ignored(seconds, tmp_path):
    lines = [f"1 {second} d{i} 1\n" for i, second in enumerate(seconds.split())]
    assert read_qrels(write(tmp_path, "".join(lines))) == {"1": {"d0": 1, "d1": 1}}


@pytest.mark.parametrize(
    ("path", "queries", "pairs", "relevant"),
    [
        ("cacm/qrels.cacm.txt", 52, 796, 796),
        ("vaswani/qrels", 93, 2083, 2083),
        ("cranfield/qrels.txt", 225, 1837, 1612),
        ("div400_dev/qrels.txt", 25, 2281, 1558),
    ],
)
def test_real_judgements(path, queries, pairs, relevant, data):
    collection, name = path.split("/")
    qrels = read_qrels(data(collection) / name)
    grades = [grade for judged in qrels.values() for grade in judged.values()]
    assert (len(qrels), len(grades), sum(grade > 0 for grade in grades)) == (queries, pairs, relevant)


@pytest.mark.parametrize(
    ("path", "queries", "subtopics", "pairs"),
    [
        ("ambient/qrels.subtopics.txt", 44, 349, 2257),
        ("div400_dev/qrels.subtopics.txt", 25, 261, 1558),
        ("trec_diversity_qrels/qrels.interactive.txt", 20, None, 1123),
        ("trec_diversity_qrels/qrels.web.1-100.txt", 98, None, 15505),
    ],
)
def test_real_judgements_by_subtopic(path, queries, subtopics, pairs, data):
    collection, name = path.split("/")
    qrels = read_subtopic_qrels(data(collection) / name)
    found = [judged for by_subtopic in qrels.values() for name, judged in by_subtopic.items() if name]
    assert (len(qrels), sum(map(len, found))) == (queries, pairs)
    assert subtopics in (None, len(found))
