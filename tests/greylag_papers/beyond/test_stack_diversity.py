"""Diversity after the stack."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from greylag import Ranking, Run
from greylag.diversity import MMR, SVMDiv, XQuAD
from greylag.evaluation import evaluate_by_subtopic
from greylag.features import FeatureParameters
from greylag.index import PositionalIndex
from greylag.ltr import LinearModel
from greylag.ltr.stack import TunedRM3
from greylag_papers.beyond.stack_systems import Diversifiers, Diversify, Fold

TOPICS = [[f"topic{t}word{w}" for w in range(3)] for t in range(4)]
RNG = np.random.default_rng(2)
TEXTS = {f"d{d:02d}": " ".join([*RNG.choice(TOPICS[d % 4], size=6), f"own{d}"]) for d in range(24)}
INDEX = PositionalIndex.from_texts(TEXTS)
QIDS = [f"q{q}" for q in range(9)]
RANKINGS = {
    qid: Ranking(qid, "words", tuple(sorted(TEXTS, key=lambda d: (int(d[1:]) % 4, d))), np.linspace(1, 0, 24))
    for qid in QIDS
}
SUBTOPICS = {qid: {str(t): {d: 1 for d in TEXTS if int(d[1:]) % 4 == t} for t in range(4)} for qid in QIDS}
ASPECTS = {qid: tuple(" ".join(words) for words in TOPICS) for qid in QIDS}
OPTION = Diversify(subtopic_qrels="unused", weights=(0.2, 0.9), depth=24, k=8)


@cache
def diversified(*, aspects: bool = True, wrong_tests: bool = False) -> Fold:
    """A fold that is trained on six queries; with `wrong_tests`, the judgements of the others are turned around."""
    subtopics = {
        qid: judged if qid in QIDS[:6] or not wrong_tests else {"0": {"d03": 1}} for qid, judged in SUBTOPICS.items()
    }
    fold = Fold(TunedRM3(FeatureParameters(), 0.5), LinearModel((), ()), {"stack": RANKINGS})
    Diversifiers(OPTION, subtopics, ASPECTS if aspects else {}, INDEX, 1).add(fold, QIDS[:6])
    return fold


def test_every_query_is_ranked_by_every_diversifier() -> None:
    found = diversified().rankings
    assert list(found) == ["stack", *(f"stack, then {name}" for name in ("MMR", "xQuAD", "PM-2", "SVM-div"))]
    for rankings in found.values():
        assert {qid: sorted(own.docids) for qid, own in rankings.items()} == dict.fromkeys(QIDS, sorted(TEXTS))
    assert list(diversified(aspects=False).rankings) == ["stack", "stack, then MMR", "stack, then SVM-div"]


def test_weights_are_the_best_on_training_queries() -> None:
    fold = diversified()
    for name, make in (
        ("MMR", lambda w: MMR(INDEX, relevance_weight=w, depth=24, k=8)),
        ("xQuAD", lambda w: XQuAD(INDEX, ASPECTS, relevance_weight=w, depth=24, k=8)),
    ):
        runs = {weight: make(weight).run(list(RANKINGS.values())) for weight in OPTION.weights}
        trained = {
            weight: evaluate_by_subtopic(run, {q: SUBTOPICS[q] for q in QIDS[:6]}, ["alpha-nDCG@10"]).means[0]
            for weight, run in runs.items()
        }
        best = max(trained, key=trained.__getitem__)
        assert fold.chosen[f"weight of {name}"] == best
        assert fold.rankings[f"stack, then {name}"] == dict(runs[best])


def test_svm_div_learns_the_weight_of_relevance_with_those_of_words() -> None:
    known = {qid: SUBTOPICS[qid] for qid in QIDS[:6]}
    learned = Diversifiers(OPTION, SUBTOPICS, {}, INDEX, 1).learned(RANKINGS, known)
    assert isinstance(learned, SVMDiv)
    assert learned.model.features.document_features == ("score",)
    provenance = learned.model.provenance
    assert sorted([*provenance["queries"], *provenance["validation"]]) == QIDS[:6]
    assert len(provenance["validation"]) == 2
    run = Run(tuple(diversified().rankings["stack, then SVM-div"].values()), "SVM-div")
    recall = evaluate_by_subtopic(run, SUBTOPICS, ["S-recall@4"]).means[0]
    assert recall == pytest.approx(1.0), "the incoming ranking has one subtopic on top"


def test_nothing_is_learned_from_the_test_queries() -> None:
    assert diversified().rankings == diversified(wrong_tests=True).rankings
    assert diversified().chosen == diversified(wrong_tests=True).chosen


def test_scores_of_what_was_ranked() -> None:
    runs = {system: Run(tuple(own.values()), "x") for system, own in diversified().rankings.items()}
    unranked = {"other": SUBTOPICS[QIDS[0]]}
    found = Diversifiers(OPTION, {**SUBTOPICS, **unranked}, {}, INDEX, 1).scores({"BM25": runs["stack"], **runs})
    assert list(found) == ["BM25", *runs]
    assert found["stack"].qids == tuple(QIDS)
    assert found["stack, then xQuAD"].means[0] > found["stack"].means[0]
