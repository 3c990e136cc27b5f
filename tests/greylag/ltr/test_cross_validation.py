"""Cross-validation over queries."""

from __future__ import annotations

import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.features.weighting import FeatureParameters
from greylag.ltr.cross_validation import cross_validate, rerank_by_fold, split_folds
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.training import train, training_data
from greylag.ranking import Ranking, Run
from tests.greylag.ltr.phrases import collection, rankings

INDEX = collection()
RANKED, QRELS = rankings(INDEX)
FIRST = Run(tuple(RANKED))
EXTRACTOR = FeatureExtractor(INDEX, candidate_pool(("SD",)))
LEARNER = GreedySelection("AP", max_features=2)


@pytest.mark.parametrize("preselection", [None, MMRPreselection(4)])
def test_each_query_is_reranked_by_a_model_of_the_other_folds(preselection: MMRPreselection | None) -> None:
    messages: list[str] = []
    found = cross_validate(
        RANKED, QRELS, EXTRACTOR, LEARNER, preselection=preselection, folds=3, seed=4, tag="cv",
        provenance={"name": "x"}, progress=messages.append,
    )  # fmt: skip
    assert [list(fold) for fold in found.folds] == split_folds(list(FIRST), 3, 4)
    assert (list(found.run), found.run.tag) == (list(FIRST), "cv")
    data = training_data(RANKED, QRELS, EXTRACTOR)
    for number, (fold, model) in enumerate(zip(found.folds, found.models, strict=True), 1):
        own = data.select_queries([qid for qid in data.qids if qid not in fold])
        candidates = own if preselection is None else preselection.select(own)
        alone = train(candidates, LEARNER)
        assert (model.features, model.weights) == (alone.features, alone.weights)
        assert not set(model.provenance["queries"]) & set(fold)
        assert {key: model.provenance[key] for key in ("name", "fold", "folds", "seed")} == {
            "name": "x", "fold": number, "folds": 3, "seed": 4,
        }  # fmt: skip
        assert model.provenance.get("preselect") == (None if preselection is None else "mmr:4")
        for qid in fold:
            assert found.run[qid] == MRFRanker(model, INDEX)(FIRST[qid])
        assert messages[number - 1].startswith(f"fold {number}: AP {model.training_scores[-1]:.4f} on {len(own.qids)} ")
    assert len(found.selecting) == len(found.training) == 3
    assert min(found.training) > 0
    again = cross_validate(
        FIRST, QRELS, EXTRACTOR, LEARNER, preselection=preselection, folds=3, seed=4, tag="cv",
        provenance={"name": "x"}, data=data, n_jobs=2,
    )  # fmt: skip
    assert again == found


def test_data_of_another_extractor_is_refused() -> None:
    other = FeatureExtractor(INDEX, EXTRACTOR.specs, FeatureParameters(mu=5.0))
    with pytest.raises(ParameterError, match="data was not extracted by this extractor"):
        cross_validate(FIRST, QRELS, EXTRACTOR, LEARNER, data=training_data(RANKED, QRELS, other))


def test_reranking_by_fold_keeps_the_order_of_queries() -> None:
    def reverse(ranking: Ranking) -> Ranking:
        return ranking.permute(range(len(ranking))[::-1])

    def keep(ranking: Ranking) -> Ranking:
        return ranking

    run = rerank_by_fold([keep, reverse], [["3", "1"], ["2"]], FIRST, tag="x")
    assert (list(run), run.tag) == (["1", "2", "3"], "x")
    assert run["2"].docids == FIRST["2"].docids[::-1]
    assert run["3"] == FIRST["3"]


def test_folds_partition_the_queries_evenly() -> None:
    qids = [str(i) for i in range(23)]
    folds = split_folds(qids, 5, seed=3)
    assert sorted(qid for fold in folds for qid in fold) == sorted(qids)
    assert {len(fold) for fold in folds} == {4, 5}
    assert split_folds(qids, 5, seed=3) == folds != split_folds(qids, 5, seed=4)
    with pytest.raises(ParameterError, match="23 queries cannot be split into 24 folds"):
        split_folds(qids, 24, seed=0)
