"""SVM-div and its ensembles as stages."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from greylag.diversity import CSSVM, PRESETS, DiversityModel, RandomOrder, SVMDiv
from greylag.errors import ModelError
from greylag.index.positional import PositionalIndex
from greylag.pipeline import Pipeline, run_step
from greylag.ranking import Ranking, Run
from tests.greylag.diversity import samples

N = 15


@pytest.fixture(scope="module")
def index() -> PositionalIndex:
    return samples.index(1, N)


@pytest.mark.parametrize(("stage", "model"), [(SVMDiv, samples.MODEL), (CSSVM, samples.ENSEMBLE)])
def test_requires_the_training_collection_and_titles(
    stage: type[SVMDiv | CSSVM], model: DiversityModel, index: PositionalIndex
) -> None:
    model, other = replace(model, fingerprint=index.fingerprint), samples.index(2, N)
    stage(model, index)
    with pytest.raises(ModelError, match="trained on another collection"):
        stage(model, other)
    stage(model, other, transfer=True)
    with pytest.raises(ModelError, match="trained with titles"):
        stage(replace(model, titles=True), index)


def test_uses_titles(index: PositionalIndex) -> None:
    titles = samples.texts(1, N)[1]
    weights = [1.0 if name.startswith("title") else 0.0 for name in samples.MODEL.features.names]
    model = replace(samples.MODEL, titles=True, weights=(tuple(weights),))
    ranking = samples.ranking(6, N)
    assert SVMDiv(model, index, titles=titles)(ranking).docids != ranking.docids
    # A model trained without titles ignores them.
    assert SVMDiv(replace(model, titles=False), index, titles=titles)(ranking).docids == ranking.docids


def test_presets(index: PositionalIndex) -> None:
    for features in PRESETS.values():
        model = DiversityModel(features, ((1.0,) * features.n_features,), k=5)
        assert sorted(SVMDiv(model, index)(samples.ranking(0, N)).docids) == sorted(samples.ranking(0, N).docids)


def test_rejects_ensembles(index: PositionalIndex) -> None:
    with pytest.raises(ModelError, match=r"ensemble of 3: use all of it \(CSSVM, --stage cssvm\), or one of"):
        SVMDiv(samples.ENSEMBLE, index)


def test_members_rank_like_single_models(index: PositionalIndex) -> None:
    rankings = [samples.ranking(seed, N, f"q{seed}") for seed in range(6)]
    stage = CSSVM(samples.ENSEMBLE, index, depth=10, k=4)
    runs = stage.member_runs(Run(tuple(rankings)), tag="x")
    assert [run.tag for run in runs] == ["x-1", "x-2", "x-3"]
    for run, model in zip(runs, samples.ENSEMBLE.members, strict=True):
        assert run.rankings == run_step(SVMDiv(model, index, depth=10, k=4), rankings).rankings
    assert len({run.rankings[0].docids for run in runs}) == 3
    assert stage.member_runs(Run(tuple(rankings)), n_jobs=4, tag="x") == runs
    assert stage.member_runs(Run(())) == tuple(Run((), f"cssvm-{m}") for m in (1, 2, 3))


def test_cssvm_fuses_its_members(index: PositionalIndex) -> None:
    """Ties keep the incoming order."""
    stage = CSSVM(samples.ENSEMBLE, index, depth=12, k=5)
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
    """Two members pick in opposite order."""
    model = replace(
        samples.ENSEMBLE, weights=(samples.MODEL.weights[0], tuple(-weight for weight in samples.MODEL.weights[0]))
    )
    for seed in range(8):
        ranking = samples.ranking(seed, N).head(2)
        assert CSSVM(model, index)(ranking).docids == ranking.docids


def test_an_ensemble_of_one_is_svmdiv(index: PositionalIndex) -> None:
    ranking = samples.ranking(7, N)
    assert CSSVM(samples.MODEL, index)(ranking).docids == SVMDiv(samples.MODEL, index)(ranking).docids
    empty = Ranking("q", "", (), np.empty(0))
    assert CSSVM(samples.ENSEMBLE, index)(empty) == empty
    assert isinstance(RandomOrder(1) >> CSSVM(samples.ENSEMBLE, index), Pipeline)
