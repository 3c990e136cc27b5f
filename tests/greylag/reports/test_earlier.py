"""The JSON of an evaluation stands for the run that it scored."""

import json

import numpy as np
import pytest

from greylag.errors import GreylagError
from greylag.reports import compare
from greylag.reports.earlier import digests
from tests.greylag.evaluation import samples
from tests.refusals import refuses

NAMES = ["AP", "P@5"]
RUNS = {name: samples.random_case(np.random.default_rng(seed))[0] for seed, name in enumerate(("one", "two", "three"))}
QRELS = samples.random_case(np.random.default_rng(0))[1]


@pytest.mark.parametrize("before", [["one"], ["two", "one"]])
def test_scores_are_those_of_the_run(tmp_path, before):
    """Of the run that was not the baseline, or that has the name; in any order of judgements and measures."""
    path, baseline = tmp_path / "last.json", before[0] if before[1:] else None
    path.write_text(compare({name: RUNS[name] for name in before}, QRELS, NAMES, baseline=baseline).format("json"))
    back = {qid: dict(reversed(grades.items())) for qid, grades in reversed(QRELS.items())}
    found, expected = (
        compare({"then": then, "three": RUNS["three"]}, back, NAMES[::-1], baseline="then")
        for then in (path, RUNS["one"])
    )
    assert found.significance.comparisons == expected.significance.comparisons
    assert found.scores["then"].qids == tuple(back)
    assert {*found.scores["then"].missing} == {*expected.scores["then"].missing}
    for name in before:
        named = compare({name: path}, QRELS, NAMES).scores[name]
        assert named.values.tolist() == compare(RUNS, QRELS, NAMES).scores[name].values.tolist()


def test_digests_are_of_contents():
    whole = digests(QRELS)
    qid, docid = next((qid, docid) for qid, grades in QRELS.items() for docid in grades)
    changed = {**QRELS, qid: {**QRELS[qid], docid: QRELS[qid][docid] + 1}}
    assert digests({qid: QRELS[qid] for qid in reversed(QRELS)}) == whole
    assert [digests(changed)[name] == whole[name] for name in ("topics", "judgements")] == [True, False]
    assert digests({**QRELS, "new": {}})["topics"] != whole["topics"]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda of: of["digests"].update(judgements="0"), "judgements"),
        (lambda of: of["digests"].update(topics="0"), "topics"),
        (lambda of: of["runs"].update(more=of["runs"]["one"]), "one=/"),
        (lambda of: of["runs"]["one"]["means"].pop("AP"), "AP P@5"),
        (lambda of: of["runs"]["one"]["per_query"].popitem(), "one"),
        (lambda of: of["runs"]["one"].update(per_query=3), "json"),
        (lambda of: of.pop("digests"), "json"),
        (lambda of: of.update(runs={}), "json"),
        (lambda of: of.update(parts=dict(of)), "several collections"),
        (lambda of: of.update(significance=None), "json"),
    ],
)
def test_refused(tmp_path, change, parts):
    content = compare({"one": RUNS["one"]}, QRELS, NAMES).to_dict()
    change(content)
    (tmp_path / "last.json").write_text(json.dumps(content))
    refuses(lambda: compare({"last": tmp_path / "last.json"}, QRELS, NAMES), GreylagError, f"last.json {parts}")
