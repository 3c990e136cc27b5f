"""Training data, its extraction, preselection of features, and objectives."""

import math
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval

from greylag.base import ParameterError, Ranking
from greylag.evaluation.scoring.folds import split_folds
from greylag.evaluation.scoring.measures import parse_measure
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import EXPANSION, candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.learning.data import RankingData, linear_scores, measure_spreads, weighted_sum
from greylag.learning.extraction import CountedRankings, training_data
from greylag.learning.learner import Selection
from greylag.learning.linesearch.objectives import MEASURES, Objective
from greylag.learning.preselect import MMRPreselection, binarise
from greylag.learning.selection import MMRFeatureSelection
from tests.greylag.learning.samples import collection, random_data, rankings
from tests.refusals import refuses

INDEX = PositionalIndex.from_texts({"d1": "cat dog", "d2": "cat pig dog", "d3": "pig"})
EXTRACTOR = FeatureExtractor(INDEX, candidate_pool("sd"), FeatureParameters(mu=7.0))
RANKINGS = [Ranking(qid, "cat dog", ("d2", "d1", "d3"), np.zeros(3)) for qid in ("1", "2", "3")]
QRELS = {"1": {"d1": 2, "lost": 1, "d3": -1}, "2": {"d1": 0}, "3": {"d3": 1}}


def test_rankings_become_rows_with_their_origin():
    data = training_data(RANKINGS, QRELS, EXTRACTOR)
    assert data.qids == ("1", "3")
    assert data.offsets.tolist() == [0, 3, 6]
    assert data.docids == ("d2", "d1", "d3") * 2
    assert data.grades.tolist() == [0, 2, -1, 0, 0, 1]
    assert [grades.tolist() for grades in data.relevant_grades] == [[2, 1], [1]]
    np.testing.assert_array_equal(data.features[:3], EXTRACTOR(RANKINGS[0]))
    assert data.specs == EXTRACTOR.specs
    assert data.origin == EXTRACTOR.origin
    assert data.origin.parameters.mu == 7.0
    assert data.origin.collection.documents == 3
    assert data.origin.fingerprint == INDEX.fingerprint


def test_selections_keep_the_origin():
    data = training_data(RANKINGS, QRELS, EXTRACTOR)
    part = data.select_queries(["3", "unknown"]).select_features([4, 0])
    assert (part.qids, part.origin) == (("3",), data.origin)
    assert part.specs == (data.specs[4], data.specs[0])
    assert part.names == (data.names[4], data.names[0])
    assert data.columns_of(part.names) == [4, 0]
    np.testing.assert_array_equal(part.features, data.features[3:, [4, 0]])


def test_weighted_sums():
    data, weights = random_data(3, features=4), np.array([0.5, -2.0])
    np.testing.assert_allclose(linear_scores(data, [2, 0], weights), data.features[:, [2, 0]] @ weights)
    np.testing.assert_array_equal(weighted_sum(data.features[:, [2, 0]], weights), linear_scores(data, [2, 0], weights))


def test_spreads_are_standard_deviations_around_the_means_of_queries():
    values, offsets = np.random.default_rng(5).standard_normal((9, 3)), np.array([0, 4, 4, 5, 9])  # one without rows
    away = np.concatenate([values[:4] - values[:4].mean(axis=0), values[4:5] * 0, values[5:] - values[5:].mean(axis=0)])
    np.testing.assert_allclose(measure_spreads(values, offsets), np.sqrt((away**2).mean(axis=0)))
    far = values + 100.0 * np.repeat([0, 1, 2, 3], np.diff(offsets))[:, None]
    np.testing.assert_allclose(measure_spreads(far, offsets), measure_spreads(values, offsets))
    assert measure_spreads(values[:0], np.array([0, 0])).tolist() == [0.0] * 3


def test_trivial_and_duplicate_features_are_reported():
    data = random_data(4, features=4)
    shift = np.repeat(np.arange(len(data.qids)), np.diff(data.offsets)).astype(float)
    columns = np.stack([data.columns[0], shift, 3 * data.columns[0] + shift, data.columns[1], -data.columns[0]], axis=1)
    data = replace(data, specs=("a", "flat", "twin", "b", "minus"), features=columns)
    kept, dropped = data.distinct
    assert kept == [0, 3, 4]
    assert dropped == {1: "flat is constant within every query", 2: "twin ranks as a does"}


BASE = FeatureParameters()
SETTINGS = (
    BASE,
    replace(BASE, mu=3.0),
    replace(BASE, k1=0.0, b=1.0),
    replace(BASE, k1=2.5, b=0.0, idf="robertson"),
    replace(BASE, profile="galago"),
    replace(BASE, max_clique=2),
    replace(BASE, fb_docs=2, fb_terms=3),
)
SIZES = (2, 3), (2, 1), (5, 3), (5, 100), (1, 2)


def test_the_data_is_that_of_extraction():
    index = collection()
    ranked, qrels = rankings(index)
    ranked.append(Ranking("unjudged", "cat", ranked[0].docids, ranked[0].scores))
    ranked.append(Ranking("0b", "dog cat", ("d1", "lost", "d2"), np.array([3.0, 2.0, 1.0])))
    qrels["0b"] = {"d2": 1}
    others = parse_features("score,FI/term/LM@z,FI/expansion/LM@rank")
    features = (EXPANSION[1], *others, *candidate_pool(), EXPANSION[0])
    counted = CountedRankings(tuple(ranked), qrels, index, features)
    for parameters in (*SETTINGS, *SETTINGS[::-1]):
        found = counted.data(parameters)
        expected = training_data(ranked, qrels, FeatureExtractor(index, features, parameters))
        assert found.features.tobytes() == expected.features.tobytes(), parameters
        for name in ("specs", "qids", "docids", "origin"):
            assert getattr(found, name) == getattr(expected, name)
        np.testing.assert_array_equal(found.grades, expected.grades)


def counts_made(monkeypatch):
    """The extractors that count from now on."""
    made, count = [], FeatureExtractor.count
    monkeypatch.setattr(FeatureExtractor, "count", lambda self, *given: made.append(self) or count(self, *given))
    return made


@pytest.mark.parametrize(
    ("features", "counts"), [("SD/ordered/LM-O-1,FI/term/BM25", 3), ("FI/expansion/BM25", 5), ("FI/term/LM", 3)]
)
def test_only_what_changes_counts_is_counted_again(features, counts, monkeypatch):
    index = collection()
    ranked, qrels = rankings(index)
    made = counts_made(monkeypatch)
    counted = CountedRankings(tuple(ranked), qrels, index, parse_features(features))
    for parameters in SETTINGS * 2:
        counted.data(parameters)
    assert len(made) == counts


def test_expansions_of_several_sizes_are_counted_once(monkeypatch):
    rng = np.random.default_rng(0)
    # Words in less than a tenth of the documents, as relevance models have
    index = PositionalIndex.from_texts(
        {f"d{i}": " ".join(f"w{w}" for w in rng.integers(150, size=9)) for i in range(90)}
    )
    ranked = [
        Ranking(f"q{i}", f"w{i} w{i + 1}", tuple(f"d{d}" for d in rng.permutation(90)), np.zeros(90)) for i in range(4)
    ]
    qrels = {ranking.qid: {ranking.docids[0]: 1} for ranking in ranked}
    features = parse_features("FI/expansion/BM25,FI/term/BM25,FI/expansion/LM")
    settings = tuple(replace(BASE, fb_docs=d, fb_terms=t) for d, t in SIZES)
    expected = [training_data(ranked, qrels, FeatureExtractor(index, features, of)).features for of in settings]
    made = counts_made(monkeypatch)
    counted = CountedRankings(tuple(ranked), qrels, index, features, settings)
    for parameters, features_of_one in zip(settings, expected, strict=True):
        assert counted.data(parameters).features.tobytes() == features_of_one.tobytes(), parameters
    assert len(made) == 2, "expansions, and terms"
    assert len({array.tobytes() for array in expected}) == len(settings)


def test_folds_partition_the_queries_evenly():
    qids = [str(i) for i in range(23)]
    folds = split_folds(qids, 5, seed=3)
    assert sorted(qid for fold in folds for qid in fold) == sorted(qids)
    assert {len(fold) for fold in folds} == {4, 5}
    assert split_folds(qids, 5, seed=3) == folds != split_folds(qids, 5, seed=4)


def qrels_of(data):
    """Judgements of the ranked documents, and one unretrieved document for each remaining grade."""
    qrels = {}
    for i, qid in enumerate(data.qids):
        rows = range(data.offsets[i], data.offsets[i + 1])
        qrels[qid] = {data.docids[row]: int(data.grades[row]) for row in rows}
        left = data.relevant_grades[i].tolist()
        for grade in qrels[qid].values():
            if grade > 0:
                left.remove(grade)
        qrels[qid] |= {f"lost{j}": grade for j, grade in enumerate(left)}
    return qrels


MEASURED = "AP map|AP@5 map_cut_5|nDCG ndcg|nDCG@5 ndcg_cut_5|nDCG@10 ndcg_cut_10|RR recip_rank|P@5 P_5"
BY_LEVEL = "AP(rel=2) map|RR(rel=2) recip_rank|P(rel=2)@5 P_5"


@pytest.mark.parametrize("names", f"{MEASURED}|{BY_LEVEL}".split("|"))
@pytest.mark.parametrize("levels", [None, 2, 4])
def test_equals_trec_eval(names, levels):
    objective, measure = names.split()
    rel = Objective.parse(objective).rel
    for seed in range(40):
        data = random_data(seed, levels=levels)
        run = {
            qid: {data.docids[row]: float(data.features[row, 0]) for row in range(data.offsets[i], data.offsets[i + 1])}
            for i, qid in enumerate(data.qids)
        }
        scored = pytrec_eval.RelevanceEvaluator(qrels_of(data), {measure}, relevance_level=rel).evaluate(run)
        expected = [scored[qid][measure] for qid in data.qids]
        ours = Objective.parse(objective).evaluate(data, data.features[:, 0])
        np.testing.assert_allclose(ours, expected, atol=1e-9, rtol=0)


def err(grades, cutoff, max_grade):
    """Chapelle et al. (2009), Algorithm 2, as printed."""
    chance, total = 1.0, 0.0
    for rank, grade in enumerate(grades[:cutoff], 1):
        stop = (2 ** max(grade, 0) - 1) / 2**max_grade
        total += chance * stop / rank
        chance *= 1 - stop
    return total


@pytest.mark.parametrize("cutoff", [1, 3, 20])
def test_err_is_the_published_algorithm(cutoff):
    for seed in range(40):
        data = random_data(seed, levels=5)
        ours = Objective("ERR", cutoff, max_grade=4).evaluate(data, data.features[:, 0])
        for i, value in enumerate(ours):
            rows = np.arange(data.offsets[i], data.offsets[i + 1])
            order = rows[np.argsort(-data.features[rows, 0], kind="stable")]
            assert value == pytest.approx(err(data.grades[order].tolist(), cutoff, 4), abs=1e-12)


SAME = "map AP|ap AP|rr RR|rr.10 RR@10|ndcg_cut_10 nDCG@10|P_30 P@30|map(rel=2) AP(rel=2)|P(rel=3)@10 P(rel=3)@10"


@pytest.mark.parametrize("names", [*SAME.split("|"), *(f"{name}@10 {name}@10" for name in MEASURES)])
def test_spellings(names):
    text, spelt = names.split()
    assert str(Objective.parse(text)) == spelt
    assert Objective.parse(spelt) == Objective.parse(text) == Objective.parse(Objective.parse(text))
    assert str(parse_measure(text)) == spelt


def data_of(columns, grades, sizes):
    return RankingData(
        specs=tuple(columns),
        qids=tuple(f"q{i}" for i in range(len(sizes))),
        offsets=np.cumsum([0, *sizes]),
        docids=tuple(f"d{i}" for i in range(sum(sizes))),
        features=np.array(list(columns.values()), dtype=float).T,
        grades=np.array(grades),
        relevant_grades=tuple(np.array([1]) for _ in sizes),
    )


@pytest.mark.parametrize("levels", [None, 2, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_feature_holds_in_the_first_tenth_by_itself(seed, levels):
    data = random_data(seed, queries=8, documents=45, levels=levels)
    holds = binarise(data)
    for q in range(len(data.qids)):
        rows = range(data.offsets[q], data.offsets[q + 1])
        tenth = math.ceil(len(rows) / 10)
        for feature in range(3):
            values = sorted((data.features[row, feature] for row in rows), reverse=True)
            for row in rows:
                expected = len(rows) > tenth and data.features[row, feature] > values[tenth]
                assert holds[row, feature] == expected
            assert holds[list(rows), feature].sum() <= tenth


def test_queries_scales_do_not_matter():
    data = random_data(3, queries=6, documents=30)
    scale = np.repeat(np.arange(1.0, 7.0), np.diff(data.offsets))[:, np.newaxis]
    moved = replace(data, features=7 * scale**2 * data.features - scale)
    np.testing.assert_array_equal(binarise(moved), binarise(data))


@pytest.mark.parametrize("weight", [0.3, 0.5, 1.0])
def test_what_is_kept_is_mmrs_choice_in_the_pools_order(weight):
    data = random_data(2, queries=20, documents=40, features=12)
    narrowed = MMRPreselection(5, relevance_weight=weight).select(data)
    selector = MMRFeatureSelection(5, relevance_weight=weight).fit(binarise(data), data.grades > 0)
    assert narrowed.names == tuple(data.names[column] for column in sorted(selector.selected_))
    np.testing.assert_array_equal(narrowed.features, data.features[:, np.sort(selector.selected_)])
    assert narrowed.qids == data.qids


def planted():
    """Relevant documents of two kinds: three features find the one kind, a weaker one the other, two nothing."""
    rng = np.random.default_rng(0)
    n, sizes = 40, [40] * 30
    kind = np.tile([*[1] * 3, *[2] * 1, *[0] * (n - 4)], len(sizes))
    noise = rng.random((6, len(kind)))
    first, second = (kind == 1) * 2.0, (kind == 2) * 2.0
    columns = [noise[0], first + noise[1], first + noise[2], first + noise[3], second + noise[4], noise[5]]
    names = ("noise1", "first1", "first2", "first3", "second", "noise2")
    return data_of(dict(zip(names, map(list, columns), strict=True)), (kind > 0).astype(int).tolist(), sizes)


def test_redundant_features_give_way_to_another_kind():
    data = planted()
    selector = MMRFeatureSelection(1, relevance_weight=1.0).fit(binarise(data), data.grades > 0)
    gain = dict(zip(data.names, selector.information_gain_, strict=True))
    assert min(gain["first1"], gain["first2"], gain["first3"]) > gain["second"] > max(gain["noise1"], gain["noise2"])
    assert set(MMRPreselection(3, relevance_weight=1.0).select(data).names) == {"first1", "first2", "first3"}
    assert "second" in MMRPreselection(3, relevance_weight=0.5).select(data).names


def test_where_nothing_tells_features_apart_all_are_kept():
    data = planted()
    assert MMRPreselection(6).select(data).names == data.names
    assert MMRPreselection(60).select(data).names == data.names
    for grade in (0, 1):
        alike = replace(data, grades=np.full_like(data.grades, grade))
        assert MMRPreselection(2).select(alike).names == data.names


def test_arrays_become_the_data_that_they_were_taken_from():
    data = replace(random_data(3, queries=4), specs=("a", "b", "c"))
    again = RankingData.from_arrays(data.X, data.y.tolist(), data.groups, names=("a", "b", "c"))
    assert repr(again) == f"<RankingData of 4 queries, {len(data.docids)} documents, 3 features>"
    assert (again.names, again.qids) == (data.names, ("1", "2", "3", "4"))
    np.testing.assert_array_equal(again.offsets, data.offsets)
    np.testing.assert_array_equal(again.features, data.features)
    np.testing.assert_array_equal(again.grades, data.grades)
    assert RankingData.from_arrays(data.X, data.y, [0, *data.groups]).groups.tolist() == [0, *data.groups]
    for first, end, relevant in zip(data.offsets, data.offsets[1:], again.relevant_grades, strict=False):
        assert relevant.tolist() == sorted((g for g in data.grades[first:end] if g > 0), reverse=True)


def with_value(value):
    data = random_data(1)
    features = data.features.copy()
    features[1, 2] = value
    return replace(data, features=features)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: training_data(RANKINGS[1:2], QRELS, EXTRACTOR), "1 topics"),
        (lambda: random_data(1).select_queries(["7", "8"]), "7, 8"),
        (lambda: replace(random_data(1), specs=("a",)), "documents 1 names"),
        (lambda: with_value(np.nan).columns, f"f2 {random_data(1).docids[1]} NaN trees"),
        (lambda: with_value(np.inf), f"f2 {random_data(1).docids[1]} inf"),
        (lambda: with_value(-1e200), f"f2 {random_data(1).docids[1]} -1e+200 1e+100"),
        (lambda: split_folds(list(map(str, range(23))), 24, seed=0), "23 24"),
        (lambda: Objective.parse("MAPP"), "'MAPP' AP"),
        (lambda: Objective.parse("Rprec"), "'Rprec' optimised"),
        (lambda: Objective.parse("nDCG(rel=2)"), "nDCG not rel"),
        (lambda: Objective.parse("AP(judged_only=True)"), "judged_only"),
        (lambda: Objective("P"), "P@10"),
        (lambda: Objective("AP", 0), "cut-off"),
        (lambda: Objective("AP", rel=0), "rel"),
        (lambda: Objective("ERR", 20, max_grade=2).evaluate(random_data(1), random_data(1).columns[0]), "reach 3"),
        (lambda: MMRPreselection(0), "1 feature 0"),
        (lambda: MMRPreselection(16, relevance_weight=1.5), "[0, 1] 1.5"),
        (lambda: RankingData.from_arrays([1.0, 2.0], [0, 1], [2]), "X (2,) y"),
        (lambda: RankingData.from_arrays([[1.0], [2.0]], [0, 1.5], [2]), "grades whole"),
        (lambda: RankingData.from_arrays([[1.0], [2.0]], [0, 1], [1, 2]), "2 rows 3"),
        (lambda: RankingData.from_arrays([[1.0], [2.0]], [0, 1], [3, -1]), "2 rows X"),
        (lambda: RankingData.from_arrays([[1.0], [2.0]], [0, 1], [1.5, 0.5]), "groups whole 2 rows"),
        (lambda: RankingData.from_arrays([[1.0], [-np.inf]], [0, 1], [2]), "feature 1 document 2 -inf"),
        (lambda: Selection((0,), ((1.0,),), (1.0,)).predict(with_value(np.nan)), "NaN trees"),
    ],
)
def test_refusals(call, parts):
    refuses(call, ParameterError, parts)
