"""ranx's runs and judgements, to and fro, and its fusion as a first stage."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from tests.greylag.passages.adapters.samples import QRELS, runs

from greylag import read_qrels, read_run
from greylag.base import Ranking, Run
from greylag.evaluation import evaluate
from greylag.passages import qrels_to_ranx, run_to_ranx

ranx = pytest.importorskip("ranx", reason="needs ranx")
pytestmark = pytest.mark.long  # ranx compiles for minutes


@settings(max_examples=20, deadline=None)
@given(run=runs(), qrels=QRELS)
def test_order_and_judgements_survive(run, qrels):
    identifiers = [*qrels, *(d for own in qrels.values() for d in own), *(r.qid for r in run.rankings)]
    assume(all(ord(name[-1]) % 256 for name in [*identifiers, *(d for r in run.rankings for d in r.docids)]))
    back = read_run(run_to_ranx(run), {r.qid: r.query for r in run.rankings})
    assert {r.qid: (r.query, r.docids) for r in back.rankings} == {r.qid: (r.query, r.docids) for r in run.rankings}
    assert back.tag == run.tag
    judged = read_qrels(qrels_to_ranx(qrels))
    assert judged == {q: {d: max(0, grade) for d, grade in own.items()} for q, own in qrels.items()}


def test_ranx_measures_what_greylag_measures():
    rng = np.random.default_rng(0)
    docids = [f"d{i}" for i in range(30)]
    qrels = {f"q{q}": {d: int(rng.integers(0, 4)) for d in docids[:20]} for q in range(6)}
    run = Run(tuple(Ranking(qid, "", tuple(rng.permutation(docids)), np.zeros(30)) for qid in qrels), "tied")
    names = "map map@7 mrr mrr@3 precision precision@10 recall recall@12 f1 r-precision hit_rate@2 bpref ndcg ndcg@9"
    theirs = ranx.evaluate(qrels_to_ranx(qrels), run_to_ranx(run), [*names.split(), "map-l2", "mrr@3-l2"])
    graded = evaluate(run, qrels, [*theirs])
    np.testing.assert_allclose([*theirs.values()], graded.means)


def test_a_run_that_ranx_fused():
    runs = [
        Run((Ranking("q", "", docids, np.array([2.0, 1.0])),), tag)
        for tag, docids in (("a", ("x", "y")), ("b", ("z", "x")))
    ]
    fused = read_run(ranx.fuse([run_to_ranx(run) for run in runs], method="rrf"), {"q": "text"})
    assert fused["q"].docids[0] == "x"
    assert fused["q"].query == "text"
