"""Scores and comparisons under several views of documents without judgements, and without a run's own documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import chain
from typing import Any

import numpy as np

from greylag.base import (
    FloatArray,
    GroupsLike,
    IntArray,
    Marked,
    ParameterError,
    Printed,
    QrelsLike,
    Row,
    Run,
    RunLike,
    Table,
    as_groups,
    as_qrels,
    as_run,
    naming,
    unmarked,
)
from greylag.evaluation.scoring.agreement import check_rows
from greylag.evaluation.scoring.measures import CUTOFF_LIMIT, JUDGED, Measure, parse_measures
from greylag.evaluation.scoring.scores import Scores, mean_difference, score_documents
from greylag.evaluation.scoring.significance import MOST_SENTENCES, DifferenceWithHoles, Significance

COLUMNS_NOTE = (
    "judged: the share of the documents down to the measure's cut-off that are judged. relevant: the score if all "
    "others that any run has down to the cut-off are relevant, with the highest grade of the judgements. left out: the "
    "score without them, and without documents of negative grade. own: relevant documents in this run's top k that no "
    "other run has in its top k. without own: the score had the run not been pooled."
)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Holes(Printed):
    """The scores of runs, by name, under three views of documents without judgements."""

    judged: Mapping[str, FloatArray]  # the share judged to the cut-off, over queries with documents, shape (measures,)
    not_relevant: Mapping[str, Scores]
    relevant: Mapping[str, Scores]
    left_out: Mapping[str, Scores]
    own: Mapping[str, IntArray]  # the relevant documents that no other run has to the cut-off, shape (measures,)
    without_own: Mapping[str, Scores]  # as if the run had not been in the pool
    by_team: bool = False  # whether the last two are of the other teams and of a run's whole team

    @property
    def table(self) -> Table:
        """A row for each run and measure."""
        views = (self.not_relevant, self.relevant, self.left_out)
        rows = [
            (name, str(measure), Marked(100 * share, ".1f", " %"), *means)
            for name, shares in self.judged.items()
            for measure, share, *means in zip(
                self.not_relevant[name].measures,
                shares.tolist(),
                *(view[name].means.tolist() for view in views),
                self.own[name].tolist(),
                self.without_own[name].means.tolist(),
                strict=True,
            )
        ]
        header = ("judged", "not relevant", "relevant", "left out", "own", "without own")
        note = COLUMNS_NOTE.replace("no other run has", "no run of another team has") if self.by_team else COLUMNS_NOTE
        note = note.replace("had the run not", "had its team not") if self.by_team else note
        return Table(note, ("run", "measure", *header), rows)

    def _table(self) -> Table:
        return self.table

    def of_runs(self, names: Iterable[str]) -> Holes:
        """Keep some of the runs, with what they had beside the others."""
        kept = [*names]
        views = {view.name: getattr(self, view.name) for view in fields(self) if view.name != "by_team"}
        some: dict[str, Any] = {view: {name: by_run[name] for name in kept} for view, by_run in views.items()}
        return replace(self, **some)

    def to_dict(self) -> dict[str, Any]:
        """Return, by run and measure, the share judged, the means, and the number of own documents."""
        keys, by_run = [name.replace(" ", "_") for name in self.table.header[2:]], dict[str, Any]()
        for name, measure, share, *means in unmarked(self.table):
            cells = zip(keys, (float(share or 0) / 100, *means), strict=True)
            by_run.setdefault(str(name), {})[str(measure)] = dict(cells)
        return by_run


def score_holes(
    runs: Mapping[str, RunLike],
    qrels: QrelsLike,
    measures: Sequence[Measure | str | Any],
    teams: GroupsLike | None = None,
) -> Holes:
    """Score runs with documents without judgements as not relevant, as relevant, and left out.

    The last view leaves out each run's own relevant documents, those that no other run has to the cut-off (Zobel 1998):
    how a run would score that had not been judged. With teams, those that no other team's run has, and none of them.

    For P, Success, RR, ERR and RBP the first two are the least and the greatest score that full judgements could give.
    They are not bounds for measures that divide by the relevant documents, such as AP, R and nDCG: more of these lower
    the score of a run that lacks them. The documents that count as relevant are the same for all runs, and so differ
    with the runs that are given.

    Parameters
    ----------
    runs : mapping
        Runs by name.
    qrels, measures
        See `evaluate`.
    teams : GroupsLike, optional
        Each run's team, by name of run. By default, each run is a team.
    """
    if isinstance(runs, Run) or not isinstance(runs, Mapping):
        raise ParameterError("runs are by name: pass {'bm25': run, 'mine': other}")
    by_name, qrels = {name: as_run(run, tag=name) for name, run in runs.items()}, as_qrels(qrels)
    known = {} if teams is None else as_groups(teams, "team")
    team_of = {name: known.get(name, name) for name in by_name}
    parsed = tuple(dict.fromkeys(replace(measure, judged_only=False) for measure in parse_measures(measures)))
    for measure in parsed:
        if measure.family.of_judging or measure.family.from_ir_measures:
            raise ParameterError(f"{measure} cannot be scored under several views of unjudged documents: leave it out")
    for name, run in by_name.items():
        with naming(name):
            check_rows(run, qrels)
    plain = {name: score_documents(run, qrels, parsed) for name, run in by_name.items()}
    relevant, without_own = ({name: scores.values.copy() for name, scores in plain.items()} for _ in range(2))
    own = {name: np.zeros(len(parsed), np.int64) for name in by_name}
    grades = [grade for judged in qrels.values() for grade in judged.values()]
    for column, measure in enumerate(parsed):
        tops = {
            name: {qid: run[qid].docids[: measure.cutoff] if qid in run else () for qid in qrels}
            for name, run in by_name.items()
        }
        held = {qid: {team: set[str]() for team in team_of.values()} for qid in qrels}
        for name, top in tops.items():
            for qid, docids in top.items():
                held[qid][team_of[name]].update(docids)
        # Of all runs, so that a document is relevant for every run if it is for one: else more judged runs would lose.
        highest = max(measure.rel, 1, *grades)
        filled = {
            qid: {**dict.fromkeys(chain(*(top[qid] for top in tops.values())), highest), **judged}
            for qid, judged in qrels.items()
        }
        rewarded = {qid: {d for d, grade in judged.items() if grade >= measure.rel} for qid, judged in qrels.items()}
        ranked = {qid: Counter(chain(*(docids & rewarded[qid] for docids in held[qid].values()))) for qid in qrels}
        for name, run in by_name.items():
            team = team_of[name]
            alone = {qid: {d for d in held[qid][team] & rewarded[qid] if ranked[qid][d] == 1} for qid in qrels}
            others = {qid: {d: g for d, g in judged.items() if d not in alone[qid]} for qid, judged in qrels.items()}
            own[name][column] = sum(len(alone[qid].intersection(top)) for qid, top in tops[name].items())
            relevant[name][:, column] = score_documents(run, filled, [measure]).values[:, 0]
            without_own[name][:, column] = score_documents(run, others, [measure]).values[:, 0]
    cutoffs = [Measure(JUDGED, measure.cutoff or CUTOFF_LIMIT) for measure in parsed]
    shares = {}
    for name, run in by_name.items():
        judged_to = score_documents(run, qrels, cutoffs)  # a mean over the queries with documents
        means = judged_to.values.sum(axis=0) / max(judged_to.ranked.sum(), 1)
        shares[name] = means[[judged_to.measures.index(cutoff) for cutoff in cutoffs]]
    # Each measure at its own cut-off: what lies below it changes neither its score nor its share.
    judged_only = [replace(measure, judged_only=True) for measure in parsed]
    return Holes(
        shares,
        plain,
        {name: replace(plain[name], values=values) for name, values in relevant.items()},
        {name: replace(score_documents(run, qrels, judged_only), measures=parsed) for name, run in by_name.items()},
        own,
        {name: replace(plain[name], values=values) for name, values in without_own.items()},
        teams is not None,
    )


def compare_with_holes(significance: Significance, holes: Holes) -> Significance:
    """Add to each comparison its difference under each view of documents without judgements."""
    comparisons = []
    for comparison in significance.comparisons:
        run, baseline = comparison.run, comparison.baseline
        column = holes.not_relevant[run].measures.index(replace(comparison.measure, judged_only=False))
        views = (holes.not_relevant, holes.relevant, holes.left_out)
        differences = (mean_difference(view[run].means[column], view[baseline].means[column]) for view in views)
        comparisons.append(replace(comparison, holes=DifferenceWithHoles(*differences)))
    return replace(significance, comparisons=tuple(comparisons))


def holes_table(significance: Significance) -> Table:
    """Report the differences of `compare_with_holes`, with sentences."""
    rows: list[Row] = [
        (c.run, c.baseline, str(c.measure), *(Marked(view, "+.4f") for view in asdict(c.holes).values()))
        for c in significance.comparisons
        if c.holes is not None
    ]
    header = ("run", "against", "measure", "not relevant", "relevant", "left out")
    return Table("\n".join(holes_sentences(significance)), header, rows)


def holes_sentences(significance: Significance) -> list[str]:
    """Write which orders depend on documents without judgements; of many, how many by each measure."""
    compared = [c for c in significance.comparisons if c.holes and not c.not_run]
    told = [(c.measure, c.holes.sentence(c.run, c.baseline, str(c.measure))) for c in compared if c.holes]
    shown = [(measure, sentence) for measure, sentence in told if sentence]
    if len(shown) <= MOST_SENTENCES:
        return [sentence for _, sentence in shown]
    pairs = Counter(measure for measure, _ in told)
    return [
        f"By {measure}, the order of {number} of {pairs[measure]} pairs of runs depends on documents without "
        "judgements."
        for measure, number in Counter(measure for measure, _ in shown).items()
    ]
