"""The contract of stages. Those that need more than an index have a row in `MAKERS`."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.base import Ranking, greedy_picks
from greylag.diversity import (
    CSSVM,
    DPP,
    MMR,
    MSD,
    PM2,
    DiversityStage,
    GroupLimit,
    NearDuplicates,
    SVMDiv,
    XQuAD,
    subtopic_gain,
)
from greylag.evaluation import Subtopics
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import FeatureSpec
from greylag.features.stage_registry import find_stage, registered_stages, required_parameters, stage_parameters
from greylag.index import ArrayVectors
from greylag.rankers import EstimatorRanker, ModelRanker, RankingModel
from greylag.testing import check_stage
from tests.greylag.diversity import samples

N = 15
INDEX = samples.index(1, N)
ASPECTS = {f"q{n}": ["w1x w2x", "w3x", "w5x"] for n in ("", *range(10))}
FEATURES = tuple(map(FeatureSpec.parse, ("FI/term/BM25", "SD/ordered/LM-O-1")))


VECTORS = ArrayVectors([f"d{i}" for i in range(N)], np.random.default_rng(3).standard_normal((N, 4)))


def group_of(docid):
    """Documents of like numbers."""
    return docid[-1] if docid.startswith("d") else None


class Sum:
    """An estimator that adds up the features."""

    def predict(self, X):
        return X.sum(axis=1)


def over(kind):
    """Make a stage that needs nothing but an index, if that."""
    return lambda index=INDEX, **sizes: kind(**{"index": index} if "index" in stage_parameters(kind) else {}, **sizes)


KINDS = {name: find_stage(name) for name in registered_stages()}
MAKERS = {
    **{n: over(k) for n, k in KINDS.items() if {*required_parameters(k), *k.needs} <= {"index", "vectors"}},
    "cssvm": lambda index=INDEX, **sizes: CSSVM(samples.ENSEMBLE, index, **sizes),
    "dpp-dense": lambda index=INDEX, **sizes: DPP(vectors=VECTORS, **sizes),
    "estimator": lambda index=INDEX: EstimatorRanker(Sum(), FeatureExtractor(index, FEATURES)),
    "group-limit": lambda index=INDEX, **sizes: GroupLimit(group_of, **sizes),
    "mmr-dense": lambda index=INDEX, **sizes: MMR(vectors=VECTORS, **sizes),
    "mrf": lambda index=INDEX: ModelRanker(RankingModel(FEATURES, weights=(0.5, 0.5)), index),
    "mrf-negative": lambda index=INDEX: ModelRanker(RankingModel(FEATURES, weights=(0.5, -0.5)), index),
    "msd-dense": lambda index=INDEX, **sizes: MSD(vectors=VECTORS, **sizes),
    "near-duplicates": lambda index=INDEX, **sizes: NearDuplicates(index, threshold=0.4, n=1, **sizes),
    "near-duplicates-dense": lambda index=INDEX, **sizes: NearDuplicates(vectors=VECTORS, threshold=0.5, **sizes),
    "pm2": lambda index=INDEX, **sizes: PM2(index, ASPECTS, **sizes),
    "svmdiv": lambda index=INDEX, **sizes: SVMDiv(samples.MODEL, index, **sizes),
    "xquad": lambda index=INDEX, **sizes: XQuAD(index, ASPECTS, **sizes),
}
STAGES = {name: make() for name, make in MAKERS.items()}
DIVERSIFIERS = {name: make for name, make in MAKERS.items() if isinstance(STAGES[name], DiversityStage)}
GREEDY = {name: make for name, make in DIVERSIFIERS.items() if name != "cssvm"}


def is_unknown(docid):
    return docid.startswith("unknown")


def test_every_registered_stage_has_a_row():
    assert set(KINDS.values()) <= set(map(type, STAGES.values()))


@pytest.mark.parametrize("name", STAGES)
def test_keeps_the_contract(name):
    """The shipped check; random order knows every document."""
    rankings = [samples.ranking(seed, N, f"q{seed}") for seed in range(6)]
    check_stage(STAGES[name], rankings, knows_all=name == "random")


@pytest.mark.parametrize("name", sorted(STAGES.keys() - {"random"}))  # random order knows every document
@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), places=st.lists(st.integers(0, N), min_size=1, max_size=8))
def test_unknown_documents_leave_the_order_of_the_known_ones(name, seed, places):
    ranking = samples.ranking(seed, N)
    pairs = list(zip(ranking.docids, ranking.scores.tolist(), strict=True))
    for number, place in enumerate(places):
        pairs.insert(place, (f"unknown{number}", pairs[place - 1][1] if place else N + 1.0))
    mixed = Ranking.sort(ranking.qid, ranking.query, *zip(*pairs, strict=True))
    result = STAGES[name](mixed).docids
    assert sorted(result) == sorted(mixed.docids)
    assert tuple(docid for docid in result if docid in ranking.docids) == STAGES[name](ranking).docids
    if name in {"estimator", "mrf", "mrf-negative", "rm3"}:
        scores = STAGES[name](mixed).scores
        assert all(scores[place] == scores[-1] for place, docid in enumerate(result) if is_unknown(docid))
    elif name not in {"group-limit", "oracle"}:  # which know every document, too
        places = [[docid if is_unknown(docid) else None for docid in docids] for docids in (result, mixed.docids)]
        assert places[0] == places[1]


def test_one_warning_a_run_for_unknown_documents(caplog):
    docids = ("d1", "elsewhere", "d2", "d3")
    rankings = [Ranking(f"q{n}", "w1x", docids, np.arange(4.0, 0, -1)) for n in range(3)]
    (STAGES["mrf"] >> STAGES["mmr"]).run([*rankings, samples.ranking(1, N)], n_jobs=2, tag="both")  # type: ignore[list-item]
    (line,) = caplog.messages
    assert line == (
        "run both: 3 of 12 documents of 3 queries are unknown, such as elsewhere (query q0, with 1 of 4): "
        "each feature adds its least to their scores, MMR leaves them at their ranks"
    )


@pytest.mark.parametrize("name", GREEDY)
def test_greedy_stages_keep_the_order_of_what_they_do_not_pick(name):
    ranking = samples.ranking(2, N)
    for depth, k in ((1, 1), (5, 3), (10, 20), (100, 4)):
        result = GREEDY[name](depth=depth, k=k)(ranking)
        assert result.scores.tolist() == list(range(N, 0, -1))
        head = result.docids[: min(k, depth)]
        assert set(head) <= set(ranking.docids[:depth])
        assert result.docids[len(head) :] == tuple(d for d in ranking.docids if d not in head)


@pytest.mark.parametrize("name", GREEDY)
def test_the_first_picks_do_not_depend_on_their_number(name):
    ranking = samples.ranking(3, N)
    orders = [GREEDY[name](k=k)(ranking).docids[:k] for k in range(1, N + 1)]
    assert all(orders[-1][:k] == orders[k - 1] for k in range(1, N + 1))


def test_greedy_selection_by_the_truth_bounds_the_others():
    ranking, judged = samples.ranking(5, N), samples.judgements(0, N)

    def loss(stage):
        return Subtopics.from_qrels(stage(ranking).docids, judged).loss(np.arange(3))

    losses = [loss(make(k=3)) for make in GREEDY.values()]
    truth = Subtopics.from_qrels(ranking.docids, judged)
    assert truth.loss(greedy_picks(subtopic_gain(truth), 3)) <= min(losses) < max(losses)
