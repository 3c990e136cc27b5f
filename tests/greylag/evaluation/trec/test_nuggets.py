"""Judgements by nugget in JSON lines: FreshStack and the nuggetizer."""

import copy
import json
import pickle

import numpy as np
import pytest

from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import Nuggets, evaluate_by_subtopic, read_subtopic_qrels


def nugget(name, relevant, others):
    return {"_id": name, "text": "a fact", "relevant_corpus_ids": relevant, "non_relevant_corpus_ids": others}


def assigned(docid, **fields):
    return {"qid": "7", "docid": docid, "nuggets": [{"text": "drag", "assignment": "support", **fields}]}


FRESHSTACK = [
    {"query_id": 7, "query_title": "geese", "query_text": "why in a wedge?", "nuggets": [nugget("7_0", ["a"], ["b"])]},
    {"query_id": "8", "nuggets": [nugget("8_0", [], ["a"]), nugget("8_1", [], []), nugget("8_2", ["c d"], [])]},
    {"query_id": "9", "nuggets": []},
]
ASSIGNED = [
    {"qid": "7", "docid": docid, "text": "geese", "nuggets": [{"text": "drag", "assignment": drag}, *others]}
    for docid, drag, others in (
        ("a", "support", [{"text": "sight", "importance": "okay", "assignment": "partial_support"}]),
        ("b", "not_support", []),
    )
]


def read(tmp_path, records, *, lenient=False):
    path = tmp_path / "nuggets.jsonl"
    path.write_text("\n" + "".join(json.dumps(record) + "\n" for record in records))
    return read_subtopic_qrels(path, lenient=lenient)


def test_the_two_forms(tmp_path):
    assert read(tmp_path, FRESHSTACK) == {
        "7": {"7_0": {"b": 0, "a": 1}},
        "8": {"8_0": {"a": 0}, "8_1": {}, "8_2": {"c d": 1}},
        "9": {},
    }
    assert read(tmp_path, ASSIGNED) == {"7": {"drag": {"a": 2, "b": 0}, "sight": {"a": 1}}}


def test_importance_stays_with_its_query(tmp_path):
    records = [assigned("a", importance="okay"), {**assigned("b"), "qid": "8"}]
    qrels = read(tmp_path, records)
    assert qrels == {"7": {"drag": {"a": 2}}, "8": {"drag": {"b": 2}}}
    for copied in (qrels, pickle.loads(pickle.dumps(qrels)), copy.deepcopy(qrels), {qid: qrels[qid] for qid in qrels}):
        first, second = copied.values()
        assert isinstance(first, Nuggets)
        assert first.importance == {"drag": "okay"}
        assert not isinstance(second, Nuggets)
    again = read(tmp_path, [*records, assigned("c", importance="vital"), assigned("d", importance="ok")], lenient=True)
    assert isinstance(again["7"], Nuggets)
    assert again["7"].importance == {"drag": "okay"}


FULL, ANY = {"support": 1.0, "partial_support": 0.0}, {"support": 1.0, "partial_support": 0.5}
RAG = {
    "Coverage(rel=2)@3": (FULL, {"vital": 1, "okay": 1}),
    "Coverage(rel=2,partial=0.5)@3": (ANY, {"vital": 1, "okay": 1}),
    "Coverage(rel=2,importance=vital)@3": (FULL, {"vital": 1, "okay": 0}),
    "Coverage(rel=2,importance=vital,partial=0.5)@3": (ANY, {"vital": 1, "okay": 0}),
    "Coverage(rel=2,importance=weighted)@3": (FULL, {"vital": 1, "okay": 0.5}),
    "Coverage(rel=2,importance=weighted,partial=0.5)@3": (ANY, {"vital": 1, "okay": 0.5}),
    "Coverage@3": ({"support": 1, "partial_support": 1}, {"vital": 1, "okay": 1}),
}
"""All strict, all, vital strict, vital, weighted strict and weighted: the credit of support, and weights."""


@pytest.mark.parametrize("seed", range(5))
def test_the_scores_of_trec_rag_from_the_records(seed, tmp_path):
    """Of Pradeep et al. (2025), where the best of the top documents supports a nugget."""
    rng = np.random.default_rng(seed)
    records, rankings, expected = [], [], []
    for qid in map(str, range(9)):
        importance = rng.choice(["vital", "okay"] if qid != "0" else ["okay"], rng.integers(1, 7)).tolist()
        kinds = ["support", "partial_support", "not_support"] if qid != "1" else ["not_support", "partial_support"]
        by_doc = {f"d{n}": rng.choice(kinds, len(importance)).tolist() for n in range(6)}
        docids = rng.permutation([*by_doc, "unknown1", "unknown2"]).tolist()[: rng.integers(0, 9)]
        for docid, assignments in by_doc.items():
            pairs = zip(importance, assignments, strict=True)
            nuggets = [{"text": f"n{n}", "importance": i, "assignment": a} for n, (i, a) in enumerate(pairs)]
            records.append({"qid": qid, "docid": docid, "nuggets": nuggets})
        rankings.append(Ranking(qid, "", docids, np.arange(len(docids), 0.0, -1.0)))
        scores = []
        for credit, weight in RAG.values():
            best = [
                max((credit.get(by_doc[docid][n], 0) for docid in docids[:3] if docid in by_doc), default=0)
                for n in range(len(importance))
            ]
            whole = sum(weight[of] for of in importance)
            scores.append(sum(weight[of] * b for of, b in zip(importance, best, strict=True)) / whole if whole else 0)
        expected.append(scores)
    found = evaluate_by_subtopic(Run(tuple(rankings)), read(tmp_path, records), list(RAG))
    np.testing.assert_allclose(found.values, expected, atol=1e-15)
    assert len({*map(tuple, found.values.T)}) == len(RAG)


def test_importance_that_is_not_there(tmp_path):
    run = Run((Ranking("7", "", ("a",), [1.0]),))
    measure = "Coverage(importance=vital)@3"
    for records in ([assigned("a")], FRESHSTACK, ASSIGNED):
        with pytest.raises(ParameterError, match=r"vital\)@3 needs the importance of nuggets, vital or okay"):
            evaluate_by_subtopic(run, read(tmp_path, records), [measure])
