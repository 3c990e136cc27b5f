from itertools import permutations

import numpy as np
import pyndeval
import pytest

from greylag.errors import ParameterError
from greylag.evaluation import evaluate, evaluate_by_subtopic
from greylag.evaluation.diversity import coverage, highest_grades
from greylag.ranking import Ranking, Run
from greylag.trec import read_run, read_subtopic_qrels

# ndeval leaves ERR-IA@1 undivided; see test_err_ia_at_1.
CUTOFFS = (1, 2, 3, 5, 10, 20)
NDEVAL = {
    f"{name}@{k}": f"{other}@{k}" for name, other in (("alpha-nDCG", "alpha-nDCG"), ("P-IA", "P-IA")) for k in CUTOFFS
}
NDEVAL |= {f"S-recall@{k}": f"strec@{k}" for k in CUTOFFS} | {f"ERR-IA@{k}": f"ERR-IA@{k}" for k in CUTOFFS[1:]}
NDEVAL |= {"NRBP": "NRBP"}


def ndeval(run, qrels):
    """pyndeval's figures, shape (queries, measures), on strictly decreasing scores and queries one after another."""
    judged = [
        (qid, subtopic, docid, grade)
        for qid, subtopics in qrels.items()
        for subtopic, grades in subtopics.items()
        for docid, grade in grades.items()
    ]
    ranked = [(r.qid, d, float(-i)) for r in run.rankings for i, d in enumerate(r.docids)]
    found = pyndeval.ndeval(judged, ranked, list(NDEVAL.values()))
    return np.array([[found.get(qid, {}).get(name, 0.0) for name in NDEVAL.values()] for qid in qrels])


@pytest.mark.parametrize("seed", range(20))
def test_figures_equal_ndeval_on_random_rankings(seed):
    run, qrels = random_case(np.random.default_rng(seed))
    scores = evaluate_by_subtopic(run, qrels, list(NDEVAL))
    np.testing.assert_allclose(scores.values, ndeval(run, qrels), atol=1e-12)


@pytest.mark.parametrize("name", ["qrels.interactive.txt", "qrels.web.1-100.txt"])
def test_figures_equal_ndeval_on_trec_judgements(name, data):
    qrels = read_subtopic_qrels(data("trec_diversity_qrels") / name)
    rng = np.random.default_rng(1)
    rankings = []
    for qid, subtopics in qrels.items():
        pool = sorted({docid for grades in subtopics.values() for docid in grades})
        docids = rng.permutation([*pool, *(f"unjudged-{i}" for i in range(len(pool) // 2))])[:100].tolist()
        rankings.append(Ranking(qid, "", docids, np.arange(len(docids), 0.0, -1.0)))
    run = Run(tuple(rankings))
    scores = evaluate_by_subtopic(run, qrels, list(NDEVAL))
    np.testing.assert_allclose(scores.values, ndeval(run, qrels), atol=1e-12)
    assert (scores.values > 0).mean() > 0.5


def test_figures_equal_ndeval_on_ambient(data):
    folder = data("ambient")
    run, qrels = read_run(folder / "candidates.run"), read_subtopic_qrels(folder / "qrels.subtopics.txt")
    scores = evaluate_by_subtopic(run, qrels, list(NDEVAL))
    np.testing.assert_allclose(scores.values, ndeval(run, qrels), atol=1e-12)


def test_err_ia_at_1_is_divided_too():
    run, qrels = one_query("a b c", {"1": "a", "2": "a b"})
    assert value(run, qrels, "ERR-IA@1") == 1.0
    assert value(run, qrels, "ERR-IA@2") == pytest.approx((2 + 0.5 / 2) / (2 * (1 + 0.5 / 2)))
    judged = [("q", s, d, 1) for s, ds in qrels["q"].items() for d in ds]
    assert pyndeval.ndeval(judged, [("q", "a", 1.0)], ["ERR-IA@1"])["q"]["ERR-IA@1"] == 2.0


def test_cutoffs_have_no_limit():
    """Beyond the judged documents, alpha-nDCG stays, S-recall is full, and ERR-IA goes to its limit."""
    run, qrels = one_query(" ".join(f"x{i}" for i in range(30)) + " b a", {"1": "a b", "2": "b"})
    deep = value(run, qrels, "alpha-nDCG@32")
    assert deep == pytest.approx((2 / np.log2(32) + 0.5 / np.log2(33)) / (2 + 0.5 / np.log2(3)))
    assert value(run, qrels, "alpha-nDCG@1000000000") == deep
    assert value(run, qrels, "alpha-nDCG@30") == 0.0
    assert (value(run, qrels, "S-recall@30"), value(run, qrels, "S-recall@31")) == (0.0, 1.0)
    limit = (2 / 31 + 0.5 / 32) / (2 * 2 * np.log(2))  # the sum of 0.5^(r-1) / r is 2 log 2
    assert value(run, qrels, "ERR-IA@1000000000") == pytest.approx(limit, rel=1e-14)


def test_err_ia_of_rankings_longer_and_shorter_than_its_divisor():
    run, qrels = one_query(" ".join(f"x{i}" for i in range(1999)) + " a", {"1": "a"})
    assert value(run, qrels, "ERR-IA@2000") == pytest.approx(1 / 2000 / (2 * np.log(2)))
    run, qrels = one_query("a", {"1": "a"})
    assert value(run, qrels, "ERR-IA@2000") == pytest.approx(1 / (2 * np.log(2)), rel=1e-14)


def test_greedy_ideal_breaks_ties_by_docid_descending():
    """All three gain 2 at first; after c, b gains 2 again, but after a, 1.5 is the most."""
    run, qrels = one_query("a c b", {"1": "a c", "2": "a b", "3": "b", "4": "c"})
    assert value(run, qrels, "alpha-nDCG@2") == pytest.approx((2 + 1.5 / np.log2(3)) / (2 + 2 / np.log2(3)))


@pytest.mark.parametrize("seed", range(10))
def test_no_order_of_the_pool_beats_the_ideal_when_documents_have_one_subtopic(seed):
    """Where no document has two subtopics the greedy order is optimal: a brute-force search says so."""
    rng = np.random.default_rng(seed)
    subtopics = {s: [] for s in "123"}
    for docid in "abcde":
        subtopics[rng.choice(list("123"))].append(docid)
    _, qrels = one_query("", {s: " ".join(d) for s, d in subtopics.items()})
    best = max(value(one_query(" ".join(p), {})[0], qrels, "alpha-nDCG@3") for p in permutations("abcde", 3))
    assert best == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize(
    ("ranking", "k", "loss"),
    [("a", 1, 2 / 6), ("c x", 2, 5 / 6), ("x", 1, 1.0), ("a c", 2, 1 / 6), ("a c", 1, 2 / 6), ("a c d", 3, 0.0)],
)
def test_subtopic_loss_weighs_subtopics_by_their_documents(ranking, k, loss):
    """Weights 4/6 (documents a, b, e, f), 1/6 (c) and 1/6 (d); subtopic 4 has no relevant document."""
    run, qrels = one_query(ranking, {"1": "a b e f", "2": "c", "3": "d", "4": ""})
    assert value(run, qrels, f"subtopic-loss@{k}") == pytest.approx(loss)
    assert value(run, qrels, f"S-recall@{k}") == pytest.approx(len(set(ranking.split()[:k]) & set("acd")) / 3)


def test_queries_that_the_run_lacks_or_that_have_no_subtopic():
    qrels = {"1": {"1": {"a": 1}}, "2": {"1": {"a": 1}}, "3": {}, "4": {"1": {"a": 0}}}
    run = Run(tuple(Ranking(qid, "", ("a",), [1]) for qid in "1349"))
    scores = evaluate_by_subtopic(
        run, qrels, ["S-recall@1", "subtopic-loss@1", "NRBP", "AP", "alpha-nDCG@1", "ERR-IA@1", "P-IA@1"]
    )
    assert scores.values[1].tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert not scores.values[2:].any()
    assert (scores.missing, scores.unjudged) == (("2",), ("9",))
    with pytest.raises(ParameterError, match="no query in common"):
        evaluate_by_subtopic(run, {"8": {"1": {"a": 1}}}, ["NRBP"])


def test_measures_of_relevance_take_the_highest_grade():
    run, qrels = random_case(np.random.default_rng(3))
    both = evaluate_by_subtopic(run, qrels, ["AP", "NRBP", "nDCG@5"])
    documents = evaluate(run, highest_grades(qrels), ["AP", "nDCG@5"])
    assert [str(measure) for measure in both.measures] == ["AP", "NRBP", "nDCG@5"]
    assert both.values[:, [0, 2]].tolist() == documents.values.tolist()
    assert highest_grades({"1": {"1": {"a": 1, "b": 0}, "2": {"a": 3, "b": -1}}}) == {"1": {"a": 3, "b": 0}}


def test_coverage():
    covered, pool = coverage(("x", "a", "b"), {"1": {"a": 1, "c": 2}, "2": {"a": 0}, "3": {"b": 1, "a": 1}})
    assert covered.tolist() == [[False, False], [True, True], [False, True]]
    assert pool.tolist() == [[True, False], [False, True], [True, True]]  # c, b, a


def one_query(ranking, subtopics):
    docids = ranking.split()
    run = Run((Ranking("q", "", docids, np.arange(len(docids), 0.0, -1.0)),))
    return run, {"q": {s: dict.fromkeys(docs.split(), 1) for s, docs in subtopics.items()}}


def value(run, qrels, measure):
    return evaluate_by_subtopic(run, qrels, [measure]).values[0, 0]


def random_case(rng):
    qrels = {}
    for q in range(8):
        grades = rng.integers(-3, 3, (int(rng.integers(1, 7)), 40))
        qrels[f"q{q}"] = {
            str(s + 1): {f"d{i}": int(g) for i, g in enumerate(row) if g >= 0} for s, row in enumerate(grades)
        }
    rankings = []
    for q in range(7):
        docids = rng.permutation([f"d{i}" for i in range(50)])[: rng.integers(1, 50)].tolist()
        rankings.append(Ranking(f"q{q}", "", docids, np.arange(len(docids), 0.0, -1.0)))
    return Run(tuple(rankings)), qrels
