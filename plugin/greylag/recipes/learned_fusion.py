"""Learned fusion: weights for runs, learned from judged topics. It needs no index.

With m_j(d) the score of document d in run j, scaled to [0, 1] over the documents that the run has for the topic
(`greylag.base.unit_range`), and r_j(d) its rank there, from 1,

    score(d) = sum over runs j of a_j m_j(d) + b_j / (60 + r_j(d)),

in which a run that lacks the document adds nothing. `ListwiseRegression` finds a and b.

References
----------
Bruch, Gai and Ingber, An analysis of fusion functions for hybrid retrieval, ACM TOIS 2023 (a learned sum of scaled
scores is better than reciprocal ranks, and few judgements are enough).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import NamedTuple

from greylag.base import QrelsLike, Ranking, Run, as_qrels, guided
from greylag.evaluation import (
    FUSIONS,
    LEARNED,
    Fusion,
    JoinedRuns,
    Measure,
    RunFile,
    Scores,
    Significance,
    compare_scores,
    fit_by_fold,
    parse_measure,
    score_documents,
    split_folds,
    without,
)
from greylag.learning import Judgements, Objective
from greylag.rankers import FusionRanker, RankingModel
from greylag.recipes.fitted import Fitted
from greylag.recipes.fused import FusionRecipe
from greylag.recipes.index_free import check_number
from greylag.recipes.union import FOLDS, FusionWeights, named_runs


@dataclass(frozen=True)
class HeldOutFusion:
    """A `Fusion` that ranks each topic by a model that was learned without it, and unknown ones by all folds' model."""

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
    """A learned fusion, and its scores in cross-validation."""

    # From all topics
    fitted: Fitted
    # None without folds
    held_out: HeldOutFusion | None
    # Of each run, each of `greylag.evaluation.FUSIONS` and "learned", best first; each topic is held out of weights
    # and choice, in five folds if none are asked for
    scores: Mapping[str, Scores]

    @property
    def model(self) -> RankingModel:
        """The model that was learned from all topics."""
        return self.fitted.model

    @property
    def best_run(self) -> str:
        """The run with the highest mean, which is favoured by being chosen on the judgements that it is scored with."""
        return next(name for name in self.scores if name in self.model.runs)

    @property
    def significance(self) -> Significance:
        """Compare all with the best run, and the learned fusion with reciprocal ranks."""
        pairs = [(self.best_run, name) for name in self.scores if name != self.best_run]
        return compare_scores(self.scores, pairs=[*pairs, ("rrf", LEARNED)])

    def __str__(self) -> str:
        learned = (c for c in self.significance.comparisons if c.run == LEARNED)
        verdicts = [replace(comparison, run="Learned fusion").verdict for comparison in learned]
        favoured = f"{self.best_run} is the best run because these topics chose it, which favours it."
        return "\n".join([self.model.summary(), *verdicts, f"{favoured} Each topic was held out."])


@guided
def learn_fusion(
    runs: Sequence[Run | RunFile] | Mapping[str, Run | RunFile],
    qrels: QrelsLike,
    measure: Objective | str = "nDCG@10",
    *,
    folds: int | None = None,
    seed: int = 0,
    penalty: float | None = None,
) -> LearnedFusion:
    """Learn to fuse runs from judged topics.

    The weights are those of `ListwiseRegression` over two columns a run, its scores in [0, 1] and 1 / (60 + rank). From
    25 topics on, each fixed rule and each single run is compared with them in cross-validation; the best takes their
    place if it is better by two standard errors.

    Parameters
    ----------
    runs : sequence or mapping of str to Run or RunFile
        At least two, that differ, by the tags of runs in a sequence. A run may lack topics and documents.
    qrels : QrelsLike
        Topics are learned from if a run has a relevant document of theirs among its first 100; at least three.
    measure : Objective or str, default "nDCG@10"
        Its gains are learned from, and it chooses.
    folds : int >= 2, optional
        For `LearnedFusion.held_out`, at most the number of topics; split by `seed`, default 0.
    penalty : float > 0, optional
        See `ListwiseRegression`; 5 for two or three runs and 30 for more by default.

    Examples
    --------
    >>> fusion = learn_fusion({"bm25": bm25, "dense": dense}, qrels, folds=5)  # doctest: +SKIP
    >>> fuse_runs({"bm25": bm25, "dense": dense}, fusion.held_out, tag="held-out")  # doctest: +SKIP
    """
    qrels, named = as_qrels(qrels), named_runs(runs)
    recipe = FusionRecipe(named, FusionWeights(measure, penalty=penalty, seed=seed))
    recipe, judged, data = recipe.read_runs(qrels)
    parts = split_folds(data.qids, folds or min(FOLDS, len(data.qids)), seed)
    if folds is not None:
        check_number(min((without(data.qids, part) for part in parts), key=len))
    weights, by_qid = recipe.learner, dict[str, FusionRanker]()

    def fit(qids: Sequence[str]) -> Fitted:
        return weights.weigh(data.select_queries(qids), tuple(named))

    fitted = fit(data.qids)
    for part, held in zip(parts, fit_by_fold(fit, data.qids, parts), strict=True):
        by_qid |= dict.fromkeys(part, FusionRanker(held.model))
    held_out = HeldOutFusion(by_qid, FusionRanker(fitted.model))
    systems: dict[str, Fusion] = {name: itemgetter(number) for number, name in enumerate(named)}
    systems, joined = {**systems, **FUSIONS, LEARNED: held_out}, JoinedRuns(tuple(named.values()))
    unsorted = _scores(systems, joined, judged, parse_measure(str(recipe.measure))).items()
    scores = dict(sorted(unsorted, key=lambda system: -float(system[1].rounded_means[0])))
    noted = {"folds": len(parts), **scores[LEARNED].by_measure}
    return LearnedFusion(fitted.noted({"held_out": noted}), held_out if folds else None, scores)


def _scores(
    systems: Mapping[str, Fusion], joined: JoinedRuns, judged: Judgements, measure: Measure
) -> dict[str, Scores]:
    """Evaluate each judged topic by each system, over all documents."""
    values: dict[str, dict[str, float]] = {name: {} for name in systems}
    # One pass over the files, in which a topic is fused by every system, so that no ranking stays in memory.
    for rankings in joined.rankings:
        if (qid := rankings[0].qid) in judged:
            grades = {qid: dict(judged[qid])}
            for name, fuse in systems.items():
                run = Run((fuse(rankings),))
                values[name][qid] = float(score_documents(run, grades, [measure]).means[0]) if run[qid].docids else 0.0
    return {name: Scores.single(measure, by_qid) for name, by_qid in values.items()}
