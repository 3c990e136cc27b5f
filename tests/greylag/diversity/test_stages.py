"""The stages that diversify, but for MMR and SVM-div, against their definitions.

Tests `aspects`, `candidates`, `coverage`, `essential_pages`, `group_limit`, `pm2`, `random_order`,
`stage` and `xquad`.
"""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from greylag.base import ModularGain, ParameterError, Ranking, Run, greedy_picks, unit_range
from greylag.diversity import (
    PM2,
    Coverage,
    DiversityStage,
    EssentialPages,
    EssentialPagesGain,
    GroupLimit,
    RandomOrder,
    XQuAD,
    unweighted_coverage,
)
from greylag.diversity.coverage import CoverageGain, SumOfGains
from greylag.diversity.pm2 import PM2Gain
from greylag.diversity.xquad import XQuADGain
from greylag.index.positional import PositionalIndex
from tests.greylag.diversity import samples


@dataclass(frozen=True)
class Backwards(DiversityStage):
    """Prefers the last candidate."""

    def gain(self, candidates):
        return ModularGain(np.arange(len(candidates), dtype=np.float64))


RANKING = Ranking("q", "tea", tuple("abcdef"), np.array([9.0, 8.0, 7.0, 7.0, 7.0, 1.0]))


@pytest.mark.parametrize(
    ("depth", "k", "expected"), [(1, 1, "abcdef"), (4, 2, "dcabef"), (4, 9, "dcbaef"), (100, 3, "fedabc")]
)
def test_picks_come_first_and_the_rest_keeps_its_order(depth, k, expected):
    result = Backwards(depth=depth, k=k)(RANKING)
    assert (result.qid, result.query, "".join(result.docids)) == ("q", "tea", expected)
    assert result.scores.tolist() == [6, 5, 4, 3, 2, 1]


def test_20_of_100_candidates_are_picked_by_default():
    ranking = Ranking("q", "", tuple(map(str, range(120))), np.arange(120.0, 0.0, -1.0))
    rows = [int(docid) for docid in Backwards()(ranking).docids]
    assert rows == [*range(99, 79, -1), *range(80), *range(100, 120)]


def distinct_words(tf, picked):
    return float((tf[picked] > 0).any(axis=0).sum())


def best_benefits(tf, picked):
    """The sum over words of the best C(v, d) of the picked documents."""
    df = (tf > 0).mean(axis=0)
    benefits = tf * np.log(1 / np.where(df > 0, df, 1.0))
    return float(benefits[picked].max(axis=0, initial=0.0).sum())


@pytest.mark.parametrize(
    ("gain_of", "value"), [(unweighted_coverage, distinct_words), (EssentialPagesGain, best_benefits)]
)
@pytest.mark.parametrize("seed", range(15))
def test_gains_are_rises_of_the_value(seed, gain_of, value):
    tf = samples.frequencies(seed)
    gain, dense, picked = gain_of(tf), tf.toarray(), []
    for candidate in np.random.default_rng(seed).permutation(8)[:5].tolist():
        rises = [value(dense, [*picked, i]) - value(dense, picked) for i in range(8)]
        np.testing.assert_allclose(gain.gains(), rises, atol=1e-12)
        gain.add(candidate)
        picked.append(candidate)


@given(st.integers(0, 1 << 32), st.integers(1, 12), st.integers(1, 30))
def test_gains_are_those_of_scipy_to_the_bit(seed, n, columns):
    """Covered columns, whose entries are dropped, add 0 in scipy's product; values may be negative or 0."""
    rng = np.random.default_rng(seed)
    covered = csr_matrix((rng.random((n, columns)) < rng.random()).astype(float))
    values, base = rng.normal(size=columns) * (rng.random(columns) < 0.8), rng.normal(size=n)
    gain, before = CoverageGain(covered, values, base), covered.toarray()
    for pick in rng.permutation(n):
        np.testing.assert_array_equal(gain.gains(), covered @ values + base)
        gain.add(pick)
        values = np.where(covered[[pick]].toarray()[0] > 0, 0.0, values)
    np.testing.assert_array_equal(covered.toarray(), before)


def test_a_sum_of_gains_picks_in_both():
    """The second document is better than its equal by the worth, and leaves nothing to cover to that one."""
    covered = CoverageGain(csr_matrix(np.eye(3)[[0, 0, 1, 2]]), np.array([3.0, 2.0, 1.0]))
    worth = ModularGain(np.array([0.0, 0.5, 0.0, 0.0]))
    assert greedy_picks(SumOfGains(covered, worth), 4).tolist() == [1, 2, 3, 0]


@pytest.mark.parametrize(("stage", "gain_of"), [(Coverage, unweighted_coverage), (EssentialPages, EssentialPagesGain)])
def test_stages_over_words_are_the_greedy_choice(stage, gain_of):
    index, ranking = samples.index(1, 15), samples.ranking(2, 15)
    picked = greedy_picks(gain_of(index.term_frequencies(index.documents(ranking.docids))), 4)
    assert stage(index, k=4)(ranking).docids[:4] == tuple(ranking.docids[i] for i in picked)


def test_relevance_is_bm25_by_the_highest():
    index = PositionalIndex.from_texts({"a": "cat cat dog", "b": "cat cow pig", "c": "cow"})
    ranking = Ranking("q", "x", ("a", "b", "c"), [3.0, 2.0, 1.0])
    found = XQuAD(index, {"q": ["cat", "horse"]}).relevance(ranking)
    assert found[0, 0] == 1.0
    assert 0 < found[1, 0] < 1
    assert found[2, 0] == 0
    assert found[:, 1].tolist() == [0.0] * 3
    assert XQuAD(index, {}).relevance(ranking).shape == (3, 0)


def test_by_hand():
    relevance = np.array([[1.0, 0.0], [0.9, 0.0], [0.2, 0.6], [0.0, 0.5]])
    gain = PM2Gain(relevance, 0.75)
    assert gain.gains().tolist() == pytest.approx([0.75, 0.675, 0.75 * 0.2 + 0.25 * 0.6, 0.125])
    gain.add(0)  # the first aspect has a seat: its quotient is 1/3, and the second aspect is next
    first = 0.25 / 3
    assert gain.gains()[1:].tolist() == pytest.approx([first * 0.9, first * 0.2 + 0.75 * 0.6, 0.75 * 0.5])
    gain.add(2)  # its seat is divided 1 : 3
    quotients = 1 / (2 * 1.25 + 1), 1 / (2 * 0.75 + 1)
    assert gain.gains()[[1, 3]].tolist() == pytest.approx([0.25 * quotients[0] * 0.9, 0.75 * quotients[1] * 0.5])


def test_seats_are_proportional():
    """With one aspect a document and equal weights, aspects take turns."""
    relevance = np.repeat(np.eye(3), 4, axis=0)
    picked = greedy_picks(PM2Gain(relevance, 1.0), 9)
    assert [int(pick) // 4 for pick in picked] == [0, 1, 2] * 3


@pytest.mark.parametrize("seed", range(8))
def test_gains_are_the_formula(seed):
    rng = np.random.default_rng(seed)
    scores, relevance, weight = rng.random(7), rng.random((7, 3)), rng.random()
    gain, picked = XQuADGain(scores, relevance, weight), []
    for candidate in rng.permutation(7)[:5].tolist():
        expected = [
            weight * scores[d]
            + (1 - weight) * sum(relevance[d, a] * np.prod(1 - relevance[picked, a]) / 3 for a in range(3))
            for d in range(7)
        ]
        assert gain.gains().tolist() == pytest.approx(expected)
        gain.add(candidate)
        picked.append(candidate)


def test_relevance_alone_and_no_aspects_keep_the_order():
    index, ranking = samples.index(1, 15), samples.ranking(2, 15)
    assert PM2(index, {})(ranking).docids == ranking.docids
    assert PM2(index, {ranking.qid: ["nowhere"]})(ranking).docids == ranking.docids
    aspects = {ranking.qid: ["w1x", "w2x"]}
    assert XQuAD(index, aspects, relevance_weight=1.0)(ranking).docids == ranking.docids
    assert XQuAD(index, {})(ranking).docids == ranking.docids
    assert XQuAD(index, aspects, relevance_weight=0.1)(ranking).docids != ranking.docids


def test_orders_are_equally_likely():
    orders = [RandomOrder(seed=seed)(Ranking("q", "", tuple("abc"), np.zeros(3))).docids for seed in range(6000)]
    counts = [orders.count(order) for order in set(orders)]
    assert len(counts) == 6
    assert np.abs(np.array(counts) - 1000).max() < 5 * np.sqrt(1000)


def test_order_depends_on_seed_and_query():
    ranking = samples.ranking(0, 15)
    orders = {RandomOrder(seed)(replace(ranking, qid=qid)).docids for seed in (0, 1) for qid in ("a", "b")}
    assert len(orders) == 4


def scored(relevance, docids):
    """The matrix by aspect and docid, without its zeros."""
    return {
        f"a{a}": {docid: value for docid, value in zip(docids, column.tolist(), strict=True) if value}
        for a, column in enumerate(relevance.T)
    }


@pytest.mark.parametrize("kind", [XQuAD, PM2])
@pytest.mark.parametrize("seed", range(3))
def test_aspects_from_anywhere_rank_alike(kind, seed):
    """Scores in a mapping, in runs, or from a function, and BM25 of texts, which has the same scores."""
    index, ranking = samples.index(1, 15), samples.ranking(seed, 15)
    texts = ["w1x w2x", "w3x", "w5x"]
    by_texts = kind(index, {ranking.qid: texts})
    relevance = by_texts.relevance(ranking)
    by_aspect = scored(relevance, ranking.docids)
    runs = [
        Run((Ranking.sort(ranking.qid, "", list(scores), list(scores.values())),), "tag")
        for scores in by_aspect.values()
    ]
    for aspects in ({ranking.qid: by_aspect}, runs, lambda candidates: relevance[: len(candidates)]):
        stage = kind(aspects=aspects)
        assert np.array_equal(stage.relevance(ranking), relevance)
        assert stage(ranking) == by_texts(ranking)
        assert kind(aspects=aspects, scale="max").relevance(ranking) == pytest.approx(relevance)


def test_scales_of_aspect_scores():
    ranking = samples.ranking(2, 3)
    logits = np.array([[-2.0, 800.0], [0.0, -800.0], [np.nan, 1.0]])
    found = XQuAD(aspects=lambda _: logits, scale="sigmoid").relevance(ranking)
    assert found == pytest.approx(np.array([[1 / (1 + np.exp(2.0)), 1.0], [0.5, 0.0], [0.0, 1 / (1 + np.exp(-1.0))]]))
    high = XQuAD(aspects=lambda _: np.array([[8.0, 0.0], [2.0, 0.0], [np.nan, 0.0]]), scale="max")
    assert high.relevance(ranking).tolist() == [[1.0, 0.0], [0.25, 0.0], [0.0, 0.0]]


def test_documents_without_a_score_of_an_aspect_are_reported(caplog):
    PM2(aspects={"q": {"a": {"d0": 0.5, "d1": 0.1}}})(samples.ranking(2, 3))
    assert "1 of 3 documents of 1 queries are without a score of an aspect, such as d2" in caplog.text


def group_scores(order, groups, limit, decay):
    """`GroupLimit` by its formula, for documents a, b, c, ... in the incoming order, with scores 1, 1/2, 1/4, ..."""
    relevance = unit_range(0.5 ** np.arange(len(order)))
    picked = []
    while len(picked) < len(order):
        worth = {}
        for i in range(len(order)):
            beyond = max(0, 1 + sum(groups[i] == groups[s] for s in picked) - limit)
            worth[i] = relevance[i] * decay**beyond if decay or not beyond else -1.0
        picked.append(max((i for i in worth if i not in picked), key=lambda i: (round(worth[i], 12), -i)))
    return "".join(order[i] for i in picked)


@pytest.mark.parametrize("limit", [1, 2, 3])
@pytest.mark.parametrize("decay", [0.0, 0.2, 0.7, 1.0])
def test_group_limit_equals_its_formula(limit, decay):
    order, groups = "abcdefgh", "11121232"
    ranking = Ranking("q", "", tuple(order), 0.5 ** np.arange(8))
    for named in (dict(zip(order, groups, strict=True)), dict(zip(order, groups, strict=True)).get):
        stage = GroupLimit(named, limit, decay)
        assert "".join(stage(ranking).docids) == group_scores(order, groups, limit, decay)


def test_a_cap_moves_the_surplus_behind_all_others(caplog):
    ranking = Ranking("q", "", tuple("abcdef"), np.arange(6.0, 0, -1))
    groups = {"a": "x", "b": "x", "c": "x", "d": "y", "f": "y"}
    assert "".join(GroupLimit(groups, decay=0.5)(Ranking("q", "", tuple("abdf"), np.ones(4))).docids) == "adbf"
    assert "".join(GroupLimit(groups)(ranking).docids) == "adebcf"  # e is in no group
    assert "".join(GroupLimit(groups, max_per_group=2)(ranking).docids) == "abdefc"
    assert not caplog.text
    assert GroupLimit({"z": "x"}).run([ranking]).rankings[0].docids == ranking.docids
    assert (
        "6 of 6 documents of 1 queries are without a group, such as a (query q, with 6 of 6): no limit" in caplog.text
    )


def test_documents_of_little_relevance_are_not_moved_up():
    """RANKING has the scores 9 8 7 7 7 1."""
    for least, expected in ((0.0, "fedcba"), (0.5, "edcbaf"), (0.8, "bacdef"), (1.0, "abcdef")):
        assert "".join(Backwards(min_relevance=least)(RANKING).docids) == expected
    tied = Ranking("q", "", tuple("abcd"), np.array([0.88, 0.88, 0.88, 0.06]))  # 0.06 + (0.88 - 0.06) is above 0.88
    assert "".join(Backwards(min_relevance=1.0)(tied).docids) == "cbad"
    level = Ranking("q", "", tuple("abc"), np.ones(3))
    assert "".join(Backwards(min_relevance=1.0)(level).docids) == "cba"  # none is less relevant than another
    assert len(Backwards(min_relevance=0.5)(Ranking("q", "", (), np.zeros(0)))) == 0


def test_aspects_of_some_queries_are_enough():
    stage = XQuAD(aspects={"1": {"a": {"d": 1.0}}}, scale="none")
    stage.check_topics(["1", "2"])
    with pytest.raises(ParameterError, match="aspects: no query in common"):
        stage.check_topics(["2", "3"])
