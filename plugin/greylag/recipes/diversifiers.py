"""The choice of a diversifier and its strength: tuned methods, compared in cross-validation with doing nothing."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, NamedTuple, cast

import numpy as np

from greylag.base import (
    BoolArray,
    FloatArray,
    IntArray,
    ParameterError,
    Run,
    RunLike,
    SubtopicQrelsLike,
    aligned,
    as_run,
    as_subtopic_qrels,
    guided,
    html_text,
)
from greylag.evaluation import (
    DIFFERENCE_DECIMALS,
    SIGNIFICANCE_LEVEL,
    BestOfMany,
    Comparison,
    Measure,
    Rule,
    Scores,
    Significance,
    SubtopicQrels,
    best_of_many,
    compare_scores,
    first_best,
    parse_measure,
    score_subtopics,
    split_folds,
)
from greylag.features import (
    StageStep,
    find_stage,
    parse_feature,
    registered_stages,
    required_parameters,
    stage_parameters,
)
from greylag.index import PositionalIndex, Vectors
from greylag.recipes.diversity import DiversityRecipe
from greylag.recipes.recipe import cross_validate
from greylag.recipes.spelling import parse_model

TRIED_WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
NONE, CHOSEN = "none", "chosen in training"
LEARNED_FEATURES = ("score",)
"""The document features of models that are learned in folds."""
_log = logging.getLogger("greylag")


@dataclass(frozen=True, repr=False)
class DiversifierChoice:
    """Each method's gain over the first stage on held-out queries, and the one to use; ``str`` is the table.

    Parameters
    ----------
    measure, cost : Measure
        The measure by which weights are chosen, and the measure of relevance that is watched.
    scores : mapping
        By method, its cross-validated scores by both measures. "none" is the first stage. With "chosen in training",
        method and weight, or none, are chosen on the training queries of each fold; SVM-div is not among the choices.
    gains, costs : Significance
        Comparisons with "none" by the two measures. Intervals and p of `gains` hold for all methods at once
        (`greylag.evaluation.best_of_many`), but for "chosen in training", which is compared alone.
    winner : BestOfMany
        The best method, or none, corrected for having been chosen on the same queries.
    stages : mapping
        By method, the stage with the weight that is best on all judged queries, as ``greylag rerank --stage`` takes it.
    weights : mapping
        By method, the weights that were chosen in the folds; empty if it has none.
    seconds : mapping
        By method, the time for a query.
    """

    measure: Measure
    cost: Measure
    scores: Mapping[str, Scores]
    gains: Significance
    winner: BestOfMany
    costs: Significance
    stages: Mapping[str, StageStep]
    weights: Mapping[str, tuple[float, ...]]
    seconds: Mapping[str, float] = field(compare=False)

    @property
    def best(self) -> str:
        """The method with the best mean by `measure`, or "none"; ties go to the first."""
        return self.winner.chosen

    @property
    def recommended(self) -> str:
        """`best` if it is significantly better than "none", even though it was chosen among many; else "none"."""
        gain = self.winner.comparison
        return self.best if gain is not None and gain.significant and gain.direction > 0 else NONE

    def __repr__(self) -> str:
        methods = ", ".join(self.stages)
        return f"<{type(self).__name__}: {self.recommended} recommended, of {methods}>"

    def _repr_html_(self) -> str:
        return html_text(str(self))

    def __str__(self) -> str:
        header = ["method", str(self.measure), "diff", "95 % interval", "p", "better", "worse"]
        rows = [[*header, str(self.cost), "diff", "95 % interval", "weights"]]
        for name, scores in self.scores.items():
            gain, cost = self.gains.find(name, self.measure), self.costs.find(name, self.cost)
            value, relevance = (f"{mean:.4f}" for mean in scores.means)
            counts = ["", ""] if gain is None else [str(gain.wins), str(gain.losses)]
            chosen = " ".join(f"{weight:g}" for weight in sorted(set(self.weights.get(name, ()))))
            rows.append([name, value, *_shown(gain, p=True), *counts, relevance, *_shown(cost), chosen])
        notes = [
            f"Means over {len(self.scores[NONE].qids)} judged queries, each ranked with the weight that is best on the "
            "other folds.",
            f"diff, better, worse: from {NONE}. Intervals and p by {self.measure} are of all methods at once (max-t); "
            f"* below {SIGNIFICANCE_LEVEL}. Those of {CHOSEN}, and intervals by {self.cost}, are of one t-test.",
        ]
        return "\n".join([*aligned(rows), "", *notes, "", *self.advice()]) + "\n"

    def advice(self) -> list[str]:
        """Recommend a diversifier in a few lines, with the uncertainty."""
        if self.best == NONE:
            return [f"Recommended: {NONE}. No method has a better {self.measure} than the first stage."]
        gain, cost = self.winner.comparison, self.costs.find(self.best, self.cost)
        assert gain is not None
        assert cost is not None
        corrected = f"{gain.verdict} Interval and p allow for the method having been chosen on these queries."
        if self.recommended == NONE:
            lines = [f"Recommended: {NONE}. The best method may be so by chance: {self.stages[self.best]}. {corrected}"]
        else:
            lines = [f"Recommended: {self.stages[self.best]}. {corrected}"]
        if cost.p < SIGNIFICANCE_LEVEL and cost.difference < 0:
            lines.append(f"It costs relevance: {_with_interval(cost)}. Keep the first stage where that matters more.")
        else:
            lines.append(f"Relevance: {_with_interval(cost)}.")
        return lines


@guided
def choose_diversifier(
    rankings: RunLike,
    qrels: SubtopicQrelsLike,
    *,
    index: PositionalIndex | None = None,
    vectors: Vectors | None = None,
    aspects: Any = None,
    methods: Sequence[str] | None = None,
    measure: str = "alpha-nDCG@10",
    cost: str = "nDCG@10",
    folds: int = 5,
    seed: int = 0,
    n_jobs: int | None = None,
) -> DiversifierChoice:
    """Tune each method's weight in cross-validation, and compare the methods with the first stage on held-out queries.

    A weight is chosen on the training queries of each fold, from 0, 0.1, ..., 0.9, 0.95 and 0.99; ties go to the
    higher one. SVM-div is trained on them, and its C chosen on a quarter of them.

    Parameters
    ----------
    qrels : SubtopicQrelsLike
        Judgements by subtopic or nugget. All of its queries count, as in `evaluate_by_subtopic`.
    index, vectors : PositionalIndex or Vectors, optional
        The collection, or embeddings for the methods that compare documents.
    aspects : mapping, sequence of Run or callable, optional
        See `XQuAD`.
    methods : sequence of str, optional
        Stages such as "mmr" and "xquad(scale=max)", without their weights, or with one weight to use. By default all
        diversifiers that need no other resources than these, with SVM-div if there is an index.
    measure : str, default "alpha-nDCG@10"
        The measure by which weights are chosen and methods compared.
    cost : str, default "nDCG@10"
        The measure of relevance to watch; grades are the highest over the subtopics.
    seed : int >= 0, default 0
        Of the folds; see `greylag.evaluation.split_folds`.
    """
    first, judged = as_run(rankings), as_subtopic_qrels(qrels)
    parsed = parse_measure(measure), parse_measure(cost)
    if parsed[1].family.lower_is_better:
        raise ParameterError(f"{cost} is a loss: give a measure of relevance, such as nDCG@10")
    # As many picks as the measure looks at; fewer would leave ranks to the first stage.
    k = max(20, parsed[0].cutoff or 0)
    resources: dict[str, Any] = {"vectors": vectors, "aspects": aspects}
    steps = [StageStep.parse(text) for text in methods] if methods else _usable(index, resources)
    if not steps or len(set(steps)) < len(steps):
        raise ParameterError("give an index, vectors or scores of aspects" if not steps else "a method is given twice")
    # Of the judged queries and not of the rankings: one that the run lacks counts as 0.
    test_qids = split_folds(list(judged), folds, seed)
    before = _evaluated(first, judged, parsed)
    tried = dict[str, _MethodScores]()
    for step in steps:
        name = step.name if len({other.name for other in steps}) == len(steps) else str(step)
        start = perf_counter()
        if learned := is_learned(step):
            stages: list[tuple[float | None, StageStep]] = [(None, step)]
            runs = [_learned(step, first, judged, test_qids, index, k, n_jobs)]
        else:
            sized = k == 20 or "k" in dict(step.options) or "k" not in stage_parameters(step.stage)
            given, strength = step if sized else step.adding(k=k), step.stage.strength
            tuned = strength is not None and strength not in dict(step.options)
            stages = [(w, given.adding(**{str(strength): w})) for w in TRIED_WEIGHTS] if tuned else [(None, given)]
            runs = [stage.make(index, **resources).run(first, n_jobs=n_jobs, tag=name) for _, stage in stages]
        # Per alternative: whoever uses the method runs one of them.
        seconds = (perf_counter() - start) / len(first) / len(stages)
        values = np.array([_evaluated(run, judged, parsed).values for run in runs])
        tried[name] = _MethodScores(stages, values, seconds, learned)
    return _compared(tried, before, parsed, [np.isin(list(judged), qids) for qids in test_qids])


def is_learned(step: StageStep) -> bool:
    """Return whether the stage's model is still to be learned."""
    return bool(step.stage.learned_by) and "model" not in dict(step.options)


class _MethodScores(NamedTuple):
    """A method with each of its weights."""

    stages: list[tuple[float | None, StageStep]]  # by weight; None if the method has none
    values: FloatArray  # (weights, queries, measures)
    seconds: float  # per query
    learned: bool  # from the queries, beside the weight


def _compared(
    tried: Mapping[str, _MethodScores], before: Scores, measures: tuple[Measure, Measure], tests: Sequence[BoolArray]
) -> DiversifierChoice:
    """Choose among methods, from the scores of the first stage and the queries that each fold holds out."""
    sign = -1.0 if measures[0].family.lower_is_better else 1.0  # times which a value is better if it is higher
    scores, stages, weights = {NONE: before}, dict[str, StageStep](), dict[str, tuple[float, ...]]()
    for name, method in tried.items():
        held_out, chosen = tuned_by_fold(method.values, tests, sign)
        # Held-out scores for the comparison, but the stage to use is the best on all queries.
        scores[name] = replace(before, values=held_out)
        stages[name] = method.stages[last_best(sign * method.values[:, :, 0].mean(axis=1))][1]
        if not method.learned:
            by_fold = [method.stages[number][0] for number in chosen]
            weights[name] = tuple(weight for weight in by_fold if weight is not None)
    pool = {name: method.values for name, method in tried.items()}
    tuned = [pool[name] for name in weights]
    if tuned:
        every = np.concatenate([*tuned[::-1], before.values[None]])  # the last wins ties: none
        scores[CHOSEN] = replace(before, values=tuned_by_fold(every, tests, sign)[0])
    by_measure, by_cost = (
        {name: replace(s, measures=(measures[column],), values=s.values[:, [column]]) for name, s in scores.items()}
        for column in range(2)
    )
    # "chosen in training" is compared alone: it is none of the methods that the winner was chosen among.
    alone = {name: by_measure[name] for name in (NONE, *stages)}
    winner = best_of_many(alone, NONE, rule=rule_of({NONE: before.values[None], **pool}, tests, sign))
    gains = compare_scores({name: by_measure[name] for name in (NONE, CHOSEN)}, NONE).comparisons if tuned else ()
    if winner.all is not None:
        gains = (*winner.all.comparisons, *gains)
    costs = compare_scores(by_cost, NONE)
    corrected = replace(costs, comparisons=gains, correction="max-t")
    seconds = {name: method.seconds for name, method in tried.items()}
    return DiversifierChoice(*measures, scores, corrected, winner, costs, stages, weights, seconds)


def _usable(index: PositionalIndex | None, resources: Mapping[str, Any]) -> list[StageStep]:
    """Return the diversifiers that need no other resources, and SVM-div, whose model is learned here."""
    have = {name for name, value in {"index": index, **resources}.items() if value is not None}
    if index is not None:
        have.add("vectors")  # by TF-IDF
    steps = []
    for name in registered_stages():
        try:
            stage = find_stage(name)
        except ParameterError as error:  # of a package that is not greylag's
            _log.warning("%s: it is not tried", error)
            continue
        needed = {*stage.needs, *required_parameters(stage)} - ({"model"} if stage.learned_by else set())
        if stage.diversifies and needed <= have:
            steps.append(StageStep(name))
    return steps


def tuned_by_fold(values: FloatArray, tests: Sequence[BoolArray], sign: float) -> tuple[FloatArray, list[int]]:
    """Score the held-out queries, (queries, measures), from (alternatives, queries, measures), and choose per fold."""
    # The alternative of a fold is the best on the other queries, or on its own if there are no others.
    held_out, chosen = np.empty(values.shape[1:]), []
    for test in tests:
        training = test if test.all() else ~test
        best = last_best(sign * values[:, training, 0].mean(axis=1))
        held_out[test] = values[best, test]
        chosen.append(best)
    return held_out, chosen


def rule_of(pool: Mapping[str, FloatArray], tests: Sequence[BoolArray], sign: float) -> Rule:
    """Choose by some queries the method that is best with weights from other folds, then its best weight."""

    # `pool` has the scores of each method with each weight, (weights, queries, measures); the first of equally good
    # wins.
    def rule(queries: IntArray) -> tuple[str, FloatArray]:
        # A resample of the queries may lack all of a fold.
        resampled = [test[queries] for test in tests if test[queries].any()]
        means = [sign * tuned_by_fold(values[:, queries], resampled, sign)[0][:, 0].mean() for values in pool.values()]
        name = [*pool][first_best(np.array(means))]
        weight = last_best(sign * pool[name][:, queries, 0].mean(axis=1))
        return name, pool[name][weight, :, 0]

    return rule


def last_best(means: FloatArray) -> int:
    """Return the number of the highest mean, the last one if several are."""
    # Rounded, since means of equal scores may differ in their last bits.
    return len(means) - 1 - int(np.argmax(np.round(means[::-1], DIFFERENCE_DECIMALS)))


def _learned(
    step: StageStep, first: Run, qrels: SubtopicQrels, folds: Sequence[Sequence[str]], index: PositionalIndex | None,
    k: int, n_jobs: int | None,
) -> Run:  # fmt: skip
    """Diversify each fold by the stage's model, learned from the others."""
    if index is None:
        raise ParameterError(f"{step} needs an index")
    spelt, _ = parse_model(step.stage.learned_by, features=tuple(map(parse_feature, LEARNED_FEATURES)))
    recipe = replace(cast(DiversityRecipe, spelt), picks=k)
    prepared = recipe.prepare(first.select_queries(qrels), qrels, index, n_jobs=n_jobs)
    # In the order of the judgements, in which the learner gets its queries.
    judged = Run(tuple(first[qid] for qid in qrels if qid in first), first.tag)
    return cross_validate(
        recipe, judged, qrels, index, folds=folds, n_jobs=n_jobs, tag=step.name, prepared=prepared
    ).run


def _evaluated(run: Run, qrels: SubtopicQrels, measures: tuple[Measure, Measure]) -> Scores:
    """Score a run by the measure and the cost, a column each, also if they are one measure."""
    scores = score_subtopics(run, qrels, measures)
    return replace(scores, measures=measures, values=np.broadcast_to(scores.values, (len(scores.qids), 2)))


def _shown(comparison: Comparison | None, *, p: bool = False) -> list[str]:
    """Format the difference, its interval, and perhaps its corrected p."""
    if comparison is None:
        return ["", "", ""] if p else ["", ""]
    star = "*" if comparison.corrected_p < SIGNIFICANCE_LEVEL else " "
    cells = [f"{comparison.difference:+.4f}", _interval(comparison)]
    shown = "<0.001" if comparison.corrected_p < 0.0005 else f"{comparison.corrected_p:.3f}"
    return [*cells, shown + star] if p else cells


def _with_interval(comparison: Comparison) -> str:
    return f"{comparison.difference:+.4f} {comparison.measure} {_interval(comparison)}".rstrip()


def _interval(comparison: Comparison) -> str:
    return "[{:+.4f}, {:+.4f}]".format(*comparison.interval) if comparison.interval else ""
