"""What every diversity stage promises, and what SVM-div's and the random one promise besides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from greylag.diversity.coverage import PRESETS, Subtopics
from greylag.diversity.mmr import MMR
from greylag.diversity.model import DiversityModel
from greylag.diversity.stage import CSSVM, Coverage, EssentialPages, KnownSubtopics, Random, SVMDiv
from greylag.errors import ModelError, ParameterError
from greylag.greedy import GreedyStage
from greylag.index.positional import PositionalIndex
from greylag.ranking import Pipeline, Ranking, Run, run_step
from tests.greylag.diversity import samples

N = 15
ENSEMBLE = DiversityModel(
    samples.SMALL, tuple(map(tuple, np.random.default_rng(0).standard_normal((3, 15)).tolist())), k=5
)
MODEL = ENSEMBLE.members[0]
QRELS = {"q": samples.judgements(0, N)}

STAGES: dict[str, Callable[..., GreedyStage]] = {
    "coverage": Coverage,
    "essential-pages": EssentialPages,
    "known-subtopics": lambda index, **options: KnownSubtopics(QRELS, **options),
    "mmr": MMR,
    "random": lambda index, **options: Random(7, **options),
    "svmdiv": lambda index, **options: SVMDiv(MODEL, index, **options),
}


@pytest.fixture(params=STAGES)
def make(request: pytest.FixtureRequest) -> Callable[..., GreedyStage]:
    return STAGES[request.param]


@pytest.fixture(scope="module")
def index() -> PositionalIndex:
    return samples.index(1, N)


def test_is_a_permutation_whose_tail_keeps_its_order(make: Callable[..., GreedyStage], index: PositionalIndex) -> None:
    ranking = samples.ranking(2, N)
    for depth, k in ((1, 1), (5, 3), (10, 20), (100, 4)):
        result = make(index, depth=depth, k=k)(ranking)
        assert (result.qid, result.query) == (ranking.qid, ranking.query)
        assert sorted(result.docids) == sorted(ranking.docids)
        assert result.scores.tolist() == list(range(N, 0, -1))
        head = result.docids[: min(k, depth)]
        assert set(head) <= set(ranking.docids[:depth])
        assert result.docids[len(head) :] == tuple(d for d in ranking.docids if d not in head)


def test_more_picks_only_add(make: Callable[..., GreedyStage], index: PositionalIndex) -> None:
    ranking = samples.ranking(3, N)
    orders = [make(index, k=k)(ranking).docids[:k] for k in range(1, N + 1)]
    assert all(orders[-1][:k] == orders[k - 1] for k in range(1, N + 1))
    assert orders[-1] != ranking.docids


def test_small_and_foreign_rankings(make: Callable[..., GreedyStage], index: PositionalIndex) -> None:
    stage = make(index)
    empty = Ranking("q", "", (), np.empty(0))
    assert stage(empty) == empty
    for docids in (("d3",), ("elsewhere",), ("elsewhere", "d3", "nowhere")):
        ranking = Ranking("q", "", docids, np.zeros(len(docids)))
        assert sorted(stage(ranking).docids) == sorted(docids)


def test_is_the_same_on_any_number_of_threads(make: Callable[..., GreedyStage], index: PositionalIndex) -> None:
    rankings = [samples.ranking(seed, N, f"q{seed}") for seed in range(6)]
    one = run_step(make(index), rankings, n_jobs=1)
    assert one.rankings == run_step(make(index), rankings, n_jobs=4).rankings
    assert one.rankings == run_step(make(index), rankings[::-1]).rankings[::-1]


def test_composes(make: Callable[..., GreedyStage], index: PositionalIndex) -> None:
    ranking = samples.ranking(4, N)
    pipeline = Random(1) >> make(index)
    assert isinstance(pipeline, Pipeline)
    assert pipeline(ranking) == make(index)(Random(1)(ranking))


def test_bad_cutoffs(make: Callable[..., GreedyStage], index: PositionalIndex) -> None:
    for options in ({"k": 0}, {"depth": 0}):
        with pytest.raises(ParameterError, match="at least 1"):
            make(index, **options)


def test_random_depends_on_seed_and_query() -> None:
    ranking = samples.ranking(0, N)
    orders = {Random(seed)(replace(ranking, qid=qid)).docids for seed in (0, 1) for qid in ("a", "b")}
    assert len(orders) == 4
    with pytest.raises(ParameterError, match="not -1"):
        Random(-1)


def test_known_subtopics_bounds_the_others(index: PositionalIndex) -> None:
    ranking = samples.ranking(5, N)

    def loss(stage: GreedyStage) -> float:
        return Subtopics.from_qrels(stage(ranking).docids, QRELS["q"]).loss(np.arange(3))

    losses = {name: loss(make(index, k=3)) for name, make in STAGES.items()}
    assert losses["known-subtopics"] == min(losses.values()) < max(losses.values())


def test_svmdiv_asks_for_its_collection(index: PositionalIndex) -> None:
    model = replace(MODEL, fingerprint=index.fingerprint)
    SVMDiv(model, index)
    other = samples.index(2, N)
    with pytest.raises(ModelError, match="trained on another collection"):
        SVMDiv(model, other)
    SVMDiv(model, other, transfer=True)


def test_svmdiv_asks_for_titles_and_uses_them(index: PositionalIndex) -> None:
    titles = samples.texts(1, N)[1]
    weights = [1.0 if name.startswith("title") else 0.0 for name in MODEL.features.names]
    model = replace(MODEL, titles=True, weights=(tuple(weights),))
    with pytest.raises(ModelError, match="trained with titles"):
        SVMDiv(model, index)
    ranking = samples.ranking(6, N)
    assert SVMDiv(model, index, titles)(ranking).docids != ranking.docids
    # Trained without titles, a model has learned nothing about them.
    assert SVMDiv(replace(model, titles=False), index, titles)(ranking).docids == ranking.docids


def test_presets_serve_as_stages(index: PositionalIndex) -> None:
    for features in PRESETS.values():
        model = DiversityModel(features, ((1.0,) * features.n_features,), k=5)
        assert sorted(SVMDiv(model, index)(samples.ranking(0, N)).docids) == sorted(samples.ranking(0, N).docids)


def test_svmdiv_takes_one_model(index: PositionalIndex) -> None:
    with pytest.raises(ModelError, match=r"ensemble of 3: use all of it \(CSSVM, --method cssvm\), or one of"):
        SVMDiv(ENSEMBLE, index)


def test_members_rank_as_models_of_their_own(index: PositionalIndex) -> None:
    rankings = [samples.ranking(seed, N, f"q{seed}") for seed in range(6)]
    stage = CSSVM(ENSEMBLE, index, depth=10, k=4)
    runs = stage.member_runs(Run(tuple(rankings)), tag="x")
    assert [run.tag for run in runs] == ["x-1", "x-2", "x-3"]
    for run, model in zip(runs, ENSEMBLE.members, strict=True):
        assert run.rankings == run_step(SVMDiv(model, index, depth=10, k=4), rankings).rankings
    assert len({run.rankings[0].docids for run in runs}) == 3
    assert stage.member_runs(Run(tuple(rankings)), n_jobs=4, tag="x") == runs
    assert stage.member_runs(Run(())) == tuple(Run((), f"cssvm-{m}") for m in (1, 2, 3))


def test_cssvm_fuses_its_members(index: PositionalIndex) -> None:
    """By the definition, document by document; ties in the incoming order."""
    stage = CSSVM(ENSEMBLE, index, depth=12, k=5)
    for seed in range(8):
        ranking = samples.ranking(seed, N)
        members = stage.member_rankings(ranking)
        score = {d: sum(Fraction(1, 61 + member.docids.index(d)) for member in members) for d in ranking.docids}
        fused = stage(ranking)
        assert (fused.qid, fused.query) == (ranking.qid, ranking.query)
        assert fused.docids == tuple(sorted(ranking.docids, key=lambda d: (-score[d], ranking.docids.index(d))))
        assert fused.scores.tolist() == [pytest.approx(float(score[d]), rel=1e-14) for d in fused.docids]
        assert fused.docids[12:] == ranking.docids[12:]


def test_ties_of_members_go_to_the_better_rank(index: PositionalIndex) -> None:
    """Two members that pick in opposite order."""
    model = replace(ENSEMBLE, weights=(MODEL.weights[0], tuple(-weight for weight in MODEL.weights[0])))
    for seed in range(8):
        ranking = samples.ranking(seed, N).head(2)
        assert CSSVM(model, index)(ranking).docids == ranking.docids


def test_an_ensemble_of_one_is_its_model(index: PositionalIndex) -> None:
    ranking = samples.ranking(7, N)
    assert CSSVM(MODEL, index)(ranking).docids == SVMDiv(MODEL, index)(ranking).docids
    empty = Ranking("q", "", (), np.empty(0))
    assert CSSVM(ENSEMBLE, index)(empty) == empty
    assert isinstance(Random(1) >> CSSVM(ENSEMBLE, index), Pipeline)


def test_cssvm_asks_for_what_svmdiv_asks_for(index: PositionalIndex) -> None:
    with pytest.raises(ModelError, match="trained on another collection"):
        CSSVM(replace(ENSEMBLE, fingerprint="else"), index)
    with pytest.raises(ModelError, match="trained with titles"):
        CSSVM(replace(ENSEMBLE, titles=True), index)
    for options in ({"k": 0}, {"depth": 0}):
        with pytest.raises(ParameterError, match="at least 1"):
            CSSVM(ENSEMBLE, index, **options)  # type: ignore[arg-type]
