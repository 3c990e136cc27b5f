"""The comparison of runs: files and judgements in, an `Evaluation` out, or one of each of several collections."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from string import ascii_letters
from typing import Any, overload

from greylag.base import (
    GreylagError,
    ParameterError,
    QrelsLike,
    Run,
    RunLike,
    SubtopicQrelsLike,
    as_qrels,
    as_run,
    as_subtopic_qrels,
    guided,
    has_subtopics,
    naming,
)
from greylag.evaluation.reports.earlier import digests, earlier_measures, is_evaluation, read_earlier
from greylag.evaluation.reports.evaluation import Collections, Evaluation, QrelsAgreement
from greylag.evaluation.reports.names import name_runs
from greylag.evaluation.reports.parts import check_part_names
from greylag.evaluation.reports.scores import best_first, count_unretrieved
from greylag.evaluation.scoring.agreement import (
    check_agreement,
    check_levels,
    check_order_of_arguments,
    check_rows,
    check_ties,
    document_grades,
    few_names,
    identical,
)
from greylag.evaluation.scoring.concordance import Agreement, common_topics, compare_judgements
from greylag.evaluation.scoring.holes import score_holes
from greylag.evaluation.scoring.margins import check_margin
from greylag.evaluation.scoring.measures import Measure, parse_measures
from greylag.evaluation.scoring.predicted import check_coverage, check_predictions, evaluate_with_predictions
from greylag.evaluation.scoring.scores import (
    DEFAULT_MEASURES,
    DIFFERENCE_DECIMALS,
    PartsScores,
    Scores,
    by_query_alone,
    check_judged,
    ranking_keys,
    retrieved_documents,
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
from greylag.evaluation.scoring.teams import Teams, assign_teams
from greylag.evaluation.trec.qrels import read_qrels
from greylag.evaluation.trec.runs import RunParts

SUBTOPIC_MEASURES = "alpha-nDCG@10", "ERR-IA@10", "S-recall@10"
MIN_UNJUDGED_LEAD = 0.1  # of the top 10, one document
_log = logging.getLogger("greylag")


@overload
def compare(
    runs: Mapping[str, RunLike | str | Path] | Sequence[Run | str | Path],
    qrels: QrelsLike | SubtopicQrelsLike | str | Path | Sequence[str | Path],
    measures: Sequence[Measure | str | Any] | str | None = None,
    *,
    baseline: str | Sequence[str] | None = None,
    all_pairs: bool = False,
    test: Test = "t",
    correction: Correction = "holm",
    margin: float | None = None,
    unjudged: bool | Teams = False,
    predicted: QrelsLike | str | Path | None = None,
    other_qrels: QrelsLike | str | Path | None = None,
) -> Evaluation: ...


@overload
def compare(runs: Mapping[str, tuple[Any, Any]], qrels: None = None, **tests: Any) -> Collections: ...


@guided  # type: ignore[misc]  # the second takes some of the first's tests
def compare(
    runs: Any,
    qrels: Any = None,
    measures: Sequence[Measure | str | Any] | str | None = None,
    *,
    baseline: str | Sequence[str] | None = None,
    all_pairs: bool = False,
    test: Test = "t",
    correction: Correction = "holm",
    margin: float | None = None,
    unjudged: bool | Teams = False,
    predicted: Any = None,
    other_qrels: Any = None,
) -> Evaluation | Collections:
    """Score runs and, with a baseline or for all pairs, test their differences, as ``greylag evaluate`` does.

    Runs are in the order of their means by the first measure, after the baselines. What needs scores alone is a method
    of the `Evaluation`: `by_category`, `gated`, `correlated`, `best_of`, and another order, `ordered`.

    Parameters
    ----------
    runs : mapping of str to Run, path, or a run that `evaluate` takes
        Runs by name, or a list of files or of `Run`, by their tags where these differ. JSON of an earlier evaluation is
        the run that it scored, by the same judgements and measures; of several, the one of this name. Or, without
        `qrels`, pairs of runs and judgements by name of collection, ``{"nfcorpus": (runs, qrels), ...}``, with runs of
        the same names; p is corrected over all collections, and the result is `Collections`. All are read and scored
        before one is refused. A file is scored as it is read, and not kept in memory, if its lines are together by
        query, and no view and no measure needs all runs or topics at once.
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
    unjudged : bool, mapping of str to str, path or str, default False
        Add scores and differences with documents without judgements as relevant, and left out (`score_holes`). With
        teams of runs, as `pool_runs` takes them, "own" and "without own" are a whole team's.
    predicted : path or judgements, optional
        Predicted judgements of the topics of `qrels` and of others, by which `evaluate_with_predictions` corrects.
    other_qrels : path or judgements, optional
        Another assessor's judgements: adds how far both agree on the topics of both, by Cohen's kappa of documents,
        plain and weighted, and by Kendall's tau and tau-AP of the runs (Yilmaz, Aslam and Robertson 2008).
    """
    collections, baselines = _collections(runs, qrels), as_baselines(baseline)
    # What can be refused is, before runs are read, so that nothing stops after the work.
    _check_baselines(collections, baselines, all_pairs=all_pairs)
    if qrels is None:
        _exclude("several collections", {"other_qrels": other_qrels is not None, "predicted": predicted is not None})
    if predicted is not None:
        tested = {"all_pairs": all_pairs, "margin": margin is not None, "test": test != "t"}
        views = {"unjudged": unjudged is not False, "other_qrels": other_qrels is not None}
        _exclude("predicted judgements", tested | views | {"several baselines": len(baselines) > 1})
    design = Design(test, correction=correction, margin=margin, all_pairs=all_pairs)
    guesses, other = (None if given is None else as_qrels(_judgements(given)[0]) for given in (predicted, other_qrels))
    judged = {
        name: _judged(judgements, earlier_measures(named.values()) if measures is None else measures)
        for name, (named, judgements) in collections.items()
    }
    for standard in judged.values():
        if other is not None:
            common_topics(as_qrels(standard.qrels), other)
        if design.margin is not None:
            check_margin("margin", design.margin, standard.measures)

    # Runs are read and scored; views of them and tests are added one after another.
    whole = unjudged is not False or guesses is not None or other is not None
    read = {
        name: _read_runs(name, named, judged[name], guesses, whole=whole) for name, (named, _) in collections.items()
    }
    if guesses is not None:
        parts = {"": _corrected(read[""], guesses, baselines, correction)}
    else:
        parts = {name: _evaluation(each, baselines, unjudged, other) for name, each in read.items()}
    best = best_first(next(iter(parts.values())).scores, baselines)
    parts = {name: replace(part, scores={run: part.scores[run] for run in best}) for name, part in parts.items()}
    if guesses is None and (baselines or all_pairs):
        tests = compare_collections({name: part.scores for name, part in parts.items()}, None, baselines, design)
        parts = {name: part.tested(tests[name]) for name, part in parts.items()}
    for name, part in parts.items():
        for warning in part.warnings:
            _log.warning("%s", f"{name}: {warning}" if name else warning)
    return Collections(parts) if qrels is None else replace(parts[""], digests=digests(judged[""].qrels))


def compare_qrels(first: QrelsLike | str | Path, second: QrelsLike | str | Path) -> QrelsAgreement:
    """Compare two sets of judgements: Cohen's kappa, plain and weighted, of the documents that both judged.

    Topics of one alone do not count. With runs, `compare` has the agreement about their order, too.
    """
    one, other = (as_qrels(_judgements(given)[0]) for given in (first, second))
    return QrelsAgreement(compare_judgements(("first", "second"), (one, other)))


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
    for named, _ in collections.values():
        by_name = isinstance(named, Mapping) and not isinstance(named, Run)
        if not named or not by_name or any(isinstance(run, Scores) for run in named.values()):
            raise ParameterError(
                "runs are by name: compare({'bm25': run, 'mine': 'mine.run'}, qrels); see compare_scores"
            )
        check_run_names(named)
    (first, (expected, _)), *others = collections.items()
    for name, (named, _) in others:
        if differing := expected.keys() ^ named.keys():
            raise ParameterError(f"{first} and {name} differ in their runs: {few_names(sorted(differing))}")
    return collections


@dataclass(frozen=True)
class _Judged:
    """Judgements, and the measures that runs are scored by."""

    qrels: Any
    by_subtopic: bool
    measures: tuple[Measure, ...]

    @property
    def score(self) -> Callable[..., Scores]:
        return score_subtopics if self.by_subtopic else score_documents


@dataclass(frozen=True)
class _ReadRuns:
    """The runs of a collection as they were read, with their scores; JSON of an earlier evaluation has these alone."""

    judged: _Judged
    runs: Mapping[str, Run]
    scores: Mapping[str, Scores]
    warnings: tuple[str, ...]
    retrieved: tuple[Mapping[str, set[str]], ...]  # judged documents by qid, of each run that was read


def _judged(qrels: Any, measures: Any) -> _Judged:
    """Read judgements, of a file or converted, and parse measures."""
    judgements, by_subtopic = _judgements(qrels)
    if measures is None:
        measures = SUBTOPIC_MEASURES if by_subtopic else DEFAULT_MEASURES
    parsed = parse_measures(measures)
    check_judged(parsed, by_subtopic=by_subtopic)
    return _Judged(judgements, by_subtopic, parsed)


def _read_runs(collection: str, runs: Mapping[str, Any], judged: _Judged, guesses: Any, *, whole: bool) -> _ReadRuns:
    """Read and score runs: `whole` if views need all their documents."""
    known = judged.qrels if guesses is None else guesses
    warnings = check_levels(judged.measures, known)
    opened, scores, faults = dict[str, Run](), dict[str, Scores](), list[GreylagError]()
    retrieved = list[dict[str, set[str]]]()
    rankings = dict[str, Hashable]()  # by documents alone: equal rankings may have other scores and tags
    once = not (judged.by_subtopic or whole) and by_query_alone(judged.measures)
    for name, run in runs.items():
        try:
            if isinstance(run, str | Path) and is_evaluation(run):
                if whole:
                    raise ParameterError(f"{run} has scores and no documents, which the other options need: give a run")
                scores[name] = read_earlier(run).scores(name, judged.qrels, judged.measures)
                continue
            given = RunParts(run) if isinstance(run, str | Path) else run
            given = given if isinstance(given, RunParts) else as_run(given, tag=name)
            with naming(name):
                opened[name], rankings[name], found, score = _open_to_score(given, judged, once=once)
                retrieved.append(found)
                check_rows(opened[name], {} if judged.by_subtopic else judged.qrels)
                for notice in (check_agreement, check_order_of_arguments, check_ties):
                    warnings += [f"{name}: {warning}" for warning in notice(opened[name], known)]
                scores[name] = score()
        except GreylagError as error:
            faults.append(error)  # the runs after it are read, too, so that one message has all faults
    with naming(f"collection {collection}") if collection else nullcontext():
        _refuse(faults, len(runs))
    return _ReadRuns(judged, opened, scores, (*warnings, *identical(rankings)), tuple(retrieved))


def _open_to_score(
    run: Run | RunParts, judged: _Judged, *, once: bool
) -> tuple[Run, Hashable, dict[str, set[str]], Callable[[], Scores]]:
    """Return a run, or its first documents if it is read `once`, a key of its order, its judged documents, a scorer."""
    if isinstance(run, RunParts) and once:  # it may be larger than memory
        parts = run.apply(partial(PartsScores, judged.qrels, judged.measures))
        return parts.tops, parts.keys, parts.retrieved, parts.scores
    run = run.whole() if isinstance(run, RunParts) else run
    found = retrieved_documents(run, judged.qrels)
    return run, ranking_keys(run), found, partial(judged.score, run, judged.qrels, judged.measures)


def _evaluation(read: _ReadRuns, baselines: Sequence[str], unjudged: bool | Teams, other: Any) -> Evaluation:
    """Return the scores with the shares of unjudged documents, and with views of all documents."""
    qrels, score = read.judged.qrels, read.judged.score
    by_run = {name: score(run, qrels, ["Judged@10"]) for name, run in read.runs.items()}
    judged_at_10 = {name: run.values[run.ranked, 0] for name, run in by_run.items()}  # of queries with documents
    means = {name: float(values.mean()) if len(values) else 1.0 for name, values in judged_at_10.items()}
    shares = {name: round(1 - mean, DIFFERENCE_DECIMALS) for name, mean in means.items()}  # equal on paper, equal here
    lead = _unjudged_lead(shares, [name for name in baselines if name in shares]) if shares else []
    tags = {name: run.tag for name, run in read.runs.items()}
    labels = {name: (tag, name) for name, tag in tags.items()}
    teams = None if isinstance(unjudged, bool) else assign_teams(labels, unjudged)
    return Evaluation(
        read.scores,
        unjudged=shares,
        holes=None if unjudged is False else score_holes(read.runs, qrels, read.judged.measures, teams),
        warnings=(*read.warnings, *lead),
        agreement=None if other is None else _agreement(read, ("first", "second"), other)[0],
        tags=tags,
        unretrieved=count_unretrieved(qrels, read.retrieved) if len(read.runs) == len(read.scores) else None,
        relevant={
            qid: sum(grade >= read.judged.measures[0].rel for grade in document_grades(judged).values())
            for qid, judged in qrels.items()
        },
    )


def _corrected(read: _ReadRuns, guesses: Any, baselines: Sequence[str], correction: Correction) -> Evaluation:
    """Return means and differences corrected by people's judgements of some topics."""
    qrels, warnings = read.judged.qrels, [*read.warnings, *check_predictions(read.judged.qrels, guesses)]
    warnings += [line for name, run in read.runs.items() for line in check_coverage(name, run, qrels, guesses)]
    agreement, by_run = _agreement(read, ("people", "predicted"), guesses)
    corrections = evaluate_with_predictions(read.scores, by_run, next(iter(baselines), None), correction=correction)
    tags = {name: run.tag for name, run in read.runs.items()}
    return Evaluation(read.scores, corrections=corrections, agreement=agreement, warnings=tuple(warnings), tags=tags)


def _agreement(read: _ReadRuns, judges: tuple[str, str], other: Any) -> tuple[Agreement, dict[str, Scores]]:
    """Return how far other judgements agree, and the scores of runs by these."""
    by_other = {name: score_documents(run, other, read.judged.measures) for name, run in read.runs.items()}
    return compare_judgements(judges, (read.judged.qrels, other), (read.scores, by_other)), by_other


def _judgements(qrels: Any) -> tuple[Any, bool]:
    """Return judgements, of a file or converted, and whether they are by subtopic."""
    qrels = [*qrels] if isinstance(qrels, Iterator) else qrels
    by_subtopic = has_subtopics(qrels)
    return (as_subtopic_qrels if by_subtopic else read_qrels)(qrels), by_subtopic


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
