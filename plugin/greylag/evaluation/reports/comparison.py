"""The comparison of runs: files and judgements in, an `Evaluation` out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_letters
from typing import Any, Literal, NamedTuple

from greylag.base import GreylagError, ParameterError, Run, as_qrels, as_run, check_choice, guided, naming, read_pairs
from greylag.evaluation.reports.categories import by_category
from greylag.evaluation.reports.earlier import earlier_measures, is_evaluation, read_earlier
from greylag.evaluation.reports.evaluation import Evaluation
from greylag.evaluation.reports.gate import check_gate, parse_fail_if
from greylag.evaluation.reports.names import name_runs
from greylag.evaluation.reports.parts import check_part_names
from greylag.evaluation.reports.scores import best_first
from greylag.evaluation.reports.verdict import verdict
from greylag.evaluation.scoring.agreement import (
    check_agreement,
    check_levels,
    check_rows,
    check_ties,
    few_names,
    identical,
)
from greylag.evaluation.scoring.concordance import compare_judgements, compare_measures
from greylag.evaluation.scoring.holes import compare_with_holes, score_holes
from greylag.evaluation.scoring.margins import check_margin
from greylag.evaluation.scoring.measures import Measure, parse_measures
from greylag.evaluation.scoring.predicted import check_coverage, check_predictions, evaluate_with_predictions
from greylag.evaluation.scoring.scores import (
    DEFAULT_MEASURES,
    PartsScores,
    Scores,
    by_query_alone,
    check_judged,
    ranking_keys,
    score_documents,
    score_subtopics,
)
from greylag.evaluation.scoring.significance import (
    Correction,
    Design,
    Test,
    as_baselines,
    check_baselines,
    check_run_names,
    compare_collections,
)
from greylag.evaluation.scoring.teams import Teams, assign_teams, best_runs
from greylag.evaluation.trec.qrels import read_qrels
from greylag.evaluation.trec.runs import RunParts

SUBTOPIC_MEASURES = "alpha-nDCG@10", "ERR-IA@10", "S-recall@10"
MIN_UNJUDGED_LEAD = 0.1  # of the top 10, one document
_log = logging.getLogger("greylag")


@guided
def compare(
    runs: Mapping[str, Run | str | Path | Any],
    qrels: Any = None,
    measures: Sequence[Measure | str | Any] | str | None = None,
    *,
    baseline: str | Sequence[str] | None = None,
    all_pairs: bool = False,
    test: Test = "t",
    correction: Correction = "holm",
    margin: float | None = None,
    unjudged: bool = False,
    predicted: Any = None,
    other_qrels: Any = None,
    tau: bool = False,
    teams: Teams | None = None,
    best_of_team: bool = False,
    categories: Mapping[str, str] | str | Path | None = None,
    fail_if: str | float | None = None,
    order: Literal["best", "given"] = "best",
    read: Callable[[Any], Run | RunParts] = RunParts,
) -> Evaluation:
    """Score runs and, with a baseline or for all pairs, test their differences, as ``greylag evaluate`` does.

    Parameters
    ----------
    runs : mapping of str to Run, path, or a run that `evaluate` takes
        Runs by name, or a list of files or of `Run`, by their tags where these differ. JSON of an earlier evaluation is
        the run that it scored, by the same judgements and measures; of several, the one of this name. Or, without
        `qrels`, pairs of runs and judgements by name of collection, ``{"nfcorpus": (runs, qrels), ...}``, with runs of
        the same names; p is corrected over all collections. All are read and scored before one is refused.
    qrels : path, judgements that `evaluate` takes, or judgements by subtopic
    measures : sequence of Measure, str or measure of ir_measures, optional
        By default those of an earlier evaluation among the runs; else AP, P@10 and nDCG@10 and, by subtopic,
        alpha-nDCG@10, ERR-IA@10 and S-recall@10.
    baseline : str or sequence of str, optional
        The names of one or several runs that the others are compared with.
    all_pairs : bool, default False
        Compare every run with every other, without a baseline.
    test, correction, margin
        See `compare_scores`.
    unjudged : bool, default False
        Add scores and differences with documents without judgements as relevant, and left out (`score_holes`).
    predicted : path or judgements, optional
        Predicted judgements of the topics of `qrels` and of others, by which `evaluate_with_predictions` corrects.
    other_qrels : path or judgements, optional
        Another assessor's judgements: adds how far both agree on the topics of both, by Cohen's kappa of documents,
        plain and weighted, and by Kendall's tau and tau-AP of the runs (Yilmaz, Aslam and Robertson 2008).
    tau : bool, default False
        Add tau and tau-AP of the runs' order by each pair of measures.
    teams : mapping of str to str, path or str, optional
        Teams of runs, as `pool_runs` takes them: "own" and "without own" are a whole team's.
    best_of_team : bool, default False
        Show and test the best run of each team by the first measure, and the baselines.
    categories : mapping of qid to category, or path, optional
        Add means by category. A file has lines of qid and category, parted by a tab or as CSV.
    fail_if : {"lower", "worse"} or float > 0, optional
        Add a `gate`, which checks each run by each measure on all topics and on each category. It fails if a mean is
        lower than the baseline's; is shown to be, by a one-sided test; or is not shown to be above the baseline's minus
        this margin (non-inferiority, by a one-sided t-test). p is corrected over all checks. It fails for a run that
        did not run, passes for one with the baseline's scores, and is refused if no run could fail, or for a margin on
        fewer than five topics.
    order : {"best", "given"}, default "best"
        Put runs in the order of their means by the first measure, after the baselines, or leave them.
    read : callable, optional
        Reads the paths among the runs, such as `read_run`. By default, a run is scored as it is read, and not kept in
        memory, if its lines are together by query, and no view and no measure needs all runs or topics at once.
    """
    collections, baselines = _collections(runs, qrels), as_baselines(baseline)
    # What can be refused is, before runs are read, so that nothing stops after the work.
    _check_baselines(collections, baselines, all_pairs=all_pairs)
    views = {"other_qrels": other_qrels is not None, "tau": tau, "best_of_team": best_of_team}
    views |= {"categories": categories is not None, "fail_if": fail_if is not None}
    tested = {"all_pairs": all_pairs, "margin": margin is not None, "test": test != "t", "unjudged": unjudged}
    if qrels is None:
        _exclude("several collections", views | {"predicted": predicted is not None})
    if predicted is not None:
        _exclude("predicted judgements", views | tested | {"several baselines": len(baselines) > 1})
    if best_of_team and teams is None:
        raise ParameterError("best_of_team needs teams")
    check_choice("order", order, ("best", "given"))
    design = Design(test, correction=correction, margin=margin, all_pairs=all_pairs)
    rule = None if fail_if is None else parse_fail_if(fail_if, next(iter(collections.values()))[0], baselines)
    named = read_pairs(categories, "qid category") if isinstance(categories, str | Path) else categories
    guesses, other = (None if one is None else as_qrels(_judgements(one)[0]) for one in (predicted, other_qrels))
    judged = {
        name: _judged(of_one, earlier_measures(named_runs.values()) if measures is None else measures)
        for name, (named_runs, of_one) in collections.items()
    }
    for name, (of_one, _) in collections.items():
        _check_views(len(of_one), judged[name], other, tau=tau)
        for option, given in (("margin", design.margin), ("fail_if", rule)):
            if given is not None and not isinstance(given, str):
                check_margin(option, given, judged[name].measures)

    # Runs are read and scored; views of them are added one after another.
    whole = unjudged or guesses is not None or other is not None
    scored = {
        name: _scored(name, of_one, judged[name], guesses, read, whole=whole, tagged=teams is not None)
        for name, (of_one, _) in collections.items()
    }
    of_team = {name: None if teams is None else _teams(one, teams) for name, one in scored.items()}
    if guesses is not None:
        parts = {"": _corrected(scored[""], guesses, baselines, correction)}
    else:
        parts = {name: _plain(one, baselines) for name, one in scored.items()}
    parts = {"": _best_of_team(parts[""], of_team[""] or {}, baselines)} if best_of_team else parts
    parts = _best_first(parts, baselines) if order == "best" else parts
    parts = _tested(parts, baselines, design) if guesses is None and (baselines or all_pairs) else parts
    parts = {n: _with_holes(part, scored[n], of_team[n]) for n, part in parts.items()} if unjudged else parts
    _warn(parts)
    if qrels is None:
        return Evaluation({}, parts=parts)
    found = replace(parts[""], judgements=judged[""].qrels)
    found = replace(found, rankings=compare_measures(scored[""].scores)) if tau else found
    found = found if other is None else _with_other(found, scored[""], other)
    found = replace(found, categories=by_category(found.scores, named)) if named else found
    return _with_verdict(found, rule)


def _check_baselines(collections: Mapping[str, Any], baselines: Sequence[str], *, all_pairs: bool) -> None:
    """Raise `ParameterError` for baselines that are no runs, too many for letters, or excluded by `all_pairs`."""
    for runs, _ in collections.values():
        check_baselines(baselines, runs)
    if baselines and all_pairs:
        raise ParameterError(f"all_pairs has no baseline: leave one of the two out, all_pairs or {baselines[0]!r}")
    if len(baselines) > len(ascii_letters):
        raise ParameterError(f"{len(baselines)} baselines have no letters: give at most {len(ascii_letters)}")


def _exclude(what: str, options: Mapping[str, bool]) -> None:
    """Raise `ParameterError` for options that were given and do not go with something."""
    if given := [name for name, asked in options.items() if asked]:
        raise ParameterError(f"{what} exclude {', '.join(given)}: leave these out")


def _check_views(number: int, judged: _Judged, other: Any, *, tau: bool) -> None:
    """Raise `ParameterError` if so many runs and these judgements do not suffice for views that were asked for."""
    if tau and min(number, len(judged.measures)) < 2:
        raise ParameterError("tau is of the order of runs by two measures: give at least two of both")
    if other is not None and not as_qrels(judged.qrels).keys() & other.keys():
        raise ParameterError("the two sets of judgements have no topic in common")


def _collections(runs: Any, qrels: Any) -> dict[str, tuple[Mapping[str, Any], Any]]:
    """Return runs and judgements by name of collection, which is "" for a single one."""
    if isinstance(runs, list | tuple) and all(isinstance(run, Run | str | Path) for run in runs):
        runs = dict(name_runs([(None, Path(run) if isinstance(run, str) else run) for run in runs], "tag"))
    pairs = isinstance(runs, Mapping) and [value for value in runs.values() if isinstance(value, tuple)]
    if qrels is None and pairs and all(len(pair) == 2 for pair in pairs) and len(pairs) == len(runs):
        collections = dict(runs)
        check_run_names(collections)
        check_part_names("collection", collections)
    elif qrels is None or pairs:
        raise ParameterError(
            "judgements are given once: compare({'mine': run}, qrels), or with each collection's runs, "
            "compare({'nfcorpus': ({'mine': run}, qrels)}, measures=['AP'])"
        )
    else:
        collections = {"": (runs, qrels)}
    for of_one, _ in collections.values():
        named = isinstance(of_one, Mapping) and not isinstance(of_one, Run)
        if not of_one or not named or any(isinstance(run, Scores) for run in of_one.values()):
            raise ParameterError(
                "runs are by name: compare({'bm25': run, 'mine': 'mine.run'}, qrels); see compare_scores"
            )
        check_run_names(of_one)
    (first, (expected, _)), *others = collections.items()
    for name, (of_one, _) in others:
        if differing := expected.keys() ^ of_one.keys():
            raise ParameterError(f"{first} and {name} differ in their runs: {few_names(sorted(differing))}")
    return collections


class _Judged(NamedTuple):
    """Judgements, and the measures that runs are scored by."""

    qrels: Any
    by_subtopic: bool
    measures: tuple[Measure, ...]

    @property
    def score(self) -> Callable[..., Scores]:
        return score_subtopics if self.by_subtopic else score_documents


class _Scored(NamedTuple):
    """The runs of a collection as they were read, with their scores; JSON of an earlier evaluation has these alone."""

    judged: _Judged
    runs: Mapping[str, Run]
    scores: Mapping[str, Scores]
    warnings: tuple[str, ...]


def _judged(qrels: Any, measures: Any) -> _Judged:
    """Read judgements, of a file or converted, and parse measures."""
    judged, by_subtopic = _judgements(qrels)
    if measures is None:
        measures = SUBTOPIC_MEASURES if by_subtopic else DEFAULT_MEASURES
    parsed = parse_measures(measures)
    check_judged(parsed, by_subtopic=by_subtopic)
    return _Judged(judged, by_subtopic, parsed)


def _scored(
    collection: str,
    runs: Mapping[str, Any],
    judged: _Judged,
    guesses: Any,
    read: Callable[[Any], Run | RunParts],
    *,
    whole: bool,
    tagged: bool,
) -> _Scored:
    """Read and score runs: `whole` if views need all their documents; `tagged` if they need the tags of all."""
    known = judged.qrels if guesses is None else guesses
    warnings = check_levels(judged.measures, known)
    opened, scores, faults = dict[str, Run](), dict[str, Scores](), list[GreylagError]()
    rankings = dict[str, Hashable]()  # by documents alone: equal rankings may have other scores and tags
    once = not (judged.by_subtopic or whole) and by_query_alone(judged.measures)
    for name, run in runs.items():
        try:
            if isinstance(run, str | Path) and is_evaluation(run):
                if whole or tagged:
                    raise ParameterError(f"{run} has scores and no documents, which the other options need: give a run")
                scores[name] = read_earlier(run).scores(name, judged.qrels, judged.measures)
                continue
            one = read(run) if isinstance(run, str | Path) else as_run(run, tag=name)
            with naming(name):
                opened[name], rankings[name], of_run = _opened(one, judged, once=once)
                check_rows(opened[name], {} if judged.by_subtopic else judged.qrels)
                told = [*check_agreement(opened[name], known), *check_ties(opened[name], known)]
                warnings += [f"{name}: {warning}" for warning in told]
                scores[name] = of_run()
        except GreylagError as error:
            faults.append(error)  # the runs after it are read, too, so that one message has all faults
    with naming(f"collection {collection}") if collection else nullcontext():
        _refuse(faults, len(runs))
    return _Scored(judged, opened, scores, (*warnings, *identical(rankings)))


def _opened(run: Run | RunParts, judged: _Judged, *, once: bool) -> tuple[Run, Hashable, Callable[[], Scores]]:
    """Return a run, or its first documents if it is read `once`, a key of its rankings, and a function that scores."""
    if isinstance(run, RunParts) and once:  # it may be larger than memory
        parts = run.apply(partial(PartsScores, judged.qrels, judged.measures))
        return parts.tops, parts.keys, parts.scores
    run = run.whole() if isinstance(run, RunParts) else run
    return run, ranking_keys(run), partial(judged.score, run, judged.qrels, judged.measures)


def _plain(found: _Scored, baselines: Sequence[str]) -> Evaluation:
    """Return the scores with the shares of unjudged documents."""
    qrels, score = found.judged.qrels, found.judged.score
    by_run = {name: score(run, qrels, ["Judged@10"]) for name, run in found.runs.items()}
    judged_at_10 = {name: one.values[one.ranked, 0] for name, one in by_run.items()}  # of queries with documents
    shares = {name: 1 - float(values.mean()) if len(values) else 0.0 for name, values in judged_at_10.items()}
    lead = _unjudged_lead(shares, [name for name in baselines if name in shares]) if shares else []
    return Evaluation(found.scores, unjudged=shares, warnings=(*found.warnings, *lead))


def _corrected(found: _Scored, guesses: Any, baselines: Sequence[str], correction: Correction) -> Evaluation:
    """Return means and differences corrected by people's judgements of some topics."""
    qrels, warnings = found.judged.qrels, [*found.warnings, *check_predictions(found.judged.qrels, guesses)]
    warnings += [line for name, run in found.runs.items() for line in check_coverage(name, run, qrels, guesses)]
    by_run = {name: score_documents(run, guesses, found.judged.measures) for name, run in found.runs.items()}
    corrections = evaluate_with_predictions(found.scores, by_run, next(iter(baselines), None), correction=correction)
    agreed = compare_judgements(("people", "predicted"), (qrels, guesses), (found.scores, by_run))
    return Evaluation(found.scores, corrections=corrections, agreement=agreed, warnings=tuple(warnings))


def _best_of_team(found: Evaluation, teams: Mapping[str, str], baselines: Sequence[str]) -> Evaluation:
    """Keep the best run of each team."""
    kept, shares = best_runs(found.scores, teams, baselines), found.unjudged or {}
    unjudged = {name: shares[name] for name in kept if name in shares}
    return replace(found, scores={name: found.scores[name] for name in kept}, unjudged=unjudged, best_of=teams)


def _teams(found: _Scored, teams: Teams) -> dict[str, str]:
    """Return each run's team, by its name or tag."""
    return assign_teams({name: (run.tag, name) for name, run in found.runs.items()}, teams)


def _best_first(parts: Mapping[str, Evaluation], baselines: Sequence[str]) -> dict[str, Evaluation]:
    """Put runs in the order of their means in the first collection, after the baselines."""
    names = best_first(next(iter(parts.values())).scores, baselines)
    return {name: replace(part, scores={run: part.scores[run] for run in names}) for name, part in parts.items()}


def _tested(parts: Mapping[str, Evaluation], baselines: Sequence[str], design: Design) -> dict[str, Evaluation]:
    """Test differences, with p corrected over all parts."""
    tests, tested = compare_collections({n: part.scores for n, part in parts.items()}, None, baselines, design), {}
    for name, part in parts.items():
        absent = dict.fromkeys(c.not_run for c in tests[name].comparisons if c.not_run)
        warnings = (*part.warnings, *(f"not compared: {reason}" for reason in absent))
        tested[name] = replace(part, significance=tests[name], warnings=warnings)
    return tested


def _with_holes(found: Evaluation, scored: _Scored, teams: Mapping[str, str] | None) -> Evaluation:
    """Add scores and differences with documents without judgements as relevant, and left out."""
    holes, tests = score_holes(scored.runs, scored.judged.qrels, scored.judged.measures, teams), found.significance
    return replace(found, holes=holes, significance=tests and compare_with_holes(tests, holes))


def _with_verdict(found: Evaluation, rule: str | float | None) -> Evaluation:
    """Add what the tests show, if there are any, and a gate."""
    scores, tests = found.scores, found.significance
    if tests is None:
        return found
    gate = None if rule is None else check_gate({"all": scores, **found.categories}, tests, rule)
    return replace(found, verdict=verdict([(scores, tests)]), gate=gate)


def _warn(parts: Mapping[str, Evaluation]) -> None:
    for name, part in parts.items():
        for warning in part.warnings:
            _log.warning("%s", f"{name}: {warning}" if name else warning)


def _with_other(found: Evaluation, scored: _Scored, other: Any) -> Evaluation:
    """Add how far other judgements agree."""
    by_other = {name: score_documents(run, other, scored.judged.measures) for name, run in scored.runs.items()}
    judgements = scored.judged.qrels, other
    return replace(found, agreement=compare_judgements(("first", "second"), judgements, (scored.scores, by_other)))


def _judgements(qrels: Any) -> tuple[Any, bool]:
    """Return judgements, of a file or converted, and whether they are by subtopic."""
    if isinstance(qrels, str | Path | list | tuple):
        qrels = read_qrels(qrels)
    by_qid = [judged for judged in qrels.values() if isinstance(judged, Mapping)] if isinstance(qrels, Mapping) else []
    by_subtopic = any(isinstance(grades, Mapping) for judged in by_qid for grades in judged.values())
    return (qrels if by_subtopic else as_qrels(qrels)), by_subtopic


def _refuse(faults: Sequence[GreylagError], number: int) -> None:
    """Raise what is wrong with runs; if it is several of them, log a line each, and raise one with their number."""
    if number == 1 and faults:
        raise faults[0]
    if len(faults) == 1:
        raise ParameterError(f"{faults[0]} (1 of {number} runs; the others are fine)")
    if faults:
        for fault in faults:
            _log.error("%s", fault)
        raise ParameterError(f"{len(faults)} of {number} runs cannot be scored: mend them or leave them out")


def _unjudged_lead(shares: Mapping[str, float], baselines: Sequence[str]) -> list[str]:
    """Warn of runs with clearly more unjudged documents than the baseline or, without one, than the run with fewest."""
    # A difference between runs favours the one that contributed to the pool; an equal share is fair to both.
    reference = min(baselines or shares, key=lambda name: shares[name])
    more = [name for name, share in shares.items() if share - shares[reference] > MIN_UNJUDGED_LEAD]
    if not more:
        return []
    more.sort(key=lambda name: -shares[name])
    listed = few_names([f"{shares[name]:.0%} of {name}" for name in more])
    return [
        f"of the top 10 documents, {listed} are not judged, against {shares[reference]:.0%} of {reference}, and count "
        "as not relevant: see Judged@10, and measures such as nDCG(judged_only=True)@10"
    ]
