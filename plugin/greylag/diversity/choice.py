"""Which diversifier, and how strongly: methods with tuned weights, compared in cross-validation with doing nothing."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import perf_counter
from typing import Any

import numpy as np

from greylag.diversity.training import fit_svmdiv
from greylag.errors import ParameterError
from greylag.evaluation.folds import split_folds
from greylag.evaluation.measures import Measure, parse_measure
from greylag.evaluation.power import SIGNIFICANCE_LEVEL
from greylag.evaluation.scores import Scores, evaluate_by_subtopic
from greylag.evaluation.selection_bias import BestOfMany, Rule, best_of_many, first_best
from greylag.evaluation.significance import DECIMALS, Comparison, Significance, compare
from greylag.index.positional import PositionalIndex
from greylag.ranking import BoolArray, FloatArray, IntArray, Ranking, Run
from greylag.stages import StageStep, find_stage, registered_stages, required_parameters, stage_parameters
from greylag.tables import aligned, html_text
from greylag.trec import SubtopicQrels
from greylag.vectors import Vectors

WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
NONE, LEARNED, CHOSEN = "none", "svmdiv", "chosen in training"
_log = logging.getLogger("greylag")


@dataclass(frozen=True, repr=False)
class DiversifierChoice:
    """How much each method gains over the first stage on held-out queries, and which to use; ``str`` is the table.

    Parameters
    ----------
    measure, cost : Measure
        What weights are chosen by, and the measure of relevance that is watched.
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

    @cached_property
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
        return "\n".join([*aligned(rows), "", *self._notes(), "", *self.advice()]) + "\n"

    def _notes(self) -> list[str]:
        queries = len(self.scores[NONE].qids)
        return [
            f"Means over {queries} judged queries, each ranked with the weight that is best on the other folds.",
            f"diff, better, worse: from {NONE}. Intervals and p by {self.measure} are of all methods at once (max-t); "
            f"* below {SIGNIFICANCE_LEVEL}. Those of {CHOSEN}, and intervals by {self.cost}, are of one t-test.",
        ]

    def advice(self) -> list[str]:
        """The recommendation, with its uncertainty, in a few lines."""
        if self.best == NONE:
            return [f"Recommended: {NONE}. No method has a better {self.measure} than the first stage."]
        gain, cost = self.winner.comparison, self.costs.find(self.best, self.cost)
        assert gain is not None
        assert cost is not None
        corrected = f"{gain.verdict} Corrected for the choice on the same queries."
        if self.recommended == NONE:
            lines = [f"Recommended: {NONE}. The best method may be so by chance: {self.stages[self.best]}. {corrected}"]
        else:
            lines = [f"Recommended: {self.stages[self.best]}. {corrected}"]
        if cost.interval[1] < 0:
            lines.append(f"It costs relevance: {_with_interval(cost)}. Keep the first stage where that matters more.")
        else:
            lines.append(f"Relevance: {_with_interval(cost)}.")
        return lines


def choose_diversifier(
    rankings: Run | Iterable[Ranking],
    qrels: SubtopicQrels,
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
    rankings : Run or iterable of Ranking
        The first stage.
    qrels : mapping
        Grades by qid, subtopic or nugget, and docid. All of its queries count, as in `evaluate_by_subtopic`.
    index : PositionalIndex, optional
        The collection, which may be `PositionalIndex.from_texts` of the passages.
    vectors : Vectors, optional
        Embeddings, for the methods that compare documents; in place of the index.
    aspects : mapping, sequence of Run or callable, optional
        See `greylag.XQuAD`.
    methods : sequence of str, optional
        Stages such as "mmr" and "xquad(scale=max)", without their weights, or with one weight to use. By default all
        diversifiers that need no more than what is given, with SVM-div if an index is.
    measure : str, default "alpha-nDCG@10"
        What weights are chosen by, and methods compared by.
    cost : str, default "nDCG@10"
        The measure of relevance to watch; grades are the highest over the subtopics.
    folds : int >= 2, default 5
    seed : int >= 0, default 0
        Of the folds; see `greylag.evaluation.split_folds`.
    n_jobs : int, optional
        Number of workers; the result does not depend on it.
    """
    first = rankings if isinstance(rankings, Run) else Run(tuple(rankings))
    parsed = parse_measure(measure), parse_measure(cost)
    if parsed[1].family.lower_is_better:
        raise ParameterError(f"{cost} is a loss: give a measure of relevance, such as nDCG@10")
    k = max(20, parsed[0].cutoff or 0)
    given: dict[str, Any] = {"vectors": vectors, "aspects": aspects}
    steps = [StageStep.parse(text) for text in methods] if methods else _usable(index, given)
    if not steps or len(set(steps)) < len(steps):
        raise ParameterError("give an index, vectors or scores of aspects" if not steps else "a method is given twice")
    parts = split_folds(list(qrels), folds, seed)
    tests = [np.isin(list(qrels), part) for part in parts]
    before = evaluate_by_subtopic(first, qrels, parsed)
    sign = -1.0 if parsed[0].family.lower_is_better else 1.0
    scores, seconds, stages, weights = {NONE: before}, dict[str, float](), dict[str, StageStep](), {}
    pool = dict[str, FloatArray]()  # the scores of each method with each weight, (weights, queries, measures)
    for step in steps:
        name = step.name if len({other.name for other in steps}) == len(steps) else str(step)
        start = perf_counter()
        if step.name == LEARNED and "model" not in dict(step.options):
            fitted = _learned(first, qrels, parts, index, k, n_jobs)
            scores[name], stages[name] = evaluate_by_subtopic(fitted, qrels, parsed), step
            pool[name] = scores[name].values[None]
            seconds[name] = (perf_counter() - start) / len(first)
            continue
        tried = alternatives(_sized(step, k))
        runs = [alternative.make(index, **given).run(first, n_jobs=n_jobs, tag=name) for _, alternative in tried]
        seconds[name] = (perf_counter() - start) / len(first) / len(tried)
        values = np.array([evaluate_by_subtopic(run, qrels, parsed).values for run in runs])
        held_out, chosen = tuned_by_fold(values, tests, sign)
        scores[name] = replace(before, values=held_out)
        stages[name] = tried[last_best(sign * values[:, :, 0].mean(axis=1))][1]
        weights[name] = tuple(weight for weight in (tried[place][0] for place in chosen) if weight is not None)
        pool[name] = values
    tuned = [values for name, values in pool.items() if name in weights]
    if tuned:
        every = np.concatenate([*tuned[::-1], before.values[None]])  # the last wins ties: none
        scores[CHOSEN] = replace(before, values=tuned_by_fold(every, tests, sign)[0])
    by_measure, by_cost = ({name: _one(found, column) for name, found in scores.items()} for column in range(2))
    alone = {name: by_measure[name] for name in (NONE, *stages)}
    winner = best_of_many(alone, NONE, rule=rule_of({NONE: before.values[None], **pool}, tests, sign))
    gains = compare({name: by_measure[name] for name in (NONE, CHOSEN)}, NONE).comparisons if tuned else ()
    if winner.all is not None:
        gains = (*winner.all.comparisons, *gains)
    costs = compare(by_cost, NONE)
    return DiversifierChoice(
        *parsed, scores, replace(costs, comparisons=gains, correction="max-t"), winner, costs, stages, weights, seconds
    )


def _usable(index: PositionalIndex | None, given: Mapping[str, Any]) -> list[StageStep]:
    """The diversifiers that need no more than what is given, and SVM-div, whose model is learned here."""
    have = {name for name, value in {"index": index, **given}.items() if value is not None}
    if index is not None:
        have.add("vectors")  # those of TF-IDF
    steps = []
    for name in registered_stages():
        try:
            stage = find_stage(name)
        except ParameterError as error:  # of a package that is not greylag's
            _log.warning("%s: it is not tried", error)
            continue
        needed = {*stage.needs, *required_parameters(stage)} - ({"model"} if name == LEARNED else set())
        if stage.diversifies and needed <= have:
            steps.append(StageStep(name))
    return steps


def _sized(step: StageStep, k: int) -> StageStep:
    """The stage with k picks, if these are more than its default."""
    names = {name for name, _ in step.options}
    return step if k == 20 or "k" in names or "k" not in stage_parameters(step.stage) else step.adding(k=k)


def alternatives(step: StageStep) -> list[tuple[float | None, StageStep]]:
    """The stage with each of its strengths; as it is if it has none, or has one already."""
    strength = step.stage.strength
    if strength is None or strength in dict(step.options):
        return [(None, step)]
    return [(value, step.adding(**{strength: value})) for value in WEIGHTS]


def tuned_by_fold(values: FloatArray, tests: Sequence[BoolArray], sign: float) -> tuple[FloatArray, list[int]]:
    """The scores of the held-out queries, (queries, measures), of values of (alternatives, queries, measures).

    Also which alternative is best on the other queries of each fold, or on its own if there are no others.
    """
    found, places = np.empty(values.shape[1:]), []
    for test in tests:
        others = test if test.all() else ~test
        place = last_best(sign * values[:, others, 0].mean(axis=1))
        found[test] = values[place, test]
        places.append(place)
    return found, places


def rule_of(pool: Mapping[str, FloatArray], tests: Sequence[BoolArray], sign: float) -> Rule:
    """The choice by some queries: the method that is best with weights from other folds, then its best weight.

    `pool` has the scores of each method with each weight, (weights, queries, measures); of equally good methods, the
    first is chosen.
    """

    def rule(queries: IntArray) -> tuple[str, FloatArray]:
        parts = [part for test in tests if (part := test[queries]).any()]
        means = [sign * tuned_by_fold(values[:, queries], parts, sign)[0][:, 0].mean() for values in pool.values()]
        name = [*pool][first_best(np.array(means))]
        weight = last_best(sign * pool[name][:, queries, 0].mean(axis=1))
        return name, pool[name][weight, :, 0]

    return rule


def last_best(means: FloatArray) -> int:
    """The number of the highest mean, the last one if several are."""
    return len(means) - 1 - int(np.argmax(np.round(means[::-1], DECIMALS)))


def _learned(
    first: Run, qrels: SubtopicQrels, parts: Sequence[Sequence[str]], index: PositionalIndex | None, k: int,
    n_jobs: int | None,
) -> Run:  # fmt: skip
    """Each fold diversified by SVM-div that was trained on the others."""
    if index is None:
        raise ParameterError(f"{LEARNED} needs an index")
    found = list[Ranking]()
    for part in parts:
        known = {qid: judged for qid, judged in qrels.items() if qid not in part}
        training = [first[qid] for qid in known if qid in first]
        stage = fit_svmdiv(training, known, index, picks=k, n_jobs=n_jobs)
        found += stage.run([first[qid] for qid in part if qid in first], n_jobs=n_jobs).rankings
    return Run(tuple(found), LEARNED)


def _one(scores: Scores, column: int) -> Scores:
    """The scores by one of the measures."""
    return replace(scores, measures=(scores.measures[column],), values=scores.values[:, [column]])


def _shown(found: Comparison | None, *, p: bool = False) -> list[str]:
    """The difference, its interval, and perhaps its corrected p."""
    if found is None:
        return ["", "", ""] if p else ["", ""]
    low, high = found.interval
    star = "*" if found.corrected_p < SIGNIFICANCE_LEVEL else " "
    cells = [f"{found.difference:+.4f}", f"[{low:+.4f}, {high:+.4f}]"]
    shown = "<0.001" if found.corrected_p < 0.0005 else f"{found.corrected_p:.3f}"
    return [*cells, shown + star] if p else cells


def _with_interval(found: Comparison) -> str:
    low, high = found.interval
    return f"{found.difference:+.4f} {found.measure} [{low:+.4f}, {high:+.4f}]"
