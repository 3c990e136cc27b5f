"""What comparisons show, in a paragraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from greylag.evaluation.reports.scores import ranked
from greylag.evaluation.scoring.agreement import few_names
from greylag.evaluation.scoring.measures import Measure
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.scoring.significance import FINDINGS, Comparison, Significance

Compared = Sequence[tuple[Mapping[str, Scores], Significance]]
"""Scores by run, and a test of their differences."""


def first_comparisons(compared: Compared) -> list[tuple[Mapping[str, Scores], Comparison]]:
    """Return the comparisons by the first measure, with the scores that they compare."""
    return [
        (scores, comparison)
        for scores, test in compared
        for comparison in test.comparisons
        if comparison.measure == scores[comparison.run].measures[0]
    ]


def verdict(compared: Compared) -> str:
    """Write what comparisons by the first measures show, in a paragraph; of a single one, its own sentences."""
    if len(alone := first_comparisons(compared)) == 1:
        return alone[0][1].verdict
    sentences, shown, absent = list[str](), list[Comparison](), dict[str, None]()
    for scores, test in compared:
        every = [c for _, c in first_comparisons([(scores, test)])]
        measure, comparisons = every[0].measure, [c for c in every if not c.not_run]
        absent |= dict.fromkeys(c.not_run for c in every if c.not_run)
        if not comparisons:
            continue
        if test.all_pairs:
            best = next(name for name in ranked(scores) if any(name in (c.run, c.baseline) for c in comparisons))
            comparisons = [c for c in comparisons if best in (c.run, c.baseline)]
            clauses = [_best_clause(best, f"{scores[best].means[0]:.4f}", comparisons)]
        else:
            clauses = _clauses(comparisons)
        sentences.append(f"By {measure}, {'; '.join(clauses)}.")
        shown += comparisons
    sentences += [revealed(shown), *([f"Not compared: {'; '.join(absent)}."] if absent else [])]
    return " ".join(filter(None, sentences))


def revealed(comparisons: Sequence[Comparison]) -> str:
    """Write which differences the queries of comparisons that show nothing usually reveal; "" if all show one."""
    missed = dict[Measure, list[float]]()
    for c in comparisons:
        if not (c.significant or c.detectable is None):
            missed.setdefault(c.measure, []).append(c.detectable)
    sizes = [
        f"{' to '.join(dict.fromkeys(f'{end:.4f}' for end in (min(found), max(found))))} by {measure}"
        for measure, found in missed.items()
    ]
    return f"This many queries usually (80 %) reveal differences of {', of '.join(sizes)}." if sizes else ""


def _clauses(comparisons: Sequence[Comparison]) -> list[str]:
    """Write a clause for each finding, of all runs with one baseline, or of a run with several."""
    clauses, alone = list[str](), len({c.baseline for c in comparisons}) == 1
    for direction, finding in FINDINGS.items():
        by_name = dict[str, list[str]]()
        for c in comparisons:
            if c.significant * c.direction == direction:
                name, other = (c.baseline, c.run) if alone else (c.run, c.baseline)
                by_name.setdefault(name, []).append(f"{other} ({c.difference:+.4f})")
        for name, others in by_name.items():
            listed, verb = few_names(others, " and "), "are" if len(others) > 1 else "is"
            clauses.append(f"{listed} {verb} {finding} {name}" if alone else f"{name} is {finding} {listed}")
    return clauses


def _best_clause(best: str, mean: str, comparisons: Sequence[Comparison]) -> str:
    """Write which runs the best one is better than."""
    others = {c.run if c.baseline == best else c.baseline: c.significant for c in comparisons}
    findings = {
        finding: few_names([name for name, beaten in others.items() if beaten == significant], " and ")
        for finding, significant in ((FINDINGS[1], True), ("not shown to be better than", False))
    }
    told = "; it is ".join(f"{finding} {names}" for finding, names in findings.items() if names)
    return f"{best} has the best mean, {mean}, and is {told}"
