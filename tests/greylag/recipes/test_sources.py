"""The sources of features, with parameters that are tuned on training queries."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from greylag.base import Ranking, Run
from greylag.features import FeatureExtractor, FeatureParameters
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex
from greylag.learning import Objective, RankingData, training_data
from greylag.rankers import ModelRanker, RankingModel, RM3Stage
from greylag.recipes import baselines, choice, sources
from greylag.recipes.cross_fitting import cross_fit_baselines
from greylag.recipes.sources import FeatureSources, PreparedSources, TunedRM3, top_rows

RNG = np.random.default_rng(3)
WORDS = [f"w{i}x" for i in range(40)]
INDEX = PositionalIndex.from_texts(
    {f"d{i}": " ".join(WORDS[w - 1] for w in RNG.zipf(1.3, size=30).clip(1, 40)) for i in range(60)}
)
RANKINGS = [
    Ranking(
        f"q{q}", " ".join(RNG.choice(WORDS[3:20], size=3)), tuple(f"d{d}" for d in RNG.permutation(60)), np.zeros(60)
    )
    for q in range(9)
]
QRELS = {f"q{q}": {f"d{d}": 1 for d in RNG.choice(60, size=6, replace=False)} for q in range(8)}
GRID = {"k1": (0.6, 2.0), "b": (0.2, 0.8), "mu": (5.0, 500.0)}
GRID |= {"fb_docs": (3, 5), "fb_terms": (4,), "original_weight": (0.3, 0.7)}
SOURCES = FeatureSources(grid=GRID, depth=25)
CANDIDATES = PreparedSources(SOURCES, Objective.parse("AP"), RANKINGS[:8], QRELS, INDEX)
TUNED = TunedRM3(FeatureParameters(fb_docs=3, fb_terms=4), 0.5)
QIDS = [f"q{q}" for q in range(8)]


def mean(rankings):
    """Mean AP, by its definition."""
    values = []
    for qid, relevant in QRELS.items():
        hits = [docid in relevant for docid in rankings[qid].docids]
        values.append(sum(sum(hits[: i + 1]) / (i + 1) for i, hit in enumerate(hits) if hit) / len(relevant))
    return float(np.mean(values))


def test_of_means_that_are_equal_on_paper_the_first_wins():
    values = np.array([[0.1, 0.1, 0.4], [0.4, 0.1, 0.1], [0.1, 0.1, 0.1]])
    for order in permutations(range(3)):
        assert sources._best(values, [*order])[0] == (0,)
        assert choice.rounded_mean(values[0, [*order]]) == choice.rounded_mean(values[1, [*order]])


def test_rm3_and_mu_are_the_best_of_the_grid():
    judged = RANKINGS[:8]
    tuned = CANDIDATES.tune(QIDS)

    def bm25(k1, b):
        return RM3Stage(INDEX, original_weight=1.0, k1=k1, b=b).run(judged)

    by_bm25 = {(k1, b): mean(bm25(k1, b)) for k1 in GRID["k1"] for b in GRID["b"]}
    k1, b = max(by_bm25, key=by_bm25.__getitem__)
    assert (tuned.parameters.k1, tuned.parameters.b) == (k1, b)
    scores = {
        (docs, weight): mean(
            RM3Stage(INDEX, original_weight=weight, k1=k1, b=b, fb_docs=docs, fb_terms=4).run(bm25(k1, b))
        )
        for docs in GRID["fb_docs"]
        for weight in GRID["original_weight"]
    }
    assert scores[tuned.parameters.fb_docs, tuned.original_weight] == pytest.approx(max(scores.values()))
    by_mu = {}
    for mu in GRID["mu"]:
        model = RankingModel(baselines.LM.features, (1.0,), FeatureParameters(mu=mu))
        by_mu[mu] = mean(ModelRanker(model, INDEX).run(judged))
    assert tuned.parameters.mu == max(by_mu, key=by_mu.__getitem__)


def test_what_is_kept_between_folds_is_what_would_be_computed():
    kept = replace(CANDIDATES)
    for qids in (QIDS[:5], QIDS[2:], QIDS[:5]):
        new = replace(CANDIDATES)
        tuned = kept.tune(qids)
        assert tuned == new.tune(qids)
        np.testing.assert_array_equal(kept.data(tuned).features, new.data(tuned).features)
        own = [ranking for ranking in RANKINGS[:8] if ranking.qid in qids]
        assert tuned == replace(CANDIDATES, rankings=own).tune(qids), "other queries make no difference"


def test_parts_of_the_judgements_are_tuned_on_one_scale_of_grades():
    graded = {qid: {docid: 1 + place % 2 for place, docid in enumerate(of_one)} for qid, of_one in QRELS.items()}
    graded["q0"] = {**graded["q0"], next(iter(graded["q0"])): 4}
    err = Objective.parse("ERR@5")
    prepared = SOURCES.prepare(Run(tuple(RANKINGS)), graded, INDEX, err)
    assert prepared.tune(QIDS[1:]) == replace(prepared, objective=replace(err, max_grade=4)).tune(QIDS[1:])


def test_the_written_form_is_of_indexes_with_words():
    tuned = CANDIDATES.tune(QIDS)
    without = replace(CANDIDATES, index=replace(INDEX, read_words=lambda: None))
    names = [[str(feature) for feature in own.groups(tuned)["written form"]] for own in (CANDIDATES, without)]
    assert names == [["written:words", "written:characters"], []]


def test_the_features_are_those_of_an_extractor():
    tuned = CANDIDATES.tune(QIDS)
    data = CANDIDATES.data(tuned)
    extractor = FeatureExtractor(INDEX, data.specs, tuned.parameters)
    expected = training_data(RANKINGS[:8], QRELS, extractor)
    np.testing.assert_array_equal(data.features, expected.features)
    assert (data.specs, data.docids, data.origin) == (expected.specs, expected.docids, expected.origin)


def test_baselines_have_values_by_parameters_that_other_queries_tuned():
    tuned, parts = CANDIDATES.tune(QIDS), [QIDS[:3], QIDS[3:]]
    rows = CANDIDATES.training(tuned, QIDS)
    fitted = cross_fit_baselines(rows, CANDIDATES, tuned, parts)
    columns = [rows.names.index(name) for name in tuned.features]
    others = [column for column in range(len(rows.specs)) if column not in columns]
    assert fitted.names == rows.names
    np.testing.assert_array_equal(fitted.features[:, others], rows.features[:, others])
    parameters = [CANDIDATES.tune([qid for qid in QIDS if qid not in part]) for part in parts]
    assert len({tuned, *parameters}) > 1, "something is tested"
    for part, of_part in zip(parts, parameters, strict=True):
        extract = FeatureExtractor(INDEX, tuple(map(parse_feature, of_part.features)), of_part.parameters)
        for ranking in RANKINGS:
            if ranking.qid in part:
                own = fitted.select_queries([ranking.qid])
                expected = extract(ranking)[[ranking.docids.index(docid) for docid in own.docids]]
                np.testing.assert_array_equal(own.features[:, columns], expected)


def test_training_takes_the_tops_of_both_rankings_in_turn():
    data, kept = CANDIDATES.data(TUNED), CANDIDATES.training(TUNED, QIDS)
    rm3 = data.names.index(f"stage:{TUNED.rm3}")
    assert np.diff(kept.offsets).tolist() == [25] * 8
    for q, (first, end) in enumerate(zip(data.offsets[:-1], data.offsets[1:], strict=True)):
        incoming = list(data.docids[first:end])
        by_rm3 = [incoming[row] for row in np.argsort(-data.features[first:end, rm3], kind="stable")]
        turns = [docid for pair in zip(incoming, by_rm3, strict=True) for docid in pair]
        own = kept.docids[kept.offsets[q] : kept.offsets[q + 1]]
        assert set(own) == set(list(dict.fromkeys(turns))[:25])
        assert list(own) == [docid for docid in incoming if docid in own]
    assert [*map(list, kept.relevant_grades)] == [*map(list, data.relevant_grades)]


def test_rows_keep_their_order_and_ties_go_to_the_earlier():
    data = RankingData(
        ("x",), ("a", "b"), np.array([0, 3, 5]), tuple("uvwyz"), np.arange(5.0)[:, None], np.array([0, 1, 0, 1, 0]),
        (np.array([1]), np.array([1])),
    )  # fmt: skip
    kept = top_rows(data, np.array([1.0, 2.0, 1.0, 0.0, 0.0]), 2)
    assert (kept.docids, kept.offsets.tolist(), kept.grades.tolist()) == (tuple("uvyz"), [0, 2, 4], [0, 1, 1, 0])
    assert top_rows(data, np.array([1.0, 2.0, 1.0, 0.0, 1.0]), 1).docids == ("u", "y"), "the given order comes first"


def test_many_queries_are_tuned_on_a_part_and_keep_only_training_rows(monkeypatch):
    whole = CANDIDATES.data(TUNED)
    rows = top_rows(whole, whole.columns[whole.names.index(f"stage:{TUNED.rm3}")], SOURCES.depth)
    expected = CANDIDATES.tune(["q0", "q4", "q7"])
    for name in ("BLOCK_QUERIES", "MAX_SEARCHED_QUERIES"):
        monkeypatch.setattr(f"greylag.recipes.sources.{name}", 3)
    many = replace(CANDIDATES)
    assert many.tune(QIDS) == expected != replace(CANDIDATES).tune(["q1", "q2", "q3"])
    data = many.training(TUNED, QIDS)
    assert (data.specs, data.qids, data.docids) == (rows.specs, rows.qids, rows.docids)
    assert len(data.docids) == 8 * SOURCES.depth < len(whole.docids)
    for name in ("features", "offsets", "grades"):
        np.testing.assert_array_equal(getattr(data, name), getattr(rows, name))
    assert [*map(list, data.relevant_grades)] == [*map(list, rows.relevant_grades)]
