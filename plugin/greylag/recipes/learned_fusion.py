"""Learned fusion: weights for runs, learned from judged topics. It needs no index.

With m_j(d) the score of document d in run j, scaled to [0, 1] over the documents that the run has for the topic, and
r_j(d) its rank there, from 1,

    score(d) = sum over runs j of a_j m_j(d) + b_j 60 / (60 + r_j(d)),

in which a run that lacks the document adds nothing. `ListwiseRegression` finds a and b.

References
----------
Bruch, Gai and Ingber, An analysis of fusion functions for hybrid retrieval, ACM TOIS 2023 (a learned sum of scaled
scores is better than reciprocal ranks, and few judgements are enough).
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from greylag import __version__
from greylag.errors import ParameterError
from greylag.evaluation import Scores, parse_measure
from greylag.evaluation.folds import split_folds, without
from greylag.fusion import FUSIONS, Fusion, fusion_columns
from greylag.learning.data import Judgements, RankingData, linear_scores, positive_grades
from greylag.learning.extraction import judged_topics
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.listwise import ListwiseRegression
from greylag.rankers.fusion_model import LEARNED, FusionModel
from greylag.ranking import FloatArray, IntArray, Ranking, Run
from greylag.trec import at_level
from greylag.trec.runs import JoinedRuns, RunFile

DEPTH = 100
"""The documents that are learned from: those that some run has at this rank or above."""
MIN_TOPICS = 3
"""The fewest topics to learn from: one is learned from, another tried, and two differ by chance."""
MIN_TOPICS_TO_CHOOSE = 25
"""Below this many topics, the learned fusion is always used."""
LEAD_IN_ERRORS = 2.0
"""The standard errors by which the other has to be better in cross-validation."""
FOLDS = 5
"""Folds of the cross-validation that compares fusions."""
MAX_BYTES = 1 << 27
"""Bytes of columns to learn from. With more, every second topic is left out, then three of four, and so on."""
_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class HeldOutFusion:
    """A `Fusion` that ranks each topic by a model that was learned without it.

    Parameters
    ----------
    by_qid : mapping of str to FusionModel
        The model of the other folds, for each topic that was learned from.
    others : FusionModel
        The model of all folds, for the other topics.
    """

    by_qid: Mapping[str, FusionModel]
    others: FusionModel

    def __call__(self, rankings: Sequence[Ranking], /) -> Ranking:
        """Fuse a query's rankings."""
        return self.by_qid.get(rankings[0].qid, self.others)(rankings)


class LearnedFusion(NamedTuple):
    """A learned fusion, and what cross-validation says of it.

    Parameters
    ----------
    model : FusionModel
        Learned from all topics.
    held_out : HeldOutFusion or None
        None without folds.
    scores : mapping of str to Scores
        The measure for each run and each of `greylag.fusion.FUSIONS` by its name, and for "learned" when each topic is
        held out. With folds, the choice is held out, too, and all documents of all judged topics count; without, the
        topics and documents that are learned from.
    """

    model: FusionModel
    held_out: HeldOutFusion | None
    scores: Mapping[str, Scores]

    @property
    def queries(self) -> tuple[str, ...]:
        """The topics whose scores are known."""
        return self.scores[LEARNED].qids

    @property
    def best_run(self) -> str:
        """The run with the highest mean, which is favoured by being chosen on the judgements that it is scored with."""
        return max(self.model.runs, key=lambda name: float(self.scores[name].means[0]))


def learn_fusion(
    runs: Sequence[Run | RunFile] | Mapping[str, Run | RunFile],
    qrels: Judgements,
    measure: Objective | str = "nDCG@10",
    *,
    folds: int | None = None,
    seed: int = 0,
    penalty: float | None = None,
) -> LearnedFusion:
    """Learn to fuse runs from judged topics.

    The weights are those of `ListwiseRegression` over the columns of `greylag.fusion.fusion_columns`, on the documents
    that some run has among its first 100. From 25 topics on, each fixed rule and each single run is compared with it in
    cross-validation over the topics; the best of them takes its place if it is better by two standard errors of the
    mean paired difference.

    Parameters
    ----------
    runs : sequence or mapping of str to Run or RunFile
        At least two, by the tags of runs in a sequence. A run may lack topics and documents.
    qrels : mapping of qid to docid to grade
        Topics are learned from if a run has a relevant document of theirs among its first 100; at least three.
    measure : Objective or str, default "nDCG@10"
        Its gains are learned from, and it chooses.
    folds : int >= 2, optional
        The number of folds in which topics are held out, of the choice as well; at most the number of topics.
    seed : int, default 0
        The seed of the split into folds.
    penalty : float > 0, optional
        See `ListwiseRegression`; 5 for two or three runs and 30 for more by default.

    Raises
    ------
    ParameterError
        With fewer than two runs or three topics, equal runs, or a run of constant scores or without these topics.

    Examples
    --------
    >>> fusion = learn_fusion({"bm25": bm25, "dense": dense}, qrels, folds=5)  # doctest: +SKIP
    >>> fuse_runs([bm25, dense], fusion.held_out, tag="held-out")  # doctest: +SKIP
    """
    named = _named(runs)
    objective, joined = Objective.parse(measure), JoinedRuns(tuple(named.values()))
    objective = objective.on_scale_of(grade for qid in joined for grade in qrels.get(qid, {}).values())
    levelled = at_level(qrels, objective.rel)
    judged = {qid: levelled[qid] for qid in judged_topics(joined, qrels, objective.rel)}
    learner = ListwiseRegression(objective, penalty=penalty or (5.0 if len(named) < 4 else 30.0))
    topics = _Topics.gather(tuple(named), joined, judged, learner, seed)
    qids = topics.data.qids
    if len(qids) < MIN_TOPICS:
        raise ParameterError(
            f"{len(qids)} topics with a relevant document in a run's first {DEPTH} are too few to learn a fusion from: "
            f"what they prefer may be chance; judge at least {MIN_TOPICS}, or fuse without judgements"
        )
    _check_runs(named, topics.data)
    if folds is None:
        values, measured = topics.values(qids), parse_measure(str(objective))
        # On what was learned from: without folds, no file is read a second time.
        scores = {
            name: Scores.single(measured, dict(zip(qids, of_one.tolist(), strict=True)))
            for name, of_one in values.items()
        }
        return LearnedFusion(_noted(topics.model(qids, values), min(FOLDS, len(qids)), scores), None, scores)
    by_qid = dict[str, FusionModel]()
    for part in split_folds(qids, folds, seed):
        by_qid |= dict.fromkeys(part, topics.model(without(qids, part)))
    held_out = HeldOutFusion(by_qid, topics.model(qids))
    scores = _scores(tuple(named), joined, judged, objective, held_out)
    return LearnedFusion(_noted(held_out.others, folds, scores), held_out, scores)


@dataclass(frozen=True)
class _Topics:
    """The judged topics: what is learned from, and the measure by the systems that learn nothing."""

    names: tuple[str, ...]
    data: RankingData
    fixed: Mapping[str, FloatArray]  # shape (q,), by name of run or rule
    learner: ListwiseRegression
    seed: int

    @classmethod
    def gather(
        cls, names: tuple[str, ...], joined: JoinedRuns, judged: Judgements, learner: ListwiseRegression, seed: int
    ) -> _Topics:
        """Read the runs, and keep as many topics as there is room for, at equal distances."""
        objective, kept, step, number, taken = Objective.parse(learner.objective), list[_Topic](), 1, 0, 0
        for rankings in joined.rankings:
            if (judgements := judged.get(rankings[0].qid)) is None:
                continue
            docids, columns = fusion_columns(rankings)
            # Odd columns are 60 / (60 + rank): the documents that some run has at `DEPTH` or above.
            near = np.flatnonzero((columns[:, 1::2] >= 60 / (60 + DEPTH)).any(axis=1))
            grades = np.array([judgements.get(docids[row], 0) for row in near], dtype=np.int64)
            if not (objective.rel <= grades).any():
                continue
            number += 1
            if (number - 1) % step:
                continue
            known = tuple(docids[row] for row in near)
            fixed = _values(_systems(names), rankings, judgements, objective, frozenset(known))
            relevant = positive_grades(judgements.values())
            kept.append(_Topic(rankings[0].qid, known, columns[near], grades, relevant, fixed))
            taken += kept[-1].columns.nbytes
            # Each doubling drops every second of the topics so far, and of those to come: distances stay equal, and the
            # number of topics need not be known beforehand.
            if taken > MAX_BYTES and len(kept) > 2 * MIN_TOPICS_TO_CHOOSE:
                step, kept = 2 * step, kept[::2]
                taken = sum(topic.columns.nbytes for topic in kept)
        if step > 1:
            _log.info("learned from %d of %d topics, at equal distances: more do not fit the memory", len(kept), number)
        specs = tuple(f"{name}:{what}" for name in names for what in ("score", "rank"))
        data = RankingData(
            specs, tuple(topic.qid for topic in kept), np.cumsum([0, *(len(topic.docids) for topic in kept)]),
            tuple(docid for topic in kept for docid in topic.docids),
            np.concatenate([np.empty((0, len(specs))), *(topic.columns for topic in kept)]),
            np.concatenate([np.empty(0, dtype=np.int64), *(topic.grades for topic in kept)]),
            tuple(topic.relevant for topic in kept),
        )  # fmt: skip
        fixed_values = {name: np.array([topic.fixed[name] for topic in kept]) for name in _systems(names)}
        return cls(names, data, fixed_values, learner, seed)

    def weights(self, qids: Sequence[str]) -> FloatArray:
        """Learn the weights from these topics, shape (2 runs,)."""
        return self.learner.fit(self.data.select_queries(qids)).over(self.data)

    def values(self, qids: Sequence[str]) -> dict[str, FloatArray]:
        """Evaluate each topic, shape (q,), by all systems; by the learned when the topic is held out."""
        objective, learned = Objective.parse(self.learner.objective), dict[str, float]()
        for part in split_folds(qids, min(FOLDS, len(qids)), self.seed):
            test, weights = self.data.select_queries(part), self.weights(without(qids, part))
            of_part = objective.evaluate(test, linear_scores(test, range(len(weights)), weights))
            learned |= dict(zip(part, of_part.tolist(), strict=True))
        numbers = {qid: number for number, qid in enumerate(self.data.qids)}
        rows = [numbers[qid] for qid in qids]
        fixed = {name: values[rows] for name, values in self.fixed.items()}
        return {**fixed, LEARNED: np.array([learned[qid] for qid in qids])}

    def model(self, qids: Sequence[str], values: Mapping[str, FloatArray] | None = None) -> FusionModel:
        """Make the model of these topics, chosen by the values of cross-validation over them."""
        chosen = LEARNED if len(qids) < MIN_TOPICS_TO_CHOOSE else chosen_system(values or self.values(qids))
        provenance = {
            "greylag": __version__, "learner": type(self.learner).__name__, "penalty": self.learner.penalty,
            "queries": list(qids), "chosen": chosen,
        }  # fmt: skip
        model = FusionModel(
            self.names, LEARNED, ((0.0, 0.0),) * len(self.names), str(self.learner.objective), provenance
        )
        if chosen in FUSIONS:
            return replace(model, method=chosen, weights=())
        if chosen in self.names:  # by its ranks alone, which are its order
            return replace(model, weights=tuple((0.0, float(name == chosen)) for name in self.names))
        pairs: Any = tuple(map(tuple, self.weights(qids).reshape(-1, 2).tolist()))
        return replace(model, weights=pairs)


class _Topic(NamedTuple):
    """A topic's documents that are learned from."""

    qid: str
    docids: tuple[str, ...]
    columns: FloatArray
    grades: IntArray
    relevant: IntArray  # grades of all relevant documents
    fixed: Mapping[str, float]


def chosen_system(values: Mapping[str, FloatArray]) -> str:
    """Return the system with the highest mean of the values (q,), if it beats the learned by two standard errors."""
    best = max((name for name in values if name != LEARNED), key=lambda name: float(values[name].mean()))
    gains = values[best] - values[LEARNED]
    return best if gains.mean() > LEAD_IN_ERRORS * gains.std(ddof=1) / np.sqrt(len(gains)) else LEARNED


def _systems(names: Sequence[str]) -> dict[str, Fusion]:
    """List the systems that learn nothing: each run alone, and each rule."""
    return {**{name: itemgetter(number) for number, name in enumerate(names)}, **FUSIONS}


def _scores(
    names: Sequence[str], joined: JoinedRuns, judged: Judgements, objective: Objective, held_out: HeldOutFusion
) -> dict[str, Scores]:
    """Evaluate each judged topic by each system, over all documents."""
    systems: dict[str, Fusion] = {**_systems(names), LEARNED: held_out}
    values: dict[str, dict[str, float]] = {name: {} for name in systems}
    for rankings in joined.rankings:
        qid = rankings[0].qid
        if qid not in judged:
            continue
        for name, value in _values(systems, rankings, judged[qid], objective).items():
            values[name][qid] = value
    measure = parse_measure(str(objective))
    return {name: Scores.single(measure, of_one) for name, of_one in values.items()}


def _values(
    systems: Mapping[str, Fusion],
    rankings: Sequence[Ranking],
    judgements: Mapping[str, int],
    objective: Objective,
    among: Collection[str] | None = None,
) -> dict[str, float]:
    """Evaluate a topic by each system, over all documents or those that are named."""
    ranked = [
        [docid for docid in fuse(rankings).docids if among is None or docid in among][: objective.depth]
        for fuse in systems.values()
    ]
    # Each system's ranking stands as a query, so that one call evaluates all of them.
    docids = tuple(chain.from_iterable(ranked))
    data = RankingData(
        (), tuple(systems), np.cumsum([0, *map(len, ranked)]), docids, np.empty((len(docids), 0)),
        np.array([judgements.get(docid, 0) for docid in docids], dtype=np.int64),
        (positive_grades(judgements.values()),) * len(systems),
    )  # fmt: skip
    values = objective.evaluate(data, -np.arange(float(len(docids))))
    return dict(zip(systems, values.tolist(), strict=True))


def _noted(model: FusionModel, folds: int, scores: Mapping[str, Scores]) -> FusionModel:
    held_out = {"folds": folds, **scores[LEARNED].by_measure}
    return replace(model, provenance={**model.provenance, "held_out": held_out})


def _named(runs: Sequence[Run | RunFile] | Mapping[str, Run | RunFile]) -> dict[str, Run | RunFile]:
    """Name the runs."""
    given = [*runs.items()] if isinstance(runs, Mapping) and not isinstance(runs, Run) else [(r.tag, r) for r in runs]
    if len(given) < 2:
        raise ParameterError(f"fusion is learned for two runs or more, not for {len(given)}")
    named = dict(given)
    if len(named) < len(given):
        twice = next(name for name, _ in given if [other for other, _ in given].count(name) > 1)
        raise ParameterError(f"two runs have the tag {twice!r}: pass a mapping from names to runs")
    if taken := [name for name in named if name in (LEARNED, *FUSIONS)]:
        raise ParameterError(f"{taken[0]!r} is a method of fusion: give the run another name")
    return named


def _check_runs(named: Mapping[str, Run | RunFile], data: RankingData) -> None:
    """Refuse runs that cannot be told apart or rank by nothing; tell which lack topics."""
    seen: dict[bytes, str] = {}
    topics = dict.fromkeys(qid for run in named.values() for qid in run)
    for number, (name, run) in enumerate(named.items()):
        scores, ranks = data.features[:, 2 * number], data.features[:, 2 * number + 1]
        if not ranks.any():
            raise ParameterError(
                f"{name} has no documents for the topics to learn from (its first is {next(iter(run), None)!r}, theirs "
                f"{data.qids[0]!r}): leave it out"
            )
        if not scores.any() and np.add.reduceat(ranks > 0, data.offsets[:-1], dtype=int).max() > 1:
            raise ParameterError(f"{name} gives all documents of a topic one score: it ranks by nothing, leave it out")
        twin = seen.setdefault(data.features[:, 2 * number : 2 * number + 2].tobytes(), name)
        if twin != name:
            raise ParameterError(f"{twin} and {name} are the same run: give it once")
        known_topics = set(run)
        if lacking := [qid for qid in topics if qid not in known_topics]:
            what = f"{name} lacks {len(lacking)} of {len(topics)} topics, such as {lacking[0]!r}"
            _log.warning("%s: they are fused from the other runs", what)
