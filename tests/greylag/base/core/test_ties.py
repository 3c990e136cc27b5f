"""Documents whose scores tie: scores alone are ordered as by trec_eval, and an order that is stated is kept."""

import logging
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyndeval
import pytest
import pytrec_eval
from tests.greylag.base.doors.test_runs import Frame, ScoredDoc, of_ranx
from tests.refusals import refuses

from greylag import compare, evaluate, read_run, write_run
from greylag.base import ParameterError, Ranking, Run
from greylag.base.doors.runs import as_run
from greylag.evaluation import RRF, evaluate_by_subtopic
from greylag.evaluation.trec.runs import open_run

NAMES = "map ndcg ndcg_cut_7 P_5 recip_rank recall_10 bpref Rprec map_cut_3 success_2".split()
DOCIDS = [f"d{number}" for number in range(9)] + ["B", "é", "Z", "a1", "文", "😀"]


def random_scores(rng):
    """Scores by query and docid with many ties, some in float32 alone, in any order."""
    scores = {}
    for query in rng.permutation(12):
        docids = rng.permutation(DOCIDS)[: rng.integers(1, len(DOCIDS))].tolist()
        values = rng.integers(1, 4, len(docids)) * (1 + 1e-9 * rng.integers(-1, 2, len(docids)))
        scores[f"q{query}"] = dict(zip(docids, values.tolist(), strict=True))
    return scores


def random_qrels(rng):
    return {f"q{q}": {d: int(rng.integers(-1, 4)) for d in rng.permutation(DOCIDS)[:9]} for q in range(12)}


def shuffled(rng, table):
    """Mappings in mappings in another order."""
    if not isinstance(table, dict):
        return table
    return {(key := [*table][place]): shuffled(rng, table[key]) for place in rng.permutation(len(table))}


def rows(scores):
    return [(qid, docid, score) for qid, by in scores.items() for docid, score in by.items()]


def as_frame(scores):
    qids, docids, values = zip(*rows(scores), strict=True)
    return {"qid": qids, "docno": docids, "score": values}


ALONE = {
    "mapping": lambda scores: scores,
    "frame": lambda scores: pd.DataFrame(as_frame(scores)),
    "other frame": lambda scores: Frame(**as_frame(scores)),
    "ranx": lambda scores: of_ranx("Run", scores),
    "ir_measures": lambda scores: [ScoredDoc(*row) for row in rows(scores)],
    "generator": lambda scores: (ScoredDoc(*row) for row in rows(scores)),
}
"""The forms of scores that state no order."""


def write_plainly(path, scores):
    """Write lines by falling score, without ranks."""
    lines = [(qid, sorted(by.items(), key=lambda item: -item[1])) for qid, by in scores.items()]
    path.write_text("".join(f"{qid} Q0 {docid} 0 {score!r} t\n" for qid, by in lines for docid, score in by))
    return path


def docids(run):
    return {ranking.qid: ranking.docids for ranking in run.rankings if len(ranking)}


@pytest.mark.parametrize("form", ALONE)
@pytest.mark.parametrize("seed", range(5))
def test_scores_alone_are_evaluated_as_by_pytrec_eval_and_as_in_files(form, seed, tmp_path):
    rng = np.random.default_rng(seed)
    scores, qrels = random_scores(rng), random_qrels(rng)
    expected = pytrec_eval.RelevanceEvaluator(qrels, NAMES).evaluate(scores)
    in_file = read_run(write_plainly(tmp_path / "plain.run", scores))
    for given in (scores, shuffled(rng, scores)):
        found = evaluate(ALONE[form](given), shuffled(rng, qrels), NAMES)
        for qid, row in zip(found.qids, found.values.tolist(), strict=True):
            assert row == [expected.get(qid, {}).get(name, 0.0) for name in NAMES]
        assert docids(as_run(ALONE[form](given))) == docids(in_file)
    write_run(ALONE[form](scores), tmp_path / "written.run")
    assert docids(read_run(tmp_path / "written.run")) == docids(in_file)


@pytest.mark.parametrize("seed", range(5))
def test_scores_alone_by_subtopic_are_those_of_ndeval_in_the_same_order(seed):
    """pyndeval orders ties by docid, ascending, and is given scores that fall."""
    rng = np.random.default_rng(seed)
    scores = random_scores(rng)
    judged = {f"q{q}": {s: {d: int(rng.integers(0, 2)) for d in DOCIDS} for s in "abc"} for q in range(12)}
    names = ["alpha-nDCG@5", "ERR-IA@10", "strec@2"]
    fallen = []
    for qid, by in scores.items():
        order = sorted(by, key=lambda docid, by=by: (np.float32(by[docid]), docid), reverse=True)
        fallen += [(qid, docid, -float(rank)) for rank, docid in enumerate(order)]
    lines = [(q, s, d, g) for q, subtopics in judged.items() for s, of in subtopics.items() for d, g in of.items()]
    expected = pyndeval.ndeval(lines, fallen, names)
    for given, qrels in ((scores, judged), (shuffled(rng, scores), shuffled(rng, judged))):
        found = evaluate_by_subtopic(given, qrels, names)
        for qid, row in zip(found.qids, found.values, strict=True):
            np.testing.assert_allclose(row, [expected.get(qid, {}).get(name, 0.0) for name in names], atol=1e-12)


ORDERED = {
    "pairs": lambda qid, docids, scores: {qid: [*zip(docids, scores, strict=True)]},
    "hits": lambda qid, docids, scores: {
        qid: [SimpleNamespace(docid=docid, score=score) for docid, score in zip(docids, scores, strict=True)]
    },
    "frame with ranks": lambda qid, docids, scores: pd.DataFrame(
        {"qid": qid, "docno": docids, "score": scores, "rank": range(len(docids))}
    ).iloc[::-1],
    "rankings": lambda qid, docids, scores: [Ranking(qid, "", docids, scores)],
    "sorted": lambda qid, docids, scores: Run((Ranking.sort(qid, "", docids, scores),)),
}
"""The forms that state an order."""


@pytest.mark.parametrize("form", ORDERED)
@pytest.mark.parametrize(
    ("ranked", "scores", "told"),
    [
        (("a", "b", "c"), [1.0, 1.0, 0.0], True),
        (("a", "b", "c"), [1 + 1e-9, 1.0, 0.0], True),  # as 32-bit numbers
        (("a", "b", "c"), [1e39, 1e38, 0.0], False),
        (("b", "a", "c"), [1.0, 1.0, 0.0], False),
        (("b", "c", "a"), [1.0, 1.0, 0.0], False),  # judged alike
        (("x", "y", "a"), [1.0, 1.0, 0.0], False),
        (("a", "b", "c"), [1.0, 0.5, 0.0], False),
    ],
)
def test_a_stated_order_is_kept_and_told_where_trec_eval_has_another(form, ranked, scores, told, caplog):
    qrels = {"q": {"a": 1, "b": 0, "c": 0}, "other": {"a": 1}}
    run = as_run(ORDERED[form]("q", ranked, scores))
    assert run["q"].docids == ranked
    found = evaluate(ORDERED[form]("q", ranked, scores), qrels, ["RR"])
    assert found.by_query["q"] == 1 / (1 + ranked.index("a"))
    assert ["1 of 1 queries" in message for message in caplog.messages] == [True] * told
    caplog.clear()
    compare({"mine": run}, qrels, ["RR"])
    assert [message.startswith("mine: 1 of 1 queries") for message in caplog.messages if "equal" in message] == (
        [True] * told
    )
    caplog.clear()
    by_subtopic = {"q": {"1": {"a": 1}, "2": {"b": 0, "c": 0}}}
    evaluate_by_subtopic(run, by_subtopic, ["S-recall@1"])
    RRF()([run["q"], run["q"]])  # evaluation alone warns
    assert ["equal scores" in message for message in caplog.messages] == [True] * told


def test_a_scorer_that_is_constant_gains_nothing_by_the_order_of_its_mapping(caplog, tmp_path):
    """Positives first, as whoever makes candidates of judgements lists them."""
    rng = np.random.default_rng(1)
    qrels = {f"q{q}": {f"d{d}": int(d < 2) for d in rng.permutation(20)} for q in range(30)}
    first = {qid: sorted(judged, key=lambda docid, judged=judged: -judged[docid]) for qid, judged in qrels.items()}
    constant = {qid: dict.fromkeys(docids, 0.0) for qid, docids in first.items()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, ["ndcg_cut_10", "recip_rank"]).evaluate(constant)
    found = evaluate(constant, qrels, ["nDCG@10", "RR"])
    assert found.values.tolist() == [[theirs[qid]["ndcg_cut_10"], theirs[qid]["recip_rank"]] for qid in qrels]
    assert found.means[0] < 0.5
    told = "30 of 30 queries have one score for all of their documents, which are ranked by docid, descending"
    path = write_plainly(tmp_path / "constant.run", constant)
    read_run(path)
    compare({"constant": constant}, qrels)
    assert [message.split(", as by")[0] for message in caplog.messages] == [
        f"run greylag: {told}",
        f"{path}: {told}",
        f"run constant: {told}",
    ]


def test_scores_keep_their_digits_unless_docids_reverse_them():
    scores = {"q": {"a": 1 + 1e-9, "b": 1.0, "c": 0.1, "d": 1 / 3}}
    (ranking,) = Run.from_dict(scores).rankings
    assert [*ranking] == [("b", 1.0), ("a", 1.0), ("d", 1 / 3), ("c", 0.1)]
    fallen = {"q": {"b": 1 + 1e-9, "a": 1.0}}
    assert Run.from_dict(fallen).to_dict() == fallen


@pytest.mark.parametrize("form", ALONE)
@pytest.mark.parametrize("score", [4e38, -1e39])
def test_scores_alone_beyond_float32_are_refused(form, score):
    refuses(lambda: as_run(ALONE[form]({"q7": {"a": 1.0, "b": score}})), ParameterError, f"q7 {score} float32 rescale")


def test_files_whose_ties_turn_the_ranks_round_are_told(tmp_path, caplog):
    caplog.set_level(logging.WARNING, logger="greylag")
    path = tmp_path / "a.run"

    def told(text, topics=None):
        path.write_text(text)
        for read in (read_run, open_run):
            caplog.clear()
            run = read(path, topics)
            kept = [*caplog.messages]
        return {ranking.qid: "".join(ranking.docids) for ranking in run.rankings}, kept

    tied = "1 Q0 a 1 5 t\n1 Q0 b 2 5 t\n1 Q0 c 3 4 t\n2 Q0 b 1 5 t\n2 Q0 a 2 5 t\n2 Q0 c 3 1 t\n"
    which = f"{path}: 1 of 2 queries have ranks in another order than their scores, which count, as for trec_eval"
    assert told(tied) == ({"1": "bac", "2": "bac"}, [f"{which}; ties are broken by docid, descending"])
    assert told(tied.replace("1 5 t", "1 5.0000001 t")) == ({"1": "bac", "2": "bac"}, [*map(str, caplog.messages)])
    assert len(caplog.messages) == 1
    assert told(tied, {"2": "x"}) == ({"2": "bac"}, [])
    # Neither ranks that are all the same, nor those that agree.
    assert told("1 Q0 a 0 5 t\n1 Q0 b 0 5 t\n1 Q0 c 0 4 t\n") == ({"1": "bac"}, [])
    assert told("1 Q0 a 2 5 t\n1 Q0 b 1 5 t\n1 Q0 c 3 4 t\n") == ({"1": "bac"}, [])
    # Lines in the order of scores, whose ranks say another.
    assert len(told("1 Q0 a 2 5 t\n1 Q0 b 1 4 t\n")[1]) == 1


def test_ranks_of_a_frame_that_contradict_its_scores_are_told(caplog):
    frame = Frame(qid=["1"] * 3 + ["2"], docno=[*"abcd"], score=[1.0, 2.0, 2.0, 1.0], rank=[0, 1, 2, 0])
    assert docids(as_run(frame)) == {"1": ("b", "c", "a"), "2": ("d",)}
    told = "run greylag: 1 of 2 queries have ranks in another order than their scores, which count"
    assert [message.startswith(told) for message in caplog.messages] == [True]
