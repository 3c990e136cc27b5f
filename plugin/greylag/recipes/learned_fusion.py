"""Learned fusion: weights for runs, learned from judged topics. It needs no index.

With m_j(d) the score of document d in run j, scaled to [0, 1] over the documents that the run has for the topic, and
r_j(d) its rank there, from 1,

    score(d) = sum over runs j of a_j m_j(d) + b_j / (60 + r_j(d)),

in which a run that lacks the document adds nothing. `ListwiseRegression` finds a and b.

References
----------
Bruch, Gai and Ingber, An analysis of fusion functions for hybrid retrieval, ACM TOIS 2023 (a learned sum of scaled
scores is better than reciprocal ranks, and few judgements are enough).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from itertools import compress
from operator import itemgetter
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from greylag.core.checks import check_sequences
from greylag.core.foreign import as_qrels
from greylag.core.guidance import guided
from greylag.errors import ParameterError
from greylag.evaluation import Measure, Scores, evaluate, parse_measure
from greylag.evaluation.folds import fit_by_fold, split_folds
from greylag.features.fused_runs import FusedRuns, run_columns
from greylag.fusion import FUSIONS, LEARNED, Fusion, GivenRun, PooledRankings, PooledSources
from greylag.learning.data import Judgements, RankingData, positive_grades
from greylag.learning.extraction import judged_topics
from greylag.learning.learner import Selection
from greylag.learning.linesearch.objectives import Objective
from greylag.learning.listwise import ListwiseRegression
from greylag.rankers.model import RankingModel
from greylag.rankers.stages import FusionRanker
from greylag.ranking import FloatArray, IntArray, Query, Ranking, Run, as_run
from greylag.recipes.choice import Candidate, Choice, System, choose, cross_folds
from greylag.recipes.fitted import Fitted
from greylag.recipes.index_free import check_number
from greylag.recipes.recipe import Fit, Recipe, selected_model
from greylag.trec import at_level
from greylag.trec.runs import JoinedRuns, RunFile

DEPTH = 100
"""The documents that are learned from: those that some run has at this rank or above."""
MIN_TOPICS_TO_CHOOSE = 25
"""Below this many topics, learned weights are always used; from it on, a fixed rule or a single run may be chosen."""
FOLDS = 5
"""Folds of the cross-validation that chooses."""
MAX_BYTES = 1 << 27
"""Bytes of columns to learn from. With more, every second topic is left out, then three of four, and so on."""
_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class HeldOutFusion:
    """A `Fusion` that ranks each topic by a model that was learned without it.

    Parameters
    ----------
    by_qid : mapping of str to FusionRanker
        By the model of the other folds, for each topic that was learned from.
    others : FusionRanker
        By the model of all folds, for the other topics.
    """

    by_qid: Mapping[str, FusionRanker]
    others: FusionRanker

    @property
    def runs(self) -> tuple[str, ...]:
        """The names of the runs, in the order of the rankings to fuse."""
        return self.others.runs

    def __call__(self, rankings: Sequence[Ranking], /) -> Ranking:
        """Fuse a query's rankings."""
        return self.by_qid.get(rankings[0].qid, self.others)(rankings)


class LearnedFusion(NamedTuple):
    """A learned fusion, and its scores in cross-validation.

    Parameters
    ----------
    fitted : Fitted
        Learned from all topics.
    held_out : HeldOutFusion or None
        None without folds.
    scores : mapping of str to Scores
        The measure for each run and each of `greylag.fusion.FUSIONS` by its name, and for "learned" when each topic is
        held out. With folds, the choice is held out, too, and all documents of all judged topics count; without, the
        topics and documents that are learned from.
    """

    fitted: Fitted
    held_out: HeldOutFusion | None
    scores: Mapping[str, Scores]

    @property
    def model(self) -> RankingModel:
        """The model that was learned from all topics."""
        return self.fitted.model

    @property
    def best_run(self) -> str:
        """The run with the highest mean, which is favoured by being chosen on the judgements that it is scored with."""
        return max(self.model.runs, key=lambda name: float(self.scores[name].means[0]))


@guided
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

    The weights are those of `ListwiseRegression` over two columns a run: its scores in [0, 1] and 1 / (60 + rank), on
    the documents that some run has among its first 100. From 25 topics on, each fixed rule and each single run is
    compared with them in cross-validation over the topics; the best takes their place if it is better by two standard
    errors of the mean paired difference.

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
    >>> fuse_runs({"bm25": bm25, "dense": dense}, fusion.held_out, tag="held-out")  # doctest: +SKIP
    """
    qrels = as_qrels(qrels)
    recipe = FusionRecipe(_named(runs), measure, seed=seed, penalty=penalty)
    read = recipe.read(qrels)
    qids, measured, fit = read.data.qids, parse_measure(str(read.learner.objective)), partial(recipe.learn, read)
    held_out, fitted = None, fit(qids)
    if folds is None:
        # On what was learned from: without folds, no file is read a second time.
        choice = fitted.choice or recipe.choose(read.data, read.learner)
        values = {str(system): of_system for (system,), of_system in choice.values.items()} | recipe.alone(read)
        scores = {name: Scores.single(measured, dict(zip(qids, v.tolist(), strict=True))) for name, v in values.items()}
    else:
        parts, by_qid = split_folds(qids, folds, seed), dict[str, FusionRanker]()
        for part, of_fold in zip(parts, fit_by_fold(fit, qids, parts), strict=True):
            by_qid |= dict.fromkeys(part, FusionRanker(of_fold.model))
        held_out = HeldOutFusion(by_qid, FusionRanker(fitted.model))
        alone = {name: itemgetter(number) for number, name in enumerate(recipe.runs)}
        scores = _scores({**alone, **FUSIONS, LEARNED: held_out}, recipe.joined, read.judged, measured)
    noted = {"folds": folds or min(FOLDS, len(qids)), **scores[LEARNED].by_measure}
    return LearnedFusion(fitted.noted({"held_out": noted}), held_out, scores)


@dataclass(frozen=True)
class FusionRecipe(Recipe):
    """Weights for runs by name, as `learn_fusion` learns them, for `cross_validate` of rankings that pool them."""

    needs_index: ClassVar[bool] = False

    runs: Mapping[str, Run | RunFile] = field(default_factory=dict, hash=False)
    objective: Objective | str = "nDCG@10"
    _: KW_ONLY
    seed: int = 0
    penalty: float | None = None
    k: int | None = None  # documents to keep of what is fused

    @property
    def joined(self) -> JoinedRuns:
        """The runs side by side."""
        return JoinedRuns(tuple(self.runs.values()))

    def over(self, sources: Sequence[Run]) -> FusionRecipe:
        """Return the recipe for a first stage that pools these runs."""
        return replace(self, runs=_named(sources))

    def prepare(self, rankings: Run, qrels: Judgements, index: Any = None, *, n_jobs: int | None = None) -> Fit:
        """Read the runs; `rankings` are not read."""
        return partial(self.learn, self.read(qrels))

    def read(self, qrels: Judgements) -> JudgedRuns:
        """Read the runs a query at a time, and keep as many topics as there is room for."""
        objective, joined, names = self.measure, self.joined, tuple(self.runs)
        objective = objective.on_scale_of(grade for qid in joined for grade in qrels.get(qid, {}).values())
        levelled = at_level(qrels, objective.rel)
        judged = {qid: levelled[qid] for qid in judged_topics(joined, qrels, objective.rel)}
        data = _data(names, joined, judged, objective.rel)
        check_number(data.qids)
        _check_runs(self.runs, data)
        learner = ListwiseRegression(objective, penalty=self.penalty or (5.0 if len(names) < 4 else 30.0))
        return JudgedRuns(judged, data, learner)

    def candidates(self, learner: ListwiseRegression) -> list[Candidate]:
        """List the systems to choose from: runs alone, by their ranks, rules, and learned weights."""
        names = tuple(self.runs)
        fixed = {**{name: FusedRuns("rrf", (name,)) for name in names}, **_rules(names)}
        return [
            *(Candidate(System(name), (str(feature),), (1.0,)) for name, feature in fixed.items()),
            Candidate(System(LEARNED), tuple(map(str, run_columns(names))), learner=learner),
        ]

    def alone(self, read: JudgedRuns) -> dict[str, FloatArray]:
        """Evaluate each topic by each run alone, shape (q,): of the documents that it has."""
        values, data = {}, read.data
        for number, name in enumerate(self.runs):
            column = 2 * number + 1  # of its ranks
            has = data.columns[column] > 0
            own = replace(
                data, docids=tuple(compress(data.docids, has)), features=data.features[has], grades=data.grades[has],
                offsets=np.append(0, np.cumsum(has))[data.offsets],
            )  # fmt: skip
            values[name] = Objective.parse(read.learner.objective).evaluate(own, own.columns[column])
        return values

    def choose(self, data: RankingData, learner: ListwiseRegression) -> Choice:
        """Compare all systems in cross-validation; learned weights are chosen unless another leads clearly.

        A run alone is compared as it would rank: the documents that others have follow its own.
        """
        folds = cross_folds(data, split_folds(data.qids, min(FOLDS, len(data.qids)), self.seed))
        *fixed, learned = self.candidates(learner)
        alone = [candidate.system for candidate in fixed]
        return choose(
            folds, data.qids, [*fixed, learned], Objective.parse(learner.objective), baselines=alone,
            incumbent=(learned.system,), averages=False,
        )  # fmt: skip

    def learn(self, read: JudgedRuns, qids: Sequence[str], *, n_jobs: int | None = None) -> FittedFusion:
        """Learn from these topics; the result does not depend on `n_jobs`."""
        data, learner, names = read.data.select_queries(qids), read.learner, tuple(self.runs)
        check_number(data.qids)
        choice = self.choose(data, learner) if len(data.qids) >= MIN_TOPICS_TO_CHOOSE else None
        (chosen,) = choice.chosen if choice else (System(LEARNED),)
        candidate = next(candidate for candidate in self.candidates(learner) if candidate.system == chosen)
        columns = data.columns_of(candidate.features)
        if candidate.learner is None:
            selection = Selection.of(candidate.weights, data, learner.objective, columns)
        else:  # the first columns
            selection = learner.fit(data.select_features(columns))
        model = replace(selected_model(selection, data, learner, {}), runs=names)
        return FittedFusion.of(model, data.qids, (str(chosen),), choice=choice, recipe=self)


class JudgedRuns(NamedTuple):
    """The judged topics of runs, and what is learned from: columns of each run, and of each fixed rule."""

    judged: Judgements
    data: RankingData
    learner: ListwiseRegression


@dataclass(frozen=True)
class FittedFusion(Fitted):
    """As `Fitted`, with the recipe, whose runs are fused."""

    recipe: FusionRecipe = field(default=FusionRecipe(), compare=False)

    def stage(self, index: Any) -> Callable[[Ranking], Ranking]:
        """Return the function that fuses the runs for the query of a ranking."""
        runs = tuple(GivenRun(cast(Run, run)) for run in self.recipe.runs.values())
        source = PooledSources(runs, method=FusionRanker(self.model), k=self.recipe.k)
        return lambda ranking: source(Query(ranking.qid, ranking.query))


class _Topic(NamedTuple):
    """A topic's documents that are learned from."""

    qid: str
    docids: tuple[str, ...]
    columns: FloatArray
    grades: IntArray
    relevant: IntArray  # grades of all relevant documents


def _rules(names: tuple[str, ...]) -> dict[str, FusedRuns]:
    return {method: FusedRuns(method, names) for method in FUSIONS}


def _data(names: tuple[str, ...], joined: JoinedRuns, judged: Judgements, rel: int) -> RankingData:
    """Make the columns of as many topics as there is room for, at equal distances."""
    features = (*run_columns(names), *_rules(names).values())
    kept, step, number, room = list[_Topic](), 1, 0, MAX_BYTES // (16 * len(names))
    for rankings in joined.rankings:
        if (judgements := judged.get(rankings[0].qid)) is None:
            continue
        topic = _topic(rankings, judgements, names, features)
        if not (rel <= topic.grades).any():
            continue
        number += 1
        if (number - 1) % step:
            continue
        kept.append(topic)
        # Each doubling drops every second of the topics so far, and of those to come: distances stay equal, and the
        # number of topics need not be known beforehand.
        if sum(len(topic.docids) for topic in kept) > room and len(kept) > 2 * MIN_TOPICS_TO_CHOOSE:
            step, kept = 2 * step, kept[::2]
    if step > 1:
        _log.info("learned from %d of %d topics, evenly spaced: more do not fit in memory", len(kept), number)
    return RankingData(
        features, tuple(topic.qid for topic in kept), np.cumsum([0, *(len(topic.docids) for topic in kept)]),
        tuple(docid for topic in kept for docid in topic.docids),
        np.concatenate([np.empty((0, len(features))), *(topic.columns for topic in kept)]),
        np.concatenate([np.empty(0, dtype=np.int64), *(topic.grades for topic in kept)]),
        tuple(topic.relevant for topic in kept),
    )  # fmt: skip


def _topic(
    rankings: Sequence[Ranking], judgements: Mapping[str, int], names: Sequence[str], features: Sequence[FusedRuns]
) -> _Topic:
    """Describe the documents of a topic that some run has at `DEPTH` or above."""
    pooled = PooledRankings(rankings)
    near = np.flatnonzero((pooled.ranks <= DEPTH).any(axis=1))
    docids = tuple(map([*pooled.rows].__getitem__, near.tolist()))
    columns = np.column_stack([feature.of_pooled(pooled, names)[near] for feature in features])
    grades = np.array([judgements.get(docid, 0) for docid in docids], dtype=np.int64)
    return _Topic(rankings[0].qid, docids, columns, grades, positive_grades(judgements.values()))


def _scores(
    systems: Mapping[str, Fusion], joined: JoinedRuns, judged: Judgements, measure: Measure
) -> dict[str, Scores]:
    """Evaluate each judged topic by each system, over all documents."""
    values: dict[str, dict[str, float]] = {name: {} for name in systems}
    for rankings in joined.rankings:
        if (qid := rankings[0].qid) in judged:
            grades = {qid: dict(judged[qid])}
            for name, fuse in systems.items():
                run = Run((fuse(rankings),))
                values[name][qid] = float(evaluate(run, grades, [measure]).means[0]) if run[qid].docids else 0.0
    return {name: Scores.single(measure, of_system) for name, of_system in values.items()}


def _run(value: Run | RunFile) -> Run | RunFile:
    """Return a run or a file of one; scores by qid and docid as a run."""
    return value if isinstance(value, RunFile) else as_run(value)


def _named(runs: Sequence[Run | RunFile] | Mapping[str, Run | RunFile]) -> dict[str, Run | RunFile]:
    """Name the runs."""
    if isinstance(runs, Mapping) and not isinstance(runs, Run):
        given = [(name, _run(run)) for name, run in runs.items()]
    else:
        check_sequences(runs=runs)
        given = [(run.tag, run) for run in map(_run, runs)]
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
    """Refuse runs that are equal or have constant scores; log which lack topics."""
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
