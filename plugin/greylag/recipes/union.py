"""The union of runs, to fuse by what is learned: its columns, their checks, and their weights."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace

import numpy as np

from greylag.base import ParameterError, Ranking, Run, as_run, check_sequences
from greylag.evaluation import FUSIONS, LEARNED, JoinedRuns, PooledRankings, RunFile, split_folds
from greylag.features import FusedRuns, run_columns
from greylag.learning import (
    Judgements,
    ListwiseRegression,
    Objective,
    RankingData,
    Selection,
    concatenated,
    positive_grades,
)
from greylag.recipes.choice import Candidate, System, choose, cross_folds, title
from greylag.recipes.fitted import Fitted
from greylag.recipes.recipe import selected_model

DEPTH = 100
"""The documents that are learned from: those that some run has at this rank or above."""
MIN_TOPICS_TO_CHOOSE = 25
"""Below this many topics, learned weights are always used; from it on, a fixed rule or a single run may be chosen."""
FOLDS = 5
"""Folds of the cross-validation that chooses."""
MAX_BYTES = 1 << 27
"""Bytes of columns to learn from. With more, every second topic is left out, then three of four, and so on."""
_log = logging.getLogger("greylag")


def named_runs(
    runs: Sequence[Run | RunFile] | Mapping[str, Run | RunFile], labels: Sequence[list[str]] = ()
) -> dict[str, Run | RunFile]:
    """Name runs by their tags, or by the first of the labels, each of all runs, without two alike."""
    if isinstance(runs, Mapping) and not isinstance(runs, Run):
        labels, runs = [[*runs]], [*runs.values()]
    check_sequences(runs=runs)
    parsed = [run if isinstance(run, RunFile) else as_run(run) for run in runs]
    # Rows of tables are named after runs, methods and the learned fusion, so that all of these differ.
    taken, possible = {*FUSIONS, LEARNED}, labels or [[run.tag for run in parsed]]
    names = next((some for some in possible if len(taken.union(some)) == len(taken) + len(some)), possible[-1])
    if len(parsed) < 2:
        raise ParameterError(f"fusion is learned for two runs or more, not for {len(parsed)}")
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ParameterError(f"{twice!r} names two runs: name them in a mapping, or as --run NAME=FILE")
    if method := next((name for name in names if name in (LEARNED, *FUSIONS)), None):
        raise ParameterError(f"{method!r} is a method of fusion: give the run another name")
    return dict(zip(names, parsed, strict=True))


def union_data(runs: Mapping[str, Run | RunFile], judged: Judgements, rel: int) -> RankingData:
    """Make the columns of each run and each rule, for as many judged topics as there is room for."""
    names = tuple(runs)
    features = (*run_columns(names), *(FusedRuns(method, names) for method in FUSIONS))
    topics, step, number, room = list[RankingData](), 1, 0, MAX_BYTES // (16 * len(names))
    for rankings in JoinedRuns(tuple(runs.values())).rankings:
        if (judgements := judged.get(rankings[0].qid)) is None:
            continue
        topic = _topic_data(rankings, judgements, names, features)
        if not (rel <= topic.grades).any():
            continue
        number += 1
        if (number - 1) % step:
            continue
        topics.append(topic)
        # Each doubling drops every second of the topics so far, and of those to come: distances stay equal, and the
        # number of topics need not be known beforehand.
        if sum(len(topic.docids) for topic in topics) > room and len(topics) > 2 * MIN_TOPICS_TO_CHOOSE:
            step, topics = 2 * step, topics[::2]
    if step > 1:
        _log.info("learned from %d of %d topics, evenly spaced: more do not fit in memory", len(topics), number)
    if not topics:
        raise ParameterError(f"no run has a relevant document among its first {DEPTH}")
    return concatenated(topics)


def _topic_data(
    rankings: Sequence[Ranking], judgements: Mapping[str, int], names: Sequence[str], features: tuple[FusedRuns, ...]
) -> RankingData:
    """Make the columns of a topic's documents that some run has at `DEPTH` or above."""
    pooled = PooledRankings(rankings)
    # Scores and ranks are of the whole rankings: a cut would change the scale of scores.
    near = np.flatnonzero((pooled.ranks <= DEPTH).any(axis=1))
    docids = tuple(map([*pooled.rows].__getitem__, near.tolist()))
    columns = np.column_stack([feature.of_pooled(pooled, names)[near] for feature in features])
    grades = np.array([judgements.get(docid, 0) for docid in docids], dtype=np.int64)
    relevant = (positive_grades(judgements.values()),)
    return RankingData(features, (rankings[0].qid,), np.array([0, len(docids)]), docids, columns, grades, relevant)


def constant_columns(data: RankingData) -> set[int]:
    """Return the columns that rank no query's documents."""
    return {column for column, reason in data.distinct[1].items() if reason.endswith("constant within every query")}


def check_runs(
    data: RankingData, columns: Mapping[str, Sequence[int]], topics_of: Callable[[str], Collection[str]]
) -> None:
    """Check that runs differ and rank by something; `columns` are each run's scores and, in a union, its ranks."""
    constant, seen = constant_columns(data), dict[bytes, str]()
    for name, own in columns.items():
        # Scaled scores reach 1 where two of a topic differ.
        if own[0] in constant if len(own) == 1 else data.features[:, own[0]].max() < 1:
            topics = topics_of(name)
            if not any(qid in topics for qid in data.qids):
                theirs = f"its first is {next(iter(topics), None)!r}, theirs {data.qids[0]!r}"
                raise ParameterError(f"{name}: no topic in common with the topics to learn from ({theirs})")
            # A single document per topic has a rank to learn from, though its score is on no scale.
            hits = np.add.reduceat(data.features[:, own[-1]] != 0, data.offsets[:-1], dtype=int)
            if len(own) == 1 or hits.max() != 1:
                raise ParameterError(
                    f"{name}: gives all documents of a topic one score, or has none of them: leave it out"
                )
        # Under another name, a run twice has twice the weight in sums, and its weights are arbitrary.
        twin = seen.setdefault(data.features[:, own].tobytes(), name)
        if twin != name:
            raise ParameterError(f"{name}: has the scores of {twin}: give each run once")


@dataclass(frozen=True)
class FusionWeights:
    """Learns weights of runs by listwise regression, or picks a rule or a single run that leads clearly."""

    objective: Objective | str
    _: KW_ONLY
    penalty: float | None = None
    seed: int = 0

    def weigh(self, data: RankingData, names: tuple[str, ...]) -> Fitted:
        """Fit to the data of these runs; of few topics, there is no choice."""
        penalty, objective = self.penalty, Objective.parse(self.objective)
        if penalty is None:
            penalty = 5.0 if len(names) < 4 else 30.0
        learner = ListwiseRegression(objective, penalty=penalty)
        fixed = {
            **{name: FusedRuns("rrf", (name,)) for name in names},  # as it would rank: others' documents follow its own
            **{method: FusedRuns(method, names) for method in FUSIONS},
        }
        candidates = {System(name): Candidate(System(name), (str(feature),), (1.0,)) for name, feature in fixed.items()}
        chosen, choice, alone = System(LEARNED), None, [*candidates]
        candidates[chosen] = Candidate(chosen, tuple(map(str, run_columns(names))), learner=learner)
        if len(data.qids) >= MIN_TOPICS_TO_CHOOSE:
            folds = cross_folds(data, split_folds(data.qids, FOLDS, self.seed))
            tried, usual = [*candidates.values()], (chosen,)
            choice = choose(folds, data.qids, tried, objective, baselines=alone, incumbent=usual, averages=False)
            (chosen,) = choice.chosen
        columns = data.columns_of(candidates[chosen].features)
        if chosen == System(LEARNED):  # of the first columns
            selection = learner.fit(data.select_features(columns))
        else:
            selection = Selection.of((1.0,), data, objective, columns)
        model = replace(selected_model(selection, data, learner, {}), runs=names)
        return Fitted.of(model, data.qids, (title((chosen,)),), choice=choice)
