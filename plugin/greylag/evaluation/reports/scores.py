"""Scores and comparisons as tables and plain dictionaries."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import asdict
from itertools import chain, combinations_with_replacement, groupby
from string import ascii_letters
from typing import Any, NamedTuple

import numpy as np

from greylag.base import TREC_EVAL, Marked, ParameterError, Row, Table
from greylag.evaluation.scoring.agreement import MOST_NAMES, document_grades, few_names
from greylag.evaluation.scoring.measures import Measure
from greylag.evaluation.scoring.power import (
    MOST_TOPICS,
    SIGNIFICANCE_LEVEL,
    LossPower,
    least_loss,
    loss_power,
    topics_for_loss,
)
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.scoring.significance import CORRECTION_NAMES, TEST_NAMES, Comparison, Significance

MOST_LETTERS = 10  # of groups, that are written one by one; of more, a..f stands for six
MOST_PAIRS = 45
"""The most pairs of runs, those of ten, whose comparisons are listed for a reader."""


def has_many_pairs(scores: Mapping[str, Scores], significance: Significance) -> bool:
    """Return whether all pairs of more runs are compared than are listed for a reader."""
    return math.comb(len(scores), 2) > MOST_PAIRS and significance.all_pairs


def equivalence_note(significance: Significance, *, counted: bool = False) -> str:
    """Write a sentence on the column of equivalence, or on the number of pairs that are the same, if it was tested."""
    margin, measure = significance.comparisons[0].margin, significance.comparisons[0].measure
    if margin is None:
        return ""
    correction = CORRECTION_NAMES[significance.correction]
    if counted:
        tested = [c.equivalence_p for c in significance.comparisons if c.measure == measure and not c.not_run]
        same = sum(p is not None and p < SIGNIFICANCE_LEVEL for p in tested)
        return (
            f" By {measure}, {same} of {len(tested)} pairs are the same within "
            f"{margin:g}: two one-sided t-tests, {correction} correction, p below {SIGNIFICANCE_LEVEL}."
        )
    return (
        f" same p: two one-sided t-tests that the means differ by less than {margin:g}, {correction} correction; "
        f"* below {SIGNIFICANCE_LEVEL}: the two are the same within {margin:g}."
    )


def method_names(scores: Mapping[str, Scores], significance: Significance | None) -> list[str]:
    """Name the measures and the tests, and letters and effect sizes if they are shown, for references."""
    measures = next(iter(scores.values())).measures
    kinds = [measure.family for measure in measures]
    own = [kind.from_subtopics or kind.from_grades or kind.from_ir_measures for kind in kinds]
    names = [*map(str, measures), *([] if all(own) else ["trec_eval"])]
    if significance:
        names += [TEST_NAMES[significance.test], CORRECTION_NAMES[significance.correction]]
        names += [] if has_many_pairs(scores, significance) else ["effect size"]
        names += ["compact letter display"] if significance.all_pairs else []
    return names


def means_table(scores: Mapping[str, Scores], significance: Significance | None, lettered: bool) -> Table:
    """Tabulate means, best first with ranks if all pairs are compared, with columns of their letters if `lettered`."""
    measures, pairs = next(iter(scores.values())).measures, significance is not None and significance.all_pairs
    columns, marks = means_columns(scores, significance), marks_of(scores, significance) if pairs and lettered else {}
    rows = list[Row]()
    for name, rank in (ranked(scores) if pairs else dict.fromkeys(scores, 0)).items():
        letters = [marks[name, measure] for measure in measures] if marks else []
        rows.append([*([rank] if pairs else []), name, *(column[name] for column in columns), *letters])
    header = [*(["rank", "run"] if pairs else ["run"]), *map(str, measures)]
    header += [f"letters of {measure}" for measure in measures if marks]
    told = [*notes(scores), *marks_notes(scores, significance), *spans_note(columns)]
    return Table("\n".join(told), header, rows)


def means_columns(
    scores: Mapping[str, Scores], tests: Significance | None, *, signed: bool = False
) -> list[dict[str, Marked]]:
    """Return a column for each measure: means by run, with their marks."""
    marks, columns = marks_of(scores, tests, signed=signed, spans=True), list[dict[str, Marked]]()
    space = " " * bool(tests and tests.all_pairs)  # before letters of groups
    for place, measure in enumerate(next(iter(scores.values())).measures):
        by_run = {name: space + marks.get((name, measure), "") for name in scores}
        columns.append(means_column(measure, {name: float(run.means[place]) for name, run in scores.items()}, by_run))
    return columns


def means_column(measure: Measure, means: Mapping[str, float], marks: Mapping[str, str]) -> dict[str, Marked]:
    """Make the cells of a column of means, by run; mark the best printed value if there are several."""
    form = ".0f" if measure.family.summary == "sum" else ".4f"
    shown = {run: float(f"{mean:{form}}") for run, mean in means.items()}
    best = (min if measure.family.lower_is_better else max)(shown.values()) if len(means) > 1 else None
    width = max(map(len, marks.values()), default=0)  # padded, so that numbers before marks stay aligned
    return {
        run: Marked(mean, form, f"{marks.get(run, ''):<{width}}", shown[run] == best) for run, mean in means.items()
    }


def marks_of(
    scores: Mapping[str, Scores], significance: Significance | None, *, signed: bool = False, spans: bool = False
) -> dict[tuple[str, Measure], str]:
    """Mark means by letters of groups or of beaten baselines, and by a minus before others; of one, by a star."""
    if significance is None:
        return {}
    if significance.all_pairs:
        return group_letters(scores, significance, spans=spans)
    if len(significance.baselines) == 1 and not signed:
        return {(c.run, c.measure): "*" for c in significance.comparisons if c.significant}
    # One of two baselines is the run of their comparison, and either may have beaten the other.
    beaten = [(c.run, c.baseline, c.measure, c.direction) for c in significance.comparisons if c.significant]
    beaten += [(other, run, measure, -direction) for run, other, measure, direction in beaten]
    sides = dict[tuple[str, Measure, int], str]()
    for other, letter in baseline_letters(significance).items():
        for run, against, measure, direction in beaten:
            if against == other:
                sides[run, measure, direction] = sides.get((run, measure, direction), "") + letter
    marks = dict[tuple[str, Measure], str]()
    for (run, measure, direction), letters in sorted(sides.items(), key=lambda item: -item[0][2]):
        marks[run, measure] = marks.get((run, measure), "") + "-" * (direction < 0) + letters
    return marks


def baseline_letters(significance: Significance) -> dict[str, str]:
    """Return a letter for each baseline, and a star for a single one."""
    if len(significance.baselines) == 1:
        return {significance.baselines[0]: "*"}
    return dict(zip(significance.baselines, ascii_letters, strict=False))


def ranked(scores: Mapping[str, Scores]) -> dict[str, int]:
    """Return the ranks of runs by the first measure, best first; equal means share a rank."""
    measure = next(iter(scores.values())).measures[0]
    sign = 1 if measure.family.lower_is_better else -1
    values = {name: sign * float(run.rounded_means[0]) for name, run in scores.items()}
    return {name: 1 + sum(other < values[name] for other in values.values()) for name in sorted(values, key=values.get)}  # type: ignore[arg-type]


def best_first(scores: Mapping[str, Scores], baselines: Sequence[str]) -> list[str]:
    """Order runs by the first measure, the baselines before all others, which are held against them."""
    return [*baselines, *(name for name in ranked(scores) if name not in baselines)]


def group_letters(
    scores: Mapping[str, Scores], significance: Significance, *, spans: bool = False
) -> dict[tuple[str, Measure], str]:
    """Return letters by run and measure such that two runs share one exactly if they do not differ significantly.

    Each letter is a largest group of runs without two that differ (the compact letter display of Piepho 2004); groups
    whose pairs all share other letters are left out. The first letter is of the first measure's best run. With `spans`,
    a..f stands for three letters or more in a row, if there are more than `MOST_LETTERS`.
    """
    order, letters = [*ranked(scores)], dict[tuple[str, Measure], str]()
    for measure in next(iter(scores.values())).measures:
        differing = [(c.run, c.baseline) for c in significance.comparisons if c.measure == measure and c.significant]
        groups = sorted(
            _groups(order, differing), key=lambda group: [order.index(name) for name in order if name in group]
        )
        few = len(groups) <= len(ascii_letters)  # else numbers, which a comma has to part
        known = ascii_letters if few else [str(n + 1) for n in range(len(groups))]
        least = 3 if spans and len(groups) > MOST_LETTERS else len(groups) + 1
        for name in order:
            places = enumerate(n for n, group in enumerate(groups) if name in group)
            rows = [[known[n] for _, n in row] for _, row in groupby(places, lambda place: place[1] - place[0])]
            labels = [[f"{row[0]}..{row[-1]}"] if len(row) >= least else row for row in rows]
            letters[name, measure] = ("" if few else ",").join(chain.from_iterable(labels))
    return letters


def _groups(names: Sequence[str], differing: Sequence[tuple[str, str]]) -> list[frozenset[str]]:
    """Return groups of names without a differing pair, so that all other pairs share one."""
    # Insert and absorb (Piepho 2004): each significant pair splits the groups that have both.
    groups = [frozenset(names)]
    for pair in differing:
        split = [group for group in groups if group.issuperset(pair)]
        whole = [group for group in groups if not group.issuperset(pair)]
        parts = {group - {name} for group in split for name in pair}
        groups = whole + [
            part
            for part in parts
            if not any(part <= other for other in whole) and not any(part < other for other in parts)
        ]
    # Smallest first, so that the large groups, which say most, are kept.
    needed = sorted(groups, key=lambda group: (len(group), sorted(group)))
    shared = Counter(pair for group in needed for pair in combinations_with_replacement(sorted(group), 2))
    for group in [*needed]:
        pairs = [*combinations_with_replacement(sorted(group), 2)]
        if all(shared[pair] > 1 for pair in pairs):
            needed.remove(group)
            shared.subtract(pairs)
    return needed


def query_table(scores: Mapping[str, Scores]) -> Table:
    """Tabulate the scores of every query, a row for each run and query."""
    rows: list[Row] = [
        (name, qid, *map(Marked, values))
        for name, run in scores.items()
        for qid, values in zip(run.qids, run.values.tolist(), strict=True)
    ]
    return Table("", ("run", "qid", *map(str, next(iter(scores.values())).measures)), rows)


def to_dict(scores: Mapping[str, Scores], significance: Significance | None = None) -> dict[str, Any]:
    """Return all figures, unrounded, as a dictionary that JSON can represent; infinite statistics become None."""
    content: dict[str, Any] = {**TREC_EVAL, "runs": {name: _run_to_dict(run) for name, run in scores.items()}}
    if significance:
        comparisons = [*map(_comparison_to_dict, significance.comparisons)]
        content["significance"] = {**asdict(significance), "comparisons": comparisons}
    if significance and significance.all_pairs:
        letters = group_letters(scores, significance)
        for name, rank in ranked(scores).items():
            by_measure = {str(measure): letters[name, measure] for measure in scores[name].measures}
            content["runs"][name] |= {"rank": rank, "letters": by_measure}
    return content


def _comparison_to_dict(c: Comparison) -> dict[str, Any]:
    # JSON has no infinite statistics, and no p that is no number.
    content = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in {**asdict(c), "measure": str(c.measure)}.items()
    }
    return {name: value for name, value in content.items() if value or name not in ("exact_p", "not_run")}


def _run_to_dict(run: Scores) -> dict[str, Any]:
    means, queries = run.by_measure, zip(run.qids, run.values.tolist(), strict=True)
    return {
        "means": means,
        "per_query": {qid: dict(zip(means, values, strict=True)) for qid, values in queries},
        "missing": list(run.missing),
        "unjudged": list(run.unjudged),
        **({"seen": True} if run.seen else {}),
        **({"empty": list(run.empty)} if run.empty else {}),
    }


def notes(scores: Mapping[str, Scores]) -> list[str]:
    """Write what means are over, and what is missing."""
    queries = len(next(iter(scores.values())).qids)
    lines = [f"Means over {queries} judged queries."]
    measures = next(iter(scores.values())).measures
    if losses := ", ".join(str(measure) for measure in measures if measure.family.lower_is_better):
        lines.append(f"Lower is better: {losses}.")
    for summary in ("sum", "geometric mean"):
        if names := ", ".join(str(measure) for measure in measures if measure.family.summary == summary):
            lines.append(f"{names}: {summary} over queries, not mean.")
    runs_of: dict[str, list[str]] = {}  # the runs that a note is about
    for name, run in scores.items():
        for qids, text in (
            (run.missing, "missing, scored as empty rankings"),
            (run.empty, "with empty rankings"),
            (run.unjudged, "without judgements, ignored"),
        ):
            if qids:
                runs_of.setdefault(f"{len(qids)} {text} ({few_names(qids)}).", []).append(name)
        if run.seen:
            text = "a model ranked topics that it was trained on, so the scores do not carry over to others."
            runs_of.setdefault(text, []).append(name)
    return lines + [f"{few_names(names)}: {text}" for text, names in runs_of.items()]


def spans_note(columns: Iterable[Mapping[str, Marked]]) -> list[str]:
    """Say what stands for several letters, if anything does."""
    spans = any(".." in cell.mark for column in columns for cell in column.values())
    return ["a..f: all letters from a to f."] * spans


def marks_notes(runs: Collection[str], significance: Significance | None) -> list[str]:
    """Say what the marks of means are."""
    if significance is None:
        return []
    level = f"corrected p below {SIGNIFICANCE_LEVEL}"
    if significance.all_pairs:
        return [f"Runs without a common letter differ significantly, {level}."]
    if len(significance.baselines) == 1:
        return [f"* significantly different from {significance.baselines[0]}, {level}."]
    letters = ", ".join(f"{letter} {name}" for name, letter in baseline_letters(significance).items())
    told = [f"Letters: significantly better than {letters}; after a minus, worse; {level}."]
    pairs = {frozenset((c.run, c.baseline)) for c in significance.comparisons}
    whole = {frozenset((run, baseline)) for baseline in significance.baselines for run in runs if run != baseline}
    return told if pairs == whole else [*told, "Not all pairs were compared."]


class Unretrieved(NamedTuple):
    """Judged documents that none of some runs has."""

    documents: int
    relevant: int  # of these, from grade 1
    judged: int  # in all
    runs: int

    def note(self, collection: str = "") -> str:
        """Write a line; "" if every judged document is in a run."""
        where = f"in none of the {self.runs} runs" if self.runs > 1 else "not in the run"
        counts = f"{self.documents} of {self.judged} judged documents are {where}, {self.relevant} of them relevant"
        return f"{collection}{counts}." if self.documents else ""


def count_unretrieved(
    judgements: Mapping[str, Mapping[str, Any]], retrieved: Sequence[Mapping[str, Set[str]]]
) -> Unretrieved | None:
    """Count the judged documents that no run has, by each run's; None without runs."""
    if not retrieved:
        return None
    absent, relevant, judged = 0, 0, 0
    for qid, given in judgements.items():
        grades = document_grades(given)
        found = set[str]().union(*(by_qid.get(qid, ()) for by_qid in retrieved))
        judged, absent = judged + len(grades), absent + len(grades) - len(found)
        relevant += sum(grade > 0 and docid not in found for docid, grade in grades.items())
    return Unretrieved(absent, relevant, judged, len(retrieved))


def simulate_power(scores: Mapping[str, Scores], loss: float) -> tuple[LossPower, ...]:
    """Simulate how probably each run's loss of this size would be found by each measure; p is corrected over these."""
    found = list[LossPower]()
    for name, run in scores.items():
        for column, measure in enumerate(run.measures):
            worst = measure.range[measure.family.lower_is_better]
            values, number = run.values[:, column], len(run.measures)
            if measure.family.summary != "mean" or not math.isfinite(worst) or len(values) < 2:
                raise ParameterError(f"power is of a mean over two topics or more, and {measure} of {name} is none")
            gaps = np.abs(values - worst)
            if not loss < gaps.mean():
                raise ParameterError(
                    f"a loss of {loss:g} is not below {gaps.mean():.4g}, by which {measure} of {name} can be worse at "
                    "most: give a smaller one"
                )
            share = loss_power(gaps, loss, len(values), comparisons=number)
            needed = topics_for_loss(gaps, loss, comparisons=number)
            least = least_loss(gaps, comparisons=number)
            found.append(LossPower(name, str(measure), loss, share, needed, least))
    return tuple(found)


def power_table(powers: Sequence[LossPower], topics: int) -> Table:
    """Tabulate simulated losses."""
    note = (
        f"Power, before a second run. found: of losses of {powers[0].loss:g}, simulated on the run's own scores, the "
        f"share that --fail-if worse finds on these {topics} topics. topics for 80 %: the number of topics that finds "
        "this share. least loss: that of which these topics find this share. A loss is the whole score of topics at "
        "random; one that is spread over all topics is found on fewer."
    )
    rows: list[Row] = [
        (c.run, c.measure, Marked(c.found, ".2f"), c.topics or f"> {MOST_TOPICS}", c.least) for c in powers
    ]
    return Table(note, ("run", "measure", "found", "topics for 80 %", "least loss"), rows)


def unjudged_note(unjudged: Mapping[str, float], collection: str = "") -> str:
    """Write a line on the shares of unjudged documents; "" if there are none."""
    if not any(unjudged.values()):
        return ""
    shown = sorted(unjudged.items(), key=lambda item: -item[1])
    shares = [f"{name} {100 * share:.1f} %" for name, share in shown]
    if len(shares) > MOST_NAMES:
        shares = [*shares[: MOST_NAMES - 1], f"..., {shares[-1]}"]
    return f"{collection}Share of the top 10 without judgements, counted as not relevant: {', '.join(shares)}."
