"""The shipped checks find each fault in a stage, a learner or a feature that has one, and none in one that has none."""

from dataclasses import dataclass, field, make_dataclass, replace
from threading import Lock
from typing import Any

import numpy as np
import pytest

from greylag.base import ParameterError, Ranking, Stage
from greylag.features import PythonFeature, Score
from greylag.learning import GreedySelection, Objective
from greylag.learning.learner import after_each_round
from greylag.testing import check_feature, check_learner, check_stage
from tests.greylag.diversity import samples

RANKINGS = [samples.ranking(seed, 12, f"q{seed}") for seed in range(4)]
INDEX = samples.index(1, 12)


@dataclass(frozen=True)
class Reversed(Stage):
    """A stage without a fault: it turns the known documents around."""

    reads_query = False

    def __call__(self, ranking):
        known = np.array([docid.startswith("d") for docid in ranking.docids], dtype=bool)
        return self.rerank_known(ranking, known, lambda given: given.rescore(-given.scores))


@dataclass(frozen=True)
class MovesOthers(Reversed):
    def __call__(self, ranking):
        """Places count, whose numbers depend on documents that it does not know."""
        return ranking.rescore([place % 2 for place in range(len(ranking))])


def faulty(*given, fields=(), base=Reversed, **members):
    """A stage with these parameters and members."""
    kind = make_dataclass("Faulty", fields, bases=(base,), namespace=members, frozen=base is Reversed)
    return kind(*given)


def calling(call, *fields):
    return faulty(__call__=call, fields=fields)


def every_other_time(self, ranking):
    self.calls.append(ranking.qid)
    return Reversed.__call__(self, ranking) if len(self.calls) % 2 else ranking


def first_query_alone(self, ranking):
    number = self.seen.setdefault(ranking.qid, len(self.seen))
    return ranking if number == 0 else Reversed.__call__(self, ranking)


def above_1(self):
    if self.weight < 1:
        raise ParameterError("too weak")


STAGES = [
    (
        calling(lambda self, ranking: Reversed.__call__(self, ranking) if ranking.query else ranking),
        "ranks differently without the query's text",
    ),
    (calling(lambda self, ranking: ranking.head(5)), "does not return the documents"),
    (
        calling(lambda self, ranking: Ranking("other", ranking.query, ranking.docids, ranking.scores)),
        "changes the query",
    ),
    (calling(lambda self, ranking: None), "returns a NoneType"),
    (MovesOthers(), "that it knows nothing about"),
    (calling(every_other_time, ("calls", list, field(default_factory=list))), "differently the second time"),
    (calling(first_query_alone, ("seen", dict, field(init=False, default_factory=dict))), "in another order"),
    (faulty(fields=[("lock", Any, field(default_factory=Lock))]), "cannot be sent to another process"),
    (faulty(base=Stage, __call__=Reversed.__call__), "is not frozen"),
    (faulty(needs=frozenset({"money"})), "money"),
    (faulty(needs=frozenset({"index"})), "index', which is not a parameter"),
    (faulty({}, fields=["groups"]), "needs has to name it"),
    (faulty(fields=[("groups", Any, None)], needs=frozenset({"groups"})), "how to read groups"),
    (faulty(strength="power"), "strength has 'power'"),
    (faulty(fields=[("weight", float, 2.0)], strength="weight", __post_init__=above_1), "refuses weight=0"),
    (
        faulty(scored=lambda self, ranking: Ranking(ranking.qid, ranking.query, ("new",), np.zeros(1))),
        "scored adds documents",
    ),
]


def test_a_stage_without_a_fault():
    check_stage(Reversed(), RANKINGS)
    check_stage(MovesOthers(), RANKINGS, knows_all=True)


@pytest.mark.parametrize(("stage", "fault"), STAGES)
def test_faults_of_stages(stage, fault):
    with pytest.raises(AssertionError, match=fault):
        check_stage(stage, RANKINGS)


@dataclass(frozen=True)
class Optimist(GreedySelection):
    def fit(self, data, *, n_jobs=None):
        found = super().fit(data, n_jobs=n_jobs)
        return replace(found, training_scores=tuple(score + 0.1 for score in found.training_scores))


@dataclass(frozen=True)
class Declines(GreedySelection):
    def fit(self, data, *, n_jobs=None):
        found = super().fit(data, n_jobs=n_jobs)
        last = tuple(-weight for weight in found.history[-1])
        worse = replace(found, history=(*found.history[:-1], last))
        means = after_each_round(worse, data, Objective.parse("AP")).mean(axis=1)
        return replace(worse, training_scores=tuple(means.tolist()))


@dataclass(frozen=True)
class ByThreads(GreedySelection):
    def fit(self, data, *, n_jobs=None):
        return super().fit(data).head(n_jobs or 1)


@dataclass(frozen=True)
class Centres(GreedySelection):
    def fit(self, data, *, n_jobs=None):
        data.features[:] -= data.features.mean(axis=0)
        return super().fit(data)


@pytest.mark.parametrize(
    ("learner", "fault"),
    [
        (Optimist("AP", max_features=2), "reports the training scores"),
        (Declines("AP", max_features=2), "reports training scores that fall"),
        (ByThreads("AP", max_features=3), "something else in 2 threads"),
        (Centres("AP", max_features=1), "changes the data"),
    ],
)
def test_faults_of_learners(learner, fault):
    check_learner(GreedySelection("AP", max_features=3))
    with pytest.raises(AssertionError, match=fault):
        check_learner(learner)


@dataclass(frozen=True)
class Unregistered(Score):
    form = "score"


NUMBERED = []


def numbers(ranking):
    """The next numbers, which depend on all calls before."""
    NUMBERED.extend(ranking.docids)
    return [*range(len(NUMBERED) - len(ranking), len(NUMBERED))]


class Locked:
    """An object that cannot be pickled."""

    def __init__(self):
        self.lock = Lock()

    def scores(self, ranking):
        return ranking


LOCKED = Locked()


@pytest.mark.parametrize(
    ("feature", "fault"),
    [
        (Unregistered(), "not read from its spelling"),
        (PythonFeature("x", numbers), "in another order of queries"),
        (PythonFeature("x", lambda ranking: np.full(len(ranking), len(ranking.query))), "reads the query"),
        (PythonFeature("x", lambda ranking: np.full(len(ranking), len(ranking))), "depends on the other documents"),
        (PythonFeature("x", LOCKED.scores), "cannot be sent to another process"),
    ],
)
def test_faults_of_features(feature, fault, monkeypatch):
    by_length = PythonFeature("length", lambda ranking: [len(docid) for docid in ranking.docids])
    for declared in ("reads_query", "uses_ranking"):
        monkeypatch.setattr(PythonFeature, declared, False)
    check_feature(by_length, INDEX, RANKINGS)
    with pytest.raises(AssertionError, match=fault):
        check_feature(feature, INDEX, RANKINGS)
