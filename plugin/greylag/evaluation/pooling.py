"""Pools: the documents for people to judge, the top of each run or team (Sparck Jones and van Rijsbergen 1975)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from greylag.core.checks import check_counts
from greylag.core.foreign import as_qrels
from greylag.core.guidance import guided
from greylag.core.tables import Printed, Table
from greylag.errors import ParameterError
from greylag.evaluation.teams import Teams, assign_teams
from greylag.ranking import Ranking, Run, as_run
from greylag.trec.runs import RunParts


@dataclass(frozen=True, slots=True, repr=False)
class JudgingPool(Printed):
    """The documents to judge, and what each run has among them; ``str`` is a table of the runs."""

    documents: Mapping[str, tuple[str, ...]]  # by qid, those of a topic by docid, which tells no ranks
    judged: int  # further documents of the pool, which are judged already
    omitted: int  # further documents, which were not drawn
    counts: Mapping[str, tuple[str | int, ...]]  # by run: team; of its top: pooled, of no other team, judged, to judge
    most: ClassVar[int] = 1000

    @property
    def lines(self) -> str:
        """A line ``qid docid`` for each document."""
        return "".join(f"{qid} {docid}\n" for qid, docids in self.documents.items() for docid in docids)

    def _table(self) -> Table:
        number = sum(map(len, self.documents.values()))
        drawn = f", {self.omitted} not drawn" if self.omitted else ""
        caption = f"{number} documents of {len(self.documents)} topics to judge; {self.judged} judged already{drawn}"
        header = ("run", "team", "pooled", "of no other team", "judged", "to judge")
        return Table(caption, header, [(name, *row) for name, row in self.counts.items()])


@guided
def pool_runs(
    runs: Mapping[str, Run | str | Path | Any],
    depth: int,
    *,
    teams: Teams | None = None,
    judged: Any = None,
    sample: int | None = None,
    seed: int = 0,
) -> JudgingPool:
    """Pool the top documents of each run, or of each team, for each topic.

    A team's runs are merged rank by rank, its first run first, until `depth` different documents are there: a team
    with ten runs has as many as a team with one, whose documents are the top `depth` of its run.

    Parameters
    ----------
    runs : mapping of str to Run, path, or a run that `evaluate` takes
        Runs by name, those of a team in the order of their priority.
    depth : int >= 1
        The number of documents for a topic.
    teams : mapping of str to str, path or str, optional
        Teams by name or tag of run, a file of these in two columns, or a regular expression, whose first group is the
        team in a run's tag or name. By default, each run is a team.
    judged : path or judgements, optional
        Judgements so far: their documents are pooled, and not judged again.
    sample : int >= 1, optional
        Draw at most so many of a topic's documents to judge, each with the same probability.
    seed : int >= 0, default 0
        Seeds the draw, which depends on no other topic.
    """
    check_counts(depth=depth, **({} if sample is None else {"sample": sample}))
    if isinstance(runs, Run) or not isinstance(runs, Mapping):
        raise ParameterError("runs are by name: pass {'bm25': run, 'mine': other}")
    tops = {name: _top(run, depth) for name, run in runs.items()}
    of_run = assign_teams(
        {name: (top.tag, name) for name, top in tops.items()}, {n: n for n in runs} if teams is None else teams
    )
    known = {} if judged is None else as_qrels(judged)
    counts, documents, judged_before, omitted = {name: Counter[str]() for name in tops}, {}, 0, 0
    for qid in dict.fromkeys(chain.from_iterable(tops.values())):
        ranked = {name: top[qid] for name, top in tops.items() if qid in top}
        pooled = {
            team: {*_merged((one for name, one in ranked.items() if of_run[name] == team), depth)}
            for team in dict.fromkeys(map(of_run.__getitem__, ranked))
        }
        holders = Counter(chain.from_iterable(pooled.values()))
        before = holders.keys() & known.get(qid, {}).keys()
        rest = sorted(holders.keys() - before)
        if sample is not None and len(rest) > sample:
            drawn = np.random.default_rng([seed, *qid.encode()]).choice(len(rest), sample, replace=False)
            omitted += len(rest) - sample
            rest = [rest[place] for place in sorted(drawn.tolist())]
        judged_before += len(before)
        documents[qid] = tuple(rest)
        for name, ranking in ranked.items():
            own = pooled[of_run[name]].intersection(ranking.docids)
            alone = sum(holders[docid] == 1 for docid in own)
            counts[name] += Counter(
                pooled=len(own), alone=alone, judged=len(own & before), left=len(own.intersection(rest))
            )
    rows = {n: (of_run[n], of["pooled"], of["alone"], of["judged"], of["left"]) for n, of in counts.items()}
    return JudgingPool(documents, judged_before, omitted, rows)


def _top(run: Any, depth: int) -> Run:
    """Return the top documents of a run, of whose file no others are kept."""
    if isinstance(run, str | Path | RunParts):
        parts = run if isinstance(run, RunParts) else RunParts(run)
        return parts.apply(lambda read: _joined([part.head(depth) for part in read]))
    return as_run(run).head(depth)


def _joined(parts: list[Run]) -> Run:
    return Run(tuple(ranking for part in parts for ranking in part.rankings), parts[0].tag)


def _merged(rankings: Iterable[Ranking], depth: int) -> Iterable[str]:
    """Return the first different documents of rankings, rank by rank."""
    by_rank = chain.from_iterable(zip_longest(*(ranking.docids for ranking in rankings)))
    return islice(dict.fromkeys(docid for docid in by_rank if docid is not None), depth)
