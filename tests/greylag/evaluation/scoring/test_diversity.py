"""Subtopics, and measures of diversity against ndeval and closed forms.

Tests `subtopics`.
"""

from itertools import permutations

import numpy as np
import pyndeval
import pytest

from greylag.base import Ranking, Run
from greylag.evaluation import Subtopics, at_level, evaluate_by_subtopic, parse_measure, read_subtopic_qrels
from greylag.evaluation.scoring.diversity import subtopic_loss
from greylag.evaluation.scoring.subtopics import coverage, relevant_documents
from tests.greylag.evaluation.scoring import samples


@pytest.mark.parametrize("seed", range(20))
def test_loss_is_the_measure(seed):
    rng = np.random.default_rng(seed)
    docids = [f"d{i}" for i in range(14)]
    judgements = {f"s{s}": {docid: int(rng.random() < 0.25) for docid in docids} for s in range(5)}
    truth, relevant = Subtopics.from_qrels(docids[:10], judgements), relevant_documents(judgements)
    assert truth.weights.sum() == pytest.approx(1.0)
    for k in (0, 1, 3, 10):
        picked = rng.permutation(10)[:k]
        covered = coverage([docids[i] for i in picked], relevant)
        assert truth.loss(picked) == pytest.approx(subtopic_loss(covered, coverage(docids, relevant), k))


def test_weights_can_count_the_candidates_alone():
    judgements = {"a": {"d1": 1}, "b": {"d2": 1, "d9": 2}, "c": {"d0": 1, "d1": 1, "d9": 1}, "none": {"d8": 1}}
    truth = Subtopics.from_qrels(["d0", "d1", "d2"], judgements, candidates_only=True)
    assert truth.coverage.toarray().tolist() == [[0, 0, 1], [1, 0, 1], [0, 1, 0]]
    assert truth.weights.tolist() == [1 / 4, 1 / 4, 2 / 4]


def test_no_subtopics():
    nothing = Subtopics.from_qrels(["d0", "d1"], {"a": {"d0": 0}})
    assert nothing.coverage.shape == (2, 0)
    assert nothing.loss(np.array([0])) == 0.0


# ndeval does not normalise ERR-IA@1; see test_err_ia_at_1_is_normalised.
CUTOFFS = (1, 2, 3, 5, 10, 20)
NDEVAL = {
    f"{name}@{k}": f"{other}@{k}" for name, other in (("alpha-nDCG", "alpha-nDCG"), ("P-IA", "P-IA")) for k in CUTOFFS
}
NDEVAL |= {f"S-recall@{k}": f"strec@{k}" for k in CUTOFFS} | {f"ERR-IA@{k}": f"ERR-IA@{k}" for k in CUTOFFS[1:]}
NDEVAL |= {f"{name}@{k}": f"{name}@{k}" for name in ("nERR-IA", "alpha-DCG") for k in CUTOFFS[1:]}
NDEVAL |= {name: name for name in ("NRBP", "nNRBP", "MAP-IA")}


def ndeval(run, qrels):
    """The values of pyndeval, shape (queries, measures), for strictly decreasing scores."""
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
def test_values_equal_ndeval_on_random_rankings(seed):
    run, qrels = samples.random_subtopic_case(np.random.default_rng(seed))
    scores = evaluate_by_subtopic(run, qrels, list(NDEVAL))
    np.testing.assert_allclose(scores.values, ndeval(run, qrels), atol=1e-12)


@pytest.mark.parametrize("name", ["qrels.interactive.txt", "qrels.web.1-100.txt"])
def test_values_equal_ndeval_on_trec_judgements(name, data):
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


def slow_d_sharp(docids, subtopics, k):
    """Sakai and Song (2011), section 3, from global gains with equal probabilities of the intents."""
    intents = [grades for grades in subtopics.values() if any(grade > 0 for grade in grades.values())]
    gain = {d: sum(max(g.get(d, 0), 0) / len(intents) for g in intents) for g in intents for d in g}
    ideal = sorted(gain.values(), reverse=True)[:k]
    dcg = sum(gain.get(d, 0) / np.log2(rank + 1) for rank, d in enumerate(docids[:k], 1))
    d_ndcg = dcg / sum(g / np.log2(rank + 1) for rank, g in enumerate(ideal, 1))
    i_rec = sum(any(g.get(d, 0) > 0 for d in docids[:k]) for g in intents) / len(intents)
    return d_ndcg, i_rec, (i_rec + d_ndcg) / 2


@pytest.mark.parametrize("seed", range(10))
def test_graded_measures_are_their_definitions(seed):
    run, qrels = samples.random_subtopic_case(np.random.default_rng(seed))
    scores = evaluate_by_subtopic(run, qrels, ["D-nDCG@7", "I-rec@7", "D#-nDCG@7", "Coverage@7"])
    for qid, (*found, coverage_at_7) in zip(scores.qids, scores.values, strict=True):
        docids = run[qid].docids if qid in run else ()
        judged = any(grade > 0 for grades in qrels[qid].values() for grade in grades.values())
        expected = slow_d_sharp(docids, qrels[qid], 7) if judged else (0, 0, 0)
        assert found == pytest.approx(expected, abs=1e-12)
        nuggets = [any(grades.get(d, 0) > 0 for d in docids[:7]) for grades in qrels[qid].values()]
        assert coverage_at_7 == pytest.approx(np.mean(nuggets), abs=1e-12)


def test_coverage_counts_subtopics_that_no_document_is_relevant_to():
    """As FreshStack's; but not documents that belong to none."""
    run, qrels = one_query("a b", {"1": "a", "2": "c", "3": "", "4": ""})
    qrels["q"] |= {"": {"b": 0}, "4": {"a": 0}}
    assert value(run, qrels, "Coverage@2") == 1 / 4
    assert value(run, qrels, "S-recall@2") == value(run, qrels, "I-rec@2") == 1 / 2


@pytest.mark.parametrize("seed", range(4))
def test_levels_are_those_of_judgements_without_lower_grades(seed):
    run, qrels = samples.random_subtopic_case(np.random.default_rng(seed))
    names = ["alpha-nDCG@5", "ERR-IA@5", "NRBP", "MAP-IA", "S-recall@5", "nNRBP", "Coverage@5", "subtopic-loss@5"]
    higher = {qid: dict(at_level(subtopics, 2)) for qid, subtopics in qrels.items()}
    at = evaluate_by_subtopic(run, qrels, [parse_measure(name, rel=2) for name in names])
    assert at.values.tolist() == evaluate_by_subtopic(run, higher, names).values.tolist()
    assert at.values.tolist() != evaluate_by_subtopic(run, qrels, names).values.tolist()


def test_documents_without_a_subtopic_are_judged(tmp_path):
    (tmp_path / "qrels").write_text("q 0 b 0\nq 1 a 1\nq 0 c -2\n")
    run, _ = one_query("a b c x", {})
    scores = evaluate_by_subtopic(
        run, read_subtopic_qrels(tmp_path / "qrels"), ["Judged@4", "S-recall@4", "Coverage@4"]
    )
    assert scores.values.tolist() == [[3 / 4, 1, 1]]


def test_err_ia_at_1_is_normalised():
    run, qrels = one_query("a b c", {"1": "a", "2": "a b"})
    assert value(run, qrels, "ERR-IA@1") == 1.0
    assert value(run, qrels, "ERR-IA@2") == pytest.approx((2 + 0.5 / 2) / (2 * (1 + 0.5 / 2)))
    judged = [("q", s, d, 1) for s, ds in qrels["q"].items() for d in ds]
    assert pyndeval.ndeval(judged, [("q", "a", 1.0)], ["ERR-IA@1"])["q"]["ERR-IA@1"] == 2.0


def test_cutoffs_have_no_limit():
    """Beyond the judged documents, alpha-nDCG is constant, S-recall is 1, and ERR-IA approaches its limit."""
    run, qrels = one_query(" ".join(f"x{i}" for i in range(30)) + " b a", {"1": "a b", "2": "b"})
    deep = value(run, qrels, "alpha-nDCG@32")
    assert deep == pytest.approx((2 / np.log2(32) + 0.5 / np.log2(33)) / (2 + 0.5 / np.log2(3)))
    assert value(run, qrels, "alpha-nDCG@1000000000") == deep
    assert value(run, qrels, "alpha-nDCG@30") == 0.0
    assert (value(run, qrels, "S-recall@30"), value(run, qrels, "S-recall@31")) == (0.0, 1.0)
    limit = (2 / 31 + 0.5 / 32) / (2 * 2 * np.log(2))  # the sum of 0.5^(r-1) / r is 2 log 2
    assert value(run, qrels, "ERR-IA@1000000000") == pytest.approx(limit, rel=1e-14)


def test_greedy_ideal_breaks_ties_by_docid_descending():
    """All three gain 2 first; after c, b gains 2 again, whereas after a the largest gain is 1.5."""
    run, qrels = one_query("a c b", {"1": "a c", "2": "a b", "3": "b", "4": "c"})
    assert value(run, qrels, "alpha-nDCG@2") == pytest.approx((2 + 1.5 / np.log2(3)) / (2 + 2 / np.log2(3)))


@pytest.mark.parametrize("seed", range(10))
def test_no_order_of_the_pool_beats_the_ideal_when_documents_have_one_subtopic(seed):
    """If no document covers two subtopics, the greedy order is optimal: compare with an exhaustive search."""
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


def one_query(ranking, subtopics):
    docids = ranking.split()
    run = Run((Ranking("q", "", docids, np.arange(len(docids), 0.0, -1.0)),))
    return run, {"q": {s: dict.fromkeys(docs.split(), 1) for s, docs in subtopics.items()}}


def value(run, qrels, measure):
    return evaluate_by_subtopic(run, qrels, [measure]).values[0, 0]
